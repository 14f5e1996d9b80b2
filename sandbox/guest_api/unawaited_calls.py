"""Calls whose coroutine a program takes for their answer, so that nothing of them ever runs: the `await` is missing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

_OF_COROUTINES: Final = frozenset({"close", "send", "throw"})
_TAKING_VALUES: Final = frozenset(
    {"dict", "enumerate", "len", "list", "max", "min", "print", "set", "sorted", "str", "sum", "tuple", "zip"}
)


def unawaited_calls(tree: ast.Module, bound: Mapping[str, int]) -> set[int]:
    """Return the `id` of each call that cannot be awaited where it stands, given that it returns a coroutine.

    Such a call is a statement by itself, or an item, an attribute, a member or the text of it is taken; or it is
    assigned to a name that the program binds once and only uses so. What is passed on may be awaited elsewhere.
    """
    misused: set[int] = set()
    loaded: Counter[str] = Counter()
    misused_names: Counter[str] = Counter()
    assigned: dict[str, ast.Call] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loaded[name] += 1
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                assigned[name] = call
            case ast.Expr(value=ast.Call() as call):
                misused.add(id(call))
        for each in _taken_for_answers(node, bound):
            if isinstance(each, ast.Call):
                misused.add(id(each))
            elif isinstance(each, ast.Name):
                misused_names[each.id] += 1
    held = {id(call) for name, call in assigned.items() if bound[name] == 1 and 0 < loaded[name] == misused_names[name]}
    return misused | held


def _taken_for_answers(node: ast.AST, bound: Mapping[str, int]) -> Iterator[ast.expr]:
    """Yield what must be an answer, and no coroutine, for a node to make sense."""
    match node:
        case ast.Subscript(value=value) | ast.FormattedValue(value=value):
            yield value
        case ast.Attribute(value=value, attr=attribute):
            if attribute not in _OF_COROUTINES and not attribute.startswith("cr_"):
                yield value
        case ast.For(iter=value) | ast.comprehension(iter=value, is_async=0) | ast.Starred(value=value):
            yield value
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.Call(func=function, args=arguments):
            match function:
                case ast.Name(id=name) if name in _TAKING_VALUES and name not in bound:
                    yield from arguments
                case ast.Attribute(value=ast.Name(id="json"), attr="dumps" | "loads"):
                    yield from arguments


def plain_functions(tree: ast.Module) -> dict[int, str]:
    """Return the name of the plain function in which a call stands, by the `id` of the call: none has `await`."""
    around: dict[int, str] = {}
    left: list[tuple[ast.AST, str]] = [(tree, "")]
    while left:
        node, name = left.pop()
        match node:
            case ast.FunctionDef():
                name = node.name
            case ast.AsyncFunctionDef():
                name = ""
            case ast.Call() if name:
                around[id(node)] = name
        left += [(each, name) for each in ast.iter_child_nodes(node)]
    return around
