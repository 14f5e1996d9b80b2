"""What the event loop reports when something failed that nobody awaits."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from ..errors import shortage_in

_EVERY_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


class LoopErrors:
    """An exception handler for a loop: what the machine has run out of is said once a minute, in a sentence.

    asyncio tries again to accept a connection each second, and would log each failure with its traceback.
    """

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle one report, as `asyncio.loop.set_exception_handler` has it."""
        error = context.get("exception")
        if error is None or shortage_in(error) is None:
            loop.default_exception_handler(context)
        elif time.monotonic() - self._said_at >= _EVERY_SECONDS:
            self._said_at = time.monotonic()
            _LOG.warning("Connections wait: %s. Raise the limit of what is short; this is said once a minute.", error)
