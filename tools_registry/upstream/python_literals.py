"""Reads the text of a Python list, tuple or dict, as servers answer that write `str(rows)`, into JSON.

Nothing is evaluated or compiled: a scanner reads one token after the other, so that a thread that reads gives way, and
neither depth nor size can hurt. Source: https://docs.python.org/3/reference/lexical_analysis.html, section 2.4.
"""

from __future__ import annotations

import ast
import re
from typing import cast

from ..models import Json

CHARS_MAX = 2_000_000
"""A longer text stays a text."""
DEPTH_MAX = 50
_STRING_WITH_ESCAPES_MAX = 100_000
"""`ast.literal_eval` reads the escapes of one string, and holds the interpreter that long."""

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<string>(?<!\\)'(?:[^'\\\n]|\\.)*+'|(?<!\\)"(?:[^"\\\n]|\\.)*+")
        |(?P<number>-?[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+(?![\w.]))
        |(?P<name>None|True|False)\b
        |(?P<mark>[\[\](){},:])
    )\s*+""",
    re.VERBOSE,
)
_NAMES: dict[str, Json] = {"None": None, "True": True, "False": False}
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def looks_like_literal(text: str) -> bool:
    """Return whether a text may be a Python list, tuple or dict: it begins and ends as one."""
    return 2 <= len(text) <= CHARS_MAX and _CLOSING.get(text[0]) == text[-1]  # noqa: PLR2004 - the two brackets


def read_literal(text: str) -> Json:
    """Return a list for a list or tuple, an object for a dict whose keys are texts.

    Raises `ValueError` for all else: other types, adjacent strings, what is deeper than `DEPTH_MAX` or longer than
    `CHARS_MAX`.
    """
    if not looks_like_literal(text):
        raise ValueError("it is not a list, tuple or dict")
    return _Reader(text).whole()


class _Reader:
    """Reads one text from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kind = ""
        self._said = ""

    def whole(self) -> Json:
        self._next()
        found = self._value(DEPTH_MAX)
        if self._at != len(self._text):
            raise ValueError("something follows it")
        return found

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise ValueError(f"it cannot be read at character {self._at}")
        self._at, self._kind, self._said = found.end(), found.lastgroup, found[found.lastgroup]

    def _value(self, depth: int) -> Json:
        """Return the value that the present token begins; its last token is the present one afterwards."""
        said = self._said
        match self._kind:
            case "string":
                return _string(said)
            case "number":
                return int(said) if said.lstrip("-").isdigit() else _finite(said)
            case "name":
                return _NAMES[said]
        if depth == 0 or said not in _CLOSING:
            raise ValueError("a value is missing, or lies too deep")
        return self._object(depth) if said == "{" else self._items(said, depth)

    def _items(self, opening: str, depth: int) -> list[Json]:
        items: list[Json] = []
        comma = False
        while True:
            self._next()
            if self._said == _CLOSING[opening] and self._kind == "mark":
                if opening == "(" and len(items) == 1 and not comma:
                    raise ValueError("brackets around a value make no tuple")
                return items
            if items and not comma:
                raise ValueError("a comma is missing")
            items.append(self._value(depth - 1))
            comma = self._comma()

    def _object(self, depth: int) -> dict[str, Json]:
        fields: dict[str, Json] = {}
        comma = True
        while True:
            self._next()
            if self._said == "}" and self._kind == "mark":
                return fields
            if self._kind != "string" or not comma:
                raise ValueError("a key is not a text, or a comma is missing")
            key = _string(self._said)
            self._next()
            if self._said != ":" or self._kind != "mark":
                raise ValueError("a colon is missing")
            self._next()
            fields[key] = self._value(depth - 1)
            comma = self._comma()

    def _comma(self) -> bool:
        """Pass a comma, if one is next."""
        there = self._text.startswith(",", self._at)
        if there:
            self._next()
        return there


def _string(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    if len(token) > _STRING_WITH_ESCAPES_MAX:
        raise ValueError("a text with escapes is too long")
    try:
        return cast("str", ast.literal_eval(token))
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("a text has an escape that there is not") from None


def _finite(token: str) -> float:
    value = float(token)
    if value in {float("inf"), float("-inf")}:
        raise ValueError("a number is too large")
    return value
