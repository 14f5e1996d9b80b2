"""How many bytes of JSON a value takes, found as cheaply as can be: it is asked of every value of every result."""

from __future__ import annotations

from json.encoder import encode_basestring
from math import isfinite

from .value_texts import BITS_SURELY_SHORT

_SIMPLE_CHARS_MAX = 1000


def size_as_it_is(value: object) -> int:
    """Return the size of the JSON of the simplest values, which are their own JSON, with a comma; 0 for all others."""
    if type(value) is str:
        if len(value) <= _SIMPLE_CHARS_MAX and value.isascii() and value.isprintable():
            return len(value) + 3 + value.count('"') + value.count("\\")
    elif type(value) is int:
        bits = value.bit_length()
        if bits <= BITS_SURELY_SHORT:
            return bits // 3 + 3
    elif type(value) is float:
        return 25 if isfinite(value) else 0
    elif value is None or value is True or value is False:
        return 6
    return 0


def json_size(text: str) -> int:
    """Return the bytes of a string's JSON, a lone surrogate counting as the escape that it will become."""
    if text.isascii() and text.isprintable():
        return len(text) + 2 + text.count('"') + text.count("\\")
    return len(encode_basestring(text).encode("utf-8", "backslashreplace"))


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can hold a string: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
