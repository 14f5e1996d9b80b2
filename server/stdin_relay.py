"""Stands between standard input and the SDK, so that serving can be ended and a last answer is not lost.

The SDK reads in a thread that nothing can interrupt, and calls off what is being worked on as soon as its input ends. A
script that pipes its requests in and closes the pipe would get no answer, and a signal would wait for the next line.
Here the SDK reads from a socket that this process closes: at once when told to, and after the end of standard input as
soon as nothing is being worked on, or after `GRACE_SECONDS`.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress

GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 2
_READ_BYTES = 1 << 16


class StdinRelay:
    """Takes descriptor 0 over for as long as the process lives. `idle` tells whether nothing is being worked on."""

    def __init__(self, idle: Callable[[], bool]) -> None:
        self._idle = idle
        self._real = os.dup(0)
        self._ours, self._theirs = socket.socketpair()
        os.dup2(self._theirs.fileno(), 0)
        # A daemon, since only the end of standard input ends its read; it holds no lock that an exit would wait for.
        threading.Thread(target=self._relay, name="stdin", daemon=True).start()

    def end(self) -> None:
        """Let the reader of descriptor 0 see the end of its input now. May be called twice, from any thread."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    def _relay(self) -> None:
        with suppress(OSError):
            while data := os.read(self._real, _READ_BYTES):
                self._ours.sendall(data)
        self._wait_until_quiet()
        self.end()

    def _wait_until_quiet(self) -> None:
        """Wait until nothing was worked on for a moment: what was just read has to begin, and answers to be written."""
        deadline = time.monotonic() + GRACE_SECONDS
        quiet = 0
        while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            quiet = quiet + 1 if self._idle() and not self._unread_bytes() else 0

    def _unread_bytes(self) -> int:
        """Return how much the SDK has not read yet (ioctl_list(2), FIONREAD)."""
        (unread,) = struct.unpack("i", fcntl.ioctl(self._theirs, termios.FIONREAD, b"\0\0\0\0"))
        return int(unread)
