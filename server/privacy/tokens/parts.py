"""What is looked at together for personal data, and what it looks like when it is a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ....sandbox.job import Json

SMALL_CHARS = 20_000
"""What is no longer than this is looked through in a fraction of a second."""
CHARS_MAX = 8_000_000
"""What is looked through at once has no more characters than this in all of its strings, keys and numbers."""
_NUMBER_CHARS = 8
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Text:
    """A part that is text; JSON, and lines of JSON, stay that. `exact`: a known value counts however short it is."""

    text: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """A part that is a value."""

    value: Json
    exact: bool = False


Part: TypeAlias = Text | Tree
Exchange: TypeAlias = Callable[[Part], Json]
"""Takes one part and returns the text or value that stands in its place."""


def part_of(value: Json) -> Part:
    """Return a text or a value as a part."""
    return Text(value) if isinstance(value, str) else Tree(value)


def collected(value: _T, walk: Callable[[_T, Exchange], object]) -> list[Part]:
    """Return the parts that `walk` exchanges in a value, in its order."""
    parts: list[Part] = []

    def collect(part: Part) -> Json:
        parts.append(part)
        return _content(part)

    walk(value, collect)
    return parts


def replaced(value: _T, walk: Callable[[_T, Exchange], _T], contents: Iterable[Json]) -> _T:
    """Return a value with one of `contents` for each part that `walk` exchanges, in the order of `collected`."""
    waiting = iter(contents)
    return walk(value, lambda _part: next(waiting))


def is_small(parts: Sequence[Part]) -> bool:
    """Return whether parts are looked through at once; takes no longer than a few thousand values do."""
    return not is_longer(parts, SMALL_CHARS, least=_NUMBER_CHARS)


def is_longer(parts: Sequence[Part], most: int, *, least: int = 0) -> bool:
    """Return whether parts have more than `most` characters together; looks at no more of them than that takes.

    A text counts for at least `least` characters.
    """
    left = most
    waiting: list[Json] = [_content(part) for part in parts]
    while waiting:
        value = waiting.pop()
        left -= max(len(value), least) if isinstance(value, str) else _NUMBER_CHARS
        if left < 0:
            return True
        if isinstance(value, Mapping):
            waiting.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            waiting.extend(value)
    return False


def _content(part: Part) -> Json:
    return part.text if isinstance(part, Text) else part.value
