"""Finds a container engine, podman or docker, and builds its command lines for sealab's containers.

Engines differ in what works where: an OCI runtime may refuse a machine's control groups, an engine without root may
ignore limits silently. So nothing is assumed: `find` runs a container with small limits and has it try them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..confine import processors
from ..confine.limits import CONTAINED_PROCESSES_MAX
from ..errors import ContainerMissing
from ..wire.zygote_config import PACKETS
from . import limit_checks
from .image import CODE_INSIDE, LIBRARIES_INSIDE, ContainerImage
from .messages import CONTROL_FD

NOBODY = 65534
SCRATCH_MB = 64
ENGINES = ("podman", "docker")
OTHER_RUNTIMES: Mapping[str, tuple[str, ...]] = {"podman": ("", "runc", "crun"), "docker": ("",)}
"""OCI runtimes to try with each engine; "" is its own choice."""

HOW_TO_INSTALL = "Install podman (Debian: apt install podman runc uidmap slirp4netns), or docker."

_HOW_TO_START = "Start it: systemctl start docker, podman machine start, or the desktop program."
_STOPPED = re.compile(r"daemon running|annot connect to|failed to connect to|connection refused", re.IGNORECASE)
"""What the clients of engines say when nothing answers them."""

_TRIAL_SECONDS = 60.0
_RUN_CHARS_MAX = 50
"""Podman refuses a longer path, since it makes sockets below it."""
_OPEN_FILES = 1024
_STACK_BYTES = 256 * limit_checks.MIB
_SHOWING = (
    "import json,sys;sys.path[:]=json.loads(sys.argv[1]);"
    "from sealab.sandbox.container.idmapped_engine import main;main()"
)
# The packages of an image are found where its Python looks for them, and beside its library, since Debian's Python
# looks elsewhere. -S leaves both out, so that nothing of the image runs at the start that sealab did not ask for.
_FORK_SERVER = (
    "import os,sys,sysconfig;"
    "sys.path+=[sysconfig.get_path('purelib'),os.path.dirname(os.__file__)+'/site-packages',sys.argv[1]];"
    "from sealab.sandbox.container.fork_server import main;main()"
)
_PASSING = (
    "import os,sys;ours,theirs=map(int,sys.argv[1:3]);os.dup2(ours,theirs);"
    "ours==theirs or os.close(ours);os.execvp(sys.argv[3],sys.argv[3:])"
)
_ANSWER_BYTES = 1 << 16
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine that works here. `runtime` is the OCI runtime to ask for ("" for its own choice, `runsc` is gVisor).

    `state` is the folder below which podman keeps everything, or None for the engine's own place. `memory_held`,
    `processes_held` and, where that was asked for, `cpus_held` say which of its limits were proved by running into
    them. `direct` says that it passes a socket into a container.
    """

    kind: str
    program: str
    runtime: str = ""
    state: Path | None = None
    memory_held: bool = False
    processes_held: bool = False
    cpus_held: bool = False
    direct: bool = False

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return f"{self.kind} with {self.runtime}" if self.runtime else self.kind

    @property
    def layers(self) -> list[str]:
        """Name the layers that a container adds to what confines a worker in it."""
        grouped = ["cgroup"] if self.memory_held and self.processes_held else []
        return ["container", *grouped, *([processors.LAYER] if self.cpus_held else [])]

    def base(self) -> list[str]:
        """Begin a command of the engine."""
        if self.kind != "podman" or self.state is None:
            return [self.program]
        command = [self.program, "--root", str(self.state / "storage"), "--tmpdir", str(self.state / "tmp")]
        run = str(self.state / "run")
        if len(run) <= _RUN_CHARS_MAX:
            command += ["--runroot", run]  # else podman keeps what lives as long as a container in its own place
        # Without images there are no layers, for which this driver alone needs nothing of the kernel.
        command += ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
        return [*command, "--runtime", self.runtime] if self.runtime else command

    def run(
        self,
        image: ContainerImage,
        code: Path,
        *,
        name: str,
        memory_mb: int,
        processes: int,
        cpus: float | None = None,
        workspace: Path | None = None,
        trial: bool = False,
        command: Sequence[str],
    ) -> list[str]:
        """Give the command that runs a container of that name in the foreground; it is gone once it has ended.

        It has no network, no capability, nothing that can be written but a scratch directory, and no way to gain
        privileges; the engine's own system call filter stays on. Where the engine does not hold the limit of processes,
        a resource limit stands in, but not in a `trial` of the engine's own. An engine that is `direct` hands on the
        descriptor `CONTROL_FD` of the process that becomes it, else its standard input.
        """
        own = ["--rootfs"] if image.root is not None and self.kind == "podman" else []
        arguments = [*self._as_its_owner(workspace), *self.base(), "run", "--rm", "--name", name]
        arguments += ["--preserve-fds", "1"] if self.direct else ["--interactive"]
        if self.kind == "docker" and self.runtime:
            arguments += ["--runtime", self.runtime]
        arguments += ["--network", "none", "--read-only", "--cap-drop", "ALL"]
        arguments += ["--security-opt", "no-new-privileges", "--user", f"{NOBODY}:{NOBODY}"]
        arguments += ["--memory", f"{memory_mb}m", "--memory-swap", f"{memory_mb}m", "--pids-limit", str(processes)]
        arguments += [] if cpus is None else ["--cpus", f"{cpus:g}"]
        arguments += ["--ipc", "none", "--hostname", "sandbox", "--workdir", "/", "--log-driver", "none"]
        arguments += ["--tmpfs", f"/tmp:rw,noexec,nosuid,nodev,size={SCRATCH_MB}m,mode=1777"]  # noqa: S108 - inside
        arguments += ["--ulimit", _limit("nofile", resource.RLIMIT_NOFILE, _OPEN_FILES)]
        own_limit = CONTAINED_PROCESSES_MAX if trial or self.processes_held else processes
        arguments += ["--ulimit", _limit("nproc", resource.RLIMIT_NPROC, own_limit)]
        arguments += ["--ulimit", _limit("stack", resource.RLIMIT_STACK, _STACK_BYTES), "--ulimit", "core=0:0"]
        arguments += ["--env", f"LD_LIBRARY_PATH={LIBRARIES_INSIDE}"] if image.root is not None else []
        arguments += ["--env", "OPENBLAS_NUM_THREADS=1", "--volume", f"{code}:{CODE_INSIDE}:ro"]
        arguments += ["--volume", f"{workspace}:/workspace:ro"] if workspace is not None else []
        if self.kind == "podman":
            arguments += ["--read-only-tmpfs=false", "--no-hosts", "--http-proxy=false", "--pull=never"]
            arguments += [] if os.geteuid() == 0 else [f"--userns=keep-id:uid={NOBODY},gid={NOBODY}"]
        else:
            arguments += ["--pull=never", "--entrypoint", ""]
        where = image.root if own else (image.name or "")
        return [*arguments, *own, where or "", *command]

    def fork_server(self, image: ContainerImage) -> list[str]:
        """Give the command that a container runs to be a fork server."""
        return [image.python, "-I", "-S", "-X", "utf8", "-c", _FORK_SERVER, CODE_INSIDE]

    def _as_its_owner(self, workspace: Path | None) -> list[str]:
        """Let root's files be nobody's inside, by a mount that only the engine's own process sees."""
        if workspace is None or self.kind != "podman" or os.geteuid() != 0:
            return []
        path = json.dumps([os.path.abspath(path) for path in sys.path if path])
        return [sys.executable, "-I", "-S", "-c", _SHOWING, path, str(workspace)]

    def cwd(self) -> str:
        """Give a directory for the engine to work in: podman's monitor leaves a file there when memory runs out."""
        if self.state is None:
            return "/"
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(self.state)

    async def remove(self, name: str) -> None:
        """End a container at once, whatever it is doing."""
        status, _said, complaint = await _output_of(
            [*self.base(), "rm", "--force", "--time", "0", name], seconds=30.0, cwd=self.cwd()
        )
        if status:
            _LOG.warning("The container %s could not be removed: %s", name, complaint.strip()[-500:])


async def find(wanted: str | None, image: ContainerImage, code: Path, state: Path, *, cpus: bool = False) -> Engine:
    """Find an engine that runs `image`, and prove which of its limits hold.

    `wanted` is the operator's choice: the name or path of an engine, with `:` and an OCI runtime if it should not be
    the engine's own. `cpus` says that a share of the processors should be tried too. Raises `ContainerMissing`, which
    says what was tried and what to do.
    """
    reasons = []
    for engine in _candidates(wanted, image, state):
        # Some engines run nothing if they cannot hold a share of the processors, or pass nothing in.
        for direct, with_cpus in itertools.product((True, False), (True, False)):
            if (direct and engine.kind != "podman") or (with_cpus and not cpus):
                continue
            try:
                return await _tried(replace(engine, direct=direct), image, code, cpus=with_cpus)
            except ContainerMissing as error:
                reason = f"{engine.title}: {error}"
        reasons.append(reason)
    if stopped := [reason.partition(":")[0] for reason in reasons if _STOPPED.search(reason)]:
        raise ContainerMissing(f"{stopped[0]} is installed, but not running. {_HOW_TO_START}")
    if not reasons:
        raise ContainerMissing(f"There is no container engine {wanted or 'on this machine'}. {HOW_TO_INSTALL}")
    machine = "" if sys.platform == "linux" else "Start its machine with `podman machine start` or Docker Desktop. "
    raise ContainerMissing(
        f"No container could be run ({'; '.join(reasons)}). {machine}Look into the engine's own messages."
    )


def is_there(wanted: str | None) -> bool:
    """Return whether there is a program that could be the engine; whether it works shows when it is used."""
    program = (wanted or "").partition(":")[0]
    return any(shutil.which(name) for name in ([program] if program else ENGINES))


def needs_copy(wanted: str | None) -> bool:
    """Return whether the engine will be docker, which runs only images that it holds itself."""
    program = (wanted or "").partition(":")[0]
    return "docker" in os.path.basename(program) if program else shutil.which("podman") is None


def require_running(wanted: str | None) -> None:
    """Raise `ContainerMissing` where docker is not there, or is stopped."""
    program = (wanted or "").partition(":")[0] or "docker"
    try:
        asked = subprocess.run([program, "info"], capture_output=True, text=True, timeout=_TRIAL_SECONDS, check=False)
    except OSError:
        raise ContainerMissing(f"There is no container engine {program}. {HOW_TO_INSTALL}") from None
    except subprocess.TimeoutExpired:
        raise ContainerMissing(f"{program} does not answer. {_HOW_TO_START}") from None
    if _STOPPED.search(asked.stdout + asked.stderr):
        raise ContainerMissing(f"{program} is installed, but not running. {_HOW_TO_START}")


def load_into_docker(image: ContainerImage, wanted: str | None) -> str:
    """Give docker a copy of an image that was built here, and return its name. Raises `ContainerMissing`."""
    program = (wanted or "").partition(":")[0] or "docker"
    assert image.root is not None
    name = f"sealab-local:{Path(image.root).parent.name.removeprefix('build-').lower()}"
    try:
        with subprocess.Popen(["tar", "-C", image.root, "-c", "."], stdout=subprocess.PIPE) as packing:
            subprocess.run(
                [program, "import", "-", name], stdin=packing.stdout, check=True, capture_output=True, timeout=600
            )
    except (OSError, subprocess.SubprocessError) as error:
        error_output = getattr(error, "stderr", None) or str(error).encode()
        raise ContainerMissing(
            f"docker does not take the image: {error_output.decode('utf-8', 'replace').strip()[-300:]}. "
            "Look whether docker runs, and whether you may use it."
        ) from None
    return name


def _candidates(wanted: str | None, image: ContainerImage, state: Path) -> list[Engine]:
    program, _, runtime = (wanted or "").partition(":")
    found = []
    for name in [program] if program else ENGINES:
        path = shutil.which(name)
        kind = "docker" if "docker" in os.path.basename(name) else "podman"
        if path is None or (kind == "docker" and image.root is not None and image.name is None):
            continue
        own_state = state if kind == "podman" and image.root is not None else None
        choices = (
            [runtime] if runtime else [choice for choice in OTHER_RUNTIMES[kind] if not choice or _is_there(choice)]
        )
        found += [Engine(kind, path, choice, own_state) for choice in choices]
    return found


def _is_there(program: str) -> bool:
    """Look for an OCI runtime where an engine looks, which is more than an ordinary user's path."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin") is not None


async def _tried(engine: Engine, image: ContainerImage, code: Path, *, cpus: bool) -> Engine:
    """Run the trials in a container with small limits. Raises `ContainerMissing` when it does not run."""
    name = new_name()
    command = engine.run(
        image,
        code,
        name=name,
        memory_mb=limit_checks.TRIAL_MEMORY_MB,
        processes=limit_checks.TRIAL_PROCESSES,
        cpus=limit_checks.TRIAL_CPUS if cpus else None,
        trial=True,
        command=[image.python, "-I", "-S", f"{CODE_INSIDE}/sealab/sandbox/container/limit_checks.py"],
    )
    try:
        status, said, complaint = await (_passed_output_of if engine.direct else _output_of)(
            command, seconds=_TRIAL_SECONDS, cwd=engine.cwd()
        )
    except TimeoutError:
        await engine.remove(name)
        raise ContainerMissing(f"it did not answer within {_TRIAL_SECONDS:g} seconds") from None
    try:
        held = json.loads(said)
        return replace(
            engine,
            memory_held=held["memory"] is True,
            processes_held=held["processes"] is True,
            cpus_held=cpus and held["cpus"] is True,
        )
    except (ValueError, KeyError, TypeError):
        last = re.sub(r"\s+", " ", complaint.strip().rpartition("\n")[2])[:500]
        raise ContainerMissing(last or f"it ended with {status}") from None


def passing(descriptor: int, command: Sequence[str]) -> list[str]:
    """Run a command with a descriptor of this process under the number that an engine hands on."""
    return [sys.executable, "-I", "-S", "-c", _PASSING, str(descriptor), str(CONTROL_FD), *command]


async def _passed_output_of(command: Sequence[str], *, seconds: float, cwd: str) -> tuple[int, str, str]:
    """Do the same as `_output_of` for a command that writes into a descriptor which it is sent over the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS)
    reading, writing = os.pipe()
    try:
        with theirs:
            with ours:
                socket.send_fds(ours, [limit_checks.ANSWER_HERE], [writing])
                given = passing(theirs.fileno(), command)
                status, _said, complaint = await _output_of(given, seconds=seconds, cwd=cwd, pass_fds=[theirs.fileno()])
            os.close(writing)
            writing = -1
        # What was not read from the socket was closed with it. A process that read it may run on silently.
        os.set_blocking(reading, False)
        try:
            answer = os.read(reading, _ANSWER_BYTES)
        except BlockingIOError:
            answer = b""
        return status, answer.decode("utf-8", "replace"), complaint
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


async def _output_of(
    command: Sequence[str], *, seconds: float, cwd: str, pass_fds: Sequence[int] = ()
) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
        cwd=cwd,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    try:
        async with asyncio.timeout(seconds):
            said, complaint = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return process.returncode or 0, said.decode("utf-8", "replace"), complaint.decode("utf-8", "replace")


def environment() -> dict[str, str]:
    """Give the variables that an engine needs to find its own things; no proxy, since containers have no network."""
    return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def new_name() -> str:
    """Make a name for a container that no other has."""
    return f"sealab-{os.getpid()}-{uuid.uuid4().hex[:12]}"


def _limit(name: str, limit: int, most: int) -> str:
    """Write a limit no higher than this process's own: an engine without privileges could not set it."""
    hard = resource.getrlimit(limit)[1]
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return f"{name}={value}:{value}"
