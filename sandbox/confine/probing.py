"""Finds out which layers this machine offers, by setting each up in a throw-away process."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
from collections.abc import Callable

from ..job import Isolation
from ..levels import LayerFinding, Probe
from . import cgroups, confine_zygote, landlock, layout, libc, namespaces, overlay, privileges, processors
from .system_calls import allow_list, numbers, seccomp

_TRY_SECONDS = 10
_NO_LINUX = "only Linux has it"
_ON_LINUX = "Run the server on Linux, or in a Linux container, for kernel isolation."
_USER_NAMESPACES = (
    "Allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0; in Docker a seccomp profile that lets clone and unshare pass)."
)


def probe() -> Probe:
    """Try every layer once, each in a process of its own.

    Call it from a process with one thread. It never raises, and leaves nothing behind.
    """
    if sys.platform != "linux":
        missing = (LayerFinding(name, False, _NO_LINUX, _ON_LINUX) for name in ("seccomp", "landlock", "namespaces"))
        return Probe(findings=(LayerFinding("process", True, "a fresh process for every run"), *missing))
    abi, landlock_finding = _landlock()
    return Probe(
        findings=(_process(), _seccomp(), landlock_finding, _namespaces(), _cgroup(), _cpus()),
        landlock_abi=abi if landlock_finding.available else 0,
        is_root=os.geteuid() == 0,
    )


def _process() -> LayerFinding:
    def give_up() -> None:
        privileges.leave_root()
        privileges.drop_capabilities()
        privileges.no_new_privileges()
        privileges.die_with_parent()
        privileges.set_dumpable(False)

    failure = _attempt(give_up)
    if failure is None:
        return LayerFinding("process", True, "a fresh process for every run, without privileges")
    return LayerFinding("process", False, failure, "Run the server as an ordinary user, or as root with CAP_SETUID.")


def _seccomp() -> LayerFinding:
    if not numbers.ARCHITECTURE.numbers:
        return LayerFinding("seccomp", False, f"no table for {os.uname().machine}", "Use x86-64 or arm64.")

    def filtered() -> None:
        privileges.no_new_privileges()
        seccomp.build(allow_list.RESTRICTED).load()

    failure = _attempt(filtered)
    if failure is None:
        return LayerFinding("seccomp", True, "an allow list of system calls can be loaded")
    return LayerFinding(
        "seccomp", False, failure, "Use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows it."
    )


def _landlock() -> tuple[int, LayerFinding]:
    try:
        abi = landlock.abi()
    except OSError as error:
        reason = "switched off at boot" if error.errno == errno.EOPNOTSUPP else str(error)
        remedy = "Use Linux 5.13 or newer with landlock among the security modules (boot option lsm=)."
        return 0, LayerFinding("landlock", False, reason, remedy)

    def restricted() -> None:
        privileges.no_new_privileges()
        landlock.restrict(landlock.ruleset(abi, ("/usr",), ()))

    failure = _attempt(restricted)
    if failure is not None:
        return 0, LayerFinding(
            "landlock", False, failure, "Let the container's seccomp profile allow landlock_restrict_self."
        )
    return abi, LayerFinding("landlock", True, f"ABI {abi}")


def _namespaces() -> LayerFinding:
    def enter_namespaces() -> None:
        proc_fd = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        confine_zygote.move_in(layout.layout_for(Isolation.RESTRICTED, None), proc_fd)
        privileges.leave_root()
        privileges.drop_capabilities()
        uid, gid = os.geteuid(), os.getegid()

        def be_first() -> None:
            privileges.set_dumpable(True)
            namespaces.map_ids(proc_fd, uid, gid)
            namespaces.set_host_name()

        failure = _attempt(be_first, lambda: namespaces.fork_into(namespaces.ALL))
        if failure is not None:
            raise OSError(failure)

    failure = _attempt(enter_namespaces)
    if failure is None:
        return LayerFinding("namespaces", True, "user, mount, pid, net, ipc, uts, with a root of its own")
    return LayerFinding("namespaces", False, failure, _USER_NAMESPACES)


def _cgroup() -> LayerFinding:
    try:
        where = cgroups.where()
    except OSError as error:
        return LayerFinding("cgroup", False, str(error), "Nothing needs to be done: each worker has its own limits.")
    if where is None:
        detail = "no writable control group has the memory and pids controllers"
        return LayerFinding("cgroup", False, detail, "Nothing needs to be done: each worker has its own limits.")
    return LayerFinding("cgroup", True, f"groups can be made in {where}; their limits are tried when a zygote starts")


def _cpus() -> LayerFinding:
    try:
        where = cgroups.where_processors()
    except OSError:
        where = None
    if where is None:
        detail = "CPUS takes whole processors here, held by affinity: no writable control group has the cpu controller"
        return LayerFinding(processors.LAYER, True, detail)
    return LayerFinding(processors.LAYER, True, f"CPUS can be any share: groups can be made in {where}")


def probe_overlay(folder: str) -> LayerFinding:
    """Try whether workers whose folders are below `folder`, which is made if missing, could write to the workspace.

    Call it from a process with one thread. Leaves nothing behind in the folder.
    """
    if sys.platform != "linux":
        return LayerFinding("overlay", False, _NO_LINUX, _ON_LINUX)
    import tempfile  # which no zygote needs

    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="trial-", dir=folder, ignore_cleanup_errors=True) as own:
            parts = [os.path.join(own, part) for part in ("lower", "upper", "work", "merged")]
            for part in parts:
                os.mkdir(part, 0o700)
            if os.geteuid() == 0:
                for part in (own, *parts):
                    os.chown(part, privileges.NOBODY, privileges.NOBODY)
            failure = _attempt(lambda: _write_through_overlay(own))
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(own, "work", "work"), 0o700)  # the kernel's, closed to all
    except OSError as error:
        failure = str(error)
    if failure is None:
        return LayerFinding("overlay", True, "full Python can write to the workspace through an overlay")
    return LayerFinding(
        "overlay",
        False,
        failure,
        "Use Linux 5.11 or newer, and a home on ext4, xfs, btrfs or tmpfs, not on an overlay.",
    )


def _write_through_overlay(own: str) -> None:
    proc_fd = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir(own)
    privileges.leave_root()
    uid, gid = os.geteuid(), os.getegid()
    privileges.set_dumpable(True)

    def write() -> None:
        namespaces.map_ids(proc_fd, uid, gid)
        libc.mount_private("/")
        overlay.lay_over("lower", "upper", "work", at="merged")
        os.mkdir("merged/a")
        os.rename("merged/a", "merged/b")

    failure = _attempt(write, lambda: namespaces.fork_into(namespaces.NEW_USER | namespaces.NEW_MOUNT))
    if failure is not None:
        raise OSError(failure)


def _attempt(action: Callable[[], None], fork: Callable[[], int] = os.fork) -> str | None:
    """Do it in a child process: None when it succeeded, else what went wrong. Never raises OSError."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        try:
            pid = fork()
        except OSError as error:
            return str(error)
        if pid == 0:
            _report(action, writing)
        os.close(writing)
        writing = -1
        return _outcome(pid, reading)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _report(action: Callable[[], None], writing: int) -> None:
    try:
        action()
        os.write(writing, b"+")
    except BaseException as error:  # noqa: BLE001 - this process ends here, whatever it was
        os.write(writing, f"-{error}".encode())
    finally:
        os._exit(0)


def _outcome(pid: int, reading: int) -> str | None:
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    reply = os.read(reading, 4096).decode() if poll.poll(_TRY_SECONDS * 1000) else "-it did not answer"
    os.kill(pid, signal.SIGKILL)
    _pid, status = os.waitpid(pid, 0)
    if reply.startswith("+"):
        return None
    return reply[1:] or f"the process that tried it ended with {os.waitstatus_to_exitcode(status)}"
