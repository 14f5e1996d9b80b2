"""The helpers that reach upstream tools: `tools`, `call_tool`, discovery, and the names other bridges had for them.

Nothing here knows which servers there are: each name goes to the host as it was written, and the host finds the tool,
judges the arguments and decides whether the call is allowed.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from functools import partial
from itertools import takewhile
from typing import cast

from ..guest.dynamic import Dynamic, dynamic
from ..guest.facade import Facade, make
from ..guest.guest import GUEST
from ..guest.host_channel import OutcomeUnknown, ToolError
from ..job import Json
from ..report import answer_shapes
from ..report.values import render
from .answers import answer_of, awaitable

_BRIDGE_NAME = re.compile(r"\bmcp_([A-Za-z]\w*)")
_USE = re.compile(r"(?<![\w.])([A-Za-z]\w*)\.([A-Za-z]\w*)\s*\(")
"""A call of a member of a name."""
_USED_NAMES_MAX = 20
_SERVER_BY = ("server", "server_name")
_TOOL_BY = ("name", "tool", "tool_name")
_MODELS = ("Input", "Output", "Params")
"""How the names of models end in typed stubs."""
_OF_SERVERS = frozenset({"mcp.servers", "servers", "tools"})
"""Modules that hold the servers, each as a module of its own."""


async def call_tool(*arguments: Mapping[str, object] | str | None, **named: object) -> object:
    """Call an upstream tool by its full name, such as "git.git_log", with its arguments as one dict.

    Server and tool may also be two texts: call_tool("git", "git_log", {…}). The names may be given as name= or tool=,
    and server=. Returns its structured content, else parsed JSON, else text. With save_to="name" what it answers
    becomes a file of the workspace instead, and `{filename, size}` is returned. Raises ToolError with the server's
    message.
    """
    names = [*takewhile(lambda each: type(each) is str, cast("tuple[str, ...]", arguments[:2]))]
    arguments = arguments[len(names) :]
    if not names and not arguments:  # else these are arguments of the tool itself
        names = [cast("str", named.pop(each)) for each in named_by({k for k, v in named.items() if type(v) is str})]
    if not names:
        raise TypeError('call_tool() takes the name of a tool as text, such as "git.git_log", and then a dict.')
    name = ".".join(names)
    if not arguments and isinstance(named.get("arguments", ""), dict | None):
        arguments = (cast("Mapping[str, object] | None", named.pop("arguments")),)
    if arguments == (None,):
        arguments = ()
    return await _call(name, arguments, named)


def named_by(given: Container[str]) -> list[str]:
    """Return which of the named arguments of a `call_tool` that was given no name by position say the tool's name."""
    tool = next((each for each in _TOOL_BY if each in given), None)
    server = next((each for each in _SERVER_BY if each in given), None)
    return [] if tool is None else [tool] if server is None else [server, tool]


def search_tools(
    query: str = "", category: str | None = None, detail_level: str = "summary", limit: int | None = None
) -> object:
    """Find tools by what they should do: `{query, category, detail_level, count, tools: [{name, server, …}]}`.

    Without a limit these are 10, or all of a category where the query is empty.
    """
    return _asked("search_tools", query=query, category=category, detail_level=detail_level, limit=limit)


def get_tool_definition(tool_name: str, category: str | None = None, detail_level: str = "full") -> object:
    """Return what is known of a tool: schemas, signature, an example call. Raises ToolError for an unknown name."""
    return _asked("get_tool_definition", tool_name=tool_name, category=category, detail_level=detail_level)


def _list_tools(server: str | None = None, detail_level: str = "summary") -> object:
    """Return the tools of a server, or of all, as `[{name, server, description, …}]`."""
    return _asked("list_tools", server=server, detail_level=detail_level)


def list_servers() -> object:
    """Return the upstream servers as `[{name, alias, category, tool_count, …}]`."""
    return _asked("list_servers")


def read_resource(server: str, uri: str, save_to: str | None = None) -> object:
    """Read a resource of an upstream server: its text, parsed if it is JSON, else `{mime_type, size, handle, uri}`.

    With `save_to` it becomes a file of the workspace instead, and the answer is `{filename, size}`. Raises ToolError
    with the server's message.
    """
    where = {} if save_to is None else {"save_to": save_to}
    return _asked("read_resource", server=server, uri=uri, **where)


def list_resources(server: str) -> object:
    """Return the resources of an upstream server, as `[{uri, name, …}]` and `[{uri_template, name, …}]`."""
    return _asked("list_resources", server=server)


def list_prompts(server: str) -> object:
    """Return the prompts of an upstream server, as `[{name, description, arguments}]`."""
    return _asked("list_prompts", server=server)


def helpers() -> dict[str, object]:
    """Give every helper of this module by the name under which code finds it."""
    return {
        "ToolError": ToolError,
        "OutcomeUnknown": OutcomeUnknown,
        "call_mcp_tool": call_tool,
        "call_tool": call_tool,
        "get_tool_definition": get_tool_definition,
        "list_prompts": list_prompts,
        "list_resources": list_resources,
        "list_servers": list_servers,
        "mcp_servers": _mcp_servers(),
        "read_resource": read_resource,
        "search_tools": search_tools,
        "tools": _tools(),
    }


def modules() -> dict[str, Facade]:
    """Give what can be imported of this module."""
    runtime, servers = _runtime(), _mcp_servers()
    client = make("runtime.mcp_client", {"call_mcp_tool": call_tool})
    return {
        "mcp": _mcp(runtime),
        "mcp.runtime": runtime,
        "mcp.servers": servers,
        "runtime": make("runtime", {"mcp_client": client}),
        "runtime.mcp_client": client,
        "servers": servers,
        "tools": _tools(),
    }


def server_module(package: str, name: str) -> Dynamic | None:
    """Return what `import package.name` gives where the package holds the servers, whether or not there is such one.

    Below a server each tool is a module too, as in the stubs that `sealab tools generate` writes.
    """
    if package in _OF_SERVERS:
        return _server(name)
    servers, _, server = package.rpartition(".")
    return _tool_module(server, name) if servers in _OF_SERVERS else None


def _tool_module(server: str, tool: str) -> Dynamic:
    """Return the module of one tool: its function, and for the models of its stub what makes the dict of a call."""

    def member(name: str) -> object:
        return _model if name != tool and name.endswith(_MODELS) else _tool(server, name)

    return dynamic(f"tools.{server}", member, lambda: [tool])


def _runtime() -> Facade:
    return make("mcp.runtime", {**_RUNTIME, "call_tool": call_tool, "mcp_servers": _mcp_servers()})


def _mcp(runtime: Facade) -> Dynamic:
    """Return what `import mcp` gives: the names of other bridges as `mcp.runtime`, and the servers beside it."""
    own = {"runtime": runtime, "servers": _mcp_servers()}
    return dynamic("mcp", lambda name: own.get(name) or _server(name), partial(_names, None))


def bridge_names(source: str) -> dict[str, object]:
    """Give the `mcp_<server>` names that stand in a source, each with its server, and `mcp` for `mcp.<server>`."""
    if "mcp" not in source:
        return {}
    found: dict[str, object] = {
        f"mcp_{name}": _server(name) for name in _BRIDGE_NAME.findall(source) if name != "servers"
    }
    if "mcp." in source:
        found["mcp"] = _mcp(_runtime())
    return found


def server_names(source: str, known: Container[str], may_mean: Callable[[str, str], bool]) -> dict[str, object]:
    """Give the servers that a source calls by their bare names, such as `await git.git_log(…)`.

    A name is a server's only where nothing else has it: what is `known`, built in, or bound by the source keeps its
    meaning, and so does a name that `may_mean` a module which the source forgot to import, by a member that it uses.
    The host is asked only where such names are left.
    """
    if "await" not in source:
        return {}
    used: dict[str, list[Json]] = {}
    for name, member in _USE.findall(source):
        if name not in known and not hasattr(builtins, name) and len(used) < _USED_NAMES_MAX:
            used.setdefault(name, []).append(member)
    free: dict[str, Json] = {
        name: members
        for name, members in used.items()
        if not any(may_mean(name, cast("str", member)) for member in members) and not _is_bound(name, source)
    }
    if not free:
        return {}
    return {name: _server(name) for name in cast("list[str]", GUEST.call_host("named_servers", {"names": free}))}


def _is_bound(name: str, source: str) -> bool:
    """Return whether a source seems to bind a name. What it binds wins anyway: this only spares a question."""
    return (
        re.search(rf"(?<![\w.]){name}\s*(?::?=(?!=)|[,:)])|\b(?:import|as|for|def|class)\s+{name}\b", source)
        is not None
    )


def _tools() -> Dynamic:
    own = {
        "call_tool": call_tool,
        "get_tool_definition": get_tool_definition,
        "list_servers": list_servers,
        "list_tools": _list_tools,
        "search_tools": search_tools,
    }
    return dynamic("tools", lambda name: own.get(name) or _server(name), partial(_names, None), item=_server)


def _server(name: str) -> Dynamic:
    """Return a server's namespace. Called itself, it is a tool whose server was left out: the host finds the server."""
    called = _caller(name, f"tools.{name}", f"Call the tool {name} of the one server that has it.")
    return dynamic(f"tools.{name}", partial(_tool, name), partial(_names, name), call=called)


def _tool(server: str, tool: str) -> Callable[..., Awaitable[object]]:
    name = f"{server}.{tool}"
    return _caller(
        name, f"tools.{name}", f"Call {tool} of the server {server}; get_tool_definition({name!r}) says how."
    )


def _model(**fields: object) -> dict[str, object]:
    """Return the arguments of a tool as one dict."""
    return fields


def _caller(name: str, title: str, doc: str) -> Callable[..., Awaitable[object]]:
    """Return a function that calls the tool of a name; `title` is what Python shows when it was never awaited."""

    async def call(*positional: object, **named: object) -> object:
        return await _call(name, positional, named)

    call.__name__ = title.rpartition(".")[2]
    call.__qualname__ = title
    call.__doc__ = doc
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
    binary: list[Json] = []
    request: dict[str, Json] = {"name": name, "arguments": _plain(name, dict(named), binary)}
    if binary:
        request["binary"] = binary  # the host knows which arguments may be bytes
    if positional:
        request["positional"] = _plain(name, list(positional))  # the host knows how they are named
    answer = answer_of(await GUEST.call_host_async("call_tool", request))
    if "save_to" not in named:
        answer_shapes.note(GUEST.answers, name, answer)
    return answer


def _plain(name: str, arguments: dict[str, object] | list[object], binary: list[Json] | None = None) -> Json:
    rendered = render(arguments, name="arguments")
    for place, note in rendered.notes.items():
        where = place.removeprefix("arguments").removeprefix(".") or "its arguments"
        if binary is not None and note.endswith(" bytes as base64"):
            binary.append(where)
            continue
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
    """Return what is known of a server's tools, or of one tool, as a list of `{tool, toolAlias, server, …}`."""
    return awaitable(_docs(GUEST.call_host("list_tools", {"server": server, "tool": tool, "detail_level": detail})))


def _search_tool_docs(query: str, limit: int = 5, detail: str = "summary") -> object:
    """Return the tools that fit a query, best first, as a list of `{tool, toolAlias, server, …}`."""
    found = cast("dict[str, object]", search_tools(query, detail_level=detail, limit=limit))
    return awaitable(_docs(found["tools"]))


def _docs(tools: object) -> list[object]:
    """Return what is known of tools under the keys of other bridges as well."""
    listed = cast("list[Mapping[str, object]]", tools)
    return [{"tool": each["name"], "toolAlias": _alias(each), **each} for each in listed]


def _alias(tool: Mapping[str, object]) -> str:
    """Return the name of a tool in code: the last part of its `call`, or of the call in its signature, if there is."""
    called = str(tool.get("call") or tool.get("signature") or tool["name"])
    return called.partition("(")[0].rpartition(".")[2] if "." in called.partition("(")[0] else str(tool["name"])


def _describe_server(name: str) -> object:
    """Return what is known of one server: `{name, alias, cwd, tools: [{name, alias, description, …}], …}`."""
    return _asked("describe_server", server=name)


def _loaded_metadata() -> object:
    """Return what is known of every server, as `describe_server` does. Starts none."""
    return awaitable(cast("list[object]", GUEST.call_host("describe_servers", {})))


def _list_tools_of(server: str | None = None) -> object:
    """Return the names of a server's tools, or of all tools."""
    tools = cast(
        "list[Mapping[str, object]]", GUEST.call_host("list_tools", {"server": server, "detail_level": "name"})
    )
    return awaitable([each["name"] for each in tools])


def _capability_summary() -> object:
    """Describe in a few lines what the code can use."""
    return _asked("capability_summary")


_RUNTIME: dict[str, object] = {
    name + form: function
    for name, function in (
        ("discovered_servers", _discovered_servers),
        ("list_servers", lambda: awaitable(_server_names())),
        ("query_tool_docs", _query_tool_docs),
        ("search_tool_docs", _search_tool_docs),
        ("describe_server", _describe_server),
        ("list_loaded_server_metadata", _loaded_metadata),
        ("list_tools", _list_tools_of),
        ("capability_summary", _capability_summary),
    )
    for form in ("", "_sync")
}
RUNTIME_NAMES = frozenset(_RUNTIME)
"""The helpers of other bridges."""
_LIKE_A_DICT: dict[str, object] = {
    "keys": lambda: list(_names(None)),
    "values": lambda: [_server(name) for name in _names(None)],
    "items": lambda: [(name, _server(name)) for name in _names(None)],
    "get": lambda name, default=None: _server(name) if name in _names(None) else default,
}
