"""Dates of birth in sentences: a date in the same sentence as a word for being born, in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from ..scripts import readable
from .prefilter import has_digit, holds, lowered

_MONTHS = r"[^\W\d_]{2,16}\.?"
_DATE = re.compile(
    rf"(?<![A-Za-z0-9./-])(?:\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|\d{{1,2}}\.?(?:st|nd|rd|th)?(?: of| de)? {_MONTHS},?(?: de| del)? \d{{4}}|{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    r"|\d{4} ?[年년][ ]?\d{1,2} ?[月월][ ]?\d{1,2} ?[日일]?)(?![\d/-])"
)
# Each with the beginning that a text is searched for first, in lower case.
_STEMS = tuple(
    readable(stem)
    for stem in (
        "born", "birth", "gebor", "geburt", "geboorte", "geb.", " né", "naci", "nasc", "nato il", "nata il", "è nat", "nacque", "urodz", "doğ", "родил", "народ", "рожд", "生", "태어", "생일", "생년", "ولد", "ميلاد", "مواليد", "जन्म",
    )
)  # fmt: skip
_ASCII_STEMS = tuple(stem for stem in _STEMS if stem.isascii())
_BORN = re.compile(
    r"(?i)(?<!\w)(?:born|birth(?:day|date)?|geboren|geb\.|geburtsdatum|geburtstag|geboortedatum|geboortedag|née?s?|nació|nacid[oa]s?|nacimiento|nasceu|nascid[oa]|nascimento|nat[oa]|nascita|nacque|urodzi\w{1,4}|urodzon[yai]|urodzenia|doğ(?:du|muş|umlu|um)\w{0,4}|родил\w{1,3}|рождени\w|народи\w{1,4}|народження)(?!\w)"
    rf"|生まれ|生年月日|誕生|出生|生于|태어|생일|생년월일|(?:{readable('ولد|ولدت|ميلاد|الميلاد|مواليد|مولود|जन्म|जन्मदिन')})"
)
_SENTENCE_ENDS = re.compile(r"[.!?。！？।]\s|[\n;|{}]|(?<=[日일])[。]")
_REACH = 60
_EVENTS = re.compile(r"\d\d:\d\d")


def births(text: str) -> Iterator[Finding]:
    """Yield the dates."""
    if not has_digit(text) or not holds(lowered(text), _ASCII_STEMS if text.isascii() else _STEMS):
        return
    for born in _BORN.finditer(text):
        first, last = max(0, born.start() - _REACH), min(len(text), born.end() + _REACH)
        for end in _SENTENCE_ENDS.finditer(text, first, born.start()):
            if not _ends_in_date(text, end):
                first = end.end()
        for end in _SENTENCE_ENDS.finditer(text, born.end(), last):
            if not _ends_in_date(text, end):
                last = end.start() + 1
                break
        after = _DATE.search(text, born.end(), last)
        before = None if after else _DATE.search(text, first, born.start())
        for date in (after, before):
            if date and not _EVENTS.match(text, date.end() + 1):
                yield Finding(*date.span(), PiiType.DATE_OF_BIRTH, 0.7)


def _ends_in_date(text: str, end: re.Match[str]) -> bool:
    """Return whether a point belongs to a date or to a short word: `am 3. Mai`, `d. 3.`."""
    return text[end.start()] == "." and (
        text[end.start() - 1 : end.start()].isdigit() and text[end.end() : end.end() + 1].isalpha()
    )
