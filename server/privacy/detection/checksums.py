"""Check digits of numbers that carry them."""

from __future__ import annotations

from hashlib import sha256

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


def base58check(address: str) -> bool:
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
