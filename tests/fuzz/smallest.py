"""Makes the program of a find as small as it can be while it still shows the same leak."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence

Shows = Callable[[Sequence[str]], bool]
TRIES_MAX = 400


def smallest(statements: Sequence[str], shows: Shows) -> list[str]:
    """Return fewer and shorter statements for which `shows` still holds (delta debugging, Zeller 1999)."""
    tries = itertools.count()

    def still(candidate: Sequence[str]) -> bool:
        return next(tries) < TRIES_MAX and shows(candidate)

    found = _fewer(list(statements), still)
    while True:
        shorter = next((candidate for candidate in _shortened(found) if still(candidate)), None)
        if shorter is None:
            return found
        found = shorter


def _fewer(statements: list[str], still: Shows) -> list[str]:
    size = max(1, len(statements) // 2)
    while size:
        at = len(statements)
        while at > 0:
            candidate = statements[: max(0, at - size)] + statements[at:]
            if candidate != statements and still(candidate):
                statements = candidate
            at -= size
        size //= 2
    return statements


def _shortened(statements: list[str]) -> Iterator[list[str]]:
    for index, text in enumerate(statements):
        for shorter in _shorter(text):
            yield [*statements[:index], shorter, *statements[index + 1 :]]


def _shorter(text: str) -> Iterator[str]:
    """Give the statement without its `try`, without one line of a body, decorator, base, argument, item."""
    tree = ast.parse(text)
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Try):
        yield "\n".join(ast.unparse(statement) for statement in tree.body[0].body) + "\n"
    for index, node in enumerate(ast.walk(tree)):
        for name, many in ast.iter_fields(node):
            if name in {"type_ignores", "ops", "names"} or not isinstance(many, list):
                continue
            for at in range(len(many)):
                if len(many) > 1 or name in {"decorator_list", "bases", "args", "keywords", "elts"}:
                    again = ast.parse(text)
                    other = next(itertools.islice(ast.walk(again), index, None))
                    del getattr(other, name)[at]
                    if name == "keys":
                        del other.values[at]  # type: ignore[attr-defined]  # of a dict display
                    yield from _written(again, text)


def _written(tree: ast.Module, before: str) -> Iterator[str]:
    try:
        text = ast.unparse(tree) + "\n"
        ast.parse(text)
    except Exception:
        return
    if len(text) < len(before):
        yield text
