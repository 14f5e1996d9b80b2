"""Tokens in texts: how they are written, where they may be put, and how they are read back.

A token is `[TYPE_xxxxxxxxxx]`: the type of what it stands for, and ten letters and digits of Crockford's base 32 that
only the vault can make and resolve (`sealab.skills_db.vault`). Nothing is ever replaced inside a token, and what a
token is restored to is not looked at again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..base.host_work import checked

TOKEN = re.compile(r"\[([A-Z](?:[A-Z0-9_]{0,30}[A-Z0-9])?)_([0-9a-hjkmnp-tv-z]{10})\]")

LENIENT_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:\\?[\[<({`*]){0,4} ?"
    r"([A-Za-z][A-Za-z0-9]{0,30}(?:\\?[_-][A-Za-z0-9]{1,30}){0,3})"
    r"\\?[ _-]([0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{10})"
    r" ?(?:\\?[\]>)}`*]){0,4}(?![A-Za-z0-9])"
)
"""A token as a model may have rewritten it: in another case, with other brackets or none, with Markdown's escapes."""

Edit: TypeAlias = tuple[int, int, str]
"""What is replaced, from a character to another, by what."""
_NOT_OF_TYPE = re.compile(r"[^A-Z0-9]")
_WORDY = re.compile(r"\w")
_PIECE_LEAST = 3
"""Letters and digits that must be left of a finding that overlaps another, for the rest to count as a finding."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (half open) of a text are to be replaced; they are of `type`."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A token that stands in a text; `kind` and `token` as they are looked up, whatever they were rewritten to."""

    start: int
    end: int
    kind: str
    token: str
    lenient: bool

    def names(self, kind: str) -> bool:
        """Return whether the type that stands in the text is the one in the vault."""
        return kind == self.kind if not self.lenient else _bare(kind) == _bare(self.kind)


def tokens_in(text: str) -> list[tuple[int, int]]:
    """Return where tokens stand in a text."""
    return [match.span() for match in TOKEN.finditer(text)] if "[" in text else []


def mentions_in(text: str, *, lenient: bool = False) -> list[Mention]:
    """Return the tokens of a text in order; `lenient` also finds those that were rewritten."""
    found = [
        Mention(match.start(), match.end(), match[1], match[2], lenient=False)
        for match in (TOKEN.finditer(text) if "[" in text else ())
    ]
    if lenient:
        spans = [(mention.start, mention.end) for mention in found]
        found += (
            Mention(match.start(), match.end(), match[1], match[2].lower(), lenient=True)
            for start, end in gaps(len(text), spans)
            for match in LENIENT_TOKEN.finditer(text, start, end)
        )
        found.sort(key=lambda mention: mention.start)
    return found


def disjoint(text: str, spans: Iterable[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return spans in order that overlap neither each other nor what is `taken`, and hide all that the given ones do.

    The longest comes first; what is left of one that overlaps it stays a span of its own, unless that is hardly a word.
    """
    kept: list[Span] = []
    borders = sorted(taken)
    for span in checked(sorted(spans, key=lambda each: (each.start - each.end, each.start))):
        for start, end in list(_outside(span.start, span.end, borders)):
            whole = (start, end) == (span.start, span.end)
            start, end = (start, end) if whole else _trimmed(text, start, end)  # noqa: PLW2901 - the same piece, tidied
            if start < end and (whole or len(_WORDY.findall(text, start, end)) >= _PIECE_LEAST):
                kept.append(Span(start, end, span.type))
                insort(borders, (start, end))
    return sorted(kept, key=lambda each: each.start)


def gaps(length: int, taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the stretches of a text of that length that are not taken."""
    yield from _outside(0, length, sorted(taken))


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with each `(start, end, replacement)` put in; the edits are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, replacement in edits:
        parts += (text[at:start], replacement)
        at = end
    return "".join(parts) + text[at:]


def _outside(start: int, end: int, borders: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give what of a stretch lies outside the borders, which are in order and do not overlap."""
    at = start
    position = bisect_left(borders, (start, start))
    if position and borders[position - 1][1] > start:
        position -= 1
    while position < len(borders) and borders[position][0] < end:
        low, high = borders[position]
        if at < low:
            yield at, low
        at = max(at, high)
        position += 1
    if at < end:
        yield at, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not _WORDY.match(text[start]):
        start += 1
    while start < end and not _WORDY.match(text[end - 1]):
        end -= 1
    return start, end


def _bare(kind: str) -> str:
    return _NOT_OF_TYPE.sub("", kind.upper())
