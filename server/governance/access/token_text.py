"""What a token of this server's own looks like: `sealab_`, 43 characters of 256 random bits, 6 of a checksum.

Secret scanners find it by `sealab_[0-9A-Za-z]{49}`, and the checksum (CRC-32, base 62, most significant digit first)
tells them a token from a text that only looks like one. The form follows GitHub's of 2021: a prefix that names the
issuer, an underscore, which a double click selects too, and a checksum that needs no look-up.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib

PREFIX = "sealab_"
_RANDOM_CHARS = 43
_CHECKSUM_CHARS = 6
PATTERN = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM_CHARS + _CHECKSUM_CHARS}}}")
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_token() -> str:
    """Return a token that nobody had before."""
    random = _base62(secrets.randbits(256), _RANDOM_CHARS)
    return f"{PREFIX}{random}{_checksum(random)}"


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token, its checksum included."""
    if PATTERN.fullmatch(text) is None:
        return False
    random = text[len(PREFIX) : -_CHECKSUM_CHARS]
    return text[-_CHECKSUM_CHARS:] == _checksum(random)


def digest_of(token: str) -> str:
    """Return what is stored of a token: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _checksum(random: str) -> str:
    return _base62(zlib.crc32(random.encode("ascii")), _CHECKSUM_CHARS)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[rest])
    return "".join(reversed(digits))
