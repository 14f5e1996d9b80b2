"""Security boundary: the user's yes to calls of upstream tools, for one call, one run, or always.

A program is judged as a whole before it starts: what is not allowed in it ends it before anything is called, and what
needs a yes is asked about in one question. The program says itself which calls stand in it, so that nothing depends on
what it says: each call is judged again when it is made. A yes covers calls that name the parties, places and sums that
the question showed, and no more of them than it showed. A program that may call tools in ways that it does not name
has no call covered whose number is not known. Calls that wait at the same time make one question.
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
from ...base.identity import DEFAULT_TENANT, Right
from ...governance.audit.trail import ToolCallLine
from ...governance.caller import Ask, Caller, NoMoreQuestions
from ...governance.provenance.instructions import orders_said
from ...governance.provenance.judging import UNJUDGED, JudgedCall
from ...governance.questions import (
    ALWAYS,
    EACH_CALL,
    NAMING_CHARS_MAX,
    REST,
    THIS_CALL,
    THIS_RUN,
    AskedCall,
    Question,
    Reply,
    fitting,
    rule_text,
    with_clauses,
)
from ...governance.scopes import is_one_user
from ...privacy.gates.tool_gate import kinds_sent
from ..upstream_tools import approval, discovery
from ..upstream_tools.approval import Decision
from ..upstream_tools.wiring import config_of
from .approvals import Approvals, WaitingCall
from .broker import Calls, failed
from .written_calls import CALLS_JUDGED_MAX, SHOWN_MAX, CallFault, CallSite, faults, read_places, unknown_faults

if TYPE_CHECKING:
    from ....tools_registry.upstream.pins import StandingApproval
    from ...privacy.privacy import Privacy
    from ..upstream_tools.registry import KnownTools, Registry

_LATER_SHOWN = 20
"""Calls that are asked about later which a question shows."""
_REFUSED_SHOWN = 20
_ORDERS_SHOWN = 3
_LEAVE_OUT = "Leave these calls out."


_SETTLE_SECONDS = 0.05
"""How long a further call is waited for, so that those that are made at the same time make one question."""
_SETTLE_TIMES_MAX = 40
_RULES_SHOWN = 5
"""Calls of one question for which a rule is offered."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """The calls of one tool that stand in a program."""

    tool: Tool
    server: ServerConfig
    places: tuple[CallSite, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One call that a program says that it makes: whether all that it names `is_known`, and a yes may cover it."""

    planned: _Planned
    place: CallSite
    call: AskedCall
    is_known: bool
    is_covered: bool


async def judge_calls(
    registry: Registry, privacy: Privacy, calls: Calls, planned: Sequence[Json], *, hides: bool = False
) -> Json:
    """Judge the calls that stand in a program, in the form that `planned_calls` sends; `hides` as it says.

    Returns None where the program may start, else `{message, line, instead}`. A call whose failure the program catches
    ends nothing. A name that means no tool, arguments that do not fit and a missing `await` end a program where one
    such call is certain to be made; then those that are not certain are named too. Servers that cannot be asked are
    left to the calls.
    """
    if not calls.caller.identity.may(Right.TOOLS_READ):
        return None  # the calls will say it
    try:
        with calls.waits.for_server():
            named = read_places(planned, calls.skill_sources)
            return await _judged(registry, privacy, calls, named, hides=hides)
    except RegistryError:
        return None  # the calls will say it


async def _judged(
    registry: Registry, privacy: Privacy, calls: Calls, named: Mapping[str, list[CallSite]], *, hides: bool
) -> Json:
    known = await registry.known(named, calls.caller.identity)
    refused: list[tuple[int, str]] = []
    to_ask: dict[str, _Planned] = {}
    allowed: list[tuple[Tool, list[CallSite]]] = []
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
        if _needs_asking(calls, found, server):
            before = to_ask.get(found.full_name)  # under another of its names
            earlier = () if before is None else before.places
            to_ask[found.full_name] = _Planned(found, server, (*earlier, *places))
    open_calls = await _not_allowed(
        registry, calls, await _shown_calls(privacy, calls, [*to_ask.values()], hides=hides)
    )
    if calls.caller.ask is None and not calls.dry_run:
        refused += [
            each.place.said(_why_unasked(calls, each.planned.tool, each.planned.server))
            for each in open_calls
            if each.place.ends_program
        ]
    wrong = await _faults(registry, calls, known, named, allowed)
    if refused or any(each.certain for each in wrong):
        if await _are_old(registry, wrong):
            return await _judged(registry, privacy, calls, named, hides=hides)
        instead = _LEAVE_OUT if refused else "Correct these calls, and run the program again."
        asked = [each.tool for each in to_ask.values()] if refused else []
        first = "Correct the calls that are wrong. " if wrong and refused else ""
        refused += [(each.line, each.why) for each in wrong]
        return await _refusal(registry, calls, refused, asked, instead=instead, first=first)
    are_all_known = sum(map(len, named.values())) < CALLS_JUDGED_MAX
    if calls.caller.ask is None or not are_all_known:
        return None
    return await _asked_at_start(registry, calls, open_calls)


async def _shown_calls(privacy: Privacy, calls: Calls, planned: Sequence[_Planned], *, hides: bool) -> list[_Shown]:
    """Return the calls that a program says that it makes, those first that destroy something, then by their lines."""
    if not planned:
        return []
    written = await in_thread(Kind.SEARCH, partial(_written, planned))
    sourced = await _sourced(calls, written)
    kept = await privacy.kept_value(calls.caller.scope, [each.arguments for each in written])  # before it is cut
    arguments = cast("Sequence[Mapping[str, Json]]", kept)
    return await in_thread(Kind.SEARCH, partial(_shown, written, arguments, sourced, hides=hides))


async def _sourced(calls: Calls, written: Sequence[_Written]) -> list[JudgedCall]:
    """Return where the values come from that are known before the program starts."""
    sources = calls.outermost.sources
    if sources is None or calls.dry_run:
        return [UNJUDGED] * len(written)
    await sources.caught_up()
    return [
        await sources.judge(each.planned.tool, each.planned.server, each.arguments, calls.skill_sources, is_made=False)
        for each in written
    ]


@dataclass(frozen=True, slots=True)
class _Written:
    planned: _Planned
    place: CallSite
    arguments: Mapping[str, Json]
    computed: Mapping[str, str]
    times: int | None


def _written(planned: Sequence[_Planned]) -> list[_Written]:
    from ..upstream_tools.tool_arguments import as_sent, names_by_position

    found: list[_Written] = []
    for each in sorted(planned, key=lambda each: approval.order(each.tool)):
        names = names_by_position(each.tool)
        for place in sorted(each.places, key=_order):
            for one in checked(place.shown, every=1):
                given, computed = dict(one.given), dict(one.computed)
                for name, value in zip(names, one.positional, strict=False):
                    match value:
                        case [known]:
                            given.setdefault(name, known)
                        case text:
                            computed.setdefault(name, str(text))
                found.append(_Written(each, place, as_sent(each.tool, given), computed, one.times))
            if place.hides:
                found.append(_Written(each, place, {}, {REST: ""}, None))
    return found[:SHOWN_MAX]


def _shown(
    written: Sequence[_Written],
    kept: Sequence[Mapping[str, Json]],
    sourced: Sequence[JudgedCall],
    *,
    hides: bool,
) -> list[_Shown]:
    found: list[_Shown] = []
    for each, arguments, judged in checked(zip(written, kept, sourced, strict=True), every=1):
        place = each.place
        line = f"line {place.line}" if place.skill is None else f"line {place.line} of the skill {place.skill.key}"
        call = approval.asked_before(each.planned.tool, arguments, each.computed).changed(place=line, times=each.times)
        call = with_clauses(call, judged.clauses)
        is_known = not any(one.identifying and one.computed is not None for one in call.arguments)
        is_whole = is_known and call.naming_chars <= NAMING_CHARS_MAX
        is_covered = is_whole and not judged.is_alone and not (hides and each.times is None)
        found.append(_Shown(each.planned, place, call, is_known, is_covered))
    return found


async def _not_allowed(registry: Registry, calls: Calls, shown: Sequence[_Shown]) -> list[_Shown]:
    """Return the calls that no rule of the user allows; those that a rule may allow are decided when made."""
    tools = {each.call.full_name: each.planned.tool for each in shown}
    rules = {name: await _rules(registry, calls, tool) for name, tool in tools.items()}

    def may_be_allowed(each: _Shown) -> bool:
        of_tool = rules[each.call.full_name]
        return any(rule.allows(each.call.naming) for rule in of_tool) if each.is_known else bool(of_tool)

    return [each for each in shown if not may_be_allowed(each)]


def _ruling(
    registry: Registry, calls: Calls, known: KnownTools, found: Tool | ToolUnknown
) -> ServerConfig | str | None:
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


def _needs_asking(calls: Calls, tool: Tool, server: ServerConfig) -> bool:
    """Return whether a user has to say yes before a tool is called; in a dry run, which else makes up its answer."""
    if calls.dry_run:
        return approval.runs_dry(tool, server, is_granted=True) and not approval.runs_dry(tool, server)
    return approval.decide(tool, server) is Decision.ASK


async def _faults(
    registry: Registry,
    calls: Calls,
    known: KnownTools,
    named: Mapping[str, list[CallSite]],
    allowed: Sequence[tuple[Tool, list[CallSite]]],
) -> list[CallFault]:
    first_line = min((place.line for _, places in allowed for place in places), default=sys.maxsize)
    wrong: list[CallFault] = []
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


async def _are_old(registry: Registry, wrong: Iterable[CallFault]) -> bool:
    servers = {each.server for each in wrong if each.server is not None}
    return any([await registry.refresh(server) for server in sorted(servers)])


async def _asked_at_start(registry: Registry, calls: Calls, shown: Sequence[_Shown]) -> Json:
    assert calls.caller.ask is not None
    by_key: dict[str, list[_Shown]] = {}
    for each in shown:
        if each.is_covered:
            by_key.setdefault(each.call.key, []).append(each)
    if not by_key:
        return None  # each call is asked about when it is made
    question, asked = await in_thread(Kind.SEARCH, partial(_question_at_start, calls, by_key, shown))
    tools = {each.full_name for each in asked}
    taken, approvals = calls.approvals.taken, calls.approvals
    try:
        with calls.waits.for_user():
            reply = await _answer(calls, calls.caller.ask, question, tools)
    except NoMoreQuestions:
        return None  # each call will say so
    made = [one for each in asked for one in by_key[each.key]]
    if reply.choice is None and not calls.dry_run and not all(each.place.caught for each in made):
        refused = [
            each.place.said(approval.why_not_approved(each.planned.tool, reply.reason))
            for each in made
            if not each.place.caught
        ]
        return await _refusal(registry, calls, refused, [each.planned.tool for each in made])
    if reply.choice == EACH_CALL:
        approvals.one_by_one |= tools
    for number, call in enumerate(asked, 1):
        if reply.choice is None or number in reply.refused:
            approvals.declined[call.key] = reply.reason
        elif reply.choice != EACH_CALL:
            approvals.grant(call.key, taken, call.times)
            if reply.choice == ALWAYS:
                await registry.approve(by_key[call.key][0].planned.tool, calls.caller.scope, approval.rule_of(call))
    return None


def _question_at_start(
    calls: Calls, by_key: Mapping[str, Sequence[_Shown]], shown: Sequence[_Shown]
) -> tuple[Question, Sequence[AskedCall]]:
    """Return the question, and the calls that a yes to it covers, in their order."""
    every = [approval.as_one([each.call for each in alike]) for alike in checked(by_key.values(), every=1)]
    asked = every[: fitting(every)]
    later = [approval.as_one([each.call]) for each in shown if not each.is_covered]
    tools = {each.call.full_name: (each.planned.tool, each.planned.server) for each in shown}
    names = dict.fromkeys(each.full_name for each in (*asked, *later))
    covers = approval.COVERS_SHOWN + (approval.OF_DRY_RUN if calls.dry_run else "")
    question = _question(calls, asked, [tools[name] for name in names], covers, [] if calls.dry_run else [EACH_CALL])
    few = later[:_LATER_SHOWN]
    left = len(every) - len(asked) + len(later) - len(few)
    return question.changed(later=tuple(few), left=left), asked


def _question(
    calls: Calls,
    asked: Sequence[AskedCall],
    tools: Sequence[tuple[Tool, ServerConfig]],
    covers: str,
    others: Sequence[str],
    *,
    first: Sequence[str] = (THIS_RUN,),
) -> Question:
    """Return a question about calls, with `first` of what a yes may cover, `others` last."""
    has_rules = is_one_user(calls.caller.scope) and len(asked) <= _RULES_SHOWN
    rules = [(each.shown_name, approval.rule_of(each)) for each in asked] if has_rules else []
    return Question(
        title=approval.title_of(calls.outermost.source),
        who=_who(calls.caller),
        calls=tuple(asked),
        effects=(*approval.effects(tools), *_orders(calls)),
        covers=covers,
        rules=tuple(rule_text(name, rule.arguments, rule.limits) for name, rule in rules),
        choices=(*first, *([ALWAYS] if has_rules else []), *others),
    )


def _orders(calls: Calls) -> list[str]:
    """Return which texts that were read give orders."""
    sources = calls.outermost.sources
    said = "" if sources is None else orders_said(sources.conversation.orders_now(), _ORDERS_SHOWN)
    return [said] if said else []


def _who(caller: Caller) -> str:
    who = caller.identity
    tenant = "" if who.tenant == DEFAULT_TENANT else f" of {who.tenant}"
    return f"{who.principal}{tenant}{f', through {caller.client}' if caller.client else ''}"


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
    line: object = None,
) -> None:
    """Return once a call that needs a yes may be made. Raises `HostCallError` where it may not.

    `line` is what is being judged of it. A yes is kept for the tool's name, or as `kept_as`. What is `sourced` may have
    to be asked about by itself: then no other yes covers it, and its own covers nothing else.
    """
    kept, approvals = tool if kept_as is None else replace(tool, name=kept_as), calls.approvals
    call = await _asked_call(privacy, calls, kept, arguments)
    if not sourced.is_alone and (approvals.spend(call.key) or await _is_ruled(registry, calls, kept, call)):
        return
    call = with_clauses(call, await _clauses(privacy, calls, sourced, arguments))
    if calls.caller.ask is None:
        clauses = " ".join(f"{clause}." for clause in call.clauses) if sourced.is_alone else ""
        await _fail(registry, calls, tool, f"{_why_unasked(calls, tool, server)} {clauses}".rstrip())
    if call.key in approvals.declined:
        await _fail(registry, calls, tool, approval.why_not_approved(tool, approvals.declined[call.key]))
    if call.naming_chars > NAMING_CHARS_MAX:
        await _fail(registry, calls, tool, approval.why_too_long(tool))
    waiting = WaitingCall(call, tool, server)
    approvals.judged(line)
    if sourced.is_alone:
        with calls.waits.for_user():
            async with approvals.turn:
                await _ask_alone(calls, calls.caller.ask, waiting)
        if waiting.refused is not None:
            await _fail(registry, calls, tool, waiting.refused)
        return
    approvals.waiting.append(waiting)
    try:
        with calls.waits.for_user():
            while not waiting.is_answered:
                async with approvals.turn:  # an answer may cover those that wait here
                    if not waiting.is_answered:
                        await _ask_those_that_wait(registry, calls, calls.caller.ask)
    finally:
        if waiting in approvals.waiting:
            approvals.waiting.remove(waiting)
    if waiting.refused is not None:
        await _fail(registry, calls, tool, waiting.refused)


async def _asked_call(privacy: Privacy, calls: Calls, tool: Tool, arguments: Mapping[str, Json]) -> AskedCall:
    """Return a call as its user is asked about it: with tokens where everything is filtered, before it is cut."""
    kept = await privacy.kept_value(calls.caller.scope, dict(arguments))

    def asked() -> AskedCall:
        call = approval.asked_call(tool, cast("Mapping[str, Json]", kept))
        _ = call.key, call.naming_chars  # which are kept with it, and take as long as it is large
        return call

    return await in_thread(Kind.SEARCH, asked)


async def _clauses(
    privacy: Privacy, calls: Calls, sourced: JudgedCall, arguments: Mapping[str, Json]
) -> dict[str, str]:
    """Return what is said of each argument: where its value stands, and which kinds of personal data go with it."""
    clauses = dict(sourced.clauses)
    for name, counts in (await kinds_sent(privacy, calls.caller, arguments)).items():
        kinds = ", ".join(kind if count == 1 else f"{kind} ({count})" for kind, count in sorted(counts.items()))
        said = f"{name} carries personal data: {kinds}"
        clauses[name] = f"{clauses[name]}; {said}" if name in clauses else said
    return clauses


async def _ask_alone(calls: Calls, ask: Ask, waiting: WaitingCall) -> None:
    """Ask about one call by itself, with a yes that covers nothing else."""
    call, tool, server = waiting.call, waiting.tool, waiting.server
    question = _question(calls, [call], [(tool, server)], approval.COVERS_ALONE, [], first=(THIS_CALL,)).changed(
        rules=(), choices=(THIS_CALL,)
    )
    try:
        reply = await _answer(calls, ask, question, {call.full_name})
    except NoMoreQuestions as error:
        waiting.refused = approval.why_no_more_questions(tool, server, error.asked)
        return
    if reply.choice is None or reply.refused:
        waiting.refused = approval.why_not_approved(tool, reply.reason)


async def _ask_those_that_wait(registry: Registry, calls: Calls, ask: Ask) -> None:
    """Ask one question about the calls that wait, as many as it has room for, and note the answer with each.

    From the second question about the same call on, a plain yes covers the rest of the run. So the questions of a run
    are bounded by what it names, unless its user wants to be asked about each call.
    """
    approvals = calls.approvals
    await _settled(approvals)
    for each in approvals.waiting[:]:
        if approvals.spend(each.call.key):
            _take(approvals, each)
    by_key: dict[str, list[WaitingCall]] = {}
    for each in approvals.waiting:
        by_key.setdefault(each.call.key, []).append(each)
    if not by_key:
        return
    asked, question = await in_thread(Kind.SEARCH, partial(_question_about, calls, by_key))
    alike = [each for call in asked for each in by_key[call.key]]
    taken, tools = approvals.taken, {each.full_name for each in asked}
    try:
        reply = await _answer(calls, ask, question, tools)
    except NoMoreQuestions as error:
        for each in alike:
            _take(approvals, each, approval.why_no_more_questions(each.tool, each.server, error.asked))
        return
    for number, call in enumerate(asked, 1):
        approvals.asked.add(call.key)
        is_refused = reply.choice is None or number in reply.refused
        for each in by_key[call.key]:
            _take(approvals, each, approval.why_not_approved(each.tool, reply.reason) if is_refused else None)
        if is_refused:
            continue
        if reply.choice in {THIS_RUN, ALWAYS}:
            approvals.grant(call.key, taken, None)
        elif question.choices[0] == THIS_RUN:
            approvals.one_by_one.add(call.full_name)
        if reply.choice == ALWAYS:
            kept = replace(by_key[call.key][0].tool, name=call.tool)
            await registry.approve(kept, calls.caller.scope, approval.rule_of(call))


def _question_about(calls: Calls, by_key: Mapping[str, Sequence[WaitingCall]]) -> tuple[Sequence[AskedCall], Question]:
    """Return the calls that a question about those that wait has room for, and the question."""
    every = [approval.as_one([each.call for each in alike]) for alike in checked(by_key.values(), every=1)]
    asked, approvals = every[: fitting(every)], calls.approvals
    covers_run = all(call.key in approvals.asked and call.full_name not in approvals.one_by_one for call in asked)
    first, others = ((THIS_RUN,), [THIS_CALL]) if covers_run else ((THIS_CALL, THIS_RUN), [])
    covers = approval.COVERS_RUN if covers_run else approval.COVERS_CALL
    tools = {call.full_name: (by_key[call.key][0].tool, by_key[call.key][0].server) for call in asked}
    question = _question(calls, asked, [*tools.values()], covers, others, first=first)
    return asked, question


async def _settled(approvals: Approvals) -> None:
    """Wait until no further call comes to those that wait."""
    for _ in range(_SETTLE_TIMES_MAX):
        before = len(approvals.waiting)
        await asyncio.sleep(_SETTLE_SECONDS)
        if len(approvals.waiting) == before and not approvals.coming:
            return


def _take(approvals: Approvals, waiting: WaitingCall, refused: str | None = None) -> None:
    waiting.is_answered, waiting.refused = True, refused
    if waiting in approvals.waiting:
        approvals.waiting.remove(waiting)


async def _answer(calls: Calls, ask: Ask, question: Question, tools: Collection[str]) -> Reply:
    """Return what the user answers to a question about tools, as the audit log has it too."""
    run_id = calls.run_id
    named = [tool.removesuffix("\0") for tool in tools]
    calls.audit.approval_asked(calls.caller, run_id, named)
    decision = "none"
    try:
        reply = await ask(question)
        if any(not 1 <= number <= len(question.calls) for number in reply.refused):
            reply = Reply(reason=reply.reason or "The user said no to a call that the question does not have.")
        decision = "declined" if reply.choice is None else f"approved: {reply.choice or THIS_CALL}"
        decision += f", but for {len(reply.refused)}" if reply.choice is not None and reply.refused else ""
    except asyncio.CancelledError:
        decision = ""  # it may wait on, for a run that is taken up again
        raise
    finally:
        if decision:
            calls.audit.approval_answered(calls.caller, run_id, named, decision, by="client")
    return reply


async def is_granted(
    registry: Registry, privacy: Privacy, calls: Calls, tool: Tool, arguments: Mapping[str, Json]
) -> bool:
    """Return whether the user said yes to a call before it is made: in this run, or always."""
    call = await _asked_call(privacy, calls, tool, arguments)
    return calls.approvals.grants(call.key) or await _is_ruled(registry, calls, tool, call)


async def _is_ruled(registry: Registry, calls: Calls, tool: Tool, call: AskedCall) -> bool:
    return any(rule.allows(call.naming) for rule in await _rules(registry, calls, tool))


async def _rules(registry: Registry, calls: Calls, tool: Tool) -> list[StandingApproval]:
    return await registry.rules(tool, calls.caller.scope) if is_one_user(calls.caller.scope) else []


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
    refusals = "\n".join(said)
    return {
        "message": f"Nothing was called. {refusals}",
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


def _order(place: CallSite) -> tuple[str, int, int]:
    return "" if place.skill is None else place.skill.key, place.line, place.last_line
