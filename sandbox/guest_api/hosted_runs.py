"""The helpers with which code speaks of its own run: how far it is, and which sessions there are."""

from __future__ import annotations

import math
from typing import cast

from ..guest import clock
from ..guest.guest import GUEST
from ..job import Json

MESSAGE_CHARS_MAX = 200
_EVERY_SECONDS = 0.1


class _Progress:
    """Reports to the host how far the code is, at most every `_EVERY_SECONDS`, and always that it is done."""

    def __init__(self) -> None:
        self._reported_at = -math.inf

    def tell(self, fraction: float, message: str) -> None:
        now = clock.monotonic()
        if fraction < 1 and 0 <= now - self._reported_at < _EVERY_SECONDS:
            return
        self._reported_at = now
        GUEST.call_host("progress", {"fraction": float(fraction), "message": message})


_PROGRESS = _Progress()


def progress(fraction: float, message: str = "") -> None:
    """Report to the client how far the code is: 0 is its beginning, 1 its end. What comes too often is left out.

    Raises TypeError for what is not a number or not text, ValueError for a number that is not from 0 to 1.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        raise TypeError(f"progress() takes a number from 0 to 1, not {type(fraction).__name__}. Write done / total.")
    if not isinstance(message, str):
        raise TypeError(f"progress() takes a message as text, not {type(message).__name__}. Use an f-string.")
    if not 0 <= fraction <= 1:
        raise ValueError(f"progress() takes a number from 0 to 1, not {fraction:g}. Write done / total.")
    _PROGRESS.tell(fraction, message[:MESSAGE_CHARS_MAX])


def list_sessions() -> Json:
    """Return your sessions as `[{name, isolation, calls, idle_seconds}]`; a busy one has been idle for None."""
    return GUEST.call_host("list_sessions", {})


def close_session(name: str) -> bool:
    """End a session and free its place, once no call is at work in it. Returns whether there was one."""
    return cast("bool", GUEST.call_host("close_session", {"name": name}))


def helpers() -> dict[str, object]:
    """Give every helper of this module by the name under which code finds it."""
    return {"close_session": close_session, "list_sessions": list_sessions, "progress": progress}
