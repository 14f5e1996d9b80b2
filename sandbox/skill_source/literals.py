"""Literals of source as JSON."""

from __future__ import annotations

import ast
import math
from typing import Final, cast

from ..job import Json


class _NotLiteral:
    def __repr__(self) -> str:
        return "NOT_LITERAL"


NOT_LITERAL: Final = _NotLiteral()
"""Stands for what is not a literal, or one that JSON cannot hold."""

_CHARS_MAX: Final = 20_000


def constant(node: ast.expr | None) -> object:
    """Return the value of a literal that JSON can hold (tuples as they are), else `NOT_LITERAL`."""
    if node is None:
        return NOT_LITERAL
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL
    return value if _is_json(value, 0) else NOT_LITERAL


def plain(value: object) -> Json:
    """Return such a value with lists for its tuples."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return cast("Json", value)


def _is_json(value: object, depth: int) -> bool:
    if depth > 20:  # noqa: PLR2004 - deeper than any written default
        return False
    if isinstance(value, list | tuple):
        return all(_is_json(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(type(key) is str and _is_json(item, depth + 1) for key, item in value.items())
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return (len(value) <= _CHARS_MAX and value.isprintable()) or _encodes(value)
    if type(value) is int:
        return value.bit_length() <= 1024  # noqa: PLR2004 - longer than any default that means something
    return value is None or type(value) is bool


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return len(text) <= _CHARS_MAX
