"""A host call on its way through the aspects of a run, and its answer with what belongs to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ...sandbox.job import HostCalls, Json


@dataclass(frozen=True, slots=True)
class AnnouncedChange:
    """A change that is about to be made.

    One that `leaves` this machine (a call of an upstream tool) is never made unless it is written down. One that is
    `repeatable` comes to the same when it is made again. `sources` says where its values come from.
    """

    leaves: bool
    repeatable: bool
    sources: tuple[Mapping[str, str], ...] = ()


SENT = AnnouncedChange(leaves=True, repeatable=False)
MADE_HERE = AnnouncedChange(leaves=False, repeatable=False)
REPEATABLE_HERE = AnnouncedChange(leaves=False, repeatable=True)


@dataclass(frozen=True, slots=True)
class HostCall:
    """What running code asks of the host. `write_down` records a change before it is made, where the run is recorded.

    A call that only reads changes nothing. A change is written down at the last moment, when everything that could
    refuse it has been asked: what is written down and not answered may have been done.
    """

    name: str
    arguments: Mapping[str, Json]
    write_down: Callable[[AnnouncedChange], Awaitable[None]] | None = None

    async def before(self, change: AnnouncedChange) -> None:
        """Write down a change that is about to be made. Raises `HostCallError` where it must not be made."""
        if self.write_down is not None:
            await self.write_down(change)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call is answered. `tool` is the upstream tool that gave it, as `server.tool`, if one did.

    `label` is what its server says of the flow of what it gave: `integrity` and `confidentiality`.
    """

    value: Json
    tool: str = ""
    label: Mapping[str, str] = field(default_factory=dict)


Answers = Callable[[HostCall], Awaitable[Answer]]
"""Answers one host call, or raises `HostCallError`."""


def for_worker(answers: Answers) -> HostCalls:
    """Return what a worker asks: it is given the values alone."""

    async def answer(name: str, arguments: Mapping[str, Json]) -> Json:
        return (await answers(HostCall(name, arguments))).value

    return answer
