"""Who asks for a run, as the server knows it from the connection and never from what was sent over it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Ask = Callable[[str], Awaitable[bool]]
"""Asks the user one question and tells whether the answer was yes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. `scope` is whose vault its tokens belong to; `ask` is None where no user can be asked."""

    scope: str = "home"
    ask: Ask | None = None


LOCAL = Caller()
"""Whoever started this process: the command line, or the one client on the standard streams."""
