"""Answers the host calls of a run from the journal of an earlier one.

A call is the recorded one if its number, name and arguments are those: then the code gets what was recorded, and
nothing is sent. A call that may have been made and whose answer is not recorded is never made again: the code gets
`OutcomeUnknown`, unless its change comes to the same when it is repeated. Beyond the record, calls are made; where
there is nobody to make them, the replay is at its end.

Nothing here reads a clock, a file or a database.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ...base.host_call import Answer, Answers, HostCall
from .replies import given, shown

if TYPE_CHECKING:
    from ....skills_db.journal.records import Record
    from .recording import RunJournal

DIVERGED = "ReplayDiverged"
"""The type of an error that ends the run in its worker, whatever the code does with it."""
OUTCOME_UNKNOWN = "OutcomeUnknown"
JUDGE_CALLS = "judge_calls"
"""What a worker asks before its code begins: no call of the code."""
_PROGRESS = "progress"
"""What code tells to whoever watches the run."""
_INTENT, _OUTCOME = 1, 2
_REPLIES: tuple[str, ...] = ("answer", "error")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call as it is recorded. `reply` is `{"answer"}` or `{"error"}`, or None where it is not known.

    `changes` says that it was about to change something, and `repeatable` that this comes to the same when repeated.
    """

    number: int
    name: str
    arguments: Mapping[str, Json]
    reply: Mapping[str, Json] | None = None
    changes: bool = False
    repeatable: bool = False
    at_ms: float = 0.0
    ms: float | None = None
    sources: Sequence[Mapping[str, str]] = ()
    """Where the values of its arguments come from: `{argument, kind, source, from?}` of each."""
    label: Mapping[str, str] = field(default_factory=dict)
    """What its answer was labelled; see `Answer`."""

    @property
    def succeeded(self) -> bool:
        """Whether it was answered, and with no error."""
        return self.reply is not None and "error" not in self.reply

    @property
    def answer(self) -> Json:
        """What it was answered, or None."""
        return None if self.reply is None else self.reply.get("answer")

    def fits(self, call: HostCall) -> bool:
        """Return whether a call is this one."""
        return call.name == self.name and _text(call.arguments) == _text(self.arguments)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first call that is not what is recorded. `recorded` is None where the record has ended."""

    number: int
    recorded: str | None
    asked: str

    def __str__(self) -> str:
        if self.recorded is None:
            return f"call {self.number} is {self.asked}, and the record has ended"
        return f"call {self.number} was {self.recorded} when it was recorded, and is {self.asked} now"


def recorded_calls(records: Iterable[Record]) -> tuple[RecordedCall, ...]:
    """Return the calls of a journal in the order in which they were made. Raises ValueError where these are none."""
    calls: dict[int, RecordedCall] = {}
    for each in records:
        if each.kind == _INTENT:
            fields = each.value
            sources = cast("Sequence[Mapping[str, str]]", fields.get("sources", ()))
            asked = replace(_asked(fields), changes=True, repeatable=fields["repeatable"] is True, sources=sources)
            calls[_number(fields)] = asked
        elif each.kind == _OUTCOME:
            fields = each.value
            number = _number(fields)
            call = calls[number] if number in calls else _asked(fields)
            reply: dict[str, Json] = {key: cast("Json", fields[key]) for key in _REPLIES if key in fields}
            label = cast("Mapping[str, str]", fields.get("label", {}))
            calls[number] = replace(call, reply=reply, ms=cast("float", fields["ms"]), label=label)
    return tuple(calls[number] for number in sorted(calls))


def said_by_user(records: Iterable[Record]) -> dict[str, set[str]]:
    """Return what a user said while a run was recorded, as `Approvals.as_texts` gives it."""
    said: dict[str, set[str]] = {}
    for each in records:
        if each.kind == _OUTCOME:
            for name, tools in cast("Mapping[str, Sequence[str]]", each.value.get("said", {})).items():
                said.setdefault(name, set()).update(tools)
    return said


class RunReplay:
    """Answers from recorded calls, then from `live`. `diverged` is the first call that was not the recorded one.

    Of edited code nothing is judged before it begins: its calls are judged when they are made, if they are.
    """

    def __init__(self, calls: Sequence[RecordedCall], live: Answers | None = None, *, edited: bool = False) -> None:
        """Make it; where the code was `edited`, calls are live from the first on that is not the recorded one."""
        if edited:
            own = (each for each in calls if each.name != JUDGE_CALLS)
            calls = [replace(each, number=number) for number, each in enumerate(own, 1)]
        self._unshown = sum(each.name == JUDGE_CALLS for each in calls)
        """The calls before the first one that a list of calls shows."""
        self._calls = MappingProxyType({each.number: each for each in calls})
        self._live = live
        self._edited = edited
        self._made = 0
        self._is_live = False
        self.answered = 0
        """How many calls were answered from the record."""
        self.sent: list[str] = []
        """The calls that were made anew."""
        self.diverged: Divergence | None = None

    def before(self, live: Answers) -> Answers:
        """Return what answers from the record, and beyond it as `live` does."""
        self._live = live
        return self.answer

    async def answer(self, call: HostCall) -> Answer:
        """Answer one call. Raises `HostCallError`: as recorded, `OutcomeUnknown`, or `ReplayDiverged`."""
        if self._edited and call.name == JUDGE_CALLS:
            return Answer(None)
        self._made += 1
        number = self._made
        if self.diverged is not None:
            self._stop()
        recorded = None if self._is_live else self._calls.get(number)
        if recorded is None:
            return await self._beyond(number, call)
        if not recorded.fits(call):
            if not self._edited:
                now = shown(call.name, call.arguments)
                self.diverged = Divergence(number - self._unshown, shown(recorded.name, recorded.arguments), now)
                self._stop()
            self._is_live = True
            return await self._beyond(number, call)
        if recorded.reply is not None:
            self.answered += call.name != JUDGE_CALLS  # what no list of calls shows is not counted either
            return Answer(await self._recorded(recorded, recorded.reply), label=recorded.label)
        if recorded.repeatable:
            return await self._beyond(number, call, is_known=True)
        raise await self._unknown(recorded)

    async def _recorded(self, _call: RecordedCall, reply: Mapping[str, Json]) -> Json:
        return given(reply)

    async def _unknown(self, call: RecordedCall) -> HostCallError:
        return HostCallError(
            f"Whether {shown(call.name, call.arguments)} was done is not known: it was about to be sent when the run "
            "was cut. Look whether it took effect before it is sent again.",
            type=OUTCOME_UNKNOWN,
        )

    async def _beyond(self, number: int, call: HostCall, *, is_known: bool = False) -> Answer:
        asked = shown(call.name, call.arguments)
        if self._live is None:
            if call.name == _PROGRESS:
                return Answer(None)
            self.diverged = Divergence(number - self._unshown, None, asked)
            self._stop()
        self.sent.append(asked)
        return await self._make(number, call, self._live, is_known=is_known)

    async def _make(
        self,
        _number: int,
        call: HostCall,
        live: Answers,
        *,
        is_known: bool,  # noqa: ARG002 - tells a run that is resumed what its journal has of the call
    ) -> Answer:
        return await live(call)

    def _stop(self) -> NoReturn:
        raise HostCallError(f"{self.diverged}", type=DIVERGED)


class RunResume(RunReplay):
    """Answers from the recorded calls of a run that was cut, then from `live`; the `journal` records all that is new.

    `note` is called with each call that is answered from the record.
    """

    def __init__(
        self,
        calls: Sequence[RecordedCall],
        journal: RunJournal,
        live: Answers,
        note: Callable[[RecordedCall], Awaitable[None]],
    ) -> None:
        """Make it."""
        super().__init__(calls, live)
        self._journal = journal
        self._note = note

    async def _recorded(self, call: RecordedCall, reply: Mapping[str, Json]) -> Json:
        await self._note(call)
        return given(reply)

    async def _unknown(self, call: RecordedCall) -> HostCallError:
        error = await super()._unknown(call)
        await self._note(call)
        with suppress(HostCallError):
            asked = HostCall(call.name, call.arguments)
            await self._journal.answered(call.number, asked, _raising(error), is_known=True)
        return error

    async def _make(self, number: int, call: HostCall, live: Answers, *, is_known: bool) -> Answer:
        return await self._journal.answered(number, call, live, is_known=is_known)


def _raising(error: HostCallError) -> Answers:
    async def answer(_call: HostCall) -> Answer:
        raise error

    return answer


def _number(fields: Mapping[str, object]) -> int:
    number = fields.get("n")
    if not isinstance(number, int):
        raise ValueError("a record has no number")  # noqa: TRY004 - of what was read, not of an argument
    return number


def _asked(fields: Mapping[str, object]) -> RecordedCall:
    if not isinstance(fields.get("name"), str) or not isinstance(fields.get("arguments"), dict):
        raise ValueError("a record does not say what was called")  # noqa: TRY004 - as above
    return RecordedCall(
        _number(fields),
        cast("str", fields["name"]),
        cast("Mapping[str, Json]", fields["arguments"]),
        at_ms=cast("float", fields["at_ms"]),
    )


def _text(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, sort_keys=True)
