"""Numbers known by their check digits or form: payment cards, IBAN, US social security numbers, wallets, IP and MAC."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby

from ..findings import Finding, PiiType
from ..scripts import has_digit, readable

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BITCOIN_BYTES, _CHECK_BYTES = 25, 4
_IBAN_LENGTHS = range(15, 35)
_ROUTING_DIGITS = 9


def luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of ISO/IEC 7812-1 annex B, as on payment cards."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value // 10 + value % 10
    return total % 10 == 0


def iban(number: str) -> bool:
    """Return whether an IBAN without separators has the check digits of ISO 13616 (mod 97-10 of ISO/IEC 7064)."""
    if len(number) not in _IBAN_LENGTHS or not (number.isascii() and number.isalnum()):
        return False
    return int("".join(str(int(character, 36)) for character in number[4:] + number[:4])) % 97 == 1


def routing(digits: str) -> bool:
    """Return whether nine digits are a routing number of the American Bankers Association, by its 3-7-1 weights."""
    return (
        len(digits) == _ROUTING_DIGITS
        and digits != "0" * _ROUTING_DIGITS
        and sum(int(digit) * weight for digit, weight in zip(digits, (3, 7, 1) * 3, strict=True)) % 10 == 0
    )


def _base58check(address: str) -> bool:
    """Return whether a Bitcoin address of the old form carries its own checksum (double SHA-256)."""
    value = 0
    for character in address:
        place = _BASE58.find(character)
        if place < 0:
            return False
        value = value * 58 + place
    try:
        decoded = value.to_bytes(_BITCOIN_BYTES, "big")
    except OverflowError:
        return False
    return sha256(sha256(decoded[:-_CHECK_BYTES]).digest()).digest()[:_CHECK_BYTES] == decoded[-_CHECK_BYTES:]


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
_BITCOIN = re.compile(r"(?<![A-Za-z0-9+/=_-])[13][1-9A-HJ-NP-Za-km-z]{25,34}(?![A-Za-z0-9+/=_-])")
_ETHEREUM = re.compile(r"(?<![A-Za-z0-9])0x[0-9a-fA-F]{40}(?![A-Za-z0-9])")
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{5}")
_SURE_CARD_DIGITS, _MASTERCARD_DIGITS = 15, 16
_SECOND_SERIES = frozenset(map(str, range(2221, 2721)))
_FEWEST_DIFFERENT = 2
_SHORTEST_IBAN, _CUT_IBAN = 15, 10
_FORMS = (
    "AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BR23n1a1c CH5n12c CR18n CY8n16c CZ20n DE18n DK14n "
    "DO4c20n EE16n ES20n FI14n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c GL14n GR7n16c GT20c HR17n HU24n IE4a14n IL19n "
    "IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c LI5n12c LT16n LU3n13c LV4a13c MC10n11c2n MD20c ME18n MK3n10c2n "
    "MR23n MT4a5n18c MU4a19n3a NL4a10n NO11n PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n SA2n18c SE20n SI15n SK20n "
    "SM1a10n12c TN20n TR6n16c UA6n19c VG4a16n XK16n"
)
"""What follows the check digits, by country: ISO 13616, IBAN registry."""
_COUNT = {form[:2]: sum(map(int, re.findall(r"(\d+)[nac]", form))) for form in _FORMS.split()}
_SPELLED = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})[ -]?\d{2}(?=[ -]?[A-Za-z0-9]{4})")
_REST = {count: re.compile(rf"(?:[ -]?[A-Za-z0-9]){{{count}}}(?![A-Za-z0-9])") for count in set(_COUNT.values())}
_FORM_LETTERS = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
_FORM_OF = {
    form[:2]: re.compile(
        "".join(f"{_FORM_LETTERS[kind]}{{{count}}}" for count, kind in re.findall(r"(\d+)([nac])", form))
    )
    for form in _FORMS.split()
}
_NAMED_IBAN = re.compile(r"(?:IBAN|Iban|iban)\W{0,4}([A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){6,30})")
_BY_DIGITS = re.compile(r"[A-Z]{2}\d{2}(?:[ -]?[A-Z]{4}(?=[ -]?\d))?(?:[ -]?\d[A-Z0-9]{0,3})*")
"""As much of it as has digits."""
_BEGINNING = re.compile(r"[A-Z]{2}[0-9]{2}(?=[A-Z0-9]{11})")
_LONG = re.compile(r"\d{15}")
_DATE = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_BESIDE = re.compile(
    rf"(?<![\d.])(?:(?P<first>[4-6]\d{{15}})(?:{_DATE}|0{{4}}\d{{2,12}})|(?:{_DATE}|0{{2,16}})(?P<last>[4-6]\d{{15}}))(?!\d|\.\d)"
)
"""A number of 16 digits before or after a date, before an amount with leading zeros, or behind zeros alone."""
_LINES_LEAST, _DIFFERENT_LEAST = 6, 5
"""Of one line in ten any number has the check digit of a card."""
_WIDTH_MAX = 2_000
_CARD_DIGITS = (16, 15)


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
        if not luhn(digits):
            # Mistyped or made up, but meant as one.
            if near and _GROUPED.fullmatch(match[0]):
                yield Finding(*match.span(), PiiType.CARD, 0.7)
        elif near or _is_issued(digits) or _GROUPED.fullmatch(match[0]):
            yield Finding(*match.span(), PiiType.CARD, 0.95)


def _is_issued(digits: str) -> bool:
    """Return whether digits alone are enough: cards of 15 digits and more; of those with a 2, Mastercard's 2221 to 2720."""
    if digits[0] == "2":
        return len(digits) == _MASTERCARD_DIGITS and digits[:4] in _SECOND_SERIES
    if digits[0] == "3" and digits[:2] not in {"34", "37"}:
        return len(digits) >= _MASTERCARD_DIGITS  # of 15 digits: those of telephones themselves
    return len(digits) >= _SURE_CARD_DIGITS


def ibans(text: str) -> Iterator[Finding]:
    """Yield IBAN, in groups or not; what follows in capitals is left out until the check digits are right."""
    for match in _IBAN.finditer(text) if has_digit(text) else ():
        end = match.end()
        while end - match.start() >= _SHORTEST_IBAN:
            if iban(re.sub("[ -]", "", text[match.start() : end])):
                yield Finding(match.start(), end, PiiType.IBAN, 1.0)
                break
            end = max(text.rfind(" ", match.start(), end), text.rfind("-", match.start(), end))
    # Behind its name also cut off and mistyped.
    for match in _NAMED_IBAN.finditer(text):
        if (part := _BY_DIGITS.match(text, match.start(1), match.end())) and len(part[0]) >= _CUT_IBAN:
            yield Finding(*part.span(), PiiType.IBAN, 0.8)
    # In any case and apart, by the form of its country.
    for match in _SPELLED.finditer(text) if has_digit(text) else ():
        country = match[1].upper()
        rest = _REST[_COUNT[country]].match(text, match.end()) if country in _COUNT else None
        said = re.sub("[ -]", "", text[match.start() : rest.end()]).upper() if rest is not None else ""
        if rest is not None and _FORM_OF[country].fullmatch(said, 4) and iban(said):
            yield Finding(match.start(), rest.end(), PiiType.IBAN, 1.0)


_NATIONAL = re.compile(
    rf"(?<![\w.-])(?:(?P<china>[1-9]\d{{5}}{_DATE}\d{{3}}[\dXx])|(?P<korea>\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-[1-8]\d{{6}})"
    r"|(?P<finland>[0-3]\d[01]\d{3}[-+A-FU-Y]\d{3}[0-9A-Y])|(?P<brazil>\d{3}\.\d{3}\.\d{3}-\d{2})|(?P<switzerland>756\.\d{4}\.\d{4}\.\d{2})"
    r"|(?P<spain>(?:\d{8}|[XYZ]\d{7})-?[A-Z])|(?P<italy>(?:[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]|[a-z]{6}\d\d[a-ehlmprst]\d\d[a-z]\d{3}[a-z]))"
    r"|(?P<india>[A-Z]{3}P[A-Z]\d{4}[A-Z]))(?![\w-]|\.\d)"
)
_FINNISH_CHECKS, _SPANISH_CHECKS = "0123456789ABCDEFHJKLMNPRSTUVWXY", "TRWAGMYFPDXBNJZSQVHLCKE"
_ITALIAN_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def national_numbers(text: str) -> Iterator[Finding]:
    """Yield numbers of people that a state gives out, where their form and their check digits are enough.

    China GB 11643 (ISO/IEC 7064, MOD 11-2); Korea by its date; Finland by the remainder of 31; Brazil's CPF; Switzerland
    by EAN-13; Spain's DNI and NIE by the remainder of 23; Italy's codice fiscale (decree of 12 March 1974); India's PAN
    of a person by its form.
    """
    for match in _NATIONAL.finditer(text) if has_digit(text) else ():
        kind, number = match.lastgroup or "", match[0]
        is_right = kind in {"korea", "india"} or _CHECKS[kind](re.sub("[.-]", "", number))
        if is_right or (kind == "italy" and number.isupper()):  # nothing else has that form
            is_tax = kind in {"brazil", "italy", "india"}
            yield Finding(*match.span(), PiiType.TAX_ID if is_tax else PiiType.NATIONAL_ID, 0.9 if is_right else 0.5)


def _of_china(number: str) -> bool:
    check = 10 if number[17] in "Xx" else int(number[17])
    return (sum(int(digit) << (17 - at) for at, digit in enumerate(number[:17])) + check) % 11 == 1


def _of_finland(number: str) -> bool:
    digits = number[:6] + number[-4:-1]
    return _FINNISH_CHECKS[int(digits) % 31] == number[-1]


def _of_brazil(number: str) -> bool:
    for count in (9, 10):
        total = sum(int(digit) * (count + 1 - at) for at, digit in enumerate(number[:count]))
        if total * 10 % 11 % 10 != int(number[count]):
            return False
    return len(set(number)) >= _FEWEST_DIFFERENT


def _of_switzerland(number: str) -> bool:
    return sum(int(digit) * (1 + 2 * (at % 2)) for at, digit in enumerate(number)) % 10 == 0


def _of_spain(number: str) -> bool:
    return _SPANISH_CHECKS[int(number[:-1].translate(str.maketrans("XYZ", "012"))) % 23] == number[-1]


def _of_italy(number: str) -> bool:
    values = [int(character, 36) - (10 if character.isalpha() else 0) for character in number.upper()]
    total = sum(value if at % 2 else _ITALIAN_ODD[value] for at, value in enumerate(values[:-1]))
    return total % 26 == values[-1]


_CHECKS = {
    "china": _of_china,
    "finland": _of_finland,
    "brazil": _of_brazil,
    "switzerland": _of_switzerland,
    "spain": _of_spain,
    "italy": _of_italy,
}


def social_security_numbers(text: str) -> Iterator[Finding]:
    """Yield numbers in the form the US Social Security Administration assigns, and individual taxpayer numbers."""
    for match in _SSN.finditer(text) if has_digit(text) else ():
        yield Finding(*match.span(), PiiType.TAX_ID if match[0].startswith("9") else PiiType.SSN, 0.85)


def wallets(text: str) -> Iterator[Finding]:
    """Yield addresses of Bitcoin and Ethereum wallets."""
    for pattern, needed in ((_SEGWIT, "bc1"), (_ETHEREUM, "0x")):
        for match in pattern.finditer(text) if needed in text else ():
            yield Finding(*match.span(), PiiType.CRYPTO, 0.9)
    for match in _BITCOIN.finditer(text) if has_digit(text) else ():
        if _base58check(match[0]) or _near_coin(text, match.start()):
            yield Finding(*match.span(), PiiType.CRYPTO, 0.8)


def _near_coin(text: str, at: int) -> bool:
    return re.search(r"(?i)btc|bitcoin|wallet|crypto", text[max(0, at - 40) : at]) is not None


def fixed_widths(text: str) -> Iterator[Finding]:
    """Yield IBANs and cards that touch other digits and letters, as in records of fixed width.

    What stands within a longer run is a number by chance, unless it has more than its check digits: an IBAN has the form
    of its country, and cards stand at one place in all of several lines, or beside a date or an amount.
    """
    for match in _BEGINNING.finditer(text):
        form = _FORM_OF.get(match[0][:2])
        rest = None if form is None else form.match(text, match.end())
        if rest is not None and iban(match[0] + rest[0]):
            yield Finding(match.start(), rest.end(), PiiType.IBAN, 0.95)
    if _LONG.search(text):
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
                cells = [line[low : low + length] for line in lines]
                if all(len(cell) == length and _is_card(cell) for cell in cells):
                    if len(set(cells)) >= _DIFFERENT_LEAST:
                        yield low, low + length
                    break


def _is_card(digits: str) -> bool:
    if not digits.isdecimal() or not luhn(digits):
        return False
    if len(digits) == min(_CARD_DIGITS):
        return digits[:2] in {"34", "37"}
    return digits[0] in "456" or "51" <= digits[:2] <= "55" or digits[:4] in _SECOND_SERIES


_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(rf"(?<![\w.-])(?:{_BYTE}\.){{3}}{_BYTE}(?!\w|\.\w|-\w)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{6,39}(?:(?:\.\d{1,3}){3})?(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])")
_VERSION = re.compile(r"(?i)(?:\bv|ver|version|release|build|==|>=|~=|\^|@)[ =:\"]{0,3}\Z")
_LOGIN_AT = re.compile(r"(?:\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n]{0,60}|://[^\s/]{1,60})@\Z")
# Nobody's own: any, loopback, masks, public resolvers.
_NOBODYS = frozenset(
    (
        "0.0.0.0",  # noqa: S104 - compared only
        "127.0.0.1",
        "255.255.255.255",
        "255.255.255.0",
        "255.255.0.0",
        "8.8.8.8",
        "8.8.4.4",
        "1.1.1.1",
    )
)
_FEWEST_HEXTETS = 3
_FEWEST_DOTS, _FEWEST_COLONS, _MAC_MARKS = 3, 2, 5


def devices(text: str) -> Iterator[Finding]:
    """Yield addresses of devices."""
    for match in _IPV4.finditer(text) if text.count(".") >= _FEWEST_DOTS else ():
        if match[0] not in _NOBODYS and not _is_version(text, match.start()):
            yield Finding(*match.span(), PiiType.IP, 0.9)
    for match in _IPV6.finditer(text) if text.count(":") >= _FEWEST_COLONS else ():
        if _is_ipv6(match[0]):
            yield Finding(*match.span(), PiiType.IP, 0.9)
    for match in _MAC.finditer(text) if max(text.count(":"), text.count("-")) >= _MAC_MARKS else ():
        if match[0].lower() not in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            yield Finding(*match.span(), PiiType.MAC, 0.9)


def _is_version(text: str, at: int) -> bool:
    """Return whether what stands before makes it a version: `v1.2.3.4`, `pkg@1.2.3.4`, but not `ssh me@1.2.3.4`."""
    return _VERSION.search(text, max(0, at - 12), at) is not None and not _LOGIN_AT.search(text, max(0, at - 90), at)


def _is_ipv6(text: str) -> bool:
    if text.count(":") < 2 or (not any(c in "abcdefABCDEF" for c in text) and "::" not in text and text.count(":") < 7):
        return False
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not address.is_loopback and sum(map(bool, text.split(":"))) >= _FEWEST_HEXTETS - ("::" in text)
