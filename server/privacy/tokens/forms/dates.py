"""Dates of birth however they are written: the day counts, not the form.

Names of months are those of the 16 languages in which fields are understood, as `_bare` gives them; orders of day and month that a text does
not settle are both taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date

from ...detection.lists import MONTHS


def _bare(word: str) -> str:
    parts = unicodedata.normalize("NFD", word.lower())
    kept = (
        parts
        if any("\u0900" <= each <= "\u097f" for each in parts)
        else "".join(p for p in parts if not unicodedata.combining(p))
    )
    return kept.replace("ı", "i")


_NAME = r"(?P<m{0}>[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0963]){{1,14}})\.?"
_OF = r"(?:\s?(?:de|del|of|van|di)\s)?"
_DAY = r"(?P<d{0}>\d{{1,2}})(?:st|nd|rd|th|er|º|ª|\.)?"
_BETWEEN = r"[\s.,/_-]{0,3}"
_DATE = re.compile(
    r"(?<!\d)(?:"
    r"(?P<y0>\d{4})(?P<s0>\s?[-/._,年년]\s?|[-/._ ])(?P<m0>\d{1,2})(?:\s?[-/._,月월]\s?|[-/._ ])(?P<d0>\d{1,2})(?!\d)[日일]?"
    r"|(?P<a1>\d{1,2})(?P<s1>[-/._ ]|\.\s|\s?/\s?)(?P<b1>\d{1,2})(?:(?P=s1)|\.\s?)(?P<y1>\d{4})(?!\d)"
    r"|(?P<a7>\d{1,2})/(?P<b7>\d{1,2})/(?P<y7>\d{2})(?!\d)"
    r"|(?P<a8>\d{2})(?P<s8>[-.])(?P<b8>\d{2})(?P=s8)(?P<y8>\d{2})(?![\d.])"
    r"|(?P<y2>(?:1[89]|20)\d\d)(?P<m2>[01]\d)(?P<d2>[0-3]\d)(?!\d)"
    r"|(?P<a3>[0-3]\d)(?P<b3>[0-3]\d)(?P<y3>(?:1[89]|20)\d\d)(?!\d)"
    rf"|{_DAY.format(4)}{_BETWEEN}{_OF}{_NAME.format(4)}{_BETWEEN}{_OF}(?P<y4>\d{{4}})(?!\d)"
    rf"|(?P<y5>\d{{4}}){_BETWEEN}{_NAME.format(5)}{_BETWEEN}{_DAY.format(5)}(?!\d)"
    r")"
    rf"|(?<![^\W\d_]){_NAME.format(6)}{_BETWEEN}{_DAY.format(6)}{_BETWEEN}(?P<y6>\d{{4}})(?!\d)",
)


def dates_said(text: str) -> set[date]:
    """Return the days that a text may mean as a whole."""
    said = text.strip()
    found = _DATE.search(said)
    return set(_days(found)) if found else set()


def dates_in(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, set[date]]]:
    """Yield where dates stand in a text, and the days that each may mean."""
    for match in _DATE.finditer(text, start, len(text) if end is None else end):
        days = set(_days(match))
        if days:
            yield match.start(), match.end(), days


def _days(match: re.Match[str]) -> Iterator[date]:
    said = match.groupdict()
    for form in "0245":
        if said[f"y{form}"]:
            month = said[f"m{form}"]
            number = int(month) if month.isdecimal() else MONTHS.get(_bare(month))
            yield from _day(said[f"y{form}"], number, said[f"d{form}"])
    if said["y6"]:
        yield from _day(said["y6"], MONTHS.get(_bare(said["m6"])), said["d6"])
    for form in "1378":
        if said[f"y{form}"]:
            first, second = said[f"a{form}"], said[f"b{form}"]
            for month, day in ((first, second), (second, first)):
                yield from _day(said[f"y{form}"], int(month), day)


def _day(year: str, month: int | None, day: str) -> Iterator[date]:
    years = [int(year)] if len(year) > 2 else [1900 + int(year), 2000 + int(year)]
    for each in years:
        if month is not None:
            try:
                yield date(each, month, int(day))
            except ValueError:
                continue
