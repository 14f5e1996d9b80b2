"""What is looked at together for personal data, and what it looks like when it is a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...sandbox.run import Json


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
