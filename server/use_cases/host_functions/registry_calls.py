"""Security boundary: the host functions that call upstream tools and read resources: `tools.…` and `read_resource`.

A call passes through these steps, and each may end it: the tool is found, the operator's policy allows it, its
arguments fit the schema, the run's budget has room, a user said yes where that is needed. Whatever fails on the way is
a `ToolError` or `TypeError` that the code can catch, in words that say what to do. Once a call was sent that may change
something, and it is not known whether it was done, it is the `ToolError` that is called `OutcomeUnknown`.

A resource is read as a tool named `read_resource` would be called: `allow`, `deny` and `approve` hold for it, its
answer is counted, and the privacy gate learns from it. A yes to it is no yes to a tool that really has that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....tools_registry.configuration import ServerConfig
from ....tools_registry.errors import AnswerRefused, OutcomeUnknown, Refusal, RegistryError, sentence
from ....tools_registry.models import Tool
from ....tools_registry.short_values import holds_more, null_what_json_lacks
from ...base.errors import RequestRefused
from ...base.host_call import AnnouncedChange, Answer, HostCall
from ...base.host_work import Kind, in_thread
from ...base.identity import Identity, Right
from ...governance.policy.access import call_context
from ...governance.provenance.judging import UNJUDGED, JudgedCall
from ...privacy.gates.tool_gate import Recipient, given_to
from ...privacy.privacy import Privacy
from ..journal.replaying import OUTCOME_UNKNOWN
from ..upstream_tools import approval, discovery
from ..upstream_tools.approval import Decision
from ..upstream_tools.large_json import chars_of
from ..upstream_tools.registry import Look, Registry
from ..upstream_tools.tool_rules import READ_RESOURCE, resource_reader
from ..upstream_tools.wiring import config_of
from .approval_questions import approved, is_granted, judge_calls
from .audited_calls import AuditedCall, audited
from .broker import Calls, OnChange, failed, host_function, raised_in_code
from .call_log import BYTES_MAX, RETURNS_MAX
from .run_calls import MESSAGE_CHARS_MAX
from .saved_answers import Save, Saving, judge_saving, taken_out, without_allowance
from .sign_in_questions import signed_in, with_sign_in

if TYPE_CHECKING:
    from ....tools_registry.upstream.results import ToolResult

_PLACE_CHARS_MAX = 100
"""Of the place where an answer breaks its schema, which may be made of keys of the answer."""
_KEPT_AS = f"{READ_RESOURCE}\0"
"""What a user's yes to reading resources is kept as: no tool has a name that cannot be printed."""


@dataclass(frozen=True, slots=True)
class RegistryCalls:
    """Answers for upstream tools. `privacy` puts values in for tokens where policy allows it; `save` writes a file."""

    registry: Registry
    privacy: Privacy
    save: Save

    @host_function()
    async def judge_calls(self, run: Calls, /, *, calls: list[Json], hides: bool = False) -> Json:
        """Judge the calls that stand in a program; see `approval_questions`."""
        return await judge_calls(self.registry, self.privacy, run, calls, hides=hides)

    @host_function()
    async def call_tool(
        self,
        calls: Calls,
        *,
        name: str,
        arguments: Mapping[str, Json],
        positional: list[Json] = [],  # noqa: B006 - never changed
        binary: list[Json] = [],  # noqa: B006 - never changed
        call: HostCall,
    ) -> Answer | Json:
        """Call a tool and return its answer, or what was saved of it. `binary` are places of bytes, as base64."""
        registry, who, given, may_change = self.registry, calls.caller.identity, arguments, False
        judged: tuple[Tool, Mapping[str, Json]] | None = None
        with (
            calls.log.call(name) as entry,
            audited(calls, entry) as line,
            raised_in_code(name),
            registry.one_look() as look,
            calls.approvals.judging(line),
        ):
            try:
                line.chars_in = await chars_of([given, positional or None])
                _pay(calls, line.chars_in)
                await self._list_as_caller(calls, name)
                with calls.waits.for_server():
                    tool = await self._meant(line, name)
                entry.tool, entry.found = tool.full_name, True
                server, _ = await self._judged(line, tool)
                save_to, given = await taken_out(calls, self.privacy, tool, given)
                lets_pass, given = without_allowance(tool, given)
                given = await _named(tool, name, positional, binary, given)
                given = await self._given_to_tool(calls, tool, server, given, lets_pass=lets_pass)
                try:
                    tool, fitting = await self._fitting(calls, who, tool, given)
                except HostCallError as error:
                    raise HostCallError(f"{error}{self.privacy.why_tokens(given)}", type=error.type) from error
                judged = tool, fitting
                sourced = await self._sourced(line, tool, server, fitting)
                # Again: it may just have said what else it does, and it is known now what it is called with.
                server, decision = await self._judged(line, tool, sourced)
                if calls.dry_run and not await self._runs_dry(calls, tool, server, fitting):
                    line.dry()
                    calls.log.forget(entry)
                    return await self._noted_down(calls, tool, fitting, approval.may_write(tool, server))
                if not server.only_reads(tool):
                    who.require(Right.TOOLS_WRITE)
                asks = decision is Decision.ASK or sourced.is_alone
                await self._agreed(line, tool, server, fitting, sourced if asks else None, look=look)
                await line.sent()
                may_change = not server.only_reads(tool)
                if may_change:
                    repeatable = tool.annotations.get("idempotentHint") is True
                    await call.before(
                        AnnouncedChange(leaves=True, repeatable=repeatable, sources=sourced.journal_entries())
                    )
                result = await self._sent(calls, server, tool, fitting)
            except RegistryError as error:
                why = self.privacy.why_tokens(given)
                if judged is not None and isinstance(error, Refusal):
                    why += await _why_by_format(*judged)
                raise _failed_call(error, why, may_change=may_change) from error
            sourced.answered()
            (await registry.learned.usage()).called(calls.caller.scope, tool.full_name)
            value = _with_attachments(result)
            line.chars_out = await self._moved(calls, tool.server, line.chars_in, value)
            if save_to is not None:
                return await Saving(calls, call, self.save).result(tool.server, result, save_to)
            await self._note_returns(calls, tool)
            return Answer(value, f"{tool.server}.{tool.name}", result.label)

    @host_function()
    async def read_resource(
        self, calls: Calls, *, server: str, uri: str, save_to: str | None = None, call: HostCall
    ) -> Json:
        """Return what a resource holds, or what was saved of it."""
        registry = self.registry
        if save_to is not None:
            save_to = await judge_saving(calls, self.privacy, save_to)
        log = calls.log.call(f"{server}.{READ_RESOURCE}")
        with log as entry, audited(calls, entry) as line, raised_in_code(READ_RESOURCE):
            tool = resource_reader(await discovery.server_name(registry, calls.caller.identity, server))
            entry.tool, entry.found = tool.full_name, True
            config, decision = await self._judged(line, tool)
            given = await self._given_to_tool(calls, tool, config, {"uri": uri})
            sourced = await self._sourced(line, tool, config, given)
            config, decision = await self._judged(line, tool, sourced)
            if decision is Decision.ASK or sourced.is_alone:
                await self._approved(line, tool, config, given, sourced, kept_as=_KEPT_AS)
            await line.sent()
            read = partial(registry.read_resource, tool.server, cast("str", given["uri"]), keep=calls.attachments.keep)
            value = await with_sign_in(registry, calls, config, lambda owner: read(owner=owner))
            sourced.answered()
            line.chars_out = await chars_of(value)
            _pay(calls, line.chars_out)
            return value if save_to is None else await Saving(calls, call, self.save).value(value, save_to)

    @host_function()
    async def list_resources(self, calls: Calls, *, server: str) -> Json:
        """Return the resources of a server."""
        with calls.waits.for_server():
            name = await discovery.server_name(self.registry, calls.caller.identity, server)
            config = (await self.registry.configuration()).server(name)
            refusal = self.registry.ruled(calls.caller.identity, resource_reader(name), config).refusal
        if refusal is not None:
            raise refusal
        return await self._listed(calls, config, "resources")

    @host_function()
    async def list_prompts(self, calls: Calls, *, server: str) -> Json:
        """Return the prompts of a server."""
        with calls.waits.for_server():
            name = await discovery.server_name(self.registry, calls.caller.identity, server)
            config = (await self.registry.configuration()).server(name)
        return await self._listed(calls, config, "prompts")

    async def _listed(self, calls: Calls, server: ServerConfig, kind: Literal["resources", "prompts"]) -> Json:
        listed = partial(self.registry.listed_beside_tools, server.name, kind)
        value = cast("Json", await with_sign_in(self.registry, calls, server, listed))
        _pay(calls, await chars_of(value))
        return value

    async def _moved(self, calls: Calls, server: str, chars_in: int, value: Json) -> int:
        """Count an answer, and what the model would have read and written for the same call of its own."""
        chars_out = await chars_of(value)
        calls.log.called_chars += chars_in + chars_out
        if server not in calls.log.definitions:
            calls.log.definitions[server] = await self.registry.definition_chars(server)
        _pay(calls, chars_out)
        return chars_out

    async def _runs_dry(self, calls: Calls, tool: Tool, server: ServerConfig, arguments: Mapping[str, Json]) -> bool:
        """Return whether a dry run makes a call."""
        if approval.runs_dry(tool, server) or not approval.runs_dry(tool, server, is_granted=True):
            return approval.runs_dry(tool, server)
        return await is_granted(self.registry, self.privacy, calls, tool, arguments)

    async def _meant(self, line: AuditedCall, name: str) -> Tool:
        """Return the tool that a name means; one that the policy hides is noted for the audit log alone."""
        who = line.calls.caller.identity
        try:
            return await discovery.found(self.registry, who, name)
        except RegistryError:
            line.hidden = await self.registry.hidden(who, name)
            raise

    async def _judged(
        self, line: AuditedCall, tool: Tool, sourced: JudgedCall = UNJUDGED
    ) -> tuple[ServerConfig, Decision]:
        """Return the server's entry as it holds for the caller and the tool, and whether a user is to be asked."""
        server = config_of(tool, await self.registry.configuration())
        context = call_context(*sourced.judged_by, first_time=sourced.is_first)
        return line.judged(self.registry.ruled(line.calls.caller.identity, tool, server, context), tool)

    async def _sourced(
        self, line: AuditedCall, tool: Tool, server: ServerConfig, arguments: Mapping[str, Json]
    ) -> JudgedCall:
        """Return where the arguments of a call come from, as the audit log has it too. A dry run has no sources."""
        sources = line.calls.outermost.sources
        if sources is None or line.calls.dry_run:
            return UNJUDGED
        await sources.caught_up()
        sourced = await sources.judge(tool, server, arguments, line.calls.skill_sources)
        line.sources = sourced.audited
        return sourced

    async def _agreed(
        self,
        line: AuditedCall,
        tool: Tool,
        server: ServerConfig,
        given: Mapping[str, Json],
        asks: JudgedCall | None,
        *,
        look: Look,
    ) -> None:
        """Return once a user said yes to what is asked about, and signed in: what forbids it by then is heeded."""
        if asks is None:
            line.calls.approvals.judged(line)
        else:
            await self._approved(line, tool, server, given, asks)
            look.end()
        await signed_in(self.registry, line.calls, server)
        if not look.holds:
            await self._judged(line, tool, asks or UNJUDGED)

    async def _approved(
        self,
        line: AuditedCall,
        tool: Tool,
        server: ServerConfig,
        given: Mapping[str, Json],
        sourced: JudgedCall,
        *,
        kept_as: str | None = None,
    ) -> None:
        ask = partial(approved, self.registry, self.privacy, line.calls, tool, server=server, arguments=given)
        await ask(sourced=sourced, kept_as=kept_as, line=line)
        line.approved()

    async def _sent(self, calls: Calls, server: ServerConfig, tool: Tool, arguments: Mapping[str, Json]) -> ToolResult:
        on_progress = None if calls.tell is None else partial(_tell, calls.tell, tool.full_name)
        send = partial(self.registry.call, tool, arguments, on_progress=on_progress, keep=calls.attachments.keep)
        result = await with_sign_in(self.registry, calls, server, lambda owner: send(owner=owner))
        if result.has_nulls:
            calls.log.nulled[tool.full_name] = None
        if result.broken:
            where = result.broken.partition(": ")[0][:_PLACE_CHARS_MAX]
            is_place = where.startswith("at ") or not result.is_structured
            calls.log.broken.setdefault(tool.full_name, where if is_place else "as a whole")
        return result

    async def _list_as_caller(self, calls: Calls, name: str) -> None:
        """List the tools of a server that lists none without a sign-in of its caller, where they are not known."""
        server = await self.registry.listed_by_callers(name, calls.caller.identity)
        if server is None:
            return
        prefix = f"{server.name}."
        asked = name.removeprefix(prefix) if name.startswith(prefix) else name.partition(".")[2]
        tool = Tool(asked, server.name, server.name)
        if self.registry.ruled(calls.caller.identity, tool, server).refusal is None:
            await with_sign_in(self.registry, calls, server, partial(self.registry.list_as, server.name))

    async def _note_returns(self, calls: Calls, tool: Tool) -> None:
        if len(calls.log.returns) < RETURNS_MAX and tool.full_name not in calls.log.returns:
            shape = await discovery.unseen_return_type(self.registry, tool, calls.caller.scope)
            if shape is not None:
                calls.log.returns[tool.full_name] = shape

    async def _noted_down(self, calls: Calls, tool: Tool, arguments: Mapping[str, Json], why: str) -> Json:
        calls.log.note_dry(tool.full_name, arguments, await chars_of(arguments))
        calls.log.made_up.setdefault(tool.full_name, why)
        from ....tools_registry.describing.placeholders import placeholder

        learned = (await self.registry.learned.types()).get(tool.full_name)
        return await in_thread(Kind.SEARCH, partial(placeholder, tool, arguments, learned))

    async def _fitting(
        self, calls: Calls, who: Identity, tool: Tool, given: Mapping[str, Json]
    ) -> tuple[Tool, dict[str, Json]]:
        """Return the arguments as the schema names them; where they do not fit, the server is asked for its schema.

        Raises `HostCallError`, which says which field.
        """
        from ..upstream_tools.tool_arguments import checked

        try:
            return tool, await in_thread(Kind.SEARCH, partial(checked, tool, given))
        except HostCallError:
            with calls.waits.for_server():
                if not await self.registry.refresh(tool.server):
                    raise
        tool = await self.registry.find(tool.full_name, who=who)
        return tool, await in_thread(Kind.SEARCH, partial(checked, tool, given))

    async def _given_to_tool(
        self, calls: Calls, tool: Tool, server: ServerConfig, arguments: Mapping[str, Json], *, lets_pass: bool = False
    ) -> Mapping[str, Json]:
        """Return the arguments with the values that the tool may have. Raises `HostCallError` where it may not all."""
        takes_tokens = lets_pass or server.takes_tokens(tool.name)
        to = Recipient(tool.server, tool.name, server.restore, takes_tokens=takes_tokens, schema=tool.input_schema)
        note = partial(calls.log.note_left, tool.full_name)
        try:
            return await given_to(
                self.privacy,
                calls.caller,
                to,
                arguments,
                given=calls.given.get(to.name, ()),
                run=calls.run_id,
                note=note,
            )
        except RequestRefused as error:
            raise failed(str(error)) from error


DETAIL_VALUES_MAX = 20_000
DETAIL_CHARS_MAX = 1_000_000
"""Of what a failed tool answered beside its message: more would hold up the event loop that writes it into a frame."""


async def _why_by_format(tool: Tool, arguments: Mapping[str, Json]) -> str:
    from ..upstream_tools.tool_arguments import why_refused_by_format

    return await in_thread(Kind.SEARCH, partial(why_refused_by_format, tool, arguments))


def _failed_call(error: RegistryError, why: str, *, may_change: bool) -> HostCallError:
    """Return what code sees of a call that failed, with what else the tool answered as attributes of its error."""
    unknown = may_change and isinstance(error, AnswerRefused | OutcomeUnknown)
    message, details = f"{sentence(str(error)) if why else error}{why}", None
    if isinstance(error, Refusal) and (error.structured is not None or error.content):
        if holds_more([error.structured, *error.content], DETAIL_VALUES_MAX, chars_max=DETAIL_CHARS_MAX):
            message += " (What else it answered is too large to be given.)"
        else:
            details = {"structured": null_what_json_lacks(error.structured)[0], "content": error.content}
    return HostCallError(message, type=OUTCOME_UNKNOWN if unknown else "ToolError", details=details)


def _with_attachments(result: ToolResult) -> Json:
    value = result.value
    if result.attachments and isinstance(value, dict) and "attachments" not in value:
        return {**value, "attachments": list(result.attachments)}
    return value


async def _tell(tell: OnChange, name: str, progress: float, total: float | None, message: str | None) -> None:
    done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    await tell(f"{name}: {done}{f', {message[:MESSAGE_CHARS_MAX]}' if message else ''}")


def _pay(calls: Calls, count: int) -> None:
    if not calls.log.move(count):
        raise failed(
            f"This run moved more than {BYTES_MAX // 1024**2} MB to and from tools, which is its budget. "
            "Ask the tools for less, or split the work into several runs."
        )


async def _refuse_bytes(tool: Tool, name: str, places: Sequence[Json]) -> None:
    """Refuse bytes for arguments that take none: what is base64 would be written as it stands."""
    from ..upstream_tools.tool_arguments import takes_bytes

    for place in map(str, places):
        if not await in_thread(Kind.SEARCH, partial(takes_bytes, tool, place)):
            raise HostCallError(f"{name} cannot be passed {place}: it takes no bytes. Pass text.", type="TypeError")


async def _named(
    tool: Tool, name: str, positional: Sequence[Json], binary: Sequence[Json], given: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return the arguments by name, those by position too. Raises `HostCallError` for bytes where none are taken."""
    if positional:
        from ..upstream_tools.tool_arguments import named

        given = await in_thread(Kind.SEARCH, partial(named, tool, name, positional, given))
    if binary:
        await _refuse_bytes(tool, name, binary)
    return given
