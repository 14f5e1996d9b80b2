"""Finds the plain function around a line, in which `await` is not allowed: what to write there instead."""

from __future__ import annotations

import ast

from .subscripts import SOURCE_CHARS_MAX

AWAIT = "Write `await` before the call: without it there is only a coroutine, of which nothing has run."


def await_at(source: str, line: int | None) -> str:
    """Return how to await a call on a line of a source."""
    name = None if line is None else _plain_function_at(source, line)
    if name is None:
        return AWAIT
    return (
        f"Make {name}() an `async def` and write `await` before the call, and before the calls of {name}(); "
        "asyncio.gather makes many at once, without threads. In a thread, write asyncio.run(…) around the call."
    )


def _plain_function_at(source: str, line: int) -> str | None:
    """Return the name of the innermost function around a line, if that is no `async def`."""
    if len(source) > SOURCE_CHARS_MAX or "def " not in source:
        return None
    innermost: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_around = node.lineno <= line <= (node.end_lineno or node.lineno)
        if is_around and (innermost is None or node.lineno >= innermost.lineno):
            innermost = node
    return innermost.name if isinstance(innermost, ast.FunctionDef) else None
