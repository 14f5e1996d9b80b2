"""What was found at one place of a text is looked for at all others: a name from a field, again in a sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .findings import Finding, PiiType
from .scripts import HANGUL, UNSPACED

_WORD = re.compile(r"\w+")
_NAME_PART = re.compile(r"[^\W\d_][\w'’-]{1,40}")
_SWEPT = frozenset(
    (
        PiiType.EMAIL, PiiType.PHONE, PiiType.CARD, PiiType.IBAN, PiiType.SSN, PiiType.PASSPORT, PiiType.DRIVING_LICENCE,
        PiiType.BANK, PiiType.TAX_ID, PiiType.NATIONAL_ID, PiiType.MEDICAL, PiiType.SECRET, PiiType.ADDRESS, PiiType.USERNAME,
    )
)  # fmt: skip
_SHORTEST, _SHORTEST_NAME = 5, 3
_SHORTEST_WIDE, _FIRST_WIDE = 2, "\u3041"  # a Chinese name may have two letters
_SURE_NAME = 0.6
_SCORE = 0.6
# Parts of names that are words of their own: alone they name nobody.
_ORDINARY = frozenset(
    "will may mark grant rose hope joy grace art bill rich van von the and long young black white brown green king page price early case day "
    "park hill wood stone field lane street ever best good way june april august sun key love der den del dos iii inc dev test user name "
    "mail phone data admin new old first last client customer manager team support sales bank office north south east west".split()
)


def same_values(text: str, found: Sequence[Finding]) -> list[Finding]:
    """Return further findings, none overlapping those given: the same values, and the single parts of people's names.

    Looks each word of the text up once, so that many values cost no more than few.
    """
    values: dict[str, str] = {}
    for finding in found:
        value = text[finding.start : finding.end]
        if finding.type == PiiType.PERSON:
            # One word in small letters may also be a variable.
            if finding.score >= _SURE_NAME and not (value.islower() and value.isalpha()):
                values.update(dict.fromkeys(_names(value), finding.type))
        elif finding.type in _SWEPT and len(value) >= _SHORTEST and not (value.isalpha() and value.islower()):
            values[value] = finding.type
    taken = bytearray(len(text))
    for finding in found:
        taken[finding.start : finding.end] = b"\x01" * (finding.end - finding.start)
    if len(values) <= _FEW:
        values = {value: kind for value, kind in values.items() if _stands_free(text, value, taken)}
    by_first_word: dict[str, list[str]] = defaultdict(list)
    for value in values:
        if first := _WORD.match(value):
            by_first_word[first[0]].append(value)
    for candidates in by_first_word.values():
        candidates.sort(key=len, reverse=True)
    more = list(_unspaced(text, values, taken))
    for word in _WORD.finditer(text) if by_first_word else ():
        start = word.start()
        for value in by_first_word.get(word[0], ())[:_MOST_CANDIDATES]:
            end = start + len(value)
            if text.startswith(value, start) and not _goes_on(text, end) and taken.find(1, start, end) < 0:
                more.append(Finding(start, end, values[value], _SCORE))
                taken[start:end] = b"\x01" * len(value)
                break
    return more


def _unspaced(text: str, values: Mapping[str, str], taken: bytearray) -> Iterator[Finding]:
    """Yield values that begin in a script without spaces, wherever they stand: there no word begins or ends."""
    by_start: dict[str, list[str]] = defaultdict(list)
    for value in values:
        if len(value) > 1 and _UNSPACED.match(value):
            by_start[value[:2]].append(value)
    if not by_start:
        return
    for candidates in by_start.values():
        candidates.sort(key=len, reverse=True)
    for letter in _UNSPACED.finditer(text):
        start = letter.start()
        for value in by_start.get(text[start : start + 2], ())[:_MOST_CANDIDATES]:
            end = start + len(value)
            if text.startswith(value, start) and taken.find(1, start, end) < 0:
                yield Finding(start, end, values[value], _SCORE)
                taken[start:end] = b"\x01" * len(value)
                break


_UNSPACED = re.compile(f"[{UNSPACED}{HANGUL}]")
_MOST_CANDIDATES = 200
_FEW = 40
"""So many values are looked for one by one before the words of the text are: mostly none stands anywhere else."""


def _stands_free(text: str, value: str, taken: bytearray) -> bool:
    """Return whether a value stands anywhere where nothing is found yet."""
    at = text.find(value)
    while at >= 0:
        last = taken.rfind(1, at, at + len(value))
        if last < 0:
            return True
        # Places may overlap: the next that is free begins behind what is found here.
        at = text.find(value, last + 1)
    return False


def _names(value: str) -> list[str]:
    """Return a name and those of its parts that name somebody alone."""
    parts = [part[0] for part in _NAME_PART.finditer(value)]
    alone = [p for p in parts if len(p) >= _SHORTEST_NAME and p[0].isupper() and p.lower() not in _ORDINARY]
    if value.lower() in _ORDINARY:
        return []
    return [value, *alone] if len(value) >= (_SHORTEST_NAME if value[0] < _FIRST_WIDE else _SHORTEST_WIDE) else alone


def _goes_on(text: str, end: int) -> bool:
    return end < len(text) and (text[end].isalnum() or text[end] == "_")
