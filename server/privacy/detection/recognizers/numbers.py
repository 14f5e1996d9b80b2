"""Numbers known by their check digits or form: payment cards, IBAN, US social security numbers, crypto wallets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import checksums
from ..findings import Finding, PiiType
from ..scripts import readable
from .prefilter import has_digit

_CARD = re.compile(r"(?<![\w.-])(?<!\d )[1-9]\d{3}(?:[ -]?\d){8,15}(?![\w-]|\.\d)")
_CARD_WORDS = re.compile(
    r"(?i)card|visa|amex|master|maestro|\bcc\b|\bpan\b|karte|tarjeta|carte|cart[ãa]o|carta|kart[aıy]?\b|karten|kaart|\bdebit|\bcredit|карт|卡|カード|카드|بطاق"
    rf"|{readable('कार्ड')}"
)
_CARD_AFTER = re.compile(
    r"(?i)[ ](?:is|was)[ ](?:(?:my|the|your|our|his|her|their|an?)[ ])?(?:[a-z]{2,12}[ ]){0,2}(?:card|visa|amex|mastercard)\b"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_SSN = re.compile(r"(?<![\w.-])(?!000|666)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-]|\.\d)")
_SEGWIT = re.compile(r"(?<![A-Za-z0-9])bc1[02-9ac-hj-np-z]{25,60}(?![A-Za-z0-9])")
_BASE58 = re.compile(r"(?<![A-Za-z0-9+/=_-])[13][1-9A-HJ-NP-Za-km-z]{25,34}(?![A-Za-z0-9+/=_-])")
_ETHEREUM = re.compile(r"(?<![A-Za-z0-9])0x[0-9a-fA-F]{40}(?![A-Za-z0-9])")
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{5}")
_SURE_CARD_DIGITS, _MASTERCARD_DIGITS = 15, 16
SECOND_SERIES = frozenset(map(str, range(2221, 2721)))
_FEWEST_DIFFERENT = 2
_SHORTEST_IBAN = 15


def cards(text: str) -> Iterator[Finding]:
    """Yield numbers of payment cards: first digit 2 to 6 (others beside such a word), 12 to 19 digits, Luhn; short ones only beside such a word."""
    for match in _CARD.finditer(text) if has_digit(text) else ():
        digits = "".join(filter(str.isdigit, match[0]))
        if len(set(digits)) < _FEWEST_DIFFERENT:
            continue
        near = (
            _CARD_WORDS.search(text, max(0, match.start() - 48), match.start()) is not None
            or _CARD_AFTER.match(text, match.end()) is not None
        )
        if digits[0] in "1789" and not (near and (digits[0] != "1" or digits.startswith("1800"))):
            continue
        if not checksums.luhn(digits):
            # Mistyped or made up, but meant as one.
            if near and _GROUPED.fullmatch(match[0]):
                yield Finding(*match.span(), PiiType.CARD, 0.7)
        elif near or _is_issued(digits) or _GROUPED.fullmatch(match[0]):
            yield Finding(*match.span(), PiiType.CARD, 0.95)


def _is_issued(digits: str) -> bool:
    """Return whether digits alone are enough: cards of 15 digits and more; of those with a 2, Mastercard's 2221 to 2720."""
    if digits[0] == "2":
        return len(digits) == _MASTERCARD_DIGITS and digits[:4] in SECOND_SERIES
    return len(digits) >= _SURE_CARD_DIGITS


def ibans(text: str) -> Iterator[Finding]:
    """Yield IBAN, in groups or not; what follows in capitals is left out until the check digits are right."""
    for match in _IBAN.finditer(text) if has_digit(text) else ():
        end = match.end()
        while end - match.start() >= _SHORTEST_IBAN:
            if checksums.iban(re.sub("[ -]", "", text[match.start() : end])):
                yield Finding(match.start(), end, PiiType.IBAN, 1.0)
                break
            end = max(text.rfind(" ", match.start(), end), text.rfind("-", match.start(), end))


def social_security_numbers(text: str) -> Iterator[Finding]:
    """Yield numbers in the form the US Social Security Administration assigns, and individual taxpayer numbers."""
    for match in _SSN.finditer(text) if has_digit(text) else ():
        yield Finding(*match.span(), PiiType.TAX_ID if match[0].startswith("9") else PiiType.SSN, 0.85)


def wallets(text: str) -> Iterator[Finding]:
    """Yield addresses of Bitcoin and Ethereum wallets."""
    for pattern, needed in ((_SEGWIT, "bc1"), (_ETHEREUM, "0x")):
        for match in pattern.finditer(text) if needed in text else ():
            yield Finding(*match.span(), PiiType.CRYPTO, 0.9)
    for match in _BASE58.finditer(text) if has_digit(text) else ():
        if checksums.base58check(match[0]) or _near_coin(text, match.start()):
            yield Finding(*match.span(), PiiType.CRYPTO, 0.8)


def _near_coin(text: str, at: int) -> bool:
    return re.search(r"(?i)btc|bitcoin|wallet|crypto", text[max(0, at - 40) : at]) is not None
