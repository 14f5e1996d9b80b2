"""The fork server's end of what it and the host say to each other: a socket that was passed in, if there is one.

Then the host passes each worker's descriptors over it, as it does to a zygote, and nothing stands between a worker and
the host. Engines that pass nothing in leave the standard streams, over which all must be forwarded: see `stream_link`.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from ..job import Json
from ..wire.zygote_config import PACKET_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Request:
    """What the host asks for: its words, and the descriptors for a worker: of its channel and of its output."""

    words: Mapping[str, Json]
    descriptors: tuple[int, ...] = ()


class Link(Protocol):
    """How the fork server receives from its host. At the end of the stream the process ends."""

    def first(self) -> Mapping[str, Json]:
        """Wait for the first message, the configuration."""
        ...

    def watch(self, poll: select.poll) -> None:
        """Register what it waits for."""

    def requests(self, ready: Mapping[int, int]) -> Iterable[Request]:
        """Do what can be done now, `ready` being what poll(2) said of descriptors, and give what the host asked for."""
        ...

    def send(self, **words: Json) -> None:
        """Send the host a message."""

    def finish(self) -> None:
        """Hand over what a worker that has ended left to say."""

    def flush(self) -> None:
        """Wait until everything was handed over."""


class DirectLink:
    """The socket that was passed in: a packet for each message."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def first(self) -> Mapping[str, Json]:
        """Wait for the configuration."""
        return self._request().words

    def watch(self, poll: select.poll) -> None:
        """Wait for requests alone."""
        poll.register(self._control, select.POLLIN)

    def requests(self, ready: Mapping[int, int]) -> Iterable[Request]:
        """Give the next one."""
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
