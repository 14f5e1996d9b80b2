"""The texts of tests/data/privacy, with what is marked in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "data" / "privacy"
_MARK = re.compile(r"⟦([A-Z_]+):([^⟧]*)⟧", re.DOTALL)


@dataclass(frozen=True)
class MarkedText:
    title: str
    text: str
    marks: list[tuple[int, int, str]]


def read_marked(name: str) -> list[MarkedText]:
    """Read `tests/data/privacy/<name>`; marks are (start, end, type) in the text without them."""
    _, *documents = (_FOLDER / name).read_text(encoding="utf-8").split("====\n")
    return [_read(*document.split("\n", 1)) for document in documents]


def _read(title: str, source: str) -> MarkedText:
    text, marks, at = "", [], 0
    for mark in _MARK.finditer(source):
        text += source[at : mark.start()]
        marks.append((len(text), len(text) + len(mark[2]), mark[1]))
        text += mark[2]
        at = mark.end()
    return MarkedText(title, text + source[at:], marks)
