"""Telephone numbers: in international form, in the usual national forms, and in any form beside a word for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import phonenumbers

from ..findings import Finding, PiiType
from ..keys import in_words
from ..scripts import has_digit, holds

_CANDIDATE = re.compile(
    r"(?<![\w.#/+-])(?:\+(?=[\d(])|(?<!\d[ :,])(?:\((?=[\d+])|\d))[\d ().\-/\u00a0\u2010-\u2013]{5,24}\d(?:[ ,]{0,2}(?:x|ext\.?|extension|Ext\.?|#|poste|DW)[ ]?\d{1,6})?(?!\w|-(?![BFHM]\b)|\.\d)"
)
_WORD = re.compile(
    r"(?i)\b(?:phone|ph|t[eé]l|cell|mobile?|mob|call|calling|fax|contact|desk|direct|whatsapp|sms|text|dial|reach|number|answering|office|home|work|"
    r"ring|hotline|handy|ruf|nummer|telefon\w*|t[eé]l[eé]fon\w*|m[oó]vil|celular|numero|número|numéro|signal|telegram|hot ?line|mobil\w*|confirm\w*|phones|cellphone|\w{0,12}phone|answered|"
    r"risponde|répond|atiende|atende|erreichbar|bereikbaar|dzwoni\w{0,2}|numer\w{0,3}|numarası\w{0,3}|telefonu|llam[óa]\w{0,2}|chiamat[oa]|appelé|ligou|belde|angerufen|respond[ea]|nr|llamar\w{0,4}|liga|chiamar\w{0,3}|bellen|ligar|joindre|contactar\w{0,3}|zadzwo\w{1,4}|erreichen|anrufen)s?\b"
    r"\W{0,6}(?:[\w']{1,16}\W{1,4}){0,4}\Z"
)
_WORD_IN_OTHER_SCRIPT = re.compile(
    r"(?i)\b(?:номер\w{0,2}|телефон\w{0,3}|тел|моб\w{0,10}|звони\w{1,3}|नऽबर|फओन|फॲओन|ओबआइल|الرقم|هاتف\w{0,3}|رقم|الجوال|\w{0,8}(?:电话|手机|致电|電話|携帯|전화|연락처|휴대폰)\w{0,4}|\w{0,8}(?:手|携|電|电))"
    r"\W{0,6}(?:[\w']{1,16}\W{1,4}){0,4}\Z"
)
# Of what else numbers are said: invoice_number: 42183017
_OTHER_NUMBER = re.compile(
    r"(?i)\b(?:invoice|order|ticket|case|part|model|serial|item|article|contract|reference|document|tracking|shipment|batch|lot|version|line|page|booking|"
    r"factura|facture|fattura|fatura|faktura|faktury|commande|pedido|ordine|zamówienia) (?:number|nr|num[eé]ro|numer)\W{0,6}\Z"
)
_NEAR_WORD = re.compile(
    r"(?i)(?:phone|\bph|tel|cell|mobile|fax|whatsapp|call|telefon\w*|handy|mobil)\W{0,6}(?:\w{1,16}\W{1,4}){0,2}\Z"
)
_WORD_AFTER = re.compile(
    r"(?i)[ ](?:is|was)[ ](?:my|the|your|our|his|her|their)[ ](?:[a-z]{2,12}[ ]){0,2}(?:phone|cell|mobile|telephone|fax|number)\b"
)
_LINK = re.compile(
    r"(?:(?<=wa\.me/)|(?<=\?phone=)|(?<=tel:)|(?<=sms:)|(?<=signal\.me/#p/)|(?<=[?&]number=)(?=\+|%2B))\+?(?:%2B)?\d[\d().-]{6,20}"
)
_NATIONAL = tuple(
    re.compile(form)
    for form in (
        r"\(?[2-9]\d{2}\)?[-. ]{1,2}[2-9]\d{2}[-. ]\d{4}",  # North America
        r"1[-. ]\(?[2-9]\d{2}\)?[-. ][2-9]\d{2}[-. ]\d{4}",
        r"\(\d{2,5}\)[ -]?\d[\d /-]{4,11}\d",  # area code in brackets
        r"00[1-9][\d ().-]{8,18}\d",  # international prefix as dialled
        r"001-[\d-]{10,14}",
        r"0\d{2,5}[ /-]\d[\d /-]{3,9}\d",  # trunk prefix
        r"0\d{1,4}-\d{1,4}-\d{4}",  # Japan, Korea
        r"0\d(?:[ .]\d{2}){4}",  # France
        r"06[ -]\d{8}",  # mobile numbers of the Netherlands
        r"\(?0\d{2,5}\)?[ -]\d{3,4}[ -]\d{3,4}",  # United Kingdom, Australia
    )
)
# Where to ask whether a number is one, the most speakers first.
_REGIONS = "US GB DE FR ES IT IN BR NL SE PL TR AU CA MX CH FI CZ HR PT BE AT DK NO IE ZA IL JP HU RO GR SI SK AR CO CL NZ CN KR RU UA SA AE EG KZ TW".split()
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}(?!\d)|\d{1,2}[./]\d{1,2}[./]\d{2}\b"
)
_EXTENSION = re.compile(r"(?i)[ ,]{0,2}(?:x|ext|#|poste|DW)")
_IN_NUMBERS = re.compile(r"\d\s?[-,:]\s?\Z")
_LOOK_BACK = 64
_CELL_BEFORE = re.compile(r"[^\W\d](?:[,;\t]| ?\| ?)\Z")
_SURE_IN_CELL = 9
# next of kin: Jane Roe, 555 0144
_NAME_BEFORE = re.compile(r"(?:[:;(] (?:[^\W\d_][\w'’-]{0,24} ){1,3}[^\W\d_][\w'’-]{0,24},|(?:さん|様|氏)[、,]?) ?\Z")
_KEY = re.compile(
    r"((?:[^\W\d]\w{2,20}[ ](?=(?i:number|num|nr)\b))?[^\W\d][\w.-]{1,40})[\"']?\s{0,4}[:=]\s{0,4}[\"'(]?\Z"
)
_BAR_BEFORE = re.compile(r"(?:[|•·●◆/–—]|\A)\s{0,4}\Z")
_BAR_AFTER = re.compile(r"\s{0,4}(?:[|•·●◆/–—]|\Z)")


def phones(text: str) -> Iterator[Finding]:
    """Yield the telephone numbers."""
    for match in _CANDIDATE.finditer(text) if has_digit(text) else ():
        number = match[0]
        main = _EXTENSION.split(number, maxsplit=1)[0]
        digits = sum(map(str.isdigit, main))
        if not 7 <= digits <= 15 or _DATE.match(main) or main.count(".") > 4 or number.count(")") > 2:
            continue
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        after = text[match.end() : match.end() + _LOOK_BACK]
        score = _score(
            main, digits, _context(before), worded=_WORD_AFTER.match(after) is not None
        ) or 0.6 * _in_contact_line(before, after, digits)
        if score:
            end = match.end()
            if number.count("(") < number.count(")") and number.endswith(")"):
                end -= 1
            yield Finding(match.start(), end, PiiType.PHONE, score)
    for match in _LINK.finditer(text) if holds(text, _LINKS) else ():
        yield Finding(*match.span(), PiiType.PHONE, 0.8)


_LINKS = ("wa.me/", "?phone=", "tel:", "sms:", "signal.me/", "number=")


def _context(before: str) -> str:
    """Return what speaks about a number: if a key stands right before it, that key alone; else words of its line.

    A word in the cell before it does not: `mobile,7734215` is how much came by mobile.
    """
    key = _KEY.search(before)
    if key:
        return f"{in_words(key[1])}: "
    line = before.rpartition("\n")[2]
    return line if any(map(str.isalnum, line)) else before


def _in_contact_line(before: str, after: str, digits: int) -> bool:
    """Return whether a number stands alone between bars in a line with a mail address: `Ulm | jo@x.org | 0731 1234`."""
    line = before.rpartition("\n")[2], after.partition("\n")[0]
    return (
        digits >= 8
        and "@" in line[0] + line[1]
        and _BAR_BEFORE.search(line[0]) is not None
        and _BAR_AFTER.match(line[1]) is not None
    )


def _score(main: str, digits: int, before: str, *, worded: bool) -> float:
    if main.startswith("+"):
        return 0.9 if digits >= 9 or _exists(main, "") else 0.0
    worded = (
        worded
        or (_WORD.search(before) is not None and not _OTHER_NUMBER.search(before))
        or (not before.isascii() and _WORD_IN_OTHER_SCRIPT.search(before) is not None)
    )
    if any(form.fullmatch(main) for form in _NATIONAL) and not _IN_NUMBERS.search(before) and (digits >= 9 or worded):
        return 0.75
    if digits < _SURE_IN_CELL and _CELL_BEFORE.search(before):
        return 0.0
    if worded and any(_exists(main, region) for region in _REGIONS):
        return 0.7
    if (digits >= 7 and _NEAR_WORD.search(before)) or (digits >= _SURE_IN_CELL and _NAME_BEFORE.search(before)):
        return 0.6
    return 0.0


@lru_cache(maxsize=4096)
def _exists(number: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region or None))
    except phonenumbers.NumberParseException:
        return False
