"""The host's side of one zygote: starts it, asks it for workers, and receives how each ended."""

from __future__ import annotations

import array
import asyncio
import json
import logging
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

from ..confine import cgroups
from ..confine.limits import NOT_SETTABLE, STACK_BYTES
from ..errors import LevelMissing, WorkerLost
from ..job import Isolation
from ..wire.zygote_config import PACKET_BYTES_MAX, PACKETS, START_BYTES_MAX, ZygoteConfig, start_file
from ..wire.zygote_packets import Packet, PacketKind, ProcessExit, packed, read
from . import process_state
from .worker_process import WorkerProcess

_T = TypeVar("_T")

NO_DESCRIPTORS = "This process has no file descriptors left. Raise its limit (ulimit -n), or lower WORKERS_MAX."

_START_SECONDS = 30.0
_PACKAGES_SECONDS = 300.0
"""What compiling all packages may take beyond that; a hundred thousand lines take some ten seconds."""
_CLOSE_ON_EXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_STDERR_CHARS = 20_000
_LOG = logging.getLogger(__name__)

# Modules ask for hooks at a fork (threading, logging, random, asyncio) only to mend what other threads or a shared seed
# could have left. The zygote has one thread and its workers seed themselves; unasked, a fork costs half as much.
# Nor has it any use for TLS, which asyncio would load.
_HASH_SEED = "20261125"
_START = (
    "import json,os,sys;os.register_at_fork=lambda **hooks:None;"
    f"sys.path[:]=json.loads(os.pread(0,{START_BYTES_MAX},0))[0];"
)
_MAIN = "from sealab.sandbox.worker.zygote import main;main(int(sys.argv[1]))"
_BOOT = f"{_START}sys.modules['ssl']=None;from sealab.sandbox.worker.huge_pages import reserve;reserve();{_MAIN}"
# Readers import what a server does.
_BOOT_READER = _START + _MAIN
# Full Python has its interpreter's own search path. This package alone joins it, since the server's other libraries may
# be for another version.
_BOOT_FULL_PYTHON = (
    "import json,os,sys,types;os.register_at_fork=lambda **hooks:None;"
    "sealab=sys.modules['sealab']=types.ModuleType('sealab');"
    f"sealab.__path__=json.loads(os.pread(0,{START_BYTES_MAX},0))[0];{_MAIN}"
)


@dataclass(slots=True, eq=False)
class _ForkedWorker(WorkerProcess):
    """A worker process that the zygote forked: `pidfd` belongs to the receiver.

    `behind_init` says that it is the first process of a pid namespace, and that its one child runs the code. One that
    is `alone` can have neither threads nor children. `refresh` has it see the workspace anew.
    """

    pid: int
    pidfd: int
    exit: asyncio.Future[ProcessExit]
    behind_init: bool = False
    alone: bool = True
    refresh: Callable[[], Awaitable[None]] | None = None
    _stopped_itself: bool | None = None
    """Of a suspended one, whether its code had stopped it before: then it stays stopped, until its time is over."""

    @property
    def code_pid(self) -> int | None:
        return process_state.first_child(self.pid) if self.behind_init else self.pid

    async def see_workspace_anew(self) -> None:
        if self.refresh is not None:
            await self.refresh()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def kill_from_thread(self) -> None:
        """End it now. Not called after `close`."""
        self.kill()

    def close(self) -> None:
        self.kill()
        os.close(self.pidfd)

    def cpu_ms(self) -> float | None:
        """Read the CPU clock of the process that runs the code."""
        pid = self.code_pid
        seconds = process_state.cpu_seconds(self.pid if pid is None else pid)
        return None if seconds is None else seconds * 1000

    def computes(self) -> bool | None:
        """Return whether a thread of it or of a process below it computes now."""
        return process_state.computes(self.pid) if self.alone else process_state.family_computes(self.pid)

    def suspend(self) -> bool:
        """Stop it and all below it, by a signal that cannot be caught."""
        if self._stopped_itself is None:
            pid = self.code_pid
            self._stopped_itself = pid is not None and process_state.has_stopped(pid)
        self._signal(signal.SIGSTOP)
        return True

    def has_stopped(self) -> bool:
        return process_state.family_has_stopped(self.pid)

    def resume(self) -> None:
        stays, self._stopped_itself = self._stopped_itself, None
        if not stays:
            self._signal(signal.SIGCONT)

    def is_gone(self) -> bool:
        """Return whether no process of it runs any more; the first of a pid namespace ends after all others there."""
        looking = select.poll()
        looking.register(self.pidfd, select.POLLIN)
        return bool(looking.poll(0))

    def _signal(self, number: signal.Signals) -> None:
        if not self.alone:
            process_state.signal_family(self.pid, number)
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)


class ZygoteLauncher:
    """One zygote and the workers it forked. One that ended is not started again; its owner makes another."""

    def __init__(self, config: ZygoteConfig, python: str = sys.executable) -> None:
        self._config = config
        self._python = python
        self._number = 0
        self._retired = False
        self._forks: dict[int, asyncio.Future[_ForkedWorker]] = {}
        self._exits: dict[int, asyncio.Future[ProcessExit]] = {}
        self._refreshing: dict[int, deque[asyncio.Future[bool]]] = {}
        self._hello: asyncio.Future[None] | None = None
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._cleaning_up: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def alive(self) -> bool:
        """Whether it can be asked for workers."""
        return self._control is not None

    @property
    def busy(self) -> bool:
        """Whether a worker that it forked runs, or is being forked."""
        return bool(self._forks or self._exits)

    @property
    def pid(self) -> int | None:
        """The zygote's process id."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the zygote and wait until it is warm.

        Raises `LevelMissing` when workers cannot be confined as required, `WorkerLost` when it does not start.
        """
        self._loop = asyncio.get_running_loop()
        ours, theirs = self._open_ends()
        seconds = _START_SECONDS + (_PACKAGES_SECONDS if self._config.packages else 0)
        self._hello = self._loop.create_future()
        try:
            self._process = self._launch(theirs)
        except (OSError, LevelMissing) as error:
            ours.close()
            self._stderr.close()
            if isinstance(error, LevelMissing):
                raise
            raise WorkerLost(f"{self._python} cannot be started: {error.strerror}.") from None
        self._control = ours
        self._loop.add_reader(ours.fileno(), self._receive_packet)
        try:
            await asyncio.wait_for(asyncio.shield(self._hello), seconds)
        except TimeoutError:
            self._lost()
            raise WorkerLost(f"The sandbox did not start within {seconds:g} seconds.") from None
        except BaseException:
            self._lost()
            raise

    def _open_ends(self) -> tuple[socket.socket, socket.socket]:
        """Open the file of its standard error, and the channel: our end, and the zygote's."""
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS)
            try:
                self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the zygote
            except OSError:
                ours.close()
                theirs.close()
                raise
        except OSError as error:
            raise WorkerLost(f"The sandbox cannot be started: {error.strerror}.") from None
        ours.setblocking(False)
        return ours, theirs

    def _launch(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Start its process with an empty environment and no descriptors but its end of the channel, closed here."""
        with theirs, tempfile.TemporaryFile(buffering=0) as input_file:
            input_file.write(start_file(_search_path(self._config.isolation), self._config))
            return _with_deep_stack(
                lambda: subprocess.Popen(
                    [self._python, *_boot(self._config), str(theirs.fileno())],
                    env=_environment(self._config.isolation),
                    cwd="/",
                    stdin=input_file,
                    stdout=subprocess.DEVNULL,
                    stderr=self._stderr,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            )

    def retire(self) -> None:
        """Leave the control group to the other one."""
        self._retired = True

    async def fork(
        self,
        channel: socket.socket,
        output_fd: int,
        *,
        spare: bool = True,  # noqa: ARG002 - every one is made at once
        run_folder: str = "",
    ) -> _ForkedWorker:
        """Fork a worker that holds the two descriptors. Raises `WorkerLost`."""
        if self._control is None or self._loop is None:
            raise WorkerLost("The sandbox's zygote has ended.")
        self._number += 1
        number = self._number
        forked: asyncio.Future[_ForkedWorker] = self._loop.create_future()
        self._forks[number] = forked
        try:
            # A few dozen bytes into a socket that the zygote empties: this does not block.
            asked = packed(PacketKind.FORK, number, text=run_folder)
            socket.send_fds(self._control, [asked], [channel.fileno(), output_fd])
        except OSError as error:
            del self._forks[number]
            self._lost()
            raise WorkerLost(f"The sandbox's zygote does not listen: {error}.") from None
        return await forked

    async def _refresh(self, number: int) -> None:
        """Show a worker the workspace anew. Calls that come while the zygote does so share the next time."""
        if self._control is None or self._loop is None:
            raise WorkerLost("The sandbox's zygote has ended.")
        asked = self._refreshing.setdefault(number, deque())
        if len(asked) <= 1:
            asked.append(self._loop.create_future())
        refreshed = asked[-1]
        if len(asked) == 1:
            self._ask_to_refresh(number)
        if not await asyncio.shield(refreshed):
            raise WorkerLost("The worker's view of the workspace cannot be renewed.")

    def _ask_to_refresh(self, number: int) -> None:
        assert self._control is not None
        try:
            self._control.send(packed(PacketKind.REFRESH, number))
        except OSError:
            self._lost()  # all that wait get an error

    async def close(self) -> None:
        """End the zygote and wait until it is gone; the kernel ends its workers with it."""
        self._lost()
        if self._cleaning_up is not None:
            await asyncio.shield(self._cleaning_up)

    def _last_stderr_line(self) -> str:
        self._stderr.seek(0)
        written = self._stderr.read().decode("utf-8", "replace")
        _LOG.debug("The zygote wrote: %s", written[-_STDERR_CHARS:])
        return written.strip().rpartition("\n")[2] or "the zygote ended without a message"

    def _receive_packet(self) -> None:
        assert self._control is not None
        try:
            # One packet a time: the loop calls again while there are more.
            data, ancillary, _flags, _address = self._control.recvmsg(
                PACKET_BYTES_MAX, socket.CMSG_SPACE(4), _CLOSE_ON_EXEC
            )
        except BlockingIOError:
            return
        except ConnectionError:
            data, ancillary = b"", []
        if not data:
            self._lost()
            return
        descriptors = array.array("i")
        for _level, _type, received in ancillary:
            descriptors.frombytes(received)
        self._handle_packet(read(data), descriptors[0] if descriptors else None)

    def _handle_packet(self, packet: Packet, pidfd: int | None) -> None:
        assert self._loop is not None
        assert self._hello is not None
        number, value = packet.number, packet.value
        match packet.kind:
            case PacketKind.FORKED:
                self._exits[number] = ended = self._loop.create_future()
                waiting = self._forks.pop(number)
                if pidfd is None:
                    # The kernel had no descriptor left for this process. The worker ends when its channel is closed.
                    if not waiting.done():
                        waiting.set_exception(WorkerLost(NO_DESCRIPTORS))
                    return
                alone = self._config.isolation is Isolation.RESTRICTED
                refresh = partial(self._refresh, number) if self._config.run_folders is not None else None
                forked = _ForkedWorker(abs(value), pidfd, ended, value < 0, alone, refresh)
                if waiting.done():
                    forked.close()  # its caller was cancelled
                else:
                    waiting.set_result(forked)
            case PacketKind.REFUSED:
                waiting = self._forks.pop(number)
                if not waiting.done():
                    waiting.set_exception(WorkerLost(f"A worker cannot be made: {packet.text}."))
            case PacketKind.REFRESHED:
                self._refreshing[number].popleft().set_result(bool(value))
                if self._refreshing[number]:
                    self._ask_to_refresh(number)
                else:
                    del self._refreshing[number]
            case PacketKind.ENDED:
                self._exits.pop(number).set_result(ProcessExit(value, packet.cpu_ms, packet.memory_peak_mb))
            case PacketKind.WARM:
                for note in json.loads(packet.text):
                    _LOG.warning("%s", note)
                self._hello.set_result(None)
            case PacketKind.FAILED:
                code, failed = json.loads(packet.text)
                self._hello.set_exception(LevelMissing(failed) if code == "level" else WorkerLost(failed))

    def _lost(self) -> None:
        """Make sure that it has ended, and fail all that wait for it."""
        connection, self._control = self._control, None
        if connection is None or self._loop is None or self._process is None:
            return
        self._loop.remove_reader(connection.fileno())
        connection.close()
        self._process.kill()
        self._cleaning_up = self._loop.create_task(self._clean_up_after(self._process))
        reason = "The sandbox's zygote has ended."
        if self._hello is not None and not self._hello.done():
            reason = f"The sandbox did not start: {self._last_stderr_line()}."
        error = WorkerLost(reason)
        for waiting in (self._hello, *self._forks.values(), *chain.from_iterable(self._refreshing.values())):
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # seen, since the caller that waited may have been cancelled
        self._forks.clear()
        self._refreshing.clear()
        for ended in self._exits.values():
            ended.set_result(ProcessExit())
        self._exits.clear()

    async def _clean_up_after(self, process: subprocess.Popen[bytes]) -> None:
        await asyncio.to_thread(process.wait)
        self._stderr.close()
        if not self._retired:
            await asyncio.to_thread(cgroups.remove, self._config.group or str(process.pid))


def _boot(config: ZygoteConfig) -> list[str]:
    if config.isolation is Isolation.RESTRICTED:
        code = _BOOT if config.reader is None else _BOOT_READER
        return ["-s", "-P", "-S", "-X", "utf8", "-c", code]  # as -I, but for the environment, which is ours
    return ["-I", "-X", "utf8", "-c", _BOOT_FULL_PYTHON]


def _environment(isolation: Isolation) -> dict[str, str]:
    """Return the environment of a zygote.

    Sets of strings have the same order in every worker of the restricted dialect, on every server: so a run can be run
    again. Who knows the seed can choose texts that make a dictionary slow (CVE-2012-1150). Code can do that to itself
    anyhow, and data can do it to the one run that reads it, which ends at its time limit and delays no other.
    """
    return {"PYTHONHASHSEED": _HASH_SEED} if isolation is Isolation.RESTRICTED else {}


def _search_path(isolation: Isolation) -> list[str]:
    """Return where a zygote finds modules: full Python has a search path of its own, and needs this package alone."""
    if isolation is Isolation.RESTRICTED:
        return [os.path.abspath(path) for path in sys.path if path]
    return [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]


def _with_deep_stack(start: Callable[[], _T]) -> _T:
    """Start a process whose stack may grow to `STACK_BYTES`.

    The kernel lays out the address space around the soft limit at execve(2), so the zygote cannot raise it itself.
    """
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        deep = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (deep, hard))
    except OSError as error:
        raise LevelMissing(NOT_SETTABLE.format(error)) from None
    try:
        return start()
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
