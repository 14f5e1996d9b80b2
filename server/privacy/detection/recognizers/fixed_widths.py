"""Numbers with check digits that touch others, as in records of fixed width: IBANs, and payment cards in columns.

What stands within a longer run is a number by chance, unless it has more than its check digits: an IBAN has the form of
its country, and cards stand at one place in all of several lines, or beside a date or an amount with leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from .. import checksums
from ..findings import Finding, PiiType
from .numbers import SECOND_SERIES

_FORMS = (
    "AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BR23n1a1c CH5n12c CR18n CY8n16c CZ20n DE18n DK14n "
    "DO4c20n EE16n ES20n FI14n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c GL14n GR7n16c GT20c HR17n HU24n IE4a14n IL19n "
    "IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c LI5n12c LT16n LU3n13c LV4a13c MC10n11c2n MD20c ME18n MK3n10c2n "
    "MR23n MT4a5n18c MU4a19n3a NL4a10n NO11n PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n SA2n18c SE20n SI15n SK20n "
    "SM1a10n12c TN20n TR6n16c UA6n19c VG4a16n XK16n"
)
"""What follows the check digits, by country: ISO 13616, IBAN registry."""
_LETTERS = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
_FORM_OF = {
    form[:2]: re.compile("".join(f"{_LETTERS[kind]}{{{count}}}" for count, kind in re.findall(r"(\d+)([nac])", form)))
    for form in _FORMS.split()
}
_BEGINNING = re.compile(r"[A-Z]{2}[0-9]{2}(?=[A-Z0-9]{11})")
_DIGITS = re.compile(r"\d{15}")
_DATE = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_BESIDE = re.compile(
    rf"(?<![\d.])(?:(?P<first>[4-6]\d{{15}})(?:{_DATE}|0{{4}}\d{{2,12}})|{_DATE}(?P<last>[4-6]\d{{15}}))(?!\d|\.\d)"
)
"""A number of 16 digits before or after a date, or before an amount with leading zeros."""
_LINES_LEAST, _DIFFERENT_LEAST = 6, 5
"""Of one line in ten any number has the check digit of a card."""
_WIDTH_MAX = 2_000
_CARD_DIGITS = (16, 15)


def fixed_widths(text: str) -> Iterator[Finding]:
    """Yield IBANs and cards that touch other digits and letters."""
    for match in _BEGINNING.finditer(text):
        form = _FORM_OF.get(match[0][:2])
        rest = None if form is None else form.match(text, match.end())
        if rest is not None and checksums.iban(match[0] + rest[0]):
            yield Finding(match.start(), rest.end(), PiiType.IBAN, 0.95)
    if _DIGITS.search(text):
        yield from _cards_in_columns(text)
        for match in _BESIDE.finditer(text):
            low, high = match.span(match.lastgroup or 0)
            if _is_card(text[low:high]):
                yield Finding(low, high, PiiType.CARD, 0.85)


def _cards_in_columns(text: str) -> Iterator[Finding]:
    start = 0
    for width, group in groupby(text.split("\n"), key=len):
        lines = list(group)
        if len(lines) >= _LINES_LEAST and width <= _WIDTH_MAX:
            for low, high in _columns(lines):
                for number in range(len(lines)):
                    at = start + number * (width + 1)
                    yield Finding(at + low, at + high, PiiType.CARD, 0.9)
        start += len(lines) * (width + 1)


def _columns(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where cards stand in all of some lines of one width."""
    for match in re.finditer(r"\d{15,}", lines[0]):
        for low in range(match.start(), match.end() - min(_CARD_DIGITS) + 1):
            for length in _CARD_DIGITS:
                there = (line[low : low + length] for line in lines)
                cells: set[str] = set()
                if all(len(cell) == length and _is_card(cell) and cells.add(cell) is None for cell in there):
                    if len(cells) >= _DIFFERENT_LEAST:
                        yield low, low + length
                    break


def _is_card(digits: str) -> bool:
    if not digits.isdecimal() or not checksums.luhn(digits):
        return False
    if len(digits) == min(_CARD_DIGITS):
        return digits[:2] in {"34", "37"}
    return digits[0] in "456" or "51" <= digits[:2] <= "55" or digits[:4] in SECOND_SERIES
