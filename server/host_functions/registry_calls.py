"""Security boundary: the host functions that reach upstream tools, which code calls as `tools.…` and `call_tool`.

A call passes through these steps, and each may end it: the tool is found, the operator's policy allows it, its
arguments fit the schema, the run's budget has room, a user said yes where that is needed. Whatever fails on the way is
a `ToolError` or `TypeError` that the code can catch, in words that say what to do. Once a call was sent that may change
something, and it is not known whether it was done, it is the `ToolError` that is called `OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

from ...sandbox.errors import HostCallError
from ...sandbox.host.call_slots import slot_given_back
from ...sandbox.job import Json
from ...tools_registry.configuration import ServerConfig
from ...tools_registry.errors import AnswerRefused, OutcomeUnknown, RegistryError, ToolFailed
from ...tools_registry.models import Tool
from ...tools_registry.short_values import holds_more
from ..errors import PolicyRefused, RequestRefused
from ..host_work import Kind, in_thread
from ..identity import Identity, Right
from ..journal.changes import Change, before_change
from ..journal.replaying import OUTCOME_UNKNOWN
from ..privacy.gates.tool_gate import ANSWERED_BY, Recipient, given_to
from ..privacy.privacy import Privacy
from ..upstream_tools import approval, discovery
from ..upstream_tools.approval import Decision
from ..upstream_tools.large_json import chars_of
from ..upstream_tools.registry import Registry
from ..upstream_tools.wiring import config_of
from . import saved_answers
from .approval_questions import approved, is_granted, judge_calls
from .audited_calls import AuditedCall, audited
from .broker import Arguments, Calls, Handler, Tell
from .call_log import BYTES_MAX, RETURNS_MAX
from .run_calls import MESSAGE_CHARS_MAX
from .saved_answers import Save
from .sign_in_questions import signed_in, with_sign_in

if TYPE_CHECKING:
    from ...tools_registry.upstream.results import ToolResult

_TEXT = (str,)
_TEXT_OR_NONE = (str, type(None))
_WHOLE_OR_NONE = (int, type(None))
_NAMES_MAX = 20
DETAIL_VALUES_MAX = 20_000
DETAIL_CHARS_MAX = 1_000_000
"""Of what a failed tool answered beside its message: more would hold up the event loop that writes it into a frame."""


def handlers(registry: Registry, privacy: Privacy, save: Save) -> Mapping[str, Handler]:
    """Return what answers for upstream tools, by name; `privacy` puts values in for tokens where policy allows it."""
    asked = {
        "search_tools": Handler(
            partial(_search_tools, registry, privacy),
            {"query": _TEXT, "category": _TEXT_OR_NONE, "detail_level": _TEXT, "limit": _WHOLE_OR_NONE},
            frozenset({"query"}),
        ),
        "get_tool_definition": Handler(
            partial(_get_tool_definition, registry),
            {"tool_name": _TEXT, "category": _TEXT_OR_NONE, "detail_level": _TEXT},
            frozenset({"tool_name"}),
        ),
        "list_servers": Handler(partial(_list_servers, registry), {}, frozenset()),
        "list_names": Handler(partial(_list_names, registry), {"server": _TEXT_OR_NONE}, frozenset()),
        "list_tools": Handler(
            partial(_list_tools, registry),
            {"server": _TEXT_OR_NONE, "tool": _TEXT_OR_NONE, "detail_level": _TEXT},
            frozenset({"server"}),
        ),
        "named_servers": Handler(partial(_named_servers, registry), {"names": (dict,)}, frozenset({"names"})),
        "describe_server": Handler(partial(_describe_server, registry), {"server": _TEXT}, frozenset({"server"})),
        "describe_servers": Handler(partial(_describe_servers, registry), {}, frozenset()),
        "capability_summary": Handler(partial(_capability_summary, registry), {}, frozenset()),
    }
    call = Handler(
        partial(_call_tool, registry, privacy, save),
        {"name": _TEXT, "arguments": (dict,), "positional": (list,)},
        frozenset({"name", "arguments"}),
    )
    judge = Handler(partial(judge_calls, registry), {"calls": (list,)}, frozenset({"calls"}))
    return {**asked, "call_tool": call, "judge_calls": judge}


async def _call_tool(registry: Registry, privacy: Privacy, save: Save, calls: Calls, arguments: Arguments) -> Json:
    name = cast("str", arguments["name"])
    given = cast("Mapping[str, Json]", arguments["arguments"])
    may_change = False
    with calls.log.call(name) as entry, audited(calls, entry) as line:
        try:
            line.chars_in = await chars_of([given, arguments.get("positional")])
            pay(calls, line.chars_in)
            await _list_as_caller(registry, calls, name)
            with slot_given_back():
                tool = await _meant(registry, line, name)
            entry.tool, entry.found = tool.full_name, True
            server, decision = await _judged(registry, line, tool)
            if decision is Decision.REFUSE:
                raise failed(approval.why_refused(tool.name, server))
            save_to, given = await saved_answers.taken_out(calls, privacy, tool, given)
            given = await _named(tool, name, cast("Sequence[Json]", arguments.get("positional", ())), given)
            given = await given_to_tool(privacy, calls, tool, server, given)
            try:
                tool, fitting = await _fitting(registry, calls.caller.identity, tool, given)
            except HostCallError as error:
                raise HostCallError(f"{error}{privacy.why_tokens(given)}", type=error.type) from error
            server, decision = await _judged(registry, line, tool)  # again: it may just have said what else it does
            if calls.dry_run and not approval.runs_dry(
                tool, server, is_granted=await is_granted(registry, calls, tool)
            ):
                line.dry()
                calls.log.forget(entry)
                return await _noted_down(registry, calls, tool, fitting, approval.why_not_dry(tool, server))
            if not server.only_reads(tool):
                calls.caller.identity.require(Right.TOOLS_WRITE)
            if decision is Decision.ASK:
                await approved(registry, privacy, calls, tool, server=server, arguments=fitting)
                line.approved()
            await signed_in(registry, calls, server)
            await line.sent()
            may_change = not server.only_reads(tool)
            if may_change:
                await before_change(Change(leaves=True, repeatable=tool.annotations.get("idempotentHint") is True))
            result = await _sent(registry, calls, server, tool, fitting)
        except PolicyRefused as error:
            raise failed(str(error)) from error
        except RegistryError as error:
            raise _failed_call(error, privacy.why_tokens(given), may_change=may_change) from error
        (await registry.usage()).called(calls.caller.scope, tool.full_name)
        value = _with_attachments(result)
        line.chars_out = await chars_of(value)
        pay(calls, line.chars_out)
        if save_to is not None:
            return await saved_answers.save_result(calls, save, tool.server, result, save_to)
        ANSWERED_BY.set(f"{tool.server}.{tool.name}")
        await _note_returns(registry, calls, tool)
        return value


async def _meant(registry: Registry, line: AuditedCall, name: str) -> Tool:
    """Return the tool that a name means; one that the policy hides is noted for the audit log alone."""
    who = line.calls.caller.identity
    try:
        return await discovery.found(registry, who, name)
    except RegistryError:
        line.hidden = await registry.hidden(who, name)
        raise


async def _sent(
    registry: Registry, calls: Calls, server: ServerConfig, tool: Tool, arguments: Mapping[str, Json]
) -> ToolResult:
    told = None if calls.tell is None else partial(_tell, calls.tell, tool.full_name)
    send = partial(registry.call, tool, arguments, on_progress=told, keep=calls.attachments.keep)
    result = await with_sign_in(registry, calls, server, lambda owner: send(owner=owner))
    if result.has_nulls:
        calls.log.nulled[tool.full_name] = None
    return result


async def _list_as_caller(registry: Registry, calls: Calls, name: str) -> None:
    """List the tools of a server that lists none without a sign-in of its caller, where they are not known."""
    server = await registry.listed_by_callers(name, calls.caller.identity)
    if server is None:
        return
    prefix = f"{server.name}."
    asked = name.removeprefix(prefix) if name.startswith(prefix) else name.partition(".")[2]
    if registry.ruled(calls.caller.identity, Tool(asked, server.name, server.name), server).refusal is None:
        await with_sign_in(registry, calls, server, partial(registry.list_as, server.name))


async def _judged(registry: Registry, line: AuditedCall, tool: Tool) -> tuple[ServerConfig, Decision]:
    """Return the server's entry as it holds for the caller and the tool, and what becomes of a call.

    Raises `PolicyRefused`.
    """
    server = config_of(tool, await registry.configuration())
    ruled = registry.ruled(line.calls.caller.identity, tool, server)
    line.ruled(ruled)
    if ruled.refusal is not None:
        raise ruled.refusal
    return ruled.server, line.judged(tool, ruled.server)


def _failed_call(error: RegistryError, why_tokens: str, *, may_change: bool) -> HostCallError:
    """Return what code sees of a call that failed, with what else the tool answered as attributes of its error."""
    unknown = may_change and isinstance(error, AnswerRefused | OutcomeUnknown)
    message, details = f"{error}{why_tokens}", None
    if isinstance(error, ToolFailed) and (error.structured is not None or error.content):
        if holds_more([error.structured, *error.content], DETAIL_VALUES_MAX, chars_max=DETAIL_CHARS_MAX):
            message += " (What else it answered is too large to be given.)"
        else:
            details = {"structured": error.structured, "content": error.content}
    return HostCallError(message, type=OUTCOME_UNKNOWN if unknown else "ToolError", details=details)


def _with_attachments(result: ToolResult) -> Json:
    value = result.value
    if result.attachments and isinstance(value, dict) and "attachments" not in value:
        return {**value, "attachments": list(result.attachments)}
    return value


async def _note_returns(registry: Registry, calls: Calls, tool: Tool) -> None:
    """Note for the report what the tool returns, where the caller's model has not read it."""
    if len(calls.log.returns) < RETURNS_MAX and tool.full_name not in calls.log.returns:
        untold = await discovery.untold_returns(registry, tool, calls.caller.scope)
        if untold is not None:
            calls.log.returns[tool.full_name] = untold


async def _noted_down(registry: Registry, calls: Calls, tool: Tool, arguments: Mapping[str, Json], why: str) -> Json:
    """Note a call that a dry run does not make, and return what stands for its answer."""
    calls.log.note_dry(tool.full_name, arguments, await chars_of(arguments))
    calls.log.made_up.setdefault(tool.full_name, why)
    from ...tools_registry.describing.placeholders import placeholder

    learned = (await registry.learned()).get(tool.full_name)
    return await in_thread(Kind.SEARCH, partial(placeholder, tool, arguments, learned))


async def _tell(tell: Tell, name: str, progress: float, total: float | None, message: str | None) -> None:
    done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    await tell(f"{name}: {done}{f', {message[:MESSAGE_CHARS_MAX]}' if message else ''}")


async def _fitting(
    registry: Registry, who: Identity, tool: Tool, given: Mapping[str, Json]
) -> tuple[Tool, dict[str, Json]]:
    """Return the arguments as the schema names them; where they do not fit, the server is asked for its schema of now.

    Raises `HostCallError`, which says which field.
    """
    from ..upstream_tools.tool_arguments import checked

    try:
        return tool, await in_thread(Kind.SEARCH, partial(checked, tool, given))
    except HostCallError:
        with slot_given_back():
            if not await registry.refresh(tool.server):
                raise
    tool = await registry.find(tool.full_name, who=who)
    return tool, await in_thread(Kind.SEARCH, partial(checked, tool, given))


async def given_to_tool(
    privacy: Privacy, calls: Calls, tool: Tool, server: ServerConfig, arguments: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return the arguments with the values that the tool may have. Raises `HostCallError` where it may not have all."""
    to = Recipient(tool.server, tool.name, server.restore, takes_tokens=server.takes_tokens(tool.name))
    note = partial(calls.log.note_left, tool.full_name)
    try:
        return await given_to(
            privacy,
            calls.caller,
            to,
            arguments,
            given=calls.given.get(to.name, ()),
            run=calls.outermost.attachments.run_id,
            note=note,
        )
    except RequestRefused as error:
        raise failed(str(error)) from error


def pay(calls: Calls, count: int) -> None:
    """Count what a run moves. Raises `HostCallError` where that is more than it may."""
    if not calls.log.move(count):
        raise failed(
            f"This run moved more than {BYTES_MAX // 1024**2} MB to and from tools, which is its budget. "
            "Ask the tools for less, or split the work into several runs."
        )


async def _named(tool: Tool, name: str, positional: Sequence[Json], given: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the arguments by name, those by position too."""
    if not positional:
        return given
    from ..upstream_tools.tool_arguments import named

    return await in_thread(Kind.SEARCH, partial(named, tool, name, positional, given))


def failed(message: str) -> HostCallError:
    """Return an error that code sees as a `ToolError`."""
    return HostCallError(message, type="ToolError")


async def _search_tools(registry: Registry, privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    """Search. Where everything is filtered, code may search for what its model must not see: that is not remembered."""
    return await answered(
        discovery.search(
            registry,
            calls.caller.identity,
            cast("str", arguments["query"]),
            category=cast("str | None", arguments.get("category")),
            detail_level=cast("str", arguments.get("detail_level", "summary")),
            limit=cast("int | None", arguments.get("limit")),
            asked_by=None if privacy.filters else calls.caller.scope,
        )
    )


async def _get_tool_definition(registry: Registry, calls: Calls, arguments: Arguments) -> Json:
    return await answered(
        discovery.definition(
            registry,
            calls.caller.identity,
            cast("str", arguments["tool_name"]),
            category=cast("str | None", arguments.get("category")),
            detail_level=cast("str", arguments.get("detail_level", "full")),
        )
    )


async def _list_servers(registry: Registry, calls: Calls, _arguments: Arguments) -> Json:
    return await answered(discovery.servers(registry, calls.caller.identity))


async def _list_names(registry: Registry, calls: Calls, arguments: Arguments) -> Json:
    return await answered(discovery.names(registry, calls.caller.identity, cast("str | None", arguments.get("server"))))


async def _named_servers(registry: Registry, calls: Calls, arguments: Arguments) -> Json:
    names = dict(islice(cast("Mapping[str, Json]", arguments["names"]).items(), _NAMES_MAX))
    return await answered(discovery.named_servers(registry, calls.caller.identity, names))


async def _list_tools(registry: Registry, calls: Calls, arguments: Arguments) -> Json:
    return await answered(
        discovery.tools_of(
            registry,
            calls.caller.identity,
            cast("str | None", arguments["server"]),
            tool=cast("str | None", arguments.get("tool")),
            detail_level=cast("str", arguments.get("detail_level", "summary")),
        )
    )


async def _describe_server(registry: Registry, calls: Calls, arguments: Arguments) -> Json:
    return await answered(discovery.server(registry, calls.caller.identity, cast("str", arguments["server"])))


async def _describe_servers(registry: Registry, calls: Calls, _arguments: Arguments) -> Json:
    return await answered(discovery.servers_with_tools(registry, calls.caller.identity))


async def _capability_summary(registry: Registry, calls: Calls, _arguments: Arguments) -> Json:
    return await answered(discovery.summary(registry, calls.caller.identity))


async def answered(asked: Awaitable[object]) -> Json:
    """Return an answer about upstream servers; what fails is an error that the code can catch."""
    with slot_given_back():
        try:
            return cast("Json", await asked)
        except RegistryError as error:
            raise failed(str(error)) from error
        except PolicyRefused as error:
            raise failed(str(error)) from error
        except RequestRefused as error:
            raise HostCallError(str(error), type="ValueError") from error
