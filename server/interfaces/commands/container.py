"""`sealab container`: builds the image that containers run, says how they stand on this machine, and writes a profile.

The profile is the system call filter with which an engine's container leaves room for all layers of sealab: the level
`kernel`. An engine's own filter allows no namespaces without a privilege, which leaves the level `landlock`. This one
allows them, and refuses what a container has no use for: what loads code into the kernel, sets the machine's clocks and
devices, or looks into other processes (seccomp(2), capabilities(7)). The sandbox adds its own allow list.

What is imported here is there on every system.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ....sandbox.errors import ContainerMissing
from ....sandbox.job import Isolation
from ...base.errors import Exit, UsageError
from ...base.home import find_home
from ...base.startup.package_names import misnamed
from .command import AuditedAs, Group
from .terminal import Here, Output, print_error

container = Group()

REFUSED = (
    *(
        "acct",
        "bpf",
        "delete_module",
        "finit_module",
        "init_module",
        "kexec_file_load",
        "kexec_load",
        "perf_event_open",
    ),
    *("add_key", "keyctl", "request_key", "open_by_handle_at", "name_to_handle_at", "lookup_dcookie", "nfsservctl"),
    *("adjtimex", "clock_adjtime", "clock_settime", "settimeofday", "ioperm", "iopl", "quotactl", "quotactl_fd"),
    *("process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "ptrace", "kcmp", "reboot", "syslog"),
    *("swapoff", "swapon", "sysfs", "userfaultfd", "uselib", "ustat", "vhangup", "personality", "fanotify_init"),
    *("io_uring_enter", "io_uring_register", "io_uring_setup", "mbind", "migrate_pages", "move_pages", "set_mempolicy"),
)
"""System calls that fail with EPERM."""

_EPERM = 1


def profile() -> dict[str, object]:
    """Return the filter as Docker and Podman read it (`--security-opt seccomp=FILE`)."""
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": sorted(REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM}],
    }


def write_profile(file: Path) -> Path:
    """Write the filter to a file, unless it stands there already, and return the file's absolute path."""
    text = json.dumps(profile(), indent=1) + "\n"
    file = file.absolute()
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    return file


class ContainerStatus(TypedDict):
    """How containers stand: what would run them, what in, and which of the engine's limits held when tried."""

    usable: bool
    allowed: bool
    engine: str | None
    limits_held: list[str]
    image: str | None
    python: str | None
    packages: dict[str, str]
    problem: str | None


@container.command(needs_home=False)
def profile_(_here: Here, file: Path | None = None, *, home: str | None = None) -> Output:
    """Write a seccomp profile with which a container of Docker or Podman allows the level kernel.

    file: where to write it (default: below the home)
    home DIR: the folder below which sealab keeps everything
    """
    place = find_home(home, os.environ).containers / "seccomp.json" if file is None else file
    try:
        written = write_profile(place)
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}. Name another FILE.") from None
    return Output(
        {"file": str(written)},
        (
            f"docker run -i --rm --security-opt seccomp={written} -v sealab:/home/sealab sealab",
            "Where Docker uses AppArmor (Debian, Ubuntu), add --security-opt apparmor=unconfined.",
        ),
    )


@container.command(audit=AuditedAs())
def build(here: Here, *, with_: Sequence[str] = ()) -> Output:
    """Make an image of this Python, without a registry, for isolation=container.

    with_ PACKAGE: a package to install in it
    """
    from ....sandbox.container import engine, image

    home, runtime = here.home, here.settings.container_runtime
    for package in with_:
        if meant := misnamed(package):
            raise UsageError(f"{package} is a module of {meant}. Write `--with {meant}`.")
    home.prepare()
    copied = engine.needs_copy(runtime)
    if copied:
        engine.require_running(runtime)
    built = image.build(home.containers, with_, lambda step: print_error(f"{step} …"))
    if copied:
        print_error("Giving docker a copy …")
        built = image.remember_name(built, engine.load_into_docker(built, runtime))
    print_error("Running a container to see which limits hold …")
    status = asyncio.run(_status_of(here))
    holds = ", ".join(f"{name} {version}" for name, version in sorted((built.packages or {}).items()))
    lines = (
        f"Built an image with Python {built.python_version}{f' and {holds}' if holds else ''}.",
        status["problem"] or f"It runs with {status['engine']}.",
    )
    return Output(status, lines, Exit.OK if status["problem"] is None else Exit.FAILED)


@container.command()
async def status(here: Here) -> Output:
    """Show the container engine, the image, and which limits held when tried."""
    found = await _status_of(here)
    held = ", ".join(found["limits_held"]) or "none; resource limits inside hold instead"
    shown = {
        "engine": found["engine"] or ("none that works" if found["image"] else "not tried without an image"),
        "image": found["image"] or "none",
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(found["packages"].items())) or "none",
        "limits": held if found["engine"] else "not tried",
    }
    lines = [f"{what:<10}{value}" for what, value in shown.items()]
    lines.append(found["problem"] or "Containers can be used.")
    return Output(found, lines, Exit.OK if found["usable"] else Exit.FAILED)


async def _status_of(here: Here) -> ContainerStatus:
    """Run a container, if there is an image for it, and see."""
    from ....sandbox.container import engine, image  # which only Linux has all of
    from ...use_cases.runs.isolations import NO_IMAGE, allowed_isolations, chosen_image

    home, settings = here.home, here.settings
    chosen = chosen_image(settings, home)
    allowed = Isolation.CONTAINER in allowed_isolations(settings)
    found: engine.Engine | None = None
    problem = None if allowed else "ALLOWED_ISOLATION leaves out container. Add it to use containers."
    try:
        if chosen is not None:
            code = await asyncio.to_thread(image.code, home.containers)
            state, cpus = home.containers / "engine", settings.cpus is not None
            found = await engine.find(settings.container_runtime, chosen, code, state, cpus=cpus)
        else:
            problem = problem or NO_IMAGE
    except ContainerMissing as error:
        problem = problem or str(error)
    held = []
    if found is not None:
        held = [("memory", found.memory_held), ("processes", found.processes_held), ("cpus", found.cpus_held)]
    return ContainerStatus(
        usable=problem is None,
        allowed=allowed,
        engine=None if found is None else found.title,
        limits_held=[limit for limit, holds in held if holds],
        image=None if chosen is None else chosen.title,
        python=None if chosen is None else chosen.python_version or None,
        packages={} if chosen is None else dict(chosen.packages or {}),
        problem=problem,
    )
