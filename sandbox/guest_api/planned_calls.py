"""Which upstream tools a program calls, as far as its source says it: so that the host can judge them before it runs.

A program is refused for a wrong name, a wrong argument or a missing `await` only where the call is certain to be made
and its failure is not caught. No protection depends on it: the host judges each call again when it is made.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from ..errors import Refused
from ..guest.dynamic import Dynamic
from ..guest.guest import GUEST
from ..job import Json
from . import hosted_tools
from .certain_calls import certain_calls
from .unawaited_calls import unawaited_calls
from .written_arguments import is_plain, written_arguments

CALLS_MAX: Final = 200
"""Calls of one program that are sent; the host judges further ones when they are made."""

_NAME_CHARS_MAX: Final = 200
_ARGUMENTS_CHARS_MAX: Final = 100_000
"""Characters of arguments of one program that are sent, about."""
_NO_TOOLS: Final = frozenset(
    {"get", "get_tool_definition", "items", "keys", "list_servers", "list_tools", "search_tools", "values"}
    | hosted_tools.RUNTIME_NAMES
)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_CATCHING: Final = frozenset({"BaseException", "Exception", "ToolError", "TypeError"})

Path = tuple[str, ...]
"""What follows `tools` in a chain of names: `()` is `tools` itself, `("git",)` a server, or a tool without one."""
_TOOL_PATH: Final = 2
_CALL_TOOL: Final = ("call_tool",)
_RUNTIME: Final = ("runtime",)
"""Of other bridges: `mcp.runtime` has the helpers that `tools` has."""


def planned_calls(source: str, namespace: Mapping[str, object]) -> list[Json]:
    """Return the calls of tools that stand in a source: `[name, line, are failures caught, calls, last line]`.

    `calls` has an object for each call on that line whose failure is not caught: `{given, others, more, positional}` as
    in `Written`. `unawaited` is set where the call cannot be awaited as it stands, `certain` where the program cannot
    run to its end without it, nor after its failure.

    `namespace` is what the source starts with. A name that the source binds to something else is left out, and so is a
    tool whose name is known only when it runs.
    """
    roots = {
        name: path
        for name in set(_NAME.findall(source))
        if name in namespace and (path := _path_of(namespace[name])) is not None
    }
    if not roots:
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
    return program.calls(tree)


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
    imported: Counter[str] = field(default_factory=Counter)
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

    def calls(self, tree: ast.Module) -> list[Json]:
        """Return the calls as `planned_calls` does, each name once for a line."""
        for name, times in self.bound.items():
            self.roots.pop(name, None)
            if times > 1:
                self.aliases.pop(name, None)
        for name, meant in self.aliases.items():
            path = meant if isinstance(meant, tuple) else self._path(meant)
            if path is not None:
                self.roots[name] = path
        places: dict[tuple[int, str], tuple[bool, list[ast.Call], int]] = {}
        for chain, call, caught in self.used:
            tool = self._tool(chain, call)
            if tool is not None and len(tool) <= _NAME_CHARS_MAX:
                whole = chain if call is None else call
                place = whole.lineno, tool
                before, calls, last = places.get(place, (True, [], 0))
                told = call is not None and not caught and self._is_tool(chain)
                calls = [*calls, call] if told and call is not None else calls
                places[place] = before and caught, calls, max(last, whole.end_lineno or 0)
        tell = _Telling(tree, self).tell if any(calls for _, calls, _ in places.values()) else None
        return [
            [tool, line, caught, [] if tell is None else tell(calls), last]
            for (line, tool), (caught, calls, last) in sorted(places.items(), key=lambda each: each[0])[:CALLS_MAX]
        ]

    def is_call_tool(self, chain: ast.expr) -> bool:
        """Return whether a chain of names means the helper `call_tool`."""
        return self._path(chain) == _CALL_TOOL

    def _is_tool(self, chain: ast.expr) -> bool:
        """Return whether a chain of names is a tool itself, and no attribute of it."""
        path = self._path(chain)
        return path is not None and len(path) <= _TOOL_PATH

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
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported.update(_bound_by(node))

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


class _Telling:
    """Says what is known of the calls of one program, as long as there is room for it."""

    def __init__(self, tree: ast.Module, program: _Program) -> None:
        self._program = program
        self._certain = certain_calls(tree, program.bound, program.imported)
        self._unawaited = unawaited_calls(tree, program.bound)
        self._chars_left = _ARGUMENTS_CHARS_MAX

    def tell(self, calls: list[ast.Call]) -> list[Json]:
        """Return what is known of calls, as `planned_calls` does."""
        return [told for each in calls if (told := self._told(each)) is not None]

    def _told(self, call: ast.Call) -> Json:
        by_name = self._program.is_call_tool(call.func)
        written = written_arguments(*(_passed(call) if by_name else (call.args, call.keywords)))
        unawaited = id(call) in self._unawaited
        certain = id(call) in self._certain if unawaited else self._certain.get(id(call), False)
        told: Json = {
            "given": written.given,
            "others": sorted(written.others),
            "more": written.more,
            "positional": written.positional,
            "unawaited": unawaited,
            "certain": certain and not (by_name and _may_name_a_tool(call)),
        }
        self._chars_left -= len(str(told))
        return told if self._chars_left >= 0 else None


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
    match call.args:
        case []:
            written = {each.arg: each.value for each in call.keywords if each.arg and _is_text(each.value)}
            names = [cast("ast.Constant", written[each]).value for each in hosted_tools.named_by(written)]
            return ".".join(map(str, names)) or None
        case [ast.Constant(value=str(server)), ast.Constant(value=str(tool)), *_]:
            return f"{server}.{tool}"
        case [ast.Constant(value=str(name))] | [ast.Constant(value=str(name)), ast.Dict() | ast.Constant(value=None)]:
            return name
        case [ast.Constant(value=str(name)), _] if "." in name:
            return name
    return None


def _passed(call: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return what a call of `call_tool` passes to the tool: by position and by name."""
    by_position, by_name = call.args[1:], call.keywords
    if not call.args:
        names = hosted_tools.named_by({each.arg for each in by_name if each.arg and _is_text(each.value)})
        by_name = [each for each in by_name if each.arg not in names]
    if by_position and _is_text(by_position[0]):
        by_position = by_position[1:]
    if not by_position:
        whole = next((each for each in by_name if each.arg == "arguments" and not _is_no_dict(each.value)), None)
        by_position = [] if whole is None else [whole.value]
        by_name = [each for each in by_name if each is not whole]
    if len(by_position) == 1 and _is_none(by_position[0]):
        by_position = []
    return by_position, by_name


def _may_name_a_tool(call: ast.Call) -> bool:
    """Return whether the second argument of a call of `call_tool` may be the tool of a server named by the first."""
    return len(call.args) > 1 and not (_is_no_dict(call.args[1]) or isinstance(call.args[1], ast.Dict))


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is str


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_no_dict(value: ast.expr) -> bool:
    return is_plain(value) and not _is_none(value)


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
