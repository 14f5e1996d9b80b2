"""Tells whoever records a run, before something is changed on its behalf, wherever that is found out.

What only reads tells nothing. A change is told at the last moment before it is made, when everything that could refuse
it has been asked: what is told and not answered may have been done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is about to be made.

    One that `leaves` this machine (a call of an upstream tool) is never made unless it is written down. One that is
    `repeatable` comes to the same when it is made again.
    """

    leaves: bool
    repeatable: bool


class Told(Protocol):
    """Is told of a change of the host call that is being answered."""

    async def __call__(self, change: Change) -> None:
        """Write it down. Raises `HostCallError` where it must not be made."""


SENT = Change(leaves=True, repeatable=False)
MADE_HERE = Change(leaves=False, repeatable=False)
REPEATABLE_HERE = Change(leaves=False, repeatable=True)

CHANGES: ContextVar[Told | None] = ContextVar("CHANGES", default=None)
"""Who is told what the current host call changes."""
WAITS: ContextVar[Callable[[], AbstractContextManager[None]] | None] = ContextVar("WAITS", default=None)
"""What makes the time in which the current host call waits for a user."""


@contextmanager
def waits_for_user() -> Iterator[None]:
    """Tell that the current host call waits for a user: until then it does nothing, and may be broken off."""
    waits = WAITS.get()
    if waits is None:
        yield
        return
    with waits():
        yield


async def before_change(change: Change) -> None:
    """Tell what the current host call is about to change. Raises `HostCallError` where it must not."""
    told = CHANGES.get()
    if told is not None:
        await told(change)
