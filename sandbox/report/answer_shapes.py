"""Which tools' answers the values of a failed line come from, and what these answers looked like.

Security boundary: nothing of the guest's runs. A line is followed through its source: its names, what they were bound
to, and so on, whatever the order, to calls of tools that this run made. Where that names too many, it names none.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from ..guest.real_classes import derives
from .disclosure import bounded
from .lookups import Scene

TOOLS_MAX: Final = 50
"""Tools of one run whose answers are noted."""

_MADE_UP: Final = "dry_run"
_SHOWN_MAX: Final = 2
_SHAPE_CHARS_MAX: Final = 200
_DEPTH_MAX: Final = 4
_NODES_MAX: Final = 60
_KEYS_MAX: Final = 12
_ITEMS_MAX: Final = 20
"""Items of a list that are looked at for classes of their own."""
_KEY_CHARS_MAX: Final = 40
_SOURCE_CHARS_MAX: Final = 50_000
_NAMES_MAX: Final = 200
_OF_A_CALL: Final = re.compile(r"\bargument|not callable|\bawait\b|coroutine")
"""Errors of how something was called, which say nothing of a value."""


def note(answers: dict[str, str], tool: str, answer: object) -> None:
    """Note the shape of the newest answer of a tool, of `TOOLS_MAX` tools at most; takes bounded time.

    What stands for an answer in a dry run has none.
    """
    if isinstance(answer, dict) and answer.get(_MADE_UP) is True:
        return
    if tool in answers or len(answers) < TOOLS_MAX:
        answers[tool] = shape_of(answer)


def shape_of(answer: object) -> str:
    """Return the type of a JSON value as Python writes it, with the keys of objects.

    Of the items of a list the first of each class counts.
    """
    written = ""
    for depth in range(_DEPTH_MAX, -1, -1):
        written = _Traversal().written(answer, depth)
        if len(written) <= _SHAPE_CHARS_MAX:
            break
    return written


@dataclass(slots=True)
class _Traversal:
    """One look at an answer, which ends when it has seen enough."""

    left: int = _NODES_MAX

    def written(self, value: object, depth: int) -> str:
        self.left -= 1
        if value is None:
            return "None"
        if isinstance(value, dict):
            return self._object(cast("dict[str, object]", value), depth)
        if isinstance(value, list):
            items = cast("list[object]", value)
            if not items:
                return "list (empty)"
            return f"list[{self._items(items, depth - 1)}]" if depth > 0 else "list"
        return type(value).__name__

    def _items(self, items: list[object], depth: int) -> str:
        """Return the type of a list's items: of those of one class the first counts, text may stand beside objects."""
        kinds: dict[type, object] = {}
        for item in items[:_ITEMS_MAX]:
            kinds.setdefault(type(item), item)
        return " | ".join(dict.fromkeys(self.written(item, depth) for item in kinds.values()))

    def _object(self, fields: dict[str, object], depth: int) -> str:
        if depth <= 0 or self.left <= 0:
            return "dict"
        written: list[str] = []
        for key, value in fields.items():
            if len(written) == _KEYS_MAX or self.left <= 0:
                written.append("...")
                break
            name = json.dumps(bounded(key, _KEY_CHARS_MAX), ensure_ascii=False)
            written.append(f"{name}: {self.written(value, depth - 1)}")
        return f"{{{', '.join(written)}}}"


def described(error: BaseException, message: str, scene: Scene, answers: Mapping[str, str]) -> str | None:
    """Describe in a sentence what tools returned whose answers an error may be about; None where there is none.

    `answers` are the shapes by the tools' names as the code wrote them, such as `git.git_log`.
    """
    if not answers or scene.line is None or len(scene.source) > _SOURCE_CHARS_MAX or _OF_A_CALL.search(message):
        return None
    if not any(derives(type(error), kind) for kind in (KeyError, TypeError, AttributeError)):
        return None
    tools = _tools_behind(scene, answers)
    if not 0 < len(tools) <= _SHOWN_MAX:
        return None
    return " ".join(f"{tool} returned {answers[tool]}." for tool in tools)


def _tools_behind(scene: Scene, answers: Mapping[str, str]) -> list[str]:
    """Return the tools that a line's values may come from, the nearest first."""
    nodes = list(scene.nodes())  # breadth first: what is found later lies deeper
    start = next((node for node in reversed(nodes) if isinstance(node, ast.stmt) and scene.is_on_line(node)), None)
    if start is None:
        return []
    bindings = _bindings(nodes)
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting: list[ast.AST] = [*_own_nodes(start)]
    while waiting and len(seen) < _NAMES_MAX:
        node = waiting.pop(0)
        found.update(dict.fromkeys(tool for tool in answers if _names(node, tool)))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in seen:
            seen.add(node.id)
            for bound in bindings[node.id]:
                waiting += ast.walk(bound)
    return list(found)


def _names(node: ast.AST, tool: str) -> bool:
    """Return whether a node names a tool: as an attribute, or as text."""
    match node:
        case ast.Attribute(attr=name):
            return name == tool.rpartition(".")[2]
        case ast.Constant(value=str(text)):
            return text in {tool, tool.rpartition(".")[2]}
    return False


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what stands in a statement itself, and not in the statements of its body."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr | ast.withitem):
            yield from ast.walk(child)


def _bindings(nodes: list[ast.AST]) -> Mapping[str, list[ast.AST]]:
    """Return for each name what it is bound to anywhere; of parameters, what calls of their function pass."""
    bindings: defaultdict[str, list[ast.AST]] = defaultdict(list)
    functions: dict[str, ast.arguments] = {}
    calls: list[tuple[str, ast.Call]] = []
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                _bind(bindings, targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                _bind(bindings, [target], value)
            case ast.NamedExpr(target=target, value=value):
                _bind(bindings, [target], value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                _bind(bindings, [target], value)
            case ast.comprehension(target=target, iter=value):
                _bind(bindings, [target], value)
            case ast.FunctionDef(name=name, args=arguments) | ast.AsyncFunctionDef(name=name, args=arguments):
                bindings[name].append(node)
                functions[name] = arguments
            case ast.Call(func=ast.Name(id=name)):
                calls.append((name, node))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"), args=[value]):
                bindings[name].append(value)
    for name, call in calls:
        arguments_of = functions.get(name)
        if arguments_of is not None:
            for parameter in (*arguments_of.posonlyargs, *arguments_of.args, *arguments_of.kwonlyargs):
                bindings[parameter.arg] += [*call.args, *(each.value for each in call.keywords)]
    return bindings


def _bind(bindings: defaultdict[str, list[ast.AST]], targets: list[ast.expr], value: ast.AST) -> None:
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                bindings[node.id].append(value)
