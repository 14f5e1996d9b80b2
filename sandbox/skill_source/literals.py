"""Literals of source as JSON."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import Final, cast

from ..job import Json


class _NotLiteral:
    def __repr__(self) -> str:
        return "NOT_LITERAL"


NOT_LITERAL: Final = _NotLiteral()
"""Stands for what is not a literal, or one that JSON cannot hold."""

_DEPTH_MAX: Final = 20
_LENGTH_MAX: Final = 20_000
_BITS_MAX: Final = 1024


class UnknownValue(Exception):
    """The value of an expression is known only when it runs, or is none that is kept."""


def literal(node: ast.expr) -> object:
    """Return the value of a literal. Raises `UnknownValue`."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise UnknownValue from None


def constant(node: ast.expr | None) -> object:
    """Return the value of a literal that JSON can hold (tuples as they are), else `NOT_LITERAL`."""
    try:
        value = NOT_LITERAL if node is None else literal(node)
        plain(value)
    except UnknownValue:
        return NOT_LITERAL
    return value


def plain(value: object, depth: int = _DEPTH_MAX, *, length_max: int = _LENGTH_MAX, bits_max: int = _BITS_MAX) -> Json:
    """Return a value as JSON, with lists for its tuples.

    Of exact types alone: others run code of the program's own. Texts, lists and dicts have at most `length_max`
    characters or items, whole numbers `bits_max` bits. Raises `UnknownValue`.
    """
    kind = type(value)
    if value is None or kind is bool:
        return cast("Json", value)
    if kind is int and cast("int", value).bit_length() <= bits_max:
        return cast("int", value)
    if kind is float and math.isfinite(cast("float", value)):
        return cast("float", value)
    if kind is str and len(cast("str", value)) <= length_max and _encodes(cast("str", value)):
        return cast("str", value)
    if depth == 0 or kind not in {list, tuple, dict} or len(cast("list[object]", value)) > length_max:
        raise UnknownValue
    within = partial(plain, depth=depth - 1, length_max=length_max, bits_max=bits_max)
    if kind is not dict:
        return [within(each) for each in cast("list[object]", value)]
    items = cast("dict[str, object]", value)
    if all(type(key) is str and len(key) <= length_max and _encodes(key) for key in items):
        return {key: within(each) for key, each in items.items()}
    raise UnknownValue


def _encodes(text: str) -> bool:
    """Return whether a text has no halves of UTF-16 pairs, which no frame can carry."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)
