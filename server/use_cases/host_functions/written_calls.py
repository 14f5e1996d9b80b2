"""The calls that stand in a program, as its worker reads them in the source, and what is wrong with them.

Nothing here decides more than a refusal: each call is judged again when it is made.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from ....tools_registry.errors import ToolAmbiguous, ToolUnknown
from ....tools_registry.models import Tool
from ...base.host_work import checkpoint
from .saved_answers import OF_CALLS, is_of_tool

if TYPE_CHECKING:
    from ....tools_registry.describing.details import Describer

CALLS_JUDGED_MAX = 200
SHOWN_MAX = 1_000
"""Different calls of one place that are taken for a question."""
ARGUMENTS_JUDGED_MAX = 1_000
"""A call with more arguments is judged when it is made."""
_JUDGING_SECONDS = 2.0
_NAME_CHARS_MAX = 200
_FUNCTION_CHARS_MAX = 80


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """One call whose failure the program does not catch; `certain` as `planned_calls` says it."""

    line: int
    given: Mapping[str, Json]
    others: tuple[str, ...]
    more: bool
    positional: int
    unawaited: bool
    certain: bool
    plain_function: str = ""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """What a source says of a call before it is made; `times` is how often at most, None where it does not say.

    `positional` has `[value]` for a value that is known, else the text from which it is computed, as `computed` does.
    """

    given: Mapping[str, Json]
    computed: Mapping[str, str]
    positional: Sequence[Json]
    times: int | None


@dataclass(frozen=True, slots=True)
class SkillSource:
    """Which skill a call stands in, by the name under which the program uses it, and on which line it does.

    `certain` says that the program makes the call whenever it runs to its end.
    """

    key: str
    used_on: int
    certain: bool


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line on which a tool is called, what is known of its calls there, and the line on which they end.

    Without a `skill` it is a line of the program.
    """

    line: int
    caught: bool
    calls: tuple[WrittenCall, ...]
    last_line: int
    shown: tuple[ShownCall, ...] = ()
    hides: bool = False
    """Whether there are calls that are not in `shown`."""
    skill: SkillSource | None = None

    @property
    def used_on(self) -> int:
        """The line of the program that leads there."""
        return self.line if self.skill is None else self.skill.used_on

    @property
    def ends_program(self) -> bool:
        """Whether a program may not start whose call there is not allowed."""
        return not self.caught and (self.skill is None or self.skill.certain)

    def said(self, why: str) -> tuple[int, str]:
        """Return the line of the program, and why its call may not be made, with where it is made."""
        if self.skill is None:
            return self.line, why
        return self.skill.used_on, f"The skill {self.skill.key} makes a call in its line {self.line}: {why}"


@dataclass(frozen=True, slots=True)
class CallFault:
    """Why a call would fail; `server` is that of its tool, where there is one."""

    line: int
    why: str
    certain: bool
    server: str | None = None


def read_places(sent: Sequence[Json], skills: Container[str] = ()) -> dict[str, list[CallSite]]:
    """Return the places by the names of their tools; what is none is left out, since a worker is not trusted.

    So are those in skills other than `skills`, whose code the host gave to it.
    """
    named: dict[str, list[CallSite]] = {}
    for each in sent[:CALLS_JUDGED_MAX]:
        match each:
            case [str(name), int(line), bool(caught), list(calls), int(last), list(shown), *where] if (
                _is_line(line) and _is_line(last) and len(name) <= _NAME_CHARS_MAX
            ):
                skill = _skill_source(where)
                if where and (skill is None or skill.key not in skills):
                    continue
                read = tuple(call for each in calls[:CALLS_JUDGED_MAX] if (call := _read(line, each)) is not None)
                shown_calls = tuple(one for each in shown[:SHOWN_MAX] if (one := _shown(each)) is not None)
                hides = len(shown_calls) < len(shown)
                named.setdefault(name, []).append(
                    CallSite(line, caught, () if skill else read, last, shown_calls, hides, skill)
                )
    return named


def _shown(sent: Json) -> ShownCall | None:
    match sent:
        case [dict(given), dict(computed), list(positional), None | int() as times] if len(given) + len(computed) + len(
            positional
        ) <= ARGUMENTS_JUDGED_MAX and (times is None or times > 0):
            texts = {name: text for name, text in computed.items() if isinstance(text, str)}
            return ShownCall(given, texts, positional, times)
    return None


def _skill_source(where: Sequence[Json]) -> SkillSource | None:
    match where:
        case [[str(key), int(used_on), bool(certain)]] if _is_line(used_on) and len(key) <= _NAME_CHARS_MAX:
            return SkillSource(key, used_on, certain)
    return None


def unknown_faults(
    places: Iterable[CallSite], error: ToolUnknown | ToolAmbiguous, *, first_line: int
) -> list[CallFault]:
    """Return the faults of calls whose name means no tool.

    None is certain behind `first_line`, where the program first calls a tool that there is: servers may have further
    tools after a call. A name much like that of a tool counts as a misspelling all the same.
    """
    like_another = bool(error.candidates if isinstance(error, ToolAmbiguous) else error.nearest)
    return [
        CallFault(call.line, str(error), call.certain and (like_another or call.line <= first_line))
        for place in places
        for call in place.calls
    ]


def faults(found: Sequence[tuple[Tool, Sequence[CallSite]]], describer: Describer) -> list[CallFault]:
    """Return what is wrong with calls of tools; the first fault of a tool shows its signature.

    Takes CPU time: call it in a thread. What is not judged within `_JUDGING_SECONDS` is left to the calls.
    """
    until = time.monotonic() + _JUDGING_SECONDS
    wrong: list[CallFault] = []
    for tool, places in found:
        is_signature_shown = False
        for call in (call for place in places for call in place.calls):
            checkpoint()
            if time.monotonic() > until:
                return wrong
            for why in _faults_of(tool, call, describer):
                shown = why if is_signature_shown else f"{why} Its signature: {describer.signature(tool)}"
                wrong.append(CallFault(call.line, shown, call.certain, tool.server))
                is_signature_shown = True
    return wrong


def _faults_of(tool: Tool, call: WrittenCall, describer: Describer) -> Iterator[str]:
    from ..upstream_tools.tool_arguments import misfits_as_written, names_by_position, too_many_by_position

    if call.unawaited:
        name = call.plain_function
        how = f"Make {name}() an `async def`, and await it where it is called; write" if name else "Write"
        yield f"The call of {tool.full_name} is not awaited, so nothing of it would run. {how} `await` before the call."
    names = names_by_position(tool)
    if call.positional > len(names):
        yield too_many_by_position(tool, describer.call(tool))
        return
    others = (*call.others, *names[: call.positional])
    given = call.given
    own = {name for name in OF_CALLS if (name in given or name in others) and not is_of_tool(tool, name)}
    if own:
        given = {name: value for name, value in given.items() if name not in own}
        others = tuple(name for name in others if name not in own)
    yield from misfits_as_written(tool, given, others, more=call.more)


def _read(line: int, sent: Json) -> WrittenCall | None:
    match sent:
        case {
            "given": dict(given),
            "others": list(others),
            "more": bool(more),
            "positional": int(positional),
            "unawaited": bool(unawaited),
            "certain": bool(certain),
            "plain_function": str(function),
        }:
            if len(given) + len(others) > ARGUMENTS_JUDGED_MAX:
                return None
            names = tuple(each for each in others if isinstance(each, str))
            function = function if _is_name(function) else ""
            return WrittenCall(line, given, names, more, max(0, positional), unawaited, certain, function)
    return None


def _is_name(text: str) -> bool:
    return text.isidentifier() and len(text) <= _FUNCTION_CHARS_MAX


def _is_line(line: int) -> bool:
    return 0 < line < 1 << 31
