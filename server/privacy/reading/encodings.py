"""In which encoding a text is written, where nothing says it.

UTF-8, and UTF-16 and UTF-32 by their marks or by their zeros, are recognized for sure. What is none of these and looks
like text is read as Windows-1252, which has all of Latin-1: the letters of another encoding are wrong then, its digits,
signs and ASCII are right.
"""

from __future__ import annotations

import codecs
import re

SAMPLE_BYTES = 64 * 1024
"""How much of a file its encoding is judged by."""
GUESSED = "cp1252"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_STRAY_SHARE = 0.02
_ZEROS_SHARE = 0.3
_CHAR_BYTES_MAX = 4


def encoding_of(data: bytes) -> str | None:
    """Return the encoding of the beginning of a text as Python names it, or None where it is no text.

    The sample may end within a character.
    """
    data = data[:SAMPLE_BYTES]
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if b"\0" in data:
        return _by_zeros(data)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        stray = len(_CONTROLS.findall(data)) + len(_UNDEFINED.findall(data))
        return GUESSED if stray <= _STRAY_SHARE * len(data) else None
    return "utf-8" if len(_CONTROLS.findall(data)) <= _STRAY_SHARE * len(data) else None


def _by_zeros(data: bytes) -> str | None:
    """Return the encoding of text whose most letters are below U+0100, by where its zeros stand."""
    units = len(data) // _CHAR_BYTES_MAX
    if units:
        zeros = [data[place::_CHAR_BYTES_MAX].count(0) / units for place in range(_CHAR_BYTES_MAX)]
        if min(zeros[2:]) > 1 - _STRAY_SHARE and zeros[0] < _STRAY_SHARE:
            return _if_decodes(data, "utf-32-le")
        if min(zeros[:2]) > 1 - _STRAY_SHARE and zeros[3] < _STRAY_SHARE:
            return _if_decodes(data, "utf-32-be")
    half = max(1, len(data) // 2)
    even, odd = data[::2].count(0) / half, data[1::2].count(0) / half
    if odd >= _ZEROS_SHARE and even <= _STRAY_SHARE:
        return _if_decodes(data, "utf-16-le")
    if even >= _ZEROS_SHARE and odd <= _STRAY_SHARE:
        return _if_decodes(data, "utf-16-be")
    return None


def _if_decodes(data: bytes, encoding: str) -> str | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None
    stray = sum(not (letter.isprintable() or letter.isspace()) for letter in text)
    return encoding if stray <= _STRAY_SHARE * len(text) else None
