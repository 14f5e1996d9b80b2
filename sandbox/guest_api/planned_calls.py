"""Which upstream tools a program calls, as far as its source says it: so that the host can judge them before it runs.

Nothing depends on it that protects anybody: the host judges each call again when it is made.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..dialect.facades.dynamic import Dynamic
from ..errors import Refused
from ..guest.guest import GUEST
from ..job import Json
from . import hosted_tools

CALLS_MAX: Final = 200
"""Calls that are told of one program; the host judges further ones when they are made."""

_NAME_CHARS_MAX: Final = 200
_NO_TOOLS: Final = frozenset(
    {"get", "get_tool_definition", "items", "keys", "list_servers", "list_tools", "search_tools", "values"}
)
_CATCHING: Final = frozenset({"BaseException", "Exception", "ToolError"})

Path = tuple[str, ...]
"""What follows `tools` in a chain of names: `()` is `tools` itself, `("git",)` a server, or a tool without one."""
_CALL_TOOL: Final = ("call_tool",)
_RUNTIME: Final = ("runtime",)
"""Of other bridges: `mcp.runtime` has the helpers that `tools` has."""


def planned_calls(source: str, namespace: Mapping[str, object]) -> list[Json]:
    """Return the calls of tools that stand in a source, in its order: `[name, line, whether a failure is caught]`.

    `namespace` is what the source starts with. A name that the source binds to something else is left out, and so is a
    tool whose name only running it would tell.
    """
    roots = {name: path for name, value in namespace.items() if (path := _path_of(value)) is not None}
    if not any(type(name) is str and name in source for name in roots):
        return []
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(source, "", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # it has been compiled before: the run will say what is wrong
    program = _Program(roots)
    program.read(tree)
    return program.calls()


def judged(calls: list[Json]) -> Refused | None:
    """Have the host judge planned calls; return why the program may not run, or None where it may."""
    match GUEST.call_host("judge_calls", {"calls": calls}):
        case {"message": str(message), "line": int(line), "instead": str(instead)}:
            return Refused(message, line=line, type="ToolError", instead=instead)
    return None


def _path_of(value: object) -> Path | None:
    if value is hosted_tools.call_tool:
        return _CALL_TOOL
    if type(value) is not Dynamic:
        return None
    title = value._title
    if title in {"tools", "mcp", "mcp_servers"}:
        return ()
    return (title.removeprefix("tools."),) if title.startswith("tools.") else None


@dataclass(slots=True)
class _Program:
    """One program: what its names mean, what it binds, and the chains of names that it uses."""

    roots: dict[str, Path]
    bound: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, ast.expr | Path] = field(default_factory=dict)
    used: list[tuple[ast.expr, ast.Call | None, bool]] = field(default_factory=list)
    """Each chain with the call of it, if it is called, and whether a failure there is caught."""

    def read(self, tree: ast.AST) -> None:
        """Take in a tree. What nests without a limit is kept in a list, since the stack of C is short."""
        left: list[tuple[ast.AST, bool]] = [(tree, False)]
        while left:
            node, caught = left.pop()
            self._bind(node)
            match node:
                case ast.Try() | ast.TryStar():
                    covered = caught or any(_catches(handler.type) for handler in node.handlers)
                    left += [(each, covered) for each in node.body]
                    left += [(each, caught) for each in (*node.handlers, *node.orelse, *node.finalbody)]
                case ast.With() | ast.AsyncWith():
                    covered = caught or any(_suppresses(item.context_expr) for item in node.items)
                    left += [(each, caught) for each in node.items]
                    left += [(each, covered) for each in node.body]
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    left += [(each, False) for each in ast.iter_child_nodes(node)]
                case ast.Call():
                    covered = caught or any(_returns_exceptions(each) for each in node.keywords)
                    self.used.append((node.func, node, caught))
                    left += [(each, covered) for each in (*node.args, *node.keywords)]
                    left += [(each, caught) for each in _beside(node.func)]
                case ast.Attribute() | ast.Subscript():
                    self.used.append((node, None, caught))
                    left += [(each, caught) for each in _beside(node)]
                case _:
                    left += [(each, caught) for each in ast.iter_child_nodes(node)]

    def calls(self) -> list[Json]:
        """Return the calls as `planned_calls` does, each name once for a line."""
        for name, times in self.bound.items():
            self.roots.pop(name, None)
            if times > 1:
                self.aliases.pop(name, None)
        for name, meant in self.aliases.items():
            path = meant if isinstance(meant, tuple) else self._path(meant)
            if path is not None:
                self.roots[name] = path
        found: dict[tuple[int, str], bool] = {}
        for chain, call, caught in self.used:
            tool = self._tool(chain, call)
            if tool is not None and len(tool) <= _NAME_CHARS_MAX:
                place = (chain if call is None else call).lineno, tool
                found[place] = found.get(place, True) and caught
        return [[tool, line, caught] for (line, tool), caught in sorted(found.items())[:CALLS_MAX]]

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Subscript() | ast.Name() as value):
                self.aliases[name] = value
            case ast.ImportFrom(module="tools" | "mcp" | "mcp.runtime", names=names):
                self.aliases |= {each.asname or each.name: (each.name,) for each in names}
            case ast.Import(names=names):
                for each in names:
                    root = each.name.partition(".")[0]
                    if root in {"tools", "mcp"}:
                        self.aliases[each.asname or root] = ()
        self.bound.update(_bound_by(node))

    def _path(self, chain: ast.expr) -> Path | None:
        parts: list[str] = []
        while not isinstance(chain, ast.Name):
            match chain:
                case ast.Attribute(value=value, attr=part):
                    pass
                case ast.Subscript(value=value, slice=ast.Constant(value=str(part))):
                    pass
                case _:
                    return None
            parts.append(part)
            chain = value
        path = self.roots.get(chain.id)
        if path is None:
            return None
        path = (*path, *reversed(parts))
        return path[1:] if path[:1] == _RUNTIME else path

    def _tool(self, chain: ast.expr, call: ast.Call | None) -> str | None:
        path = self._path(chain)
        if not path or path[0] in _NO_TOOLS:
            return None
        if path == _CALL_TOOL:
            return None if call is None else _named_tool(call)
        if len(path) == 1 and call is None:
            return None
        return ".".join(path[:2])


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (each.asname or each.name.partition(".")[0] for each in names)


def _named_tool(call: ast.Call) -> str | None:
    """Return the tool that a call of `call_tool` names as text: by one text, or by a server's and a tool's."""
    texts = [each.value if isinstance(each, ast.Constant) else None for each in call.args[:2]]
    match texts:
        case [str(server), str(tool)]:
            return f"{server}.{tool}"
        case [str(name), *_]:
            return name
    return None


def _beside(chain: ast.expr) -> Iterator[ast.expr]:
    """Yield what stands in a chain of attributes beside its names: subscripts, and what it begins with."""
    while isinstance(chain, ast.Attribute | ast.Subscript):
        if isinstance(chain, ast.Subscript):
            yield chain.slice
        chain = chain.value
    if not isinstance(chain, ast.Name):
        yield chain


def _catches(kind: ast.expr | None) -> bool:
    match kind:
        case None:
            return True
        case ast.Tuple(elts=kinds):
            return any(_catches(each) for each in kinds)
        case ast.Name(id=name):
            return name in _CATCHING
    return False


def _suppresses(context: ast.expr) -> bool:
    match context:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=kinds):
            return any(_catches(each) for each in kinds)
    return False


def _returns_exceptions(keyword: ast.keyword) -> bool:
    match keyword:
        case ast.keyword(arg="return_exceptions", value=ast.Constant(value=True)):
            return True
    return False
