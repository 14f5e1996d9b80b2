"""The leaves of JSON: what is personal is looked for in them, and put back into them, so that JSON stays JSON.

A number that is personal, wholly or in part, becomes a token as a whole, which is a string; that it was a number is
remembered with the value. Keys are leaves too. In a text, everything between the leaves stays as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ...sandbox.run import Json

_LEXEME = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_NUMBER_MAX = 10**40
"""No number as large as this is personal."""
_NUMBER_CHARS_MAX = 40


class Kind(Enum):
    """What a leaf is."""

    STRING = "string"
    KEY = "key"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text to look at: the keys that lead to it, and whether it is a string, a key or a number written out."""

    path: tuple[str, ...]
    text: str
    kind: Kind = Kind.STRING


@dataclass(frozen=True, slots=True)
class WrittenLeaf:
    """A leaf in a text of JSON: the source between `start` and `end`, quotes included, says it."""

    leaf: Leaf
    start: int
    end: int


def leaves_of(value: Json) -> Iterator[Leaf]:
    """Give the strings, keys and numbers of a value in the order of its JSON; `rebuilt` expects the same order."""
    yield from _walk(value, ())


def rebuilt(value: Json, texts: Iterator[tuple[str, bool]]) -> Json:
    """Return the value with each leaf replaced by the next `(text, changed)`; what did not change is as it was.

    Raises `ValueError` where two keys of an object would become one.
    """
    if isinstance(value, Mapping):
        made: dict[str, Json] = {}
        for inner in value.values():
            name, _changed = next(texts)
            if name in made:
                raise ValueError("two keys would become the same token")
            made[name] = rebuilt(inner, texts)
        return made
    if isinstance(value, str):
        return next(texts)[0]
    if isinstance(value, Sequence):
        return [rebuilt(inner, texts) for inner in value]
    if _is_leaf_number(value):
        text, changed = next(texts)
        return text if changed else value
    return value


def is_json(text: str) -> bool:
    """Tell whether a text is one object or array of JSON."""
    stripped = text.strip(" \t\r\n")
    if not (stripped[:1] in {"{", "["} and stripped[-1:] in {"}", "]"}):
        return False
    try:
        json.loads(stripped, parse_int=_as_written, parse_float=_as_written)
    except (ValueError, RecursionError):
        return False
    return True


def written_leaves(text: str) -> list[WrittenLeaf] | None:
    """Return the leaves of a text that is JSON, or whose lines are, each an object or array; else None."""
    if is_json(text):
        return list(_scan(text, 0))
    lines = text.splitlines(keepends=True)
    if len(lines) < 2 or not all(is_json(line) or not line.strip() for line in lines):  # noqa: PLR2004 - several
        return None
    found: list[WrittenLeaf] = []
    offset = 0
    for line in lines:
        found.extend(_scan(line, offset))
        offset += len(line)
    return found


def source_offsets(source: str) -> Sequence[int]:
    """Return where each character of a JSON string begins in its source, quotes included, and where the last ends."""
    if "\\" not in source:
        return range(1, len(source))
    return [*(match.start() for match in _ESCAPE.finditer(source, 1, len(source) - 1)), len(source) - 1]


def escaped(text: str) -> str:
    """Return a text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _walk(value: Json, path: tuple[str, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield Leaf((), key, Kind.KEY)
            yield from _walk(inner, (*path, key))
    elif isinstance(value, str):
        yield Leaf(path, value)
    elif isinstance(value, Sequence):
        for position, inner in enumerate(value):
            yield from _walk(inner, (*path, str(position)))
    elif _is_leaf_number(value):
        yield Leaf(path, json.dumps(value), Kind.NUMBER)


def _is_leaf_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _NUMBER_MAX


def _scan(text: str, offset: int) -> Iterator[WrittenLeaf]:
    """Give the leaves of a text that is known to be JSON."""
    path: list[str] = []
    objects: list[bool] = []
    awaits_key = False
    for match in _LEXEME.finditer(text):
        lexeme = match[0]
        start, end = match.start() + offset, match.end() + offset
        if lexeme[0] == '"':
            said = str(json.loads(lexeme, strict=False))
            if awaits_key:
                yield WrittenLeaf(Leaf((), said, Kind.KEY), start, end)
                path[-1] = said
            else:
                yield WrittenLeaf(Leaf(tuple(path), said), start, end)
        elif lexeme in "{[":
            objects.append(lexeme == "{")
            path.append("0")
            awaits_key = objects[-1]
        elif lexeme in "}]":
            objects.pop()
            path.pop()
            awaits_key = False
        elif lexeme == ",":
            awaits_key = objects[-1]
            if not awaits_key:
                path[-1] = str(int(path[-1]) + 1)
        elif lexeme == ":":
            awaits_key = False
        elif len(lexeme) <= _NUMBER_CHARS_MAX:
            yield WrittenLeaf(Leaf(tuple(path), lexeme, Kind.NUMBER), start, end)


def _as_written(number: str) -> str:
    return number
