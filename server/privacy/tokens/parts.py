"""What is looked at together for personal data, and what it looks like when it is a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....sandbox.job import Json

SMALL_CHARS = 20_000
"""What is no longer than this is looked through in a fraction of a second."""
CHARS_MAX = 8_000_000
"""What is looked through at once has no more characters than this in all of its strings, keys and numbers."""
_NUMBER_CHARS = 8


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


def is_longer(parts: Sequence[Part], most: int) -> bool:
    """Return whether parts have more than `most` characters together; looks at no more of them than that takes."""
    left = most
    waiting: list[Json] = [part.text if isinstance(part, Text) else part.value for part in parts]
    while waiting:
        value = waiting.pop()
        left -= len(value) if isinstance(value, str) else _NUMBER_CHARS
        if left < 0:
            return True
        if isinstance(value, Mapping):
            waiting.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            waiting.extend(value)
    return False
