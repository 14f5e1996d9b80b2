"""Security boundary: what the user said in one run, which calls that covers, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Tool
    from ...governance.questions import AskedCall


@dataclass(slots=True, eq=False)
class WaitingCall:
    """A call that waits for a user, as it is asked about; `call` has the name for which a yes is kept."""

    call: AskedCall
    tool: Tool
    server: ServerConfig
    refused: str | None = None
    """Why it may not be made, once that is said."""
    is_answered: bool = False


@dataclass(slots=True)
class Approvals:
    """What the user said in one run, by the key of each call: its tool, and all that it names.

    A yes to more than one call covers the code that the run had when it was asked for: once it takes in a version of a
    skill that it did not have then, its calls are asked about anew. It covers no more calls than its question showed.
    """

    granted: dict[str, int | None] = field(default_factory=dict)
    """How many calls more may be made, None for any number, by `taken key`, with `taken` as it was when asked."""
    declined: dict[str, str] = field(default_factory=dict)
    """Calls that may not be made, with the user's reason, by their keys."""
    asked: set[str] = field(default_factory=set)
    """Those about which a question was answered while the run was going on: the next covers the rest of the run."""
    one_by_one: set[str] = field(default_factory=set)
    """The tools of which the user wants to be asked about each call."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call that asks, about all that wait."""
    waiting: list[WaitingCall] = field(default_factory=list)
    coming: set[int] = field(default_factory=set)
    """Calls that are still judged, by `id`: they may come to those that wait."""
    asking: dict[str, asyncio.Lock] = field(default_factory=dict)
    signed_in: set[str] = field(default_factory=set)
    """Servers to which the user was asked to sign in."""
    taken: int = 0
    """How many versions of skills the run has been given the code of."""
    codes: set[str] = field(default_factory=set)
    """These versions, as `name@version=hash`."""
    versions: dict[str, int] = field(default_factory=dict)
    """The version that a skill's name means in the run: fixed when the run first asks for it."""

    @contextmanager
    def judging(self, call: object) -> Iterator[None]:
        """Register this call as waiting for a question, until it is `judged` or the block ends."""
        self.coming.add(id(call))
        try:
            yield
        finally:
            self.coming.discard(id(call))

    def judged(self, call: object) -> None:
        """Remove this call from those that wait for a question."""
        self.coming.discard(id(call))

    def take(self, name: str, version: int, content_hash: str, *, again: bool = False) -> None:
        """Note that the run was given the code of a version; `again` where an earlier process of the run counted it."""
        code = f"{name}@{version}={content_hash}"
        self.taken += code not in self.codes and not again
        self.codes.add(code)

    def grant(self, key: str, taken: int, times: int | None) -> None:
        """Note a yes to further calls, any number with None; `taken` is as it was when the user was asked."""
        kept = f"{taken} {key}"
        before = self.granted.get(kept, 0)
        self.granted[kept] = None if times is None or before is None else before + times

    def grants(self, key: str) -> bool:
        """Return whether a yes covers a further call, by all code that the run has."""
        return self.granted.get(f"{self.taken} {key}", 0) != 0

    def spend(self, key: str) -> bool:
        """Return whether a yes covers a further call, which is made."""
        kept = f"{self.taken} {key}"
        left = self.granted.get(kept, 0)
        if left:
            self.granted[kept] = left - 1
        return left != 0

    def signing_in(self, server: str) -> asyncio.Lock:
        """Return what lets one call at a time have the user sign in to a server: that is for all that wait here."""
        return self.asking.setdefault(f"\0{server}", asyncio.Lock())

    def as_texts(self) -> dict[str, tuple[str, ...]]:
        """Return what was said as texts, so that a run that goes on elsewhere does not ask again."""
        said: dict[str, Iterable[str]] = {
            "granted": [f"{'any' if left is None else left} {key}" for key, left in self.granted.items()],
            "declined": [f"{key} {reason}" for key, reason in self.declined.items()],
            "asked": self.asked,
            "one_by_one": self.one_by_one,
        }
        kept = {name: tuple(sorted(texts)) for name, texts in said.items() if texts}
        return kept | ({"taken": (str(self.taken),)} if self.taken else {})

    def restore(self, said: Mapping[str, Iterable[str]]) -> None:
        """Restore what `as_texts` returned at several times, of which the fewest calls that were left count."""
        for text in said.get("granted", ()):
            left, _, key = text.partition(" ")
            if left == "any":
                self.granted[key] = None
            elif left.isdecimal() and (fewest := self.granted.get(key, int(left))) is not None:
                self.granted[key] = min(fewest, int(left))
        for text in said.get("declined", ()):
            key, _, reason = text.partition(" ")
            self.declined[key] = reason
        self.asked.update(said.get("asked", ()))
        self.one_by_one.update(said.get("one_by_one", ()))
        self.taken = max(map(int, said.get("taken", ())), default=0)
