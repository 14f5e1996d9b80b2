"""What a server sets up in its own process before anything else: file descriptors, and logs that cannot flood."""

from __future__ import annotations

import logging
import resource
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import shortage_in

if TYPE_CHECKING:
    import asyncio

DESCRIPTORS_WANTED = 65_536
"""Enough for some ten thousand connections; more would only slow down programs that close them one by one."""
_REPEATED_SECONDS = 60.0
_KINDS_MAX = 1000
_LOG = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files as far as the hard one allows (getrlimit(2)).

    The usual 1,024 is kept low for programs that use select(2), which nothing here does.
    """
    with suppress(OSError):  # refused to this process: it goes on with what it has
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_WANTED, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def set_up_log(level: str, gate: logging.Filter) -> None:
    """Log to standard error what the gate makes of it, and there warnings and errors of one kind once a minute."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(gate)
    handler.addFilter(OncePerMinute())
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler])


class OncePerMinute(logging.Filter):
    """Lets a warning pass once a minute, and says how many of its kind were left out since the last one.

    Of one kind is what one line of code logs. Faults of the machine, such as a lack of file descriptors, come by the
    thousand.
    """

    def __init__(self) -> None:
        super().__init__()
        self._changing = threading.Lock()
        self._seen: dict[tuple[str, str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show it."""
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, record.pathname, record.lineno)
        now = time.monotonic()
        with self._changing:
            shown_at, left_out = self._seen.get(kind, (float("-inf"), 0))
            if now - shown_at < _REPEATED_SECONDS:
                self._seen[kind] = (shown_at, left_out + 1)
                return False
            if len(self._seen) >= _KINDS_MAX:
                self._seen.clear()
            self._seen[kind] = (now, 0)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} more of this kind were left out in between.)"
            record.args = None
        return True


class LoopErrors:
    """An exception handler for an event loop: what the machine has run out of is logged once a minute, in a sentence.

    asyncio tries again to accept a connection each second, and would log each failure with its traceback.
    """

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle one report, as `asyncio.loop.set_exception_handler` has it."""
        error = context.get("exception")
        if error is None or shortage_in(error) is None:
            loop.default_exception_handler(context)
        elif time.monotonic() - self._said_at >= _REPEATED_SECONDS:
            self._said_at = time.monotonic()
            _LOG.warning("Connections wait: %s. Raise the limit of what is short; this is said once a minute.", error)
