"""What the user said in one run, and which code that covers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_SAID = ("granted", "declined", "asked", "one_by_one")
"""What a user says in a run, as `Approvals` calls it."""


@dataclass(slots=True)
class Approvals:
    """What the user said in one run: the tools that may be called without asking again, and those that may not.

    A yes to more than one call covers the code that the run had when it was asked for: once it takes in a version of a
    skill that it did not have then, its calls are asked about anew.
    """

    granted: set[str] = field(default_factory=set)
    """Tools as `taken tool`, with `taken` as it was when the user was asked."""
    declined: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    """Those about which a question was answered while the run was going on: the next covers the rest of the run."""
    one_by_one: set[str] = field(default_factory=set)
    """Those of which the user wants to be asked about each call."""
    asking: dict[str, asyncio.Lock] = field(default_factory=dict)
    signed_in: set[str] = field(default_factory=set)
    """Servers to which the user was asked to sign in."""
    taken: int = 0
    """How many versions of skills the run has been given the code of."""
    codes: set[str] = field(default_factory=set)
    """These versions, as `name@version=hash`."""
    versions: dict[str, int] = field(default_factory=dict)
    """The version that a skill's name means in the run: fixed when the run first asks for it."""

    def take(self, name: str, version: int, content_hash: str, *, again: bool = False) -> None:
        """Note that the run was given the code of a version; `again` where an earlier process of the run counted it."""
        code = f"{name}@{version}={content_hash}"
        self.taken += code not in self.codes and not again
        self.codes.add(code)

    def grant(self, tools: Iterable[str], taken: int) -> None:
        """Note a yes to further calls of tools; `taken` is as it was when the user was asked."""
        self.granted.update(f"{taken} {tool}" for tool in tools)

    def grants(self, tool: str) -> bool:
        """Return whether a yes covers further calls of a tool, by all code that the run has."""
        return f"{self.taken} {tool}" in self.granted

    def signing_in(self, server: str) -> asyncio.Lock:
        """Return what lets one call at a time have the user sign in to a server: that is for all that wait here."""
        return self.asking.setdefault(f"\0{server}", asyncio.Lock())

    def told(self) -> dict[str, tuple[str, ...]]:
        """Return what was said as names of tools, so that a run that goes on elsewhere does not ask again."""
        said = {name: getattr(self, name) for name in _SAID}
        told = {name: tuple(sorted(tools)) for name, tools in said.items() if tools}
        return told | ({"taken": (str(self.taken),)} if self.taken else {})

    def restore(self, said: Mapping[str, Iterable[str]]) -> None:
        """Restore what `told` returned."""
        for name in _SAID:
            getattr(self, name).update(said.get(name, ()))
        self.taken = max(map(int, said.get("taken", ())), default=0)
