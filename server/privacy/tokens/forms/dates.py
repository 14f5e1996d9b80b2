"""Dates of birth however they are written: the day counts, not the form.

Names of months are those of the 16 languages in which fields are understood; orders of day and month that a text does
not settle are both taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date

_MONTHS = """
january jan february feb march mar april apr may june jun july jul august aug september sept sep october oct november nov december dec
januar jän jänner februar feber märz mär mai juni juli oktober okt dezember dez
janvier janv février févr mars avril avr juin juillet juil août septembre octobre novembre décembre déc
enero ene febrero marzo abril abr mayo junio julio agosto ago septiembre setiembre octubre noviembre diciembre dic
aprile gennaio gen febbraio maggio mag giugno giu luglio lug settembre set ottobre ott dicembre
januari februari maart mrt mei augustus december
stycznia sty styczeń lutego lut luty marca marzec kwietnia kwi kwiecień maja maj czerwca cze czerwiec lipca lip lipiec sierpnia sie sierpień września wrz wrzesień października paź październik listopada lis listopad grudnia gru grudzień
janeiro fevereiro fev março maio junho julho setembro outubro out novembro dezembro
ocak oca şubat şub mart nisan nis mayıs haziran haz temmuz tem ağustos ağu eylül eyl ekim eki kasım kas aralık ara
января янв январь февраля фев февраль марта март апреля апр апрель мая май июня июн июнь июля июл июль августа авг август сентября сен сент сентябрь октября окт октябрь ноября ноя ноябрь декабря дек декабрь
січня січ січень лютого лют лютий березня бер березень квітня кві квітень травня тра травень червня чер червень липня лип липень серпня сер серпень вересня вер вересень жовтня жов жовтень листопада листопад грудня гру грудень
जनवरी फ़रवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर सितम्बर अक्टूबर अक्तूबर नवंबर नवम्बर दिसंबर दिसम्बर
يناير فبراير مارس أبريل إبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر
"""
_BEGINNINGS = (
    "jan jän gen ene oca sty янв січ जनवरी يناير",
    "feb fév fev feber lut şub фев лют फ़रवरी फरवरी فبراير",
    "mar mär maart mrt mart март мар бер मार्च مارس",
    "apr abr avr kwi nis апр кві अप्रैल أبريل إبريل",
    "may mai maj mei mag mayıs май мая тра मई مايو",
    "jun juin giu cze haz июн чер जून يونيو",
    "jul juil lug lip tem июл лип जुलाई يوليو",
    "aug aoû ago ağu sie авг сер अगस्त أغسطس",
    "sep set wrz eyl сен вер सितंबर सितम्बर سبتمبر",
    "oct okt ott out paź eki окт жов अक्टूबर अक्तूबर أكتوبر",
    "nov lis kas ноя лис नवंबर नवम्बर نوفمبر",
    "dec dez déc dic gru ara дек гру दिसंबर दिसम्बर ديسمبر",
)


def _bare(word: str) -> str:
    parts = unicodedata.normalize("NFD", word.lower())
    kept = (
        parts
        if any("\u0900" <= each <= "\u097f" for each in parts)
        else "".join(p for p in parts if not unicodedata.combining(p))
    )
    return kept.replace("ı", "i")


def _months() -> dict[str, int]:
    found: dict[str, int] = {}
    begins = sorted(
        ((_bare(begin), number) for number, row in enumerate(_BEGINNINGS, 1) for begin in row.split()),
        key=lambda each: -len(each[0]),
    )
    for word in _MONTHS.split():
        name = _bare(word)
        number = next((number for begin, number in begins if name.startswith(begin)), None)
        if number is not None:
            found[name] = number
    return found


_MONTH_OF = _months()
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
            number = int(month) if month.isdecimal() else _MONTH_OF.get(_bare(month))
            yield from _day(said[f"y{form}"], number, said[f"d{form}"])
    if said["y6"]:
        yield from _day(said["y6"], _MONTH_OF.get(_bare(said["m6"])), said["d6"])
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
