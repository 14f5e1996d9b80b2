"""The helpers that reach upstream tools: `tools`, `call_tool`, discovery, and the names other bridges had for them.

Nothing here knows which servers there are: each name goes to the host as it was written, and the host finds the tool,
judges the arguments and decides whether the call is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import cast

from ..dialect.facades.dynamic import Dynamic, dynamic
from ..dialect.facades.facade import Facade, make
from ..guest.guest import GUEST
from ..guest.host_channel import ToolError
from ..job import Json
from ..report.values import render
from .answers import answer_of, awaitable

_BRIDGE_NAME = re.compile(r"\bmcp_([A-Za-z]\w*)")


async def call_tool(name: str, arguments: Mapping[str, object] | None = None, **named: object) -> object:
    """Call an upstream tool by its full name, such as "git.git_log", with its arguments as one dict.

    Returns its structured content, else parsed JSON, else text. Raises ToolError with the server's message.
    """
    return await _call(name, () if arguments is None else (arguments,), named)


def search_tools(
    query: str = "", category: str | None = None, detail_level: str = "summary", limit: int = 10
) -> object:
    """Find tools by what they should do: `{query, category, detail_level, count, tools: [{name, server, …}]}`."""
    return _asked("search_tools", query=query, category=category, detail_level=detail_level, limit=limit)


def get_tool_definition(tool_name: str, category: str | None = None, detail_level: str = "full") -> object:
    """Return what is known of a tool: schemas, signature, an example call. Raises ToolError for an unknown name."""
    return _asked("get_tool_definition", tool_name=tool_name, category=category, detail_level=detail_level)


def list_servers() -> object:
    """Return the upstream servers as `[{name, alias, category, tool_count, …}]`."""
    return _asked("list_servers")


def helpers() -> dict[str, object]:
    """Give every helper of this module by the name under which code finds it."""
    return {
        "ToolError": ToolError,
        "call_tool": call_tool,
        "get_tool_definition": get_tool_definition,
        "list_servers": list_servers,
        "mcp_servers": _mcp_servers(),
        "search_tools": search_tools,
        "tools": _tools(),
    }


def modules() -> dict[str, Facade]:
    """Give what can be imported of this module."""
    runtime = make("mcp.runtime", {**_RUNTIME, "call_tool": call_tool, "mcp_servers": _mcp_servers()})
    return {"mcp": make("mcp", {"runtime": runtime}), "mcp.runtime": runtime, "tools": _tools()}


def bridge_names(source: str) -> dict[str, object]:
    """Give the `mcp_<server>` names that stand in a source, each with its server."""
    if "mcp_" not in source:
        return {}
    return {f"mcp_{name}": _server(name) for name in _BRIDGE_NAME.findall(source) if name != "servers"}


def _tools() -> Dynamic:
    return dynamic("tools", _server, partial(_names, None))


def _server(name: str) -> Dynamic:
    return dynamic(f"tools.{name}", partial(_tool, name), partial(_names, name))


def _tool(server: str, tool: str) -> Callable[..., Awaitable[object]]:
    async def call(*positional: object, **named: object) -> object:
        return await _call(f"{server}.{tool}", positional, named)

    call.__name__ = tool
    call.__qualname__ = f"tools.{server}.{tool}"  # what Python names when its coroutine was never awaited
    call.__doc__ = f"Call {tool} of the server {server}; get_tool_definition({f'{server}.{tool}'!r}) says how."
    return call


def _names(server: str | None) -> Iterable[str]:
    return cast("Iterable[str]", GUEST.call_host("list_names", {"server": server}))


async def _call(name: str, positional: tuple[object, ...], named: Mapping[str, object]) -> object:
    if type(name) is not str:
        raise TypeError(
            f'call_tool() takes the name of a tool as text, such as "git.git_log", not {type(name).__name__}.'
        )
    if len(positional) == 1 and isinstance(positional[0], dict):
        named = {**positional[0], **named}
        positional = ()
    request: dict[str, Json] = {"name": name, "arguments": _plain(name, named)}
    if positional:
        request["positional"] = len(positional)  # the host knows how they are named, and says so
    return answer_of(await GUEST.call_host_async("call_tool", request))


def _plain(name: str, arguments: Mapping[str, object]) -> Json:
    rendered = render(dict(arguments), name="arguments")
    for place, note in rendered.notes.items():
        where = place.removeprefix("arguments").removeprefix(".") or "its arguments"
        raise TypeError(f"{name} cannot be passed {where}: {note}. Pass numbers, text, lists and dicts.")
    return rendered.json


def _asked(function: str, **arguments: Json) -> object:
    return awaitable(GUEST.call_host(function, arguments))


# The names of the seed bridge. Each answers at once and may also be awaited.


def _mcp_servers() -> Dynamic:
    def member(name: str) -> object:
        return _LIKE_A_DICT[name] if name in _LIKE_A_DICT else _server(name)

    return dynamic("mcp_servers", member, partial(_names, None), item=_server)


def _server_names() -> list[str]:
    servers = cast("list[Mapping[str, str]]", GUEST.call_host("list_servers", {}))
    return [server["name"] for server in servers]


def _discovered_servers(detailed: bool = False) -> object:
    """Return the names of the upstream servers, or all that is known of each."""
    return list_servers() if detailed else awaitable(_server_names())


def _query_tool_docs(server: str, tool: str | None = None, detail: str = "summary") -> object:
    """Return what is known of a server's tools, or of one tool, as a list of `{name, server, …}`."""
    return _asked("list_tools", server=server, tool=tool, detail_level=detail)


def _search_tool_docs(query: str, limit: int = 5, detail: str = "summary") -> object:
    """Return the tools that fit a query, best first, as a list of `{name, server, …}`."""
    found = cast("dict[str, object]", search_tools(query, detail_level=detail, limit=limit))
    return awaitable(found["tools"])


def _describe_server(name: str) -> object:
    """Return what is known of one server, with the names of its tools."""
    return _asked("describe_server", server=name)


def _capability_summary() -> object:
    """Say in a few lines what the code can use."""
    return _asked("capability_summary")


_RUNTIME: dict[str, object] = {
    name + form: function
    for name, function in (
        ("discovered_servers", _discovered_servers),
        ("list_servers", lambda: awaitable(_server_names())),
        ("query_tool_docs", _query_tool_docs),
        ("search_tool_docs", _search_tool_docs),
        ("describe_server", _describe_server),
        ("capability_summary", _capability_summary),
    )
    for form in ("", "_sync")
}
_LIKE_A_DICT: dict[str, object] = {
    "keys": lambda: list(_names(None)),
    "values": lambda: [_server(name) for name in _names(None)],
    "items": lambda: [(name, _server(name)) for name in _names(None)],
    "get": lambda name, default=None: _server(name) if name in _names(None) else default,
}
