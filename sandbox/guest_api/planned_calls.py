"""Which upstream tools and skills a source calls, as far as it says so itself: one reading of its tree.

Calls of tools are described for the host, which judges them before the program runs (`judged_programs`). No protection
depends on it: the host judges each call again when it is made.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..guest.dynamic import Dynamic
from ..job import Json
from . import hosted_skills, hosted_tools
from .certain_calls import certain_calls
from .known_values import Around, SourceValues
from .written_arguments import may_name_a_tool, named_skill, named_tool, passed, written_arguments

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
_TOOL_NAME: Final = re.compile(r"[\w-]{1,80}\.[\w.-]{1,100}")
_OF_COROUTINES: Final = frozenset({"close", "send", "throw"})
_TAKING_ANSWERS: Final = frozenset(
    {"dict", "enumerate", "len", "list", "max", "min", "print", "set", "sorted", "str", "sum", "tuple", "zip"}
)
_EXITS: Final = frozenset({"SystemExit", "_exit", "exit", "quit"})
_HIDING: Final = frozenset(
    {"__import__", "compile", "eval", "exec", "getattr", "globals", "importlib", "locals", "operator", "vars"}
)
"""Names by which a source reaches what it does not name."""
_CATCHING: Final = frozenset({"BaseException", "Exception", "ToolError", "TypeError"})

Path = tuple[str, ...]
"""What follows `tools` in a chain of names: `()` is `tools` itself, `("git",)` a server, or a tool without one."""
_TOOL_PATH: Final = 2
_CALL_TOOL: Final = ("call_tool",)
_RUNTIME: Final = ("runtime",)
"""Of other bridges: `mcp.runtime` has the helpers that `tools` has."""
_SKILLS: Final = "\0skills"
"""What a path of skills begins with, which is no name of a server."""
_LOAD_SKILL: Final = ("\0load_skill",)
_CALL_SKILL: Final = ("\0call_skill",)


@dataclass(frozen=True, slots=True)
class SkillUse:
    """A skill that a source names: as `refund`, or `refund@2` for a version.

    `certain` says that the source calls it whenever it runs to its end, `caught` that it catches its failure.
    """

    key: str
    line: int
    caught: bool
    certain: bool
    sites: tuple[tuple[ast.Call, SourceValues], ...] | None = ()
    """The calls of it; None where it is passed on, too."""


def read_program(
    source: str,
    namespace: Mapping[str, object],
    *,
    own_skill: str | None = None,
    entry: str | None = None,
    entered: Sequence[tuple[ast.Call, SourceValues]] | None = None,
) -> SourceCalls | None:
    """Read the calls of tools and skills in a source, or return None where there can be none.

    `namespace` is what the source starts with. A name that the source binds to something else is left out, and so is a
    tool whose name is known only when it runs. `own_skill` is a skill that the source finds by its bare name, as tests
    find theirs. `entry` is a function of the source that is called when it has run, by the calls of `entered`.
    """
    names = set(_NAME.findall(source))
    roots = {name: path for name in names if name in namespace and (path := _path_of(namespace[name])) is not None}
    if own_skill is not None and own_skill in names:
        roots[own_skill] = (_SKILLS, own_skill)
    if not roots:
        return None
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(source, "", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # it has been compiled before: the run will say what is wrong
    bound, loaded = Counter[str](), Counter[str]()
    program = SourceCalls(tree, roots, bound, loaded, SourceValues(source, bound, loaded, namespace, entry, entered))
    program.read(tree)
    program.settle(entry)
    return program


def _path_of(value: object) -> Path | None:
    if value is hosted_tools.call_tool:
        return _CALL_TOOL
    if value is hosted_skills.load_skill:
        return _LOAD_SKILL
    if value is hosted_skills.call_skill:
        return _CALL_SKILL
    if type(value) is hosted_skills.Skill:
        return _SKILLS, *hosted_skills.name_and_version(value)
    if type(value) is not Dynamic:
        return None
    title = value._title
    if title in {"tools", "mcp", "mcp_servers"}:
        return ()
    if title == "skills":
        return (_SKILLS,)
    return (title.removeprefix("tools."),) if title.startswith("tools.") else None


@dataclass(slots=True)
class _CallLine:
    """One line on which a tool is called; `uncaught` are the calls there whose failure is not caught."""

    caught: bool = True
    last_line: int = 0
    certain: bool = False
    uncaught: list[ast.Call] = field(default_factory=list)
    shown: list[tuple[ast.expr, ast.Call | None]] = field(default_factory=list)
    """Each chain there that names the tool, with its call, if it is called."""


@dataclass(slots=True)
class SourceCalls:
    """One source: what its names mean, what it binds, and the chains of names that it uses."""

    tree: ast.Module
    roots: dict[str, Path]
    bound: Counter[str]
    loaded: Counter[str]
    """How often the source reads each name."""
    known: SourceValues
    imported: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, ast.expr | Path] = field(default_factory=dict)
    used: list[tuple[ast.expr, ast.Call | None, bool]] = field(default_factory=list)
    """Each chain with the call of it, if it is called, and whether a failure there is caught."""
    names: list[tuple[ast.Name, bool]] = field(default_factory=list)
    """Names that are used without a member or a call, such as those that are passed on."""
    members: set[str] = field(default_factory=set)
    """The attributes that it names, and what it imports."""
    texts: list[ast.Constant] = field(default_factory=list)
    """Those that are written as names of tools."""
    taken: list[tuple[ast.expr, str]] = field(default_factory=list)
    """What must be an answer, and no coroutine, for the source to make sense; with the builtin that takes it, if so."""
    assigned: dict[str, ast.Call] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    """The plain function in which a call stands, by the `id` of the call: none has `await`."""
    certain: dict[int, bool] = field(default_factory=dict)
    """The calls that the program cannot run to its end without, as `certain_calls` returns them."""
    unawaited: set[int] = field(default_factory=set)
    """The calls that cannot be awaited where they stand, by their `id`."""
    named: set[int] = field(default_factory=set)
    """The chains of names to which the source gives another name, by their `id`."""

    def read(self, tree: ast.AST) -> None:
        """Take in a tree. What nests without a limit is kept in a list, since the stack of C is short."""
        left: list[tuple[ast.AST, bool, str, Around]] = [(tree, False, "", ())]
        while left:
            node, caught, function, around = left.pop()
            self._bind(node)
            repeated = self.known.note(node, around)
            inner: Iterable[ast.AST] = ()
            match node:
                case ast.Try() | ast.TryStar():
                    covered = caught or any(_catches(handler.type) for handler in node.handlers)
                    left += [(each, covered, function, around) for each in node.body]
                    inner = (*node.handlers, *node.orelse, *node.finalbody)
                case ast.With() | ast.AsyncWith():
                    covered = caught or any(_suppresses(item.context_expr) for item in node.items)
                    left += [(each, covered, function, around) for each in node.body]
                    inner = node.items
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    within = getattr(node, "name", function)
                    function = "" if isinstance(node, ast.AsyncFunctionDef) else within
                    caught = False
                    inner = ast.iter_child_nodes(node)
                case ast.Call():
                    covered = caught or any(_returns_exceptions(each) for each in node.keywords)
                    self.used.append((node.func, node, caught))
                    self.functions[id(node)] = function
                    left += [(each, covered, function, around) for each in (*node.args, *node.keywords)]
                    inner = self._chain(node.func)
                case ast.Attribute() | ast.Subscript():
                    self.used.append((node, None, caught))
                    inner = self._chain(node)
                case ast.Name(id=name, ctx=ast.Load()):
                    self.loaded[name] += 1
                    self.names.append((node, caught))
                case _:
                    inner = ast.iter_child_nodes(node)
            self._take(node)
            left += [(each, caught, function, repeated.get(id(each), around)) for each in inner]

    def _chain(self, chain: ast.expr) -> Iterator[ast.expr]:
        """Take in a chain of names; yield what stands in it beside them: subscripts, and what it begins with."""
        while isinstance(chain, ast.Attribute | ast.Subscript):
            if isinstance(chain, ast.Subscript):
                yield chain.slice
                self.taken.append((chain.value, ""))
            else:
                self.members.add(chain.attr)
                if chain.attr not in _OF_COROUTINES and not chain.attr.startswith("cr_"):
                    self.taken.append((chain.value, ""))
            chain = chain.value
        if isinstance(chain, ast.Name):
            self.loaded[chain.id] += 1
        else:
            yield chain

    def _take(self, node: ast.AST) -> None:
        """Note what a node must be given an answer for."""
        taken: Sequence[ast.expr] = ()
        by = ""
        match node:
            case ast.Constant(value=str(text)) if _TOOL_NAME.fullmatch(text):
                self.texts.append(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                self.assigned[name] = call
            case ast.Expr(value=ast.Call() as value) | ast.FormattedValue(value=value) | ast.Starred(value=value):
                taken = [value]
            case ast.For(iter=value) | ast.comprehension(iter=value, is_async=0):
                taken = [value]
            case ast.BinOp(left=left, right=right):
                taken = [left, right]
            case ast.Call(func=ast.Name(id=by), args=taken) if by in _TAKING_ANSWERS:
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="dumps" | "loads"), args=taken):
                pass
            case _:
                return
        self.taken += [(each, by) for each in taken]

    def settle(self, entry: str | None) -> None:
        """Settle what names mean and which calls are certain, once the whole tree was read."""
        for name, times in self.bound.items():
            self.roots.pop(name, None)
            if times > 1:
                self.aliases.pop(name, None)
        for name, meant in self.aliases.items():
            path = meant if isinstance(meant, tuple) else self._path(meant)
            if path is not None:
                self.roots[name] = path
        whole = self.tree if entry is None else ast.Module([*self.tree.body, *_call_of(entry, self.tree)], [])
        if any(self._path(chain) for chain, call, _ in self.used if call is not None):
            if _EXITS.isdisjoint({*self.loaded, *self.bound, *self.members}):
                self.certain = certain_calls(whole, self.bound, self.imported)
            self._settle_unawaited()

    def _settle_unawaited(self) -> None:
        """Find the calls that are taken for their answers, given that they return coroutines.

        Such a call is a statement by itself, or an item, an attribute, a member or the text of it is taken; or it is
        assigned to a name that the program binds once and only uses so. What is passed on may be awaited elsewhere.
        """
        misused: Counter[str] = Counter()
        for each, by in self.taken:
            if by not in self.bound:
                if isinstance(each, ast.Call):
                    self.unawaited.add(id(each))
                elif isinstance(each, ast.Name):
                    misused[each.id] += 1
        for name, call in self.assigned.items():
            if self.bound[name] == 1 and 0 < self.loaded[name] == misused[name]:
                self.unawaited.add(id(call))

    def skills(self) -> list[SkillUse]:
        """Return the skills that the source names, each once."""
        uses: dict[str, SkillUse] = {}
        for chain, call, caught in [*self.used, *((name, None, caught) for name, caught in self.names)]:
            key = self._skill(chain, call)
            if key is not None:
                certain = call is not None and id(call) in self.certain and self._path(chain) != _LOAD_SKILL
                use = uses.get(key, SkillUse(key, chain.lineno, caught=True, certain=False))
                sites = use.sites
                if call is None or sites is None or self._path(chain) == _LOAD_SKILL:
                    sites = None
                else:
                    sites = (*sites, (call, self.known))
                uses[key] = SkillUse(
                    key, min(use.line, chain.lineno), use.caught and caught, use.certain or certain, sites
                )
        return list(uses.values())

    def calls(self, use: SkillUse | None = None) -> list[Json]:
        """Return the calls of tools, each name once for a line.

        That is `[name, line, are failures caught, calls, last line, shown]`, with `shown` as `KnownCall.as_json` of
        each different call, or None in it where there are more.

        `calls` has an object for each call on that line whose failure is not caught: `{given, others, more,
        positional}` as in `Written`. `unawaited` is set where the call cannot be awaited as it stands, with the
        `plain_function` in which it stands, and `certain` where the program cannot run to its end without it, nor after
        its failure.

        Of a skill, which is used as `use` says, there are no such objects in `calls`. Then come the skill, the line of
        the program that uses it and whether the call is certain.
        """
        chars_left = _ARGUMENTS_CHARS_MAX
        rows: list[Json] = []
        for (line, tool), place in sorted(self._places().items(), key=lambda each: each[0])[:CALLS_MAX]:
            calls: list[Json] = []
            for call in place.uncaught if use is None else ():
                known = self._known(call)
                chars_left -= len(str(known))
                if chars_left >= 0:
                    calls.append(known)
            shown: list[Json] = []
            for chain, made in place.shown:
                different = self._shown(chain, made)
                chars_left -= len(str(different))
                shown += different if chars_left >= 0 else [None]
            where: list[Json] = [] if use is None else [[use.key, use.line, use.certain and place.certain]]
            caught = place.caught or (use is not None and use.caught)
            rows.append([tool, line, caught, calls, place.last_line, shown, *where])
        return rows

    def _shown(self, chain: ast.expr, call: ast.Call | None) -> list[Json]:
        if call is None or not self._is_tool(chain):
            return [None]
        by_name = self._path(chain) == _CALL_TOOL
        different, more = self.known.calls(call, *(passed(call) if by_name else (call.args, call.keywords)))
        return [*(each.as_json() for each in different), *([None] if more else [])]

    def _known(self, call: ast.Call) -> Json:
        by_name = self._path(call.func) == _CALL_TOOL
        written = written_arguments(*(passed(call) if by_name else (call.args, call.keywords)))
        unawaited = id(call) in self.unawaited
        certain = id(call) in self.certain if unawaited else self.certain.get(id(call), False)
        return {
            "given": written.given,
            "others": sorted(written.others),
            "more": written.more,
            "positional": written.positional,
            "unawaited": unawaited,
            "plain_function": self.functions[id(call)] if unawaited else "",
            "certain": certain and not (by_name and may_name_a_tool(call)),
        }

    @property
    def computes_names(self) -> bool:
        """Whether the source calls tools by names that only running it tells."""
        if any(self._path(name) == _CALL_TOOL for name, _ in self.names):
            return True
        calls = (call for chain, call, _ in self.used if call is not None and self._path(chain) == _CALL_TOOL)
        return any(named_tool(call) is None for call in calls)

    @property
    def hides(self) -> bool:
        """Whether the source may call tools in a way that it does not name: by `getattr`, `exec`, or what it passes on.

        What it defines itself by these names counts too.
        """
        if self.computes_names or not _HIDING.isdisjoint(self.loaded):
            return True
        chains = [(chain, call) for chain, call, _ in self.used] + [(name, None) for name, _ in self.names]
        return any(self._is_open(chain, call) for chain, call in chains if id(chain) not in self.named)

    def _is_open(self, chain: ast.expr, call: ast.Call | None) -> bool:
        """Return whether a chain of names leads to tools, and does not say to which."""
        root = chain
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name) or (begins := self.roots.get(root.id)) is None:
            return False
        if begins[:1] and begins[0].startswith("\0"):
            return False
        path = self._path(chain)
        if path is None or not path:
            return True
        return call is None and len(path) < _TOOL_PATH and path[0] not in _NO_TOOLS and path != _CALL_TOOL

    def tool_names(self, use: SkillUse | None = None) -> list[Json]:
        """Return the texts that may be the names of tools, as `calls` does. The failure of each counts as caught."""
        where: list[Json] = [] if use is None else [[use.key, use.line, False]]
        texts = sorted(self.texts, key=lambda each: each.lineno)
        return [
            [str(each.value), each.lineno, True, [], each.end_lineno or each.lineno, [None], *where] for each in texts
        ]

    def _places(self) -> dict[tuple[int, str], _CallLine]:
        places: dict[tuple[int, str], _CallLine] = {}
        for chain, call, caught in self.used:
            tool = self._tool(chain, call)
            if tool is not None and len(tool) <= _NAME_CHARS_MAX:
                whole = chain if call is None else call
                place = places.setdefault((whole.lineno, tool), _CallLine())
                place.caught = place.caught and caught
                place.last_line = max(place.last_line, whole.end_lineno or 0)
                place.certain = place.certain or id(call) in self.certain
                place.shown.append((chain, call))
                if call is not None and not caught and self._is_tool(chain):
                    place.uncaught.append(call)
        return places

    def _is_tool(self, chain: ast.expr) -> bool:
        """Return whether a chain of names is a tool itself, and no attribute of it."""
        path = self._path(chain)
        return path is not None and len(path) <= _TOOL_PATH

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Subscript() | ast.Name() as value):
                self.aliases[name] = value
                self.named.add(id(value))
            case ast.ImportFrom(module="tools" | "mcp" | "mcp.runtime", names=names):
                self.aliases |= {each.asname or each.name: (each.name,) for each in names}
            case ast.ImportFrom(module="skills", names=names):
                self.aliases |= {each.asname or each.name: (_SKILLS, each.name) for each in names}
            case ast.Import(names=names):
                for each in names:
                    root = each.name.partition(".")[0]
                    if root in {"tools", "mcp"}:
                        self.aliases[each.asname or root] = ()
                    elif root == "skills":
                        self.aliases[each.asname or root] = (_SKILLS,)
        self.bound.update(_bound_by(node))
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported.update(_bound_by(node))
            self.members.update(each.name for each in node.names)

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
        if not path or path[0] in _NO_TOOLS or path[0].startswith("\0"):
            return None
        if path == _CALL_TOOL:
            return None if call is None else named_tool(call)
        if len(path) == 1 and call is None:
            return None
        return ".".join(path[:2])

    def _skill(self, chain: ast.expr, call: ast.Call | None) -> str | None:
        path = self._path(chain)
        if not path:
            return None
        if path[0] == _SKILLS:
            if len(path) == 1:
                return None
            pinned = next(filter(None, map(hosted_skills.pinned, reversed(path[2:]))), None)
            return path[1] if pinned is None else f"{path[1]}@{pinned}"
        if path in {_LOAD_SKILL, _CALL_SKILL} and call is not None:
            return named_skill(call)
        return None


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


def _call_of(entry: str, tree: ast.Module) -> list[ast.stmt]:
    """Return the statement that calls a function of a source."""
    call: ast.expr = ast.Call(ast.Name(entry, ast.Load()), [], [])
    is_async = any(isinstance(each, ast.AsyncFunctionDef) and each.name == entry for each in tree.body)
    return [ast.Expr(ast.Await(call) if is_async else call)]


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
