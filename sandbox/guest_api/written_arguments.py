"""What a source says of the arguments of a call: their names, and the values of those that are literals."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import Final

from ..job import Json

LITERAL_CHARS_MAX: Final = 1000
"""Longer texts, and longer lists, count as values that are known only when the program runs."""

_DEPTH_MAX: Final = 20
_WHOLE_BITS_MAX: Final = 63


class _UnknownValue(Exception):
    """The value of an expression is known only when it runs."""


@dataclass(slots=True)
class Written:
    """The arguments of one call as they stand in the source.

    `given` are those with a literal value, `others` the names of the others. `more` says that there may be further
    ones (`**options`), `positional` how many are passed by position.
    """

    given: dict[str, Json] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    more: bool = False
    positional: int = 0

    def add(self, name: str, value: ast.expr) -> None:
        """Take in an argument. One that is written twice is not judged."""
        if name in self.given or name in self.others:
            self.given.pop(name, None)
            self.others.add(name)
            return
        try:
            self.given[name] = _literal(value, _DEPTH_MAX)
        except _UnknownValue:
            self.others.add(name)


def written_arguments(positional: list[ast.expr], keywords: list[ast.keyword]) -> Written:
    """Read the arguments of a call; as in a call itself, one dict by position stands for arguments by name."""
    written = Written()
    match positional:
        case []:
            pass
        case [ast.Dict() as only]:
            _add_dict(written, only)
        case [only] if not isinstance(only, ast.Starred) and not is_plain(only):
            written.more = True  # it may be a dict
        case _:
            written.more = any(isinstance(each, ast.Starred) for each in positional)
            written.positional = 0 if written.more else len(positional)
    for keyword in keywords:
        if keyword.arg is not None:
            written.add(keyword.arg, keyword.value)
        elif isinstance(keyword.value, ast.Dict):
            _add_dict(written, keyword.value)
        else:
            written.more = True
    return written


def _add_dict(written: Written, items: ast.Dict) -> None:
    for key, value in zip(items.keys, items.values, strict=True):
        match key:
            case ast.Constant(value=str(name)):
                written.add(name, value)
            case None if isinstance(value, ast.Dict):
                _add_dict(written, value)
            case _:
                written.more = True


def is_plain(value: ast.expr) -> bool:
    """Return whether a value is certainly not a dict."""
    return isinstance(value, ast.List | ast.Tuple | ast.JoinedStr | ast.Constant)


def _literal(value: ast.expr, depth: int) -> Json:
    if depth == 0:
        raise _UnknownValue
    match value:
        case ast.Constant(value=None | bool() as plain):
            return plain
        case ast.Constant(value=str(text)) if _is_short(text):
            return text
        case ast.Constant(value=int(number)) if number.bit_length() <= _WHOLE_BITS_MAX:
            return number
        case ast.Constant(value=float(number)) if math.isfinite(number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as operand):
            positive = _literal(operand, depth - 1)
            if type(positive) is int or type(positive) is float:
                return -positive
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= LITERAL_CHARS_MAX:
            return [_literal(each, depth - 1) for each in items]
        case ast.Dict(keys=keys, values=values) if len(keys) <= LITERAL_CHARS_MAX:
            return {_key(key): _literal(each, depth - 1) for key, each in zip(keys, values, strict=True)}
    raise _UnknownValue


def _key(key: ast.expr | None) -> str:
    match key:
        case ast.Constant(value=str(text)) if _is_short(text):
            return text
    raise _UnknownValue


def _is_short(text: str) -> bool:
    """Return whether a text may be sent: short, and without halves of UTF-16 pairs, which no frame can carry."""
    return len(text) <= LITERAL_CHARS_MAX and not any("\ud800" <= each <= "\udfff" for each in text)
