"""The fork server's end of what it and the host say to each other: a socket that was passed in, if there is one.

Then the host passes each worker's descriptors over it, as it does to a zygote, and nothing stands between a worker and
the host. Engines that pass nothing in leave the standard streams. No descriptor can be sent over these, so they carry
the bytes of the worker's channel too, and the text of the output buffer that it shares with the worker (`messages`).
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ..job import Json
from ..wire import output
from ..wire.output import OutputBuffer
from ..wire.zygote_config import PACKET_BYTES_MAX
from . import messages


@dataclass(frozen=True, slots=True)
class Request:
    """What the host asks for: its words, and the descriptors for a worker: of its channel and of its output."""

    words: Mapping[str, Json]
    descriptors: tuple[int, ...] = ()


class DirectLink:
    """The socket that was passed in: a packet for each message. At its end this process ends."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def first(self) -> Mapping[str, Json]:
        """Wait for the configuration."""
        return self._request().words

    def watch(self, poll: select.poll) -> None:
        """Wait for requests alone."""
        poll.register(self._control, select.POLLIN)

    def requests(self, ready: Mapping[int, int]) -> Iterable[Request]:
        """Give what the host asks for, `ready` being what poll(2) said of descriptors."""
        return (self._request(),) if self._control.fileno() in ready else ()

    def send(self, **words: Json) -> None:
        """Send a packet."""
        self._control.send(json.dumps(words).encode())

    def finish(self) -> None:
        """No-op: workers speak for themselves."""

    def flush(self) -> None:
        """No-op: a packet is sent at once."""

    def _request(self) -> Request:
        data, descriptors, _flags, _address = socket.recv_fds(self._control, PACKET_BYTES_MAX, 2)
        if not data:
            os._exit(0)
        return Request(cast("Mapping[str, Json]", json.loads(data)), tuple(descriptors))


_HIGHEST_WAITING = 1 << 20
"""Bytes on their way to the host, above which the worker has to wait."""


class StreamLink:
    """Reads messages whole, never waits for a reader, and forwards for the one worker that there is."""

    def __init__(self) -> None:
        self._reading, self._writing = _own_streams()
        self._arrived = bytearray()
        self._waiting = bytearray()
        self._worker: _LinkedWorker | None = None
        os.set_blocking(self._writing, False)

    def first(self) -> Mapping[str, Json]:
        """Wait for the configuration."""
        while not (whole := self._messages()):
            pass
        assert len(whole) == 1
        return cast("Mapping[str, Json]", json.loads(whole[0][1]))

    def watch(self, poll: select.poll) -> None:
        """Wait for the host, and for the worker as long as the host keeps up with it."""
        poll.register(self._reading, select.POLLIN)
        if self._waiting:
            poll.register(self._writing, select.POLLOUT)
        if self._worker is not None:
            self._worker.watch(poll, full=len(self._waiting) >= _HIGHEST_WAITING)

    def requests(self, ready: Mapping[int, int]) -> Iterable[Request]:
        """Forward what can be forwarded, and return the host's requests."""
        found: list[Request] = []
        worker = self._worker
        if self._reading in ready:
            for kind, body in self._messages():
                found += self._handled(kind, body)
        if self._writing in ready:
            self._push()
        if worker is not None:
            events = ready.get(worker.channel.fileno(), 0)
            if events & select.POLLOUT:
                worker.pass_down()
            if events & (select.POLLIN | select.POLLHUP) and not self._pass_up(worker):
                worker.closed = True  # the worker can no longer be reached
                found.append(Request({"kill": True}))
        return found

    def send(self, **words: Json) -> None:
        """Send a message of JSON."""
        self._send(messages.words(**words))

    def finish(self) -> None:
        """Forward what is left, and detach the worker."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        while select.select([worker.channel], [], [], 0)[0] and self._pass_up(worker):
            pass
        self._send_output(worker)
        worker.close()

    def flush(self) -> None:
        """Write everything, however long it takes."""
        os.set_blocking(self._writing, True)
        self._push()

    def _handled(self, kind: bytes, body: bytes) -> Iterable[Request]:
        if kind == messages.JSON:
            words = cast("Mapping[str, Json]", json.loads(body))
            return (self._forking(words) if "fork" in words else Request(words),)
        worker = self._worker
        if worker is None:
            return ()  # it was meant for a worker that has ended meanwhile
        if kind == messages.DATA:
            worker.to_send += body
            worker.pass_down()
        elif kind == messages.BEGIN:
            worker.output.hand_over()
            worker.sent = -1
            worker.sent_errors = 0
        return ()

    def _forking(self, words: Mapping[str, Json]) -> Request:
        assert self._worker is None
        ours, theirs = socket.socketpair()
        wanted = cast("Mapping[str, int]", words["fork"])
        output_fd = output.create(wanted["output_bytes"])
        self._worker = _LinkedWorker(ours, OutputBuffer(os.dup(output_fd)))
        return Request(words, (theirs.detach(), output_fd))

    def _send(self, message: bytes) -> None:
        self._waiting += message
        self._push()

    def _push(self) -> None:
        """Write what can be written now."""
        try:
            while self._waiting:
                del self._waiting[
                    : os.write(self._writing, memoryview(self._waiting)[: messages.CHUNK_BYTES].tobytes())
                ]
        except BlockingIOError:
            return

    def _messages(self) -> list[tuple[bytes, bytes]]:
        """Read what has come, and give the whole messages. Ends this process at the end of the stream."""
        data = os.read(self._reading, messages.CHUNK_BYTES)
        if not data:
            os._exit(0)
        self._arrived += data
        whole = []
        while len(self._arrived) >= messages.HEADER_BYTES:
            end = messages.HEADER_BYTES + messages.length(self._arrived[: messages.HEADER_BYTES])
            if len(self._arrived) < end:
                break
            body = bytes(self._arrived[messages.HEADER_BYTES : end])
            del self._arrived[:end]
            whole.append((body[:1], body[1:]))
        return whole

    def _pass_up(self, worker: _LinkedWorker) -> bool:
        """Carry one chunk, after what was printed before it; return whether more may come."""
        try:
            data = worker.channel.recv(messages.CHUNK_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            self._send_output(worker)
            self._send(messages.message(messages.DATA, data))
        return bool(data)

    def _send_output(self, worker: _LinkedWorker) -> None:
        text = worker.output.since(max(worker.sent, 0))
        if text is None:
            return
        if errors := worker.output.errors_since(worker.sent_errors):
            self._send_text(messages.ERRORS, worker.sent_errors, errors)
            worker.sent_errors += len(errors)
        if not text and worker.sent >= 0:
            return
        start = worker.sent = max(worker.sent, 0)
        self._send_text(messages.OUTPUT, start, text)
        worker.sent = start + len(text)

    def _send_text(self, kind: bytes, start: int, text: bytes) -> None:
        for first in range(0, max(len(text), 1), messages.CHUNK_BYTES):
            chunk = text[first : first + messages.CHUNK_BYTES]
            self._send(messages.message(kind, messages.POSITION.pack(start + first) + chunk))


Link = DirectLink | StreamLink


class _LinkedWorker:
    """The worker that there is: this end of its channel, and its output buffer."""

    def __init__(self, channel: socket.socket, shared: OutputBuffer) -> None:
        self.channel = channel
        self.output = shared
        self.sent = 0
        self.sent_errors = 0
        self.to_send = bytearray()
        self.closed = False
        channel.setblocking(False)

    def watch(self, poll: select.poll, *, full: bool) -> None:
        wanted = 0 if full else select.POLLIN
        wanted |= select.POLLOUT if self.to_send else 0
        if wanted and not self.closed:
            poll.register(self.channel, wanted)

    def pass_down(self) -> None:
        try:
            while self.to_send:
                del self.to_send[: self.channel.send(self.to_send)]
        except BlockingIOError:
            return
        except OSError:
            self.to_send.clear()

    def close(self) -> None:
        self.channel.close()
        self.output.close()


def _own_streams() -> tuple[int, int]:
    """Take the standard streams away from the numbers under which workers would find them."""
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.close(null)
    return reading, writing
