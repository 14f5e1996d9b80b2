"""The leaves of JSON and of separated values (RFC 4180): what is personal is found in them, and put back into them.

A number of JSON that is personal, wholly or in part, becomes a token as a whole, which is a string; that it was a
number is remembered with the value. Keys are leaves too. The cells of a table are looked at under their headings. In a
text, everything between the leaves stays as it was written.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, cast

from ....sandbox.job import Json
from ...base.errors import PrivacyFailed
from ...base.host_work import checkpoint

_LEXEME_OR_NOT = re.compile(
    r'(?<![^"{}\[\],:\d-])[^"{}\[\],:\d-]*(?:((?<!\\)"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|["-]|\Z)',
    re.DOTALL,
)
"""What stands before a lexeme that matters, and that lexeme; or a quote without its end, a lone minus, or the end."""
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_CHARS_PER_CHECK = 4096


class LeafKind(Enum):
    """What a leaf is."""

    STRING = "string"
    KEY = "key"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text to look at: the keys that lead to it, and whether it is a string, a key or a number written out."""

    path: tuple[str, ...]
    text: str
    kind: LeafKind = LeafKind.STRING


@dataclass(frozen=True, slots=True)
class WrittenLeaf:
    """A leaf in a text of JSON: the source between `start` and `end`, quotes included, says it."""

    leaf: Leaf
    start: int
    end: int


def leaves_of(value: Json) -> Iterator[Leaf]:
    """Give the strings, keys and numbers of a value in the order of its JSON; `rebuilt` expects the same order."""
    yield from _walk(value, ())


def rebuilt(value: Json, leaves: Iterator[Json]) -> Json:
    """Return the value with the next of `leaves` in each place of one; for a number None says that it stays.

    Raises `PrivacyFailed` where two keys of an object become one.
    """
    if isinstance(value, Mapping):
        made: dict[str, Json] = {}
        for inner in value.values():
            name = cast("str", next(leaves))
            if name in made:
                raise PrivacyFailed("Two keys of an object are tokens of one value. Restore them one by one.")
            made[name] = rebuilt(inner, leaves)
        return made
    if isinstance(value, str):
        return next(leaves)
    if isinstance(value, Sequence):
        return [rebuilt(inner, leaves) for inner in value]
    if _is_leaf_number(value):
        new = next(leaves)
        return value if new is None else new
    return value


def is_json(text: str) -> bool:
    """Return whether a text is one object or array of JSON."""
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
        return Scanner().leaves(text)
    lines = text.splitlines(keepends=True)
    if len(lines) < 2 or not all(is_json(line) or not line.strip() for line in lines):  # noqa: PLR2004 - several
        return None
    return Scanner().leaves(text)


class Notation(Protocol):
    """How a text writes its leaves."""

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a leaf begins in its source, and where the last ends."""
        ...

    def escaped(self, source: str, text: str) -> str:
        """Return a text as it stands within the source of a leaf."""
        ...

    def tidied(self, source: str) -> str:
        """Return the source of a leaf that something was put into, made valid again."""
        ...


class PlainNotation:
    """A text that is a leaf as it is."""

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character begins, and where the last ends."""
        return range(len(source) + 1)

    def escaped(self, _source: str, text: str) -> str:
        """Return a text as it is."""
        return text

    def tidied(self, source: str) -> str:
        """Return the source as it is."""
        return source


PLAIN = PlainNotation()


class JsonNotation(PlainNotation):
    """How JSON writes its leaves."""

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a string begins in its source, quotes included, and where the last ends."""
        if "\\" not in source:
            return range(1, len(source))
        return [*(match.start() for match in _ESCAPE.finditer(source, 1, len(source) - 1)), len(source) - 1]

    def escaped(self, _source: str, text: str) -> str:
        """Return a text as it stands between the quotes of a string."""
        return json.dumps(text, ensure_ascii=False)[1:-1]


class Scanner:
    """Finds the leaves of JSON texts that follow one another, in pieces if need be; it does not judge them."""

    def __init__(self) -> None:
        self.notation = JsonNotation()
        self._path: list[str] = []
        self._objects: list[bool] = []
        self._awaits_key = False

    def leaves(self, text: str) -> list[WrittenLeaf]:
        """Return the leaves of a text."""
        return self.feed(text, final=True)[0]

    def feed(self, text: str, *, final: bool) -> tuple[list[WrittenLeaf], int]:
        """Return the leaves of the next piece, and how much of it they take; the rest begins the piece after that.

        `final` says that nothing follows.
        """
        found: list[WrittenLeaf] = []
        at = next_check = 0
        while at < len(text) and (match := _LEXEME_OR_NOT.match(text, at)):
            lexeme = match[1]
            if not final and (
                (lexeme is None and match[0].endswith('"'))
                or (match.end() + 2 >= len(text) and (lexeme is None or lexeme[0] not in '{}[]:,"'))
            ):
                break  # a string without its end, or a number that may go on: `-2.`
            if lexeme is not None:
                leaf = self._leaf(lexeme)
                if leaf is not None:
                    found.append(WrittenLeaf(leaf, match.start(1), match.end(1)))
            at = match.end()
            if at >= next_check:
                checkpoint()
                next_check = at + _CHARS_PER_CHECK
        return found, len(text) if final else at

    def _leaf(self, lexeme: str) -> Leaf | None:
        """Take in one lexeme, and return the leaf that it is, if it is one."""
        path = self._path
        if lexeme[0] == '"':
            text = json_said(lexeme)
            if self._awaits_key and path:
                path[-1] = text
                return Leaf((), text, LeafKind.KEY)
            return Leaf(tuple(path), text)
        if lexeme in "{[":
            self._objects.append(lexeme == "{")
            path.append("0")
            self._awaits_key = self._objects[-1]
        elif lexeme in "}]":
            if path:
                self._objects.pop()
                path.pop()
            self._awaits_key = False
        elif lexeme == ",":
            self._awaits_key = bool(path) and self._objects[-1]
            if path and not self._awaits_key and path[-1].isdecimal():
                path[-1] = str(int(path[-1]) + 1)
        elif lexeme == ":":
            self._awaits_key = False
        else:
            return Leaf(tuple(path), lexeme, LeafKind.NUMBER)  # of any length: a known one may stand in it
        return None


def _walk(value: Json, path: tuple[str, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield Leaf((), key, LeafKind.KEY)
            yield from _walk(inner, (*path, key))
    elif isinstance(value, str):
        yield Leaf(path, value)
    elif isinstance(value, Sequence):
        for position, inner in enumerate(value):
            yield from _walk(inner, (*path, str(position)))
    elif _is_leaf_number(value):
        yield Leaf(path, json.dumps(value), LeafKind.NUMBER)


def _is_leaf_number(value: Json) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def json_said(lexeme: str) -> str:
    """Return what a string says, as JSON writes it."""
    if "\\" not in lexeme:
        return lexeme[1:-1]
    try:
        return str(json.loads(lexeme, strict=False))
    except ValueError:
        return lexeme[1:-1]  # not JSON, though it looks like it: taken as it is written


def _as_written(number: str) -> str:
    return number


_SEPARATORS = ",;\t|"


class TableScanner:
    """Finds the cells of a table, in pieces if need be. The first row gives the headings."""

    def __init__(self, separator: str | None = None, headings: Sequence[str] = ()) -> None:
        """Begin a table, or go on with one whose separator and headings are known."""
        self._separator = separator
        self._headings = list(headings)
        self._row = 1 if headings else 0
        self._column = 0

    def feed(self, text: str, *, final: bool) -> tuple[list[WrittenLeaf], int]:
        """Return the cells of the next piece, and how much of it they take; `final` says that nothing follows."""
        if self._separator is None:
            if not final and "\n" not in text:
                return [], 0
            self._separator = separator_of(text.partition("\n")[0])
        cell = cell_pattern(self._separator)
        found: list[WrittenLeaf] = []
        at = 0
        while at < len(text) and (match := cell.match(text, at)):
            if not final and match.end() + 1 >= len(text):
                break  # the cell, or the end of the line, may go on
            start, end = match.span(1)
            found.append(WrittenLeaf(Leaf(self._path(), cell_said(match[1])), start, end))
            if self._row == 0:
                self._headings.append(cell_said(match[1]).strip())
            if match[2] == self._separator:
                self._column += 1
            else:
                self._row += 1
                self._column = 0
            at = match.end()
        return found, len(text) if final else at

    @property
    def notation(self) -> TableNotation:
        """How the table writes its cells, as far as it has been seen."""
        return TableNotation(self._separator or _SEPARATORS[0])

    def _path(self) -> tuple[str, ...]:
        if self._row == 0 or self._column >= len(self._headings):
            return ()
        return (str(self._row - 1), self._headings[self._column])


_HEADING = re.compile(r"\"?[^\W\d][\w .()/#'-]{0,40}\"?")


def is_table(text: str) -> bool:
    """Return whether a text is rows of as many cells each, below a line of headings."""
    first, _, others = text.partition("\n")
    separator = separator_of(first)
    headings = first.rstrip("\r").split(separator)
    if len(headings) < 2 or not others.strip() or not all(map(_HEADING.fullmatch, headings)):  # noqa: PLR2004 - several
        return False
    width, cells = len(headings), 0
    for match in cell_pattern(separator).finditer(others):
        cells += 1
        if match[2] != separator:
            if cells != width and (cells, match[1]) != (1, ""):
                return False
            cells = 0
    return True


class TableNotation(PlainNotation):
    """How separated values write their cells."""

    def __init__(self, separator: str) -> None:
        self.separator = separator

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a cell begins in its source, and where the last ends."""
        if not _is_quoted(source):
            return super().offsets(source)
        return [*(match.start() for match in _QUOTED_CHARACTER.finditer(source, 1, len(source) - 1)), len(source) - 1]

    def escaped(self, source: str, text: str) -> str:
        """Return a text as it stands within the source of a cell."""
        return text.replace('"', '""') if _is_quoted(source) else text

    def tidied(self, source: str) -> str:
        """Return the source of a cell, in quotes if what was put into it would part it."""
        if _is_quoted(source) or not any(mark in source for mark in (self.separator, '"', "\n", "\r")):
            return source
        return '"' + source.replace('"', '""') + '"'


_QUOTED_CHARACTER = re.compile(r'""|[^"]', re.DOTALL)


def cell_pattern(separator: str) -> re.Pattern[str]:
    """Return an expression for one cell and the mark after it."""
    mark = re.escape(separator)
    return re.compile(rf'("(?:[^"]|"")*"(?=[{mark}\r\n]|\Z)|[^{mark}\r\n]*)({mark}|\r\n|\r|\n|\Z)')


def separator_of(first_line: str) -> str:
    """Return which separator the headings use the most."""
    bare = re.sub(r'"[^"]*"', "", first_line)
    return max(_SEPARATORS, key=bare.count)


def _is_quoted(source: str) -> bool:
    return len(source) > 1 and source[0] == source[-1] == '"'


def cell_said(source: str) -> str:
    """Return what a cell says."""
    return source[1:-1].replace('""', '"') if _is_quoted(source) else source
