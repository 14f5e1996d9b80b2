"""The MCP tools that find upstream tools; calling them is for code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Literal, NotRequired, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from ...governance.scopes import caller_of
from ...use_cases.runs.truncation import SHOWN_CHARS
from ...use_cases.upstream_tools import discovery
from ...use_cases.upstream_tools.large_json import text_of
from ...use_cases.upstream_tools.registry import Registry
from .answers import READS, OptionalText, answered, query_note
from .strict_tool import mcp_tool

Level = Literal["name", "summary", "signature", "full"]
Limit = Annotated[int | None, WithJsonSchema({"type": "integer"})]
_LOOK_FIRST = "Unknown result or keys: `r = await tools.…(…)` with dry_run=true tells the shape of what reads."
_LEFT_OUT_SHOWN = 5
"""Tools of one server that a text names as left out; the structured content names all."""
_WHOLE_CATEGORY = 'search_tools(query="", category=NAME, detail_level="signature") gives all signatures of one.'


class DefinitionAnswer(TypedDict):
    """What is known of one tool."""

    name: str
    server: str
    category: str
    description: NotRequired[str]
    arguments: NotRequired[list[str]]
    returns: NotRequired[str]
    input_schema: NotRequired[object]
    output_schema: NotRequired[object]
    annotations: NotRequired[Mapping[str, object]]
    signature: NotRequired[str]
    example: NotRequired[str]
    call: NotRequired[str]
    needs_approval: NotRequired[bool]
    flags: NotRequired[list[str]]
    quarantined: NotRequired[str]
    use_cases: NotRequired[list[str]]
    truncated: NotRequired[dict[str, object]]


class FoundTool(DefinitionAnswer):
    """One tool that was found, as much of it as was asked for."""

    score: float


class ToolLeftOut(TypedDict):
    """A tool that its server lists and that cannot be offered, and why."""

    tool: str
    reason: str


class ServerStanding(TypedDict):
    """How a server stands, since when, why it cannot be used, and which of its tools are left out."""

    name: str
    state: Literal["ready", "starting", "failing", "disabled", "quarantined"]
    since: str | None
    last_error: str | None
    left_out: list[ToolLeftOut]


class SearchAnswer(TypedDict):
    """The tools that fit a query, best first; `weak` says that none fits well, `in_code` what code has for it.

    `unreachable` says of servers why their tools are not among them, `servers` which fail or leave out tools.
    """

    query: str
    category: str | None
    detail_level: str
    count: int
    tools: list[FoundTool]
    weak: NotRequired[str]
    in_code: NotRequired[str]
    unreachable: NotRequired[dict[str, str]]
    servers: NotRequired[list[ServerStanding]]
    truncated: NotRequired[dict[str, object]]


class Category(TypedDict):
    """One category of tools."""

    description: str
    tool_count: int


class CategoriesAnswer(TypedDict):
    """All categories, and the servers behind them; `problems` says of files of definitions why they were left out."""

    categories: dict[str, Category]
    total_tools: int
    servers: list[str]
    unreachable: NotRequired[dict[str, str]]
    problems: NotRequired[dict[str, str]]
    truncated: NotRequired[dict[str, object]]


@dataclass(frozen=True, slots=True)
class RegistryTools:
    """The tools that search, describe and list upstream tools."""

    registry: Registry

    @mcp_tool(
        READS,
        always_loaded=True,
        rest=lambda given: f"{_in_code(given)} in code; or ask for less detail",
    )
    async def search_tools(
        self,
        query: str,
        ctx: Context[None, None],
        *,
        category: OptionalText = None,
        detail_level: Level = "summary",
        limit: Limit = None,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find upstream tools by what they do; query="" lists a category."""
        caller = caller_of(ctx.request_context)
        found = await discovery.search(
            self.registry,
            caller.identity,
            query,
            category=category,
            detail_level=detail_level,
            limit=limit,
            read_by=caller.scope,
        )
        lines = _search_lines(found, limit) or ["no tools found"]
        return answered(found, "\n".join([*query_note(found), *lines]))

    @mcp_tool(
        READS,
        rest="get_tool_definition(tool_name) in code, or ask for detail_level signature",
    )
    async def get_tool_definition(
        self, tool_name: str, ctx: Context[None, None], *, category: OptionalText = None, detail_level: Level = "full"
    ) -> Annotated[CallToolResult, DefinitionAnswer]:
        """A tool's schema, signature, example."""  # noqa: D401 - the words that a client shows
        caller = caller_of(ctx.request_context)
        definition = await discovery.definition(
            self.registry,
            caller.identity,
            tool_name,
            category=category,
            detail_level=detail_level,
            read_by=caller.scope,
        )
        return answered(definition, await text_of(definition))

    @mcp_tool(READS, rest="list_servers() in code")
    async def list_tool_categories(self, ctx: Context[None, None]) -> Annotated[CallToolResult, CategoriesAnswer]:
        """Categories of upstream tools."""
        caller = caller_of(ctx.request_context)
        found = await discovery.categories(self.registry, caller.identity, read_by=caller.scope)
        categories = cast("Mapping[str, Mapping[str, object]]", found["categories"])
        lines = [f"{name} ({each['tool_count']}): {each['description']}" for name, each in categories.items()]
        lines += [_WHOLE_CATEGORY] if lines else []
        return answered(found, "\n".join([*lines, *_unreachable_lines(found)]) or "no tools")


def _search_lines(found: Mapping[str, object], limit: int | None) -> list[str]:
    """Return what the text of an answer says: the tools, one a line, with what is to be known before and after.

    Of more tools than there is room for the last line says how to get the others.
    """
    from ....tools_registry.describing.signatures import tells_returns

    before = [str(found["weak"])] if "weak" in found else []
    tools = [_line(cast("Mapping[str, object]", tool)) for tool in cast("list[object]", found["tools"])]
    after = [] if all(map(tells_returns, (*before, *tools))) else [_LOOK_FIRST]
    after += [str(found["in_code"])] if "in_code" in found else []
    after += _standing_lines(found)
    return [
        *before,
        *_fitting(tools, {**found, "limit": limit}, sum(len(line) + 1 for line in (*before, *after))),
        *after,
    ]


def _fitting(tools: list[str], given: Mapping[str, object], taken_chars: int) -> list[str]:
    """Return the lines of as many tools as there is room for, and then how to get the others."""

    def others(shown: int) -> str:
        rest = f"{_in_code(given, f'[{shown}:]')} in code"
        return f"… {len(tools) - shown} more: see the structured content, or {rest}"

    if sum(len(line) + 1 for line in tools) + taken_chars <= SHOWN_CHARS:
        return tools
    room = SHOWN_CHARS - taken_chars - len(others(len(tools))) - len(str(len(tools)))
    shown = sum(1 for chars in accumulate(len(line) + 1 for line in tools) if chars <= room)
    return [*tools[:shown], others(shown)]


def _in_code(given: Mapping[str, object], part: str = "") -> str:
    """Return the call that gives code the same tools as a search that was `given`, none of them cut."""
    defaults = {"query": "", "category": None, "detail_level": "summary", "limit": None}
    arguments = [f"{key}={given[key]!r}" for key, default in defaults.items() if given.get(key, default) != default]
    return f'search_tools({", ".join(arguments)})["tools"]{part}'


def _line(tool: Mapping[str, object]) -> str:
    call = tool.get("signature") or tool.get("call") or ".".join(filter(None, (str(tool["server"]), str(tool["name"]))))
    if "arguments" in tool:
        call = f"{call}({', '.join(cast('list[str]', tool['arguments']))})"
    about = str(tool.get("description", "")).partition("\n")[0]
    returned = f" -> {tool['returns']}" if "returns" in tool else ""
    marks = {"quarantined": "quarantined", "needs_approval": "needs approval"}
    marked = "".join(f" ({words})" for key, words in marks.items() if key in tool)
    return f"{call}{returned}{marked}: {about}" if about else f"{call}{returned}{marked}"


def _unreachable_lines(answer: Mapping[str, object]) -> list[str]:
    """Return why the tools of servers are not known, one line each: many clients give models the text alone."""
    unreachable = cast("Mapping[str, str]", answer.get("unreachable", {}))
    return [f"unreachable: {server}: {reason}" for server, reason in unreachable.items()]


def _standing_lines(found: Mapping[str, object]) -> list[str]:
    """Return why servers fail, and which of their tools cannot be offered, one line each."""
    unreachable, lines = cast("Mapping[str, str]", found.get("unreachable", {})), _unreachable_lines(found)
    for each in cast("list[ServerStanding]", found.get("servers", [])):
        if each["last_error"] and each["name"] not in unreachable and each["state"] != "quarantined":
            lines.append(f"{each['state']}: {each['name']}: {each['last_error']}")
        lines += [
            f"left out: {each['name']}.{one['tool']}: {one['reason']}" for one in each["left_out"][:_LEFT_OUT_SHOWN]
        ]
    return lines
