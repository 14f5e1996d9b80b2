"""Finds the values of a vault in a text, however they got there.

Detection needs context: a name is a name because it stands under `customer_name`. Once it is in the vault it is found
without, wherever the same words stand again. The values are indexed by their first word, so that a text costs a few
looks per word, however many values there are. Those in memory are found: the newest of the vault, and what was met
since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ...host_work import checked
from ..token_texts import Span

_WORD = re.compile(r"\w+")
_NAME_LEAST = 2
_TEXT_LEAST = 4
_DIGITS_LEAST = 6
_SECRET_LEAST = 8
_UPPER_LEAST = 4
_PREFIX = 2
"""Letters that any value has which is found anywhere."""
_FEW = 32
"""Beginnings that are looked for one by one; of more, every place of the text is looked at."""
KNOWN_MAX = 100_000
"""Values of a scope that are found again; at least the newer half is, whatever comes."""
KNOWN_CHARS_MAX = 32_000_000
"""Characters that they have together."""
_UNSPACED = "\u2e80"
"""From this letter on scripts are written without spaces, where a word has no borders."""


class KnownValues:
    """The values of one scope, to be found again. Changed by one thread at a time; any may look meanwhile.

    Of many, the newer half at least is kept: values are in one of two generations, and when the younger is full the
    older is dropped. A value that is added again is young again.
    """

    def __init__(self, most: int = KNOWN_MAX) -> None:
        self._most = most // 2
        self._generations = (_Index(), _Index())

    def __len__(self) -> int:
        return sum(len(each.kinds) for each in self._generations)

    def add(self, text: str, kind: str) -> bool:
        """Have a value found from now on, as it is, in capitals, and escaped; return whether it was not before.

        The escapes are those of JSON and of Python.
        """
        young, old = self._generations
        if text in young.kinds:
            return False
        if len(young.kinds) >= self._most or young.chars >= KNOWN_CHARS_MAX // 2:
            young, old = _Index(), young
            self._generations = young, old
        young.kinds[text] = kind
        young.chars += len(text)
        if _stands_out(text, kind):
            for form in _forms(text):
                young.add(form, kind)
        return text not in old.kinds

    def kind_of(self, text: str) -> str | None:
        """Return the type of a value that is just this text, or None where there is none."""
        young, old = self._generations
        return young.kinds.get(text) or old.kinds.get(text)

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
        """Give where known values stand in `text[start:end]`, the longest of a generation at each place."""
        end = len(text) if end is None else end
        for generation in self._generations:
            if generation.kinds:
                yield from generation.find(text, start, end)


class _Index:
    """Values by their first words, so that looking at a word costs as much as there are lengths of values with it."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.chars = 0
        self._by_word: dict[str, _Values] = {}
        self._anywhere: dict[str, _Values] = {}

    def add(self, text: str, kind: str) -> None:
        first = _WORD.search(text)
        if first is None:
            return
        if max(text) >= _UNSPACED or (kind == "SECRET" and len(text) >= _SECRET_LEAST):
            # A secret is found with other letters beside it too: `"key" + secret`.
            self._anywhere.setdefault(text[:_PREFIX], _Values()).add(text, kind, 0)
        else:
            self._by_word.setdefault(first[0], _Values()).add(text, kind, first.start())

    def find(self, text: str, start: int, end: int) -> Iterator[Span]:
        at = start
        for word in checked(_WORD.finditer(text, start, end)) if self._by_word else ():
            values = self._by_word.get(word[0])
            if values is None or word.start() < at:
                continue
            for begin, finish, kind in values.at(text, word.start(), end):
                if begin >= at and not (finish < end and _joined(text[finish - 1], text[finish])):
                    yield Span(begin, finish, kind)
                    at = finish
                    break
        yield from self._find_anywhere(text, start, end)

    def _find_anywhere(self, text: str, start: int, end: int) -> Iterator[Span]:
        beginnings = list(self._anywhere)
        if len(beginnings) <= _FEW:
            places = (place for each in beginnings for place in _places(text, each, start, end))
        else:
            places = (place for place in checked(range(start, end)) if text[place : place + _PREFIX] in self._anywhere)
        for place in places:
            for begin, finish, kind in self._anywhere[text[place : place + _PREFIX]].at(text, place, end):
                yield Span(begin, finish, kind)


class _Values:
    """Values that begin alike: their kinds, and the lengths they have, the longest first.

    `shapes` holds a length and how many signs stand before the first word.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._shapes: tuple[tuple[int, int], ...] = ()

    def add(self, text: str, kind: str, lead: int) -> None:
        self._kinds[text] = kind
        shape = (len(text), lead)
        if shape not in self._shapes:
            self._shapes = tuple(sorted((*self._shapes, shape), reverse=True))

    def at(self, text: str, word: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Give the values whose first word begins there: from where to where they stand, and their types."""
        for length, lead in self._shapes:
            begin = word - lead
            if begin >= 0 and begin + length <= end:
                kind = self._kinds.get(text[begin : begin + length])
                if kind is not None:
                    yield begin, begin + length, kind


def _places(text: str, beginning: str, start: int, end: int) -> Iterator[int]:
    at = text.find(beginning, start, end)
    while at >= 0:
        yield at
        at = text.find(beginning, at + 1, end)


def _stands_out(text: str, kind: str) -> bool:
    """Return whether a value is one to look for in any text: `12` is not, though it be a house number."""
    if sum(map(str.isalnum, text)) < (_NAME_LEAST if kind == "PERSON" else _TEXT_LEAST):
        return False
    if not any(map(str.isalpha, text)):
        return sum(map(str.isdigit, text)) >= _DIGITS_LEAST
    return kind != "PERSON" or any(letter.isupper() or not letter.islower() for letter in text if letter.isalpha())


def _forms(text: str) -> tuple[str, ...]:
    forms = {text: None, json.dumps(text, ensure_ascii=False)[1:-1]: None}
    if not text.isascii():
        forms |= {json.dumps(text)[1:-1]: None, ascii(text)[1:-1]: None}
    if not text.isprintable():
        forms[repr(text)[1:-1]] = None
    if len(text) >= _UPPER_LEAST and (upper := text.upper()) != text:
        forms[upper] = None
    return tuple(forms)


def _joined(left: str, right: str) -> bool:
    return bool(_WORD.match(left) and _WORD.match(right))
