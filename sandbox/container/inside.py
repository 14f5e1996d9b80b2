"""The fork server that is a container's first process: prepares full Python once, then forks a worker for each run.

It does in a container what the zygote does beside the server, and forks the same workers; but no descriptor can be
passed into a container, so it stands between: it carries the bytes of the worker's channel and the text of the output
buffer, which it shares with the worker, over the container's standard streams (see `wire`). When they end, so does it,
and with it, as it is the first process, everything in the container.

One worker lives at a time. After it, everything is cleaned and looked at; if anything is left, or nothing kept the
worker from hiding something, the host is told to replace the container.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn, cast

from .. import confine, output, worker
from ..dialect import Dialect, dialect_of
from ..errors import SandboxError
from ..limits import AddressSpace
from ..orders import Orders
from ..output import Output
from ..run import Isolation, Json
from . import trials, wire
from .cleaning import Room

_HIGHEST_WAITING = 1 << 20
"""Bytes on their way to the host, above which the worker has to wait."""


def main() -> NoReturn:
    """Be the first process of a container until its standard input ends."""
    dialect = dialect_of(Isolation.CONTAINER)
    dialect.prepare()  # it may begin this process anew, so nothing has been read yet
    host = _Host(*_own_streams())
    try:
        _ForkServer(host, dialect).work()
    except (SandboxError, OSError) as error:
        host.say(failed=str(error))
        host.flush()
        raise SystemExit(1) from None


def _own_streams() -> tuple[int, int]:
    """Take the standard streams away from the numbers under which workers would find them."""
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.close(null)
    return reading, writing


class _Host:
    """The container's standard streams: reads messages whole, and never waits for a reader."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self._arrived = bytearray()
        self._waiting = bytearray()
        os.set_blocking(writing, False)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def say(self, **words: Json) -> None:
        self.send(wire.words(**words))

    def send(self, message: bytes) -> None:
        self._waiting += message
        self.push()

    def push(self) -> None:
        """Write what can be written now."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self.writing, memoryview(self._waiting)[: wire.CHUNK_BYTES].tobytes())]
        except BlockingIOError:
            return

    def flush(self) -> None:
        os.set_blocking(self.writing, True)
        self.push()

    def messages(self) -> list[tuple[bytes, bytes]]:
        """Read what has come, and give the whole messages. Ends this process at the end of the stream."""
        data = os.read(self.reading, wire.CHUNK_BYTES)
        if not data:
            os._exit(0)
        self._arrived += data
        whole = []
        while len(self._arrived) >= wire.HEADER_BYTES:
            end = wire.HEADER_BYTES + wire.length(self._arrived[: wire.HEADER_BYTES])
            if len(self._arrived) < end:
                break
            body = bytes(self._arrived[wire.HEADER_BYTES : end])
            del self._arrived[:end]
            whole.append((body[:1], body[1:]))
        return whole

    def first(self) -> Mapping[str, Json]:
        """Wait for the first message, the orders."""
        while not (whole := self.messages()):
            pass
        assert len(whole) == 1
        return cast("Mapping[str, Json]", json.loads(whole[0][1]))


class _Live:
    """The worker that lives now: its process, this end of its channel, and its output buffer."""

    def __init__(self, pid: int, channel: socket.socket, shared: Output) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.channel = channel
        self.output = shared
        self.told = 0
        self.to_send = bytearray()
        channel.setblocking(False)

    def close(self) -> None:
        os.close(self.pidfd)
        self.channel.close()
        self.output.close()


class _ForkServer:
    def __init__(self, host: _Host, dialect: Dialect) -> None:
        self._host = host
        self._room = Room()
        self._live: _Live | None = None
        given = host.first()
        self._orders = Orders.from_json(cast("str", given["orders"]))
        probe = confine.probe()
        held = trials.inner_limits()
        worker.warm(dialect)
        address_space = AddressSpace()
        own = worker.starting_namespace(dialect)
        readable = os.access("/workspace", os.R_OK | os.X_OK)
        plan = confine.prepare(
            probe,
            isolation=Isolation.CONTAINER,
            required=self._orders.required,
            workspace="/workspace" if readable else None,
            cpus=self._orders.cpus,
        )
        confine.prove(plan)
        plan = replace(plan, layers=(*plan.layers, *cast("list[str]", given["layers"])))
        self._plan = plan
        if not plan.namespaced:
            os.chdir("/tmp")  # noqa: S108 - the container's own
        self._can_be_clean = plan.filter is not None
        standing = self._orders.standing
        self._prepared = worker.Prepared(dialect, plan, standing, address_space.bytes(), own)
        self._room.clean()
        gc.collect()
        gc.freeze()
        host.say(
            hello={
                "limits": held,
                "workspace": readable,
                "python": ".".join(map(str, sys.version_info[:3])),
                "notes": list(plan.notes),
            }
        )

    def work(self) -> NoReturn:
        while True:
            live = self._live
            poll = select.poll()
            poll.register(self._host.reading, select.POLLIN)
            if self._host.waiting:
                poll.register(self._host.writing, select.POLLOUT)
            if live is not None:
                poll.register(live.pidfd, select.POLLIN)
                wanted = select.POLLIN if self._host.waiting < _HIGHEST_WAITING else 0
                wanted |= select.POLLOUT if live.to_send else 0
                if wanted:
                    poll.register(live.channel, wanted)
            ready = dict(poll.poll())
            if self._host.reading in ready:
                for kind, body in self._host.messages():
                    self._obey(kind, body)
            if self._host.writing in ready:
                self._host.push()
            if live is None or live is not self._live:
                continue
            events = ready.get(live.channel.fileno(), 0)
            if events & select.POLLOUT:
                self._pass_down(live)
            if events & (select.POLLIN | select.POLLHUP) and not self._pass_up(live) and live.pidfd not in ready:
                live.channel.shutdown(socket.SHUT_RDWR)
                os.kill(live.pid, signal.SIGKILL)  # it closed its channel: nobody can talk to it any more
                select.select([live.pidfd], [], [])
                ready[live.pidfd] = select.POLLIN
            if live.pidfd in ready:
                self._bury(live)

    def _obey(self, kind: bytes, body: bytes) -> None:
        live = self._live
        if kind == wire.JSON:
            self._fork(json.loads(body)["fork"])
        elif live is None:
            return  # it was meant for a worker that has ended meanwhile
        elif kind == wire.DATA:
            live.to_send += body
            self._pass_down(live)
        elif kind == wire.BEGIN:
            live.output.hand_over()
            live.told = -1
        elif kind == wire.KILL:
            os.kill(live.pid, signal.SIGKILL)

    def _fork(self, wanted: Mapping[str, Json]) -> None:
        assert self._live is None
        ours, theirs = socket.socketpair()
        output_fd = output.create(self._orders.standing.output_bytes)
        kept = os.dup(output_fd)
        try:
            pid = confine.fork(self._plan)
        except OSError as error:
            ours.close()
            os.close(kept)
            self._host.say(refused=str(error))
            return
        else:
            if pid == 0:
                worker.serve(self._prepared, theirs.detach(), output_fd, rehearse=bool(wanted["rehearse"]))
        finally:
            theirs.close()
            os.close(output_fd)
        self._live = _Live(pid, ours, Output(kept))
        self._host.say(forked=pid)

    def _pass_down(self, live: _Live) -> None:
        try:
            while live.to_send:
                del live.to_send[: live.channel.send(live.to_send)]
        except BlockingIOError:
            return
        except OSError:
            live.to_send.clear()

    def _pass_up(self, live: _Live) -> bool:
        """Carry one chunk, after what was printed before it; tell whether more may come."""
        try:
            data = live.channel.recv(wire.CHUNK_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            self._tell_output(live)
            self._host.send(wire.message(wire.DATA, data))
        return bool(data)

    def _tell_output(self, live: _Live) -> None:
        text = live.output.since(max(live.told, 0))
        if text is None or (not text and live.told >= 0):
            return
        start = live.told = max(live.told, 0)
        for first in range(0, max(len(text), 1), wire.CHUNK_BYTES):
            chunk = text[first : first + wire.CHUNK_BYTES]
            self._host.send(wire.message(wire.OUTPUT, wire.POSITION.pack(start + first) + chunk))
        live.told = start + len(text)

    def _bury(self, live: _Live) -> None:
        """Carry what a dead worker left to say, clean up after it, and tell how it ended."""
        while select.select([live.channel], [], [], 0)[0] and self._pass_up(live):
            pass
        self._tell_output(live)
        _pid, status, usage = os.wait4(live.pid, 0)
        live.close()
        self._live = None
        clean = self._room.clean() and self._can_be_clean
        self._host.say(
            exit={
                "status": os.waitstatus_to_exitcode(status),
                "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000,
                "memory_peak_mb": usage.ru_maxrss / 1024,
                "clean": clean,
            }
        )
