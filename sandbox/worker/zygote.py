"""The zygote: a process that imports everything once, holds no secret, and forks workers on request.

`python -I -S` starts it with an empty environment and no descriptor but its control socket. It has one thread and
never reads a byte that a guest wrote. The host sends a request with two descriptors: the worker's end of its channel,
and its output buffer. The zygote forks, answers with a pidfd (pidfd_open(2)), and later reports how the worker ended
(wait4(2)). At the end of its control socket it ends itself, and every worker with it.

The messages are packets (`zygote_packets`).
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from typing import NoReturn

from .. import confine
from ..confine import limits
from ..confine.limits import AddressSpace
from ..errors import SandboxError
from ..guest.guest import GUEST
from ..job import Isolation
from ..wire import output
from ..wire.zygote_config import ZygoteConfig, close_start_file, read_start_file
from ..wire.zygote_packets import PacketKind, packed, read
from . import reader, runner
from .compiled_ahead import CompiledAhead
from .huge_pages import HeapMap, fill_pools
from .immortal import immortalize
from .runner import dialect_of

_REQUEST_BYTES = 256
_WORDS_CHARS_MAX = 2000
_DESCRIPTOR = struct.Struct("=i")
_DESCRIPTORS = struct.Struct("=ii")
_TWO_DESCRIPTORS = socket.CMSG_SPACE(_DESCRIPTORS.size)
_ORPHAN_CHECK_MS = None if sys.platform == "linux" else 1000
_IDLE_MS = 100
_AFTER_SECONDS = 2.0
"""So long after its start, and `_IDLE_MS` after the last request, a zygote compiles what code may import: what ends
before, as most commands and tests do, need not have it."""


def main(control_fd: int) -> NoReturn:
    """Run a zygote until the control socket ends."""
    os.environ.clear()
    connection = socket.socket(fileno=control_fd)
    limits.prefer_for_oom_kill()
    kind = _Zygote if read_start_file().reader is None else _ReaderZygote
    try:
        kind(connection).work()
    except SandboxError as error:
        connection.send(packed(PacketKind.FAILED, text=_json(error.code, str(error))))
        raise SystemExit(1) from None


class _Forker(ABC):
    """What both kinds of zygote do: fork when they are asked, and report how each child ended."""

    _plan: confine.Plan
    _ahead: CompiledAhead | None = None

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._children: dict[int, tuple[int, int]] = {}
        self._overlays: dict[int, socket.socket | int] = {}
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    @abstractmethod
    def _serve(self, channel_fd: int, output_fd: int, run_folder: str, overlay_to: socket.socket | None) -> NoReturn:
        """Be a child that was just forked."""

    def work(self) -> NoReturn:
        listening = self._connection.fileno()
        compiles = time.monotonic() + _AFTER_SECONDS
        while True:
            events = self._poll.poll(_ORPHAN_CHECK_MS if self._ahead is None else _IDLE_MS)
            for descriptor, _event in events:
                if descriptor == listening:
                    self._handle_request()
                else:
                    self._reap(descriptor)
            if self._ahead is not None:
                if not events and time.monotonic() >= compiles:
                    self._ahead.start()
                if self._ahead.has_ended():
                    self._ahead = None

    def _handle_request(self) -> None:
        try:
            data, ancillary, _flags, _address = self._connection.recvmsg(_REQUEST_BYTES, _TWO_DESCRIPTORS)
        except ConnectionError:
            data, ancillary = b"", []
        if not data:
            os._exit(0)
        asked = read(data)
        number, run_folder = asked.number, asked.text
        if asked.kind == PacketKind.REFRESH:
            self._connection.send(packed(PacketKind.REFRESHED, number, self._refresh(number)))
            return
        received = b"".join(packed for _level, _type, packed in ancillary)
        if len(received) != _DESCRIPTORS.size:  # the kernel leaves out those that there is no room for
            for (descriptor,) in _DESCRIPTOR.iter_unpack(received):
                os.close(descriptor)
            self._connection.send(packed(PacketKind.REFUSED, number, text="its zygote has no file descriptors left"))
            return
        channel_fd, output_fd = _DESCRIPTORS.unpack(received)
        overlay: socket.socket | None = None
        overlay_to: socket.socket | None = None
        try:
            if run_folder and self._plan.overlays:
                overlay, overlay_to = socket.socketpair()
            pid = confine.fork(self._plan)
        except OSError as error:
            if overlay is not None:
                overlay.close()
            self._connection.send(packed(PacketKind.REFUSED, number, text=str(error)))
        else:
            if pid == 0:
                self._serve(channel_fd, output_fd, run_folder, overlay_to)
            self._announce(number, pid, overlay)
        finally:
            if overlay_to is not None:
                overlay_to.close()
            os.close(channel_fd)
            os.close(output_fd)

    def _announce(self, number: int, pid: int, overlay: socket.socket | None) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            if overlay is not None:
                overlay.close()
            self._connection.send(packed(PacketKind.REFUSED, number, text=str(error)))
            return
        self._children[pidfd] = (pid, number)
        if overlay is not None:
            self._overlays[number] = overlay
        self._poll.register(pidfd, select.POLLIN)
        message = packed(PacketKind.FORKED, number, -pid if self._plan.own_init else pid)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, _DESCRIPTOR.pack(pidfd))
        self._connection.sendmsg((message,), (rights,))

    def _refresh(self, number: int) -> bool:
        """Show a worker the workspace as it is now; return whether it sees it."""
        overlay = self._overlays.get(number)
        try:
            if isinstance(overlay, socket.socket):
                _data, received, _flags, _address = socket.recv_fds(overlay, 1, 1, socket.MSG_DONTWAIT)
                overlay.close()
                overlay = self._overlays[number] = received[0]
            if overlay is not None:
                confine.see_anew(overlay)
        except (OSError, IndexError):
            return False
        return True

    def _reap(self, pidfd: int) -> None:
        pid, number = self._children.pop(pidfd)
        overlay = self._overlays.pop(number, None)
        if isinstance(overlay, socket.socket):
            overlay.close()
        elif overlay is not None:
            os.close(overlay)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _pid, status, usage = os.wait4(pid, 0)
        status = self._plan.status_of_worker(os.waitstatus_to_exitcode(status))
        cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
        self._connection.send(
            packed(PacketKind.ENDED, number, status, cpu_ms=cpu_ms, memory_peak_mb=usage.ru_maxrss / 1024)
        )


class _Zygote(_Forker):
    """Forks workers, each of which runs code."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        config = read_start_file()
        GUEST.wider = tuple(config.wider)
        probe = confine.probe()
        dialect = dialect_of(config.isolation)
        dialect.prepare(config.packages)
        close_start_file()
        runner.warm(dialect)
        self._ahead = CompiledAhead(dialect.compile_modules) if dialect.compiles_modules else None
        if self._ahead is not None:
            dialect.take_compiled(self._ahead.find)
        address_space = AddressSpace()
        heap = HeapMap()
        self._plan = _confined(probe, config)
        trial_folder = config.trial_folder
        standing, native = config.standing, config.isolation is not Isolation.RESTRICTED
        packages = bool(config.packages)
        # They name the workspace's place on the host, and what exists below is never freed.
        del config
        dialect.seal()
        confine.prove(self._plan)
        self._plan = confine.with_overlay(self._plan, trial_folder)
        # Classes that were sealed have lost their places in the interpreter's caches.
        runner.warm(dialect, rounds=2)
        prepared = runner.Worker(dialect)
        immortalize()
        output_bytes = prepared.output.mapped_bytes(output.buffer_bytes(standing.output_bytes))
        bounds = limits.bequeath(standing, address_space.bytes(), output_bytes, native=native)
        self._prepared = runner.Prepared(dialect, self._plan, bounds, prepared)
        # What exists now never becomes garbage; frozen, no collection after a fork touches (and so copies) it.
        gc.collect()
        gc.freeze()
        fill_pools()
        heap.collapse()
        if packages:
            self._compile_packages()
        connection.send(packed(PacketKind.WARM, text=_json(*self._plan.notes)))

    def _serve(self, channel_fd: int, output_fd: int, run_folder: str, overlay_to: socket.socket | None) -> NoReturn:
        runner.serve(self._prepared, channel_fd, output_fd, run_folder, overlay_to)

    def _compile_packages(self) -> None:
        """Wait until the modules of the packages are compiled, so that they are there from the first import on."""
        if self._ahead is not None:
            self._ahead.start()
            if self._ahead.has_ended(wait=True):
                self._ahead = None


class _ReaderZygote(_Forker):
    """Forks readers, which run what it has imported; see `reader`."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        config = read_start_file()
        assert config.reader is not None
        probe = confine.probe()
        self._functions = reader.functions_of(config.reader)
        close_start_file()
        address_space = AddressSpace()
        heap = HeapMap()
        self._plan = _confined(probe, config)
        confine.prove(self._plan)
        immortalize()
        self._bounds = limits.bequeath(config.standing, address_space.bytes(), 0, native=True)
        gc.collect()
        gc.freeze()
        heap.collapse()
        connection.send(packed(PacketKind.WARM, text=_json(*self._plan.notes)))

    def _serve(self, channel_fd: int, output_fd: int, *_of_workers: object) -> NoReturn:
        reader.serve(self._functions, self._plan, self._bounds, channel_fd, output_fd)


def _confined(probe: confine.Probe, config: ZygoteConfig) -> confine.Plan:
    return confine.prepare(
        probe,
        isolation=config.isolation,
        required=config.required,
        workspace=config.workspace,
        run_folders=config.run_folders,
        group=config.group,
        group_limits=config.group_limits,
        cpus=config.cpus,
        packages=config.reader is not None,
    )


def _json(*texts: str) -> str:
    return json.dumps([text[:_WORDS_CHARS_MAX] for text in texts])
