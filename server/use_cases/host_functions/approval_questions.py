"""Security boundary: the user's yes to calls of upstream tools, for one call, one run, or always.

A program is judged as a whole before it starts: what is not allowed in it ends it before anything is called, and what
needs a yes is asked about in one question. The program says itself which calls stand in it, so that nothing depends on
what it says: each call is judged again when it is made.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn, cast

from ....sandbox.job import Json
from ....tools_registry.configuration import ServerConfig
from ....tools_registry.errors import RegistryError, ToolAmbiguous, ToolUnknown
from ....tools_registry.models import Tool
from ...base.host_work import Kind, checked, in_thread
from ...base.identity import Right
from ...governance.audit.trail import ToolCallLine
from ...governance.caller import Ask, NoMoreQuestions
from ...governance.provenance.instructions import orders_said
from ...governance.provenance.judging import UNJUDGED, JudgedCall
from ...governance.scopes import is_one_user
from ..upstream_tools import approval, discovery
from ..upstream_tools.approval import ALWAYS, EACH_CALL, THIS_CALL, THIS_RUN, Decision
from ..upstream_tools.wiring import config_of
from .broker import Calls, failed
from .written_calls import CALLS_JUDGED_MAX, Fault, Place, faults, read_places, unknown_faults

if TYPE_CHECKING:
    from ...privacy.privacy import Privacy
    from ..upstream_tools.registry import Known, Registry

TOOLS_ASKED_MAX = 20
"""Tools that one question is about; calls of others are asked about when they are made."""

_REFUSED_SHOWN = 20
_ORDERS_SHOWN = 3
_LEAVE_OUT = "Leave these calls out."


@dataclass(frozen=True, slots=True)
class _Planned:
    """The calls of one tool that stand in a program."""

    tool: Tool
    server: ServerConfig
    places: tuple[Place, ...]


async def judge_calls(registry: Registry, calls: Calls, planned: Sequence[Json]) -> Json:
    """Judge the calls that stand in a program, in the form that `planned_calls` sends.

    Returns None where the program may start, else `{message, line, instead}`. A call whose failure the program catches
    ends nothing. A name that means no tool, arguments that do not fit and a missing `await` end a program where one
    such call is certain to be made; then those that are not certain are named too. Servers that cannot be asked are
    left to the calls.
    """
    if not calls.caller.identity.may(Right.TOOLS_READ):
        return None  # the calls will say it
    try:
        with calls.waits.for_server():
            return await _judged(registry, calls, read_places(planned, calls.skill_sources))
    except RegistryError:
        return None  # the calls will say it


async def _judged(registry: Registry, calls: Calls, named: Mapping[str, list[Place]]) -> Json:
    known = await registry.known(named, calls.caller.identity)
    refused: list[tuple[int, str]] = []
    to_ask: dict[str, _Planned] = {}
    allowed: list[tuple[Tool, list[Place]]] = []
    for name, places in named.items():
        found = known.tools.get(name)
        if found is None:
            continue
        ending = [place for place in places if place.ends_program]
        server = _ruling(registry, calls, known, found)
        if isinstance(found, ToolUnknown) or not isinstance(server, ServerConfig):
            refused += [] if server is None else [place.said(str(server)) for place in ending]
            if ending and isinstance(found, ToolUnknown) and found.left_out_of is not None:
                line = ToolCallLine.of_unfound(found.left_out_of, "not sent")
                calls.audit.tool_called(calls.caller, calls.run_id, line)
            continue
        allowed.append((found, places))
        if await _needs_asking(registry, calls, found, server):
            before = to_ask.get(found.full_name)  # under another of its names
            earlier = () if before is None else before.places
            to_ask[found.full_name] = _Planned(found, server, (*earlier, *places))
            if calls.caller.ask is None and not calls.dry_run:
                refused += [place.said(_why_unasked(calls, found, server)) for place in ending]
    wrong = await _faults(registry, calls, known, named, allowed)
    if refused or any(each.certain for each in wrong):
        if await _are_old(registry, wrong):
            return await _judged(registry, calls, named)
        instead = _LEAVE_OUT if refused else "Correct these calls, and run the program again."
        asked = [each.tool for each in to_ask.values()] if refused else []
        first = "Correct the calls that are wrong. " if wrong and refused else ""
        refused += [(each.line, each.why) for each in wrong]
        return await _refusal(registry, calls, refused, asked, instead=instead, first=first)
    are_all_known = sum(map(len, named.values())) < CALLS_JUDGED_MAX
    if not to_ask or calls.caller.ask is None or not are_all_known:
        return None
    return await _asked_at_start(registry, calls, list(to_ask.values()))


def _ruling(registry: Registry, calls: Calls, known: Known, found: Tool | ToolUnknown) -> ServerConfig | str | None:
    """Return the server's entry as it holds for the caller and a tool, or why no call of the tool is allowed.

    None where that cannot be said: then the call will say it.
    """
    if isinstance(found, ToolUnknown):
        return str(found)
    try:
        ruled = registry.ruled(calls.caller.identity, found, config_of(found, known.configuration))
    except RegistryError:
        return None
    server = ruled.server
    if ruled.refusal is not None:
        return str(ruled.refusal)
    if approval.decide(found, server) is Decision.REFUSE:
        return approval.why_refused(found.name, server)
    if found.server in known.quarantined:
        return f"{found.full_name} cannot be called until the user accepts what its server changed."
    if not calls.dry_run and not server.only_reads(found) and not calls.caller.identity.may(Right.TOOLS_WRITE):
        return f"{found.full_name} may write, and the token lacks the scope {Right.TOOLS_WRITE}."
    return server


def _why_unasked(calls: Calls, tool: Tool, server: ServerConfig) -> str:
    return approval.why_unasked(tool, server, may_approve=calls.caller.identity.may(Right.APPROVE))


async def _needs_asking(registry: Registry, calls: Calls, tool: Tool, server: ServerConfig) -> bool:
    """Return whether a user has to say yes before a tool is called; in a dry run, which else makes up its answer."""
    if calls.dry_run:
        runs = approval.runs_dry(tool, server, is_granted=True) and not approval.runs_dry(tool, server)
    else:
        runs = approval.decide(tool, server) is Decision.ASK
    return runs and not await is_granted(registry, calls, tool)


async def _faults(
    registry: Registry,
    calls: Calls,
    known: Known,
    named: Mapping[str, list[Place]],
    allowed: Sequence[tuple[Tool, list[Place]]],
) -> list[Fault]:
    first_line = min((place.line for _, places in allowed for place in places), default=sys.maxsize)
    wrong: list[Fault] = []
    for name in known.unknown[:_REFUSED_SHOWN]:
        if any(place.calls for place in named[name]):
            try:
                await discovery.found(registry, calls.caller.identity, name)
            except (ToolUnknown, ToolAmbiguous) as error:
                wrong += unknown_faults(named[name], error, first_line=first_line)
            except RegistryError:
                continue  # the call will say it
    if any(place.calls for _, places in allowed for place in places):
        wrong += await in_thread(Kind.SEARCH, partial(faults, allowed, await registry.describer(calls.caller.identity)))
    return wrong


async def _are_old(registry: Registry, wrong: Iterable[Fault]) -> bool:
    servers = {each.server for each in wrong if each.server is not None}
    return any([await registry.refresh(server) for server in sorted(servers)])


async def _asked_at_start(registry: Registry, calls: Calls, planned: Sequence[_Planned]) -> Json:
    assert calls.caller.ask is not None
    question = await in_thread(Kind.SEARCH, partial(_question_at_start, calls.source, calls.skill_sources, planned))
    if question is None:
        return None  # each call is asked about when it is made
    planned = [each for each in planned if each.tool.full_name in question.covers]
    always = [ALWAYS] if is_one_user(calls.caller.scope) else []
    choices = [THIS_RUN, *always, *([] if calls.dry_run else [EACH_CALL])]
    text = question.text + approval.OF_DRY_RUN if calls.dry_run else question.text
    text = f"{text} {_sentences(UNJUDGED, calls)}".rstrip()
    names, taken = question.covers, calls.approvals.taken
    try:
        with calls.waits.for_user():
            answer = await _answer(calls, calls.caller.ask, text, choices, names)
    except NoMoreQuestions:
        return None  # each call will say so
    if answer is None:
        if calls.dry_run or all(place.caught for each in planned for place in each.places):
            calls.approvals.declined |= names
            return None
        refused = [
            place.said(approval.why_not_approved(each.tool))
            for each in planned
            for place in each.places
            if not place.caught
        ]
        return await _refusal(registry, calls, refused, [each.tool for each in planned])
    if answer == EACH_CALL:
        calls.approvals.one_by_one |= names
    else:
        calls.approvals.grant(names, taken)
    if answer == ALWAYS:
        for each in planned:
            await registry.approve(each.tool, calls.caller.scope)
    return None


async def approved(
    registry: Registry,
    privacy: Privacy,
    calls: Calls,
    tool: Tool,
    *,
    server: ServerConfig,
    arguments: Mapping[str, Json],
    kept_as: str | None = None,
    sourced: JudgedCall = UNJUDGED,
) -> None:
    """Return once a call that needs a yes may be made. Raises `HostCallError` where it may not.

    A yes to more than this call is kept for the tool's name, or as `kept_as`. What is `sourced` may have to be asked
    about by itself: then no other yes covers it, and its own covers nothing else.
    """
    kept = tool if kept_as is None else replace(tool, name=kept_as)
    if not sourced.is_alone and await is_granted(registry, calls, kept):
        return
    ask, name = calls.caller.ask, kept.full_name
    if ask is None:
        told = f" {_sentences(sourced, calls)}" if sourced.is_alone else ""
        await _fail(registry, calls, tool, _why_unasked(calls, tool, server) + told)
    if name in calls.approvals.declined:
        await _fail(registry, calls, tool, approval.why_not_approved(tool))
    told_of = await privacy.kept_value(calls.caller.scope, dict(arguments))  # before anything of it is cut
    question = approval.question(tool, server, cast("Mapping[str, Json]", told_of))
    question = f"{question} {_sentences(sourced, calls)}".rstrip()
    with calls.waits.for_user():
        async with calls.approvals.asking.setdefault(name, asyncio.Lock()):  # an answer may cover those that wait here
            if not sourced.is_alone and calls.approvals.grants(name):
                return
            try:
                if sourced.is_alone:
                    answer = await _answer(calls, ask, question, [THIS_CALL], {name})
                else:
                    answer = await _asked_in_run(calls, ask, name, question)
            except NoMoreQuestions as error:
                raise failed(approval.why_no_more_questions(tool, server, error.asked)) from error
    if answer is None:
        await _fail(registry, calls, tool, approval.why_not_approved(tool))
    if answer == ALWAYS:
        await registry.approve(kept, calls.caller.scope)


def _sentences(sourced: JudgedCall, calls: Calls) -> str:
    """Say which arguments stand only in texts, and which texts that were read give orders."""
    sources = calls.outermost.sources
    orders = "" if sources is None else orders_said(sources.conversation.orders_now(), _ORDERS_SHOWN)
    return " ".join([*(f"{clause}." for clause in sourced.clauses.values()), orders]).rstrip()


async def _asked_in_run(calls: Calls, ask: Ask, name: str, question: str) -> str | None:
    """Ask about one call of a tool. From the second question about it on, a plain yes covers the rest of the run.

    So the questions of a run are bounded by its tools, unless its user wants to be asked about each call.
    """
    approvals, taken = calls.approvals, calls.approvals.taken
    always = [ALWAYS] if is_one_user(calls.caller.scope) else []
    covers_run = name in approvals.asked and name not in approvals.one_by_one
    choices = [THIS_RUN, *always, THIS_CALL] if covers_run else [THIS_CALL, THIS_RUN, *always]
    answer = await _answer(calls, ask, question + approval.COVERS_RUN if covers_run else question, choices, {name})
    approvals.asked.add(name)
    if answer in {THIS_RUN, ALWAYS}:
        approvals.grant({name}, taken)
    elif covers_run and answer == THIS_CALL:
        approvals.one_by_one.add(name)
    return answer


async def _answer(calls: Calls, ask: Ask, question: str, choices: Sequence[str], tools: Collection[str]) -> str | None:
    """Return what the user answers to a question about tools, as the audit log has it too."""
    run_id = calls.run_id
    named = [tool.removesuffix("\0") for tool in tools]
    calls.audit.approval_asked(calls.caller, run_id, named)
    decision = "none"
    try:
        answer = await ask(question, choices)
        decision = "declined" if answer is None else f"approved: {answer or THIS_CALL}"
    finally:
        calls.audit.approval_answered(calls.caller, run_id, named, decision, by="client")
    return answer


async def is_granted(registry: Registry, calls: Calls, tool: Tool) -> bool:
    """Return whether the user said yes to further calls of a tool: in this run, or always."""
    if calls.approvals.grants(tool.full_name):
        return True
    return is_one_user(calls.caller.scope) and await registry.is_approved(tool, calls.caller.scope)


async def _fail(registry: Registry, calls: Calls, tool: Tool, why: str) -> NoReturn:
    raise failed(f"{why} {await _what_else(registry, calls, [tool])}")


async def _what_else(registry: Registry, calls: Calls, tools: Sequence[Tool]) -> str:
    return approval.what_else(await _reading(registry, calls, tools), in_tests=calls.in_tests)


async def _refusal(
    registry: Registry,
    calls: Calls,
    refused: Sequence[tuple[int, str]],
    asked: Sequence[Tool],
    *,
    instead: str = _LEAVE_OUT,
    first: str = "",
) -> Json:
    """Return why a program may not start: each call that is in the way with its line, and what can be done.

    `first` is to be done before that.
    """
    lines: dict[str, list[int]] = {}
    for line, why in sorted(refused):
        lines.setdefault(why, []).append(line)
    said = [f"{_lines(where)}: {why}" for why, where in list(lines.items())[:_REFUSED_SHOWN]]
    if len(lines) > _REFUSED_SHOWN:
        said.append(f"{len(lines) - _REFUSED_SHOWN} more calls are not allowed either.")
    told = "\n".join(said)
    return {
        "message": f"Nothing was called. {told}",
        "line": min(line for line, _ in refused),
        "instead": first + (await _what_else(registry, calls, asked) if asked else instead),
    }


async def _reading(registry: Registry, calls: Calls, tools: Iterable[Tool]) -> list[str]:
    """Return the tools of the same servers that need no yes, as code calls them."""
    catalog, configuration = await registry.catalog(), await registry.configuration()
    servers = dict.fromkeys(tool.server for tool in tools)

    def runs(tool: Tool, server: ServerConfig) -> bool:
        ruled = registry.ruled(calls.caller.identity, tool, server)
        return ruled.refusal is None and approval.decide(tool, ruled.server) is Decision.RUN

    def reading() -> list[str]:
        return [
            ".".join(("tools", *catalog.alias(each)))
            for server in servers
            for each in checked(catalog.tools(server=server))
            if runs(each, configuration.server(server))
        ]

    return await in_thread(Kind.SEARCH, reading)


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, dict.fromkeys(lines)))
    return f"Line {shown}" if len(set(lines)) == 1 else f"Lines {shown}"


def _question_at_start(
    source: str, skill_sources: Mapping[str, str], planned: Sequence[_Planned]
) -> approval.StartQuestion | None:
    lines: dict[str | None, list[str]] = {None: _lines_of(source)}
    lines |= {key: _lines_of(text) for key, text in checked(skill_sources.items(), every=1)}
    to_show: list[tuple[Tool, ServerConfig, list[approval.ShownCall]]] = []
    for each in planned:
        shown: dict[approval.ShownCall, None] = {}
        for place in checked(sorted(each.places, key=_order), every=1):
            key = None if place.skill is None else place.skill.key
            text = _text(lines.get(key, ()), place.line, place.last_line)
            shown[approval.ShownCall(place.line, text, key)] = None
        to_show.append((each.tool, each.server, list(shown)))
    return approval.question_at_start(to_show, TOOLS_ASKED_MAX)


def _order(place: Place) -> tuple[str, int, int]:
    return "" if place.skill is None else place.skill.key, place.line, place.last_line


def _lines_of(source: str) -> list[str]:
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _text(source: Sequence[str], first: int, last: int) -> str:
    """Return the text of a call; of one that is longer than a question shows, at least that much of its beginning."""
    taken: list[str] = []
    room = approval.SHOWN_CHARS_MAX
    for number in range(first - 1, min(max(first, last), len(source))):
        taken.append(source[number].strip()[: room + 1])
        room -= len(taken[-1]) + 1
        if room < 0:
            break
    return "\n".join(taken)
