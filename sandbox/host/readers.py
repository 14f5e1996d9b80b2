"""Readers: confined processes that run named functions on a stranger's bytes, within a deadline and a memory limit.

    with Readers(ReaderCode("sealab.server.privacy.reader", options), required=Level.KERNEL) as readers:
        answer = readers.read("shown leaves", data, timeout_seconds=5)

A security boundary. What computes on bytes from outside may be slow, use all memory or be taken over: it happens in a
process that holds no key, sees no file and no network, is killed at its deadline and replaced, and sends back bytes
that its caller has to judge. A reader that parsed a file is used once. One that only looks through texts is kept for
its owner, and for nobody else: it learns no more than its owner sent.

The event loop that watches over them has a thread of its own, so that a thread of any kind can read, in a server and in
a command alike.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from ..confine import Level
from ..confine.limits import MIB, Allowance
from ..errors import FrameError, ReadFailed, ReadOverran, SandboxError, WorkerLost
from ..job import NOBODY, Isolation, Owner
from ..wire import reader_frames
from ..wire.reader_frames import ReaderReply
from ..wire.zygote_config import ReaderCode, ZygoteConfig
from .fair_queue import Turns
from .worker_process import Launches, WorkerProcess
from .zygote_launcher import ZygoteLauncher
from .zygotes import Zygotes

_T = TypeVar("_T")
SPARES = 1
KEPT_MAX = 8
"""Readers that wait for their owners; of more the one that has waited longest ends."""
QUEUE_MAX, QUEUE_SECONDS = 1000, 30.0
_MEMORY_MB = 512
_OPEN_FILES = 64
_ZYGOTE_SECONDS = 3600.0
_RECEIVE_BYTES = 1 << 18
_CHECK_SECONDS = 0.1


@dataclass(slots=True)
class _Reader:
    process: WorkerProcess
    channel: socket.socket

    async def answered(self, asks: Sequence[bytes], seconds: float) -> ReaderReply:
        """Send what asks for something, and return what comes up.

        Raises `ReadOverran` at the deadline, and `ReadFailed` where the reader ends or sends what it may not.
        """
        try:
            async with asyncio.timeout(seconds):
                for part in asks:
                    await asyncio.get_running_loop().sock_sendall(self.channel, part)
                length = reader_frames.length_of(await self._exactly(reader_frames.HEAD_BYTES))
                return reader_frames.read_reply(await self._exactly(length))
        except TimeoutError:
            raise ReadOverran("Reading took longer than it may, and was ended.") from None
        except (EOFError, OSError):
            raise ReadFailed("The process that read ended in the middle.") from None
        except FrameError as error:
            raise ReadFailed(f"The process that read was ended. {error}") from None

    def end(self) -> None:
        if self.channel.fileno() >= 0:
            self.process.close()
            self.channel.close()

    async def _exactly(self, count: int) -> bytes:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < count:
            more = await loop.sock_recv(self.channel, min(count - len(received), _RECEIVE_BYTES))
            if not more:
                raise EOFError
            received += more
        return bytes(received)


class Readers:
    """Some readers at once, and callers in turns. Safe to use from several threads, but for its own.

    There are more than processors, which the kernel shares out: so a caller whose readers compute until their deadlines
    delays no other. One caller has a third of them at most.
    """

    def __init__(
        self, code: ReaderCode, *, required: Level, at_once: int | None = None, memory_mb: int = _MEMORY_MB
    ) -> None:
        """Make them; nothing starts before it is needed. A reader has `memory_mb` MiB beyond what its code takes."""
        standing = Allowance(memory_mb * MIB, 0, _OPEN_FILES, 0, 0)
        self._config = ZygoteConfig(standing, Isolation.RESTRICTED, required, reader=code)
        self._at_once = at_once or 2 * (os.cpu_count() or 1) + 2
        self._of_one_caller = max(1, self._at_once // 3)
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._none = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._kept: dict[Owner, _Reader] = {}
        self._spares: list[_Reader] = []
        self._making: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self) -> None:
        """Start, and wait until a reader is there. Raises `LevelMissing`, `WorkerLost`."""
        self._wait_for(self._refill())

    def read(
        self,
        function: str,
        data: bytes,
        *,
        timeout_seconds: float,
        owner: Owner = NOBODY,
        once: bool = True,
        check: Callable[[], None] = lambda: None,
        charge: Callable[[float], None] = lambda _seconds: None,
    ) -> bytes:
        """Run a function on bytes in a reader and return what it sends. Blocks; not for an event loop.

        With `once` no other request ever reaches that reader; else its next are those of the same `owner`. `check` is
        called now and then while this waits: where it raises an exception, the reader is killed. `charge` is given the
        seconds that the reader was at work.

        Raises `ReadOverran` at the deadline and where memory ran out, `ReadFailed` where the function raised an
        exception or the reader died, `Busy` where no turn came, `LevelMissing`, `WorkerLost`.
        """
        return self._wait_for(self._read(function, data, timeout_seconds, owner, once=once, charge=charge), check)

    def read_file(
        self,
        function: str,
        file_fd: int,
        data: bytes = b"",
        *,
        timeout_seconds: float,
        owner: Owner = NOBODY,
        check: Callable[[], None] = lambda: None,
        charge: Callable[[float], None] = lambda _seconds: None,
    ) -> Generator[bytes, None, None]:
        """Run a function on an open file in a reader, and give what it sends, piece by piece. Blocks.

        The reader can do with the file what its descriptor allows, and moves in it: open one for it, to be read only.
        It computes a piece when that is asked for, in a turn of its caller, and ends when the generator is closed.
        `timeout_seconds` is what all pieces may take together. Raises as `read`.
        """
        reader = self._wait_for(self._made(file_fd))
        asks: Sequence[bytes] = reader_frames.request(function, data, of_file=True)
        left = timeout_seconds
        try:
            while True:
                piece, seconds = self._wait_for(self._piece(reader, asks, owner, left), check)
                asks = (reader_frames.GO_ON,)
                charge(seconds)
                if piece is None:
                    return
                left = max(left - seconds, 0.0)
                yield piece
        finally:
            with suppress(WorkerLost):  # then it has ended with the others
                self._running().call_soon_threadsafe(reader.end)

    def close(self) -> None:
        """End all readers. Blocks."""
        with self._starting:
            loop, self._loop = self._loop, None
            none, self._none = self._none, -1
        if loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
        if none >= 0:
            os.close(none)

    def _wait_for(self, work: Coroutine[Any, Any, _T], check: Callable[[], None] = lambda: None) -> _T:
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        while not wait([future], _CHECK_SECONDS).done:
            try:
                check()
            except BaseException:
                future.cancel()
                raise
        try:
            return future.result()
        except CancelledError:
            raise WorkerLost("The readers have ended.") from None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._none < 0:
                raise WorkerLost("The readers have ended.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._zygotes = Zygotes(self._launch, seconds=_ZYGOTE_SECONDS, renewed=self._drop_spares)
                self._turns: Turns[str] = Turns(
                    self._at_once, queue_max=QUEUE_MAX, queue_seconds=QUEUE_SECONDS, refusal=self._refusal
                )
                self._thread = threading.Thread(target=self._loop.run_forever, name="sealab readers", daemon=True)
                self._thread.start()
            return self._loop

    def _launch(self) -> Launches:
        return ZygoteLauncher(self._config)

    def _refusal(self, owner: Owner, _what: str) -> str | None:
        """Return why no further reader may compute for that caller now, or None."""
        if self._turns.taken_by(owner) < self._of_one_caller:
            return None
        return f"{self._of_one_caller} readers were at work for that caller"

    async def _read(
        self,
        function: str,
        data: bytes,
        timeout_seconds: float,
        owner: Owner,
        *,
        once: bool,
        charge: Callable[[float], None],
    ) -> bytes:
        async with self._turns.turn(owner, function):
            reader = await self._reader_for(owner, once=once)
            reply: ReaderReply | None = None
            began = time.monotonic()
            try:
                reply = await reader.answered(reader_frames.request(function, data), timeout_seconds)
            finally:
                charge(time.monotonic() - began)
                if reply is None or reply.failure is not None or once:
                    reader.end()
                else:
                    self._keep(owner, reader)
                self._refill_soon()
        return _data_of(reply)

    async def _piece(
        self, reader: _Reader, asks: Sequence[bytes], owner: Owner, timeout_seconds: float
    ) -> tuple[bytes | None, float]:
        """Return the next piece of a file, None at its end, and the seconds that it took."""
        async with self._turns.turn(owner, ""):
            began = time.monotonic()
            reply = await reader.answered(asks, timeout_seconds)
        data = _data_of(reply)
        return None if reply.is_last else data, time.monotonic() - began

    async def _reader_for(self, owner: Owner, *, once: bool) -> _Reader:
        if not once and (kept := self._kept.pop(owner, None)) is not None:
            return kept
        if self._spares:
            return self._spares.pop()
        return await self._made()

    async def _made(self, file_fd: int | None = None) -> _Reader:
        launcher = await self._zygotes.ready()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await launcher.fork(theirs, self._none if file_fd is None else file_fd)
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return _Reader(process, ours)

    def _keep(self, owner: Owner, reader: _Reader) -> None:
        earlier = self._kept.pop(owner, None)
        if earlier is not None:
            earlier.end()
        self._kept[owner] = reader
        while len(self._kept) > KEPT_MAX:
            self._kept.pop(next(iter(self._kept))).end()

    def _refill_soon(self) -> None:
        self._zygotes.renew_if_due()
        if self._making is None and len(self._spares) < SPARES:
            self._making = asyncio.create_task(self._refill_quietly())

    async def _refill(self) -> None:
        while len(self._spares) < SPARES:
            self._spares.append(await self._made())

    async def _refill_quietly(self) -> None:
        try:
            with suppress(SandboxError):  # the next read says so
                await self._refill()
        finally:
            self._making = None

    def _drop_spares(self) -> None:
        """End those of the earlier zygote."""
        for reader in (*self._spares, *self._kept.values()):
            reader.end()
        self._spares.clear()
        self._kept.clear()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._drop_spares()
        await self._zygotes.aclose()


def _data_of(reply: ReaderReply) -> bytes:
    if reply.failure is None:
        return reply.data
    kind, said = reply.failure
    if kind == MemoryError.__name__:
        raise ReadOverran("Reading took more memory than it may, and was ended.")
    raise ReadFailed(f"{kind}: {said}" if said else kind, kind=kind, message=said)
