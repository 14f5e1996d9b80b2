"""Notices coroutines that were made and never awaited, so that nothing of them ran: the commonest mistake with tools.

CPython warns when such a coroutine is thrown away (`_warn_unawaited_coroutine`, PEP 492), and says nothing of one that
a variable still holds when the code has ended. Here both become one note of the report, with the line of the call.
"""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from types import CoroutineType
from typing import Any, cast
from weakref import WeakSet

from ..guest.guest import GUEST
from ..guest.spelling import demangle
from .lookups import Scene

AWAIT = "Write `await` before the call: without it there is only a coroutine, of which nothing has run."


def await_at(scene: Scene) -> str:
    """Return how to await a call on a line of a source."""
    name = _plain_function_at(scene, scene.line) if scene.line is not None and "def " in scene.source else None
    if name is None:
        return AWAIT
    return (
        f"Make {name}() an `async def` and write `await` before the call, and before the calls of {name}(); "
        "asyncio.gather makes many at once, without threads. In a thread, write asyncio.run(…) around the call."
    )


def _plain_function_at(scene: Scene, line: int) -> str | None:
    """Return the name of the innermost function around a line, if that is no `async def`."""
    functions = (node for node in scene.nodes() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    around = [each for each in functions if each.lineno <= line <= (each.end_lineno or each.lineno)]
    innermost = max(around, key=lambda each: each.lineno, default=None)
    return innermost.name if isinstance(innermost, ast.FunctionDef) else None


_NAMED_MAX = 3
_ITEMS_MAX = 1000
_ORIGINS = 3
"""How many callers a coroutine remembers: a tool without its server is called through two functions of sealab's."""
_SKILL = "<skill "
"""How the file names of skills begin; `<skill csv_profile v2>` is its second version."""


class Unawaited:
    """The coroutines of one run that were never awaited, by name and line."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int | None, str], str] = {}
        """Each with the name of its file."""
        self._reported: WeakSet[CoroutineType[Any, Any, Any]] = WeakSet()
        self._last_given: str | None = None
        self._given = 0

    def watch(self) -> None:
        """Notice coroutines that are dropped, and record for each where it was made."""
        sys.set_coroutine_origin_tracking_depth(_ORIGINS)
        warnings._warn_unawaited_coroutine = self._note  # type: ignore[attr-defined]  # what CPython itself calls

    def begin(self) -> None:
        """Clear the calls of an earlier run."""
        self._calls.clear()

    def given(self, namespace: dict[str, object]) -> None:
        """Note which variables the code starts with.

        Those are not looked at, even when they hold something else by then: reading an object copies its page.
        """
        self._last_given = next(reversed(namespace), None)
        self._given = len(namespace)

    def notes(self, namespace: dict[str, object]) -> dict[str, str]:
        """Return the note about what was thrown away, and about what the variables in `namespace` still hold."""
        for coroutine in _held(self._newer(namespace)):
            if coroutine not in self._reported and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                self._reported.add(coroutine)  # a session's variables stay
                self._note(coroutine)
        calls = [f"{name}(){_where(line, source)}" for name, line, source in sorted(self._calls, key=_line)]
        if not calls:
            return {}
        shown = ", ".join(calls[:_NAMED_MAX]) + (f" and {len(calls) - _NAMED_MAX} more" if calls[_NAMED_MAX:] else "")
        was = "was" if len(calls) == 1 else "were"
        first = min(self._calls, key=_line)
        is_in_async = await_at(Scene(GUEST.sources.get(self._calls[first], ""), first[1])) == AWAIT
        where = "" if is_in_async else ", in an `async def`"
        return {"code": f"{shown} {was} never awaited: nothing of it ran. Write `await` before the call{where}."}

    def _newer(self, namespace: dict[str, object]) -> list[object]:
        """Return what the code added, or everything if it took out some of what was given.

        A dictionary keeps its order: what was added follows the last given name, and what is written over stays put.
        """
        added = len(namespace) - self._given
        last_names = list(islice(reversed(namespace), max(added, 0) + 1))
        if added < 0 or (self._given and last_names[-1] != self._last_given):
            return list(namespace.values())
        return [namespace[name] for name in reversed(last_names[:added])]

    def _note(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        origin = getattr(coroutine, "cr_origin", None)
        name = demangle(coroutine.__qualname__)
        if origin:
            own = (each for each in origin if each[0] in GUEST.sources)
            source, line, _function = next(own, origin[0])
            self._calls[name, line, source[1:-1] if source.startswith(_SKILL) else ""] = source
        else:
            self._calls[name, None, ""] = ""


def _line(call: tuple[str, int | None, str]) -> tuple[str, int]:
    return call[2], call[1] or 0


def _where(line: int | None, source: str) -> str:
    return "" if line is None else f" on line {line}{source and f' of {source}'}"


def _held(values: Iterable[object]) -> Iterator[CoroutineType[Any, Any, Any]]:
    """Yield the coroutines among the values of variables, themselves or in a list, tuple or dict."""
    for value in values:
        kind = type(value)
        inside: Iterable[object] = (value,)
        if kind is list or kind is tuple:
            inside = islice(cast("Iterable[object]", value), _ITEMS_MAX)
        elif kind is dict:
            inside = islice(cast("dict[object, object]", value).values(), _ITEMS_MAX)
        yield from (item for item in inside if type(item) is CoroutineType)
