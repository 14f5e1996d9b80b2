"""Finds the values that a vault knows in a text, however they got there.

Detection needs context: a name is a name because it stands under `customer_name`. Once it is in the vault it is found
without, wherever the same words stand again. The values are indexed by their first word, so that a text costs one look
per word, however many values there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from ..host_work import checked
from .tokens import Span

_WORD = re.compile(r"\w+")
_NAME_LEAST = 2
_TEXT_LEAST = 4
_DIGITS_LEAST = 6
_SECRET_LEAST = 8
_UPPER_LEAST = 4
_UNSPACED = "\u2e80"
"""From this letter on scripts are written without spaces, where a word has no borders."""


class KnownValues:
    """The values of one scope, to be found again. Changed by one thread at a time; looking changes nothing."""

    def __init__(self) -> None:
        self._by_first_word: dict[str, list[tuple[str, int, str]]] = {}
        self._anywhere: dict[str, str] = {}
        self._kinds: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, text: str, kind: str) -> None:
        """Have a value found from now on, as it is, in capitals, and with the escapes of JSON and of Python."""
        if text in self._kinds:
            return
        self._kinds[text] = kind
        if not _stands_out(text, kind):
            return
        for form in _forms(text):
            self._index(form, kind)

    def kind_of(self, text: str) -> str | None:
        """Return the type of a value that is just this text, or None where there is none."""
        return self._kinds.get(text)

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
        """Give where known values stand in `text[start:end]`, the longest at each place."""
        end = len(text) if end is None else end
        index = self._by_first_word
        if index:
            at = start
            for word in checked(_WORD.finditer(text, start, end)):
                candidates = index.get(word[0])
                if candidates is None or word.start() < at:
                    continue
                for value, lead, kind in candidates:
                    begin = word.start() - lead
                    finish = begin + len(value)
                    if (
                        begin >= at
                        and finish <= end
                        and text.startswith(value, begin)
                        and not (finish < end and _joined(text[finish - 1], text[finish]))
                    ):
                        yield Span(begin, finish, kind)
                        at = finish
                        break
        for value, kind in self._anywhere.items():
            begin = text.find(value, start, end)
            while begin >= 0:
                yield Span(begin, begin + len(value), kind)
                begin = text.find(value, begin + len(value), end)

    def _index(self, text: str, kind: str) -> None:
        first = _WORD.search(text)
        if first is None:
            return
        if max(text) >= _UNSPACED or (kind == "SECRET" and len(text) >= _SECRET_LEAST):
            self._anywhere[text] = kind  # a secret is found with other letters beside it too: `"key" + secret`
            return
        values = self._by_first_word.setdefault(first[0], [])
        values.append((text, first.start(), kind))
        values.sort(key=lambda each: -len(each[0]))


def _stands_out(text: str, kind: str) -> bool:
    """Tell whether a value is one to look for in any text: `12` is not, though it be a house number."""
    if sum(map(str.isalnum, text)) < (_NAME_LEAST if kind == "PERSON" else _TEXT_LEAST):
        return False
    if not any(map(str.isalpha, text)):
        return sum(map(str.isdigit, text)) >= _DIGITS_LEAST
    return kind != "PERSON" or any(letter.isupper() or not letter.islower() for letter in text if letter.isalpha())


@lru_cache(maxsize=4096)
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
