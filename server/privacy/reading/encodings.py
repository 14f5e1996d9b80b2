"""In which encoding a text is written, where nothing says it.

UTF-8, and UTF-16 and UTF-32 by their marks or by their zeros, are recognized for sure. What is none of these and looks
like text is read as Windows-1252, which has all of Latin-1: the letters of another encoding are wrong then, its digits,
signs and ASCII are right.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import BinaryIO

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
_BY_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_STRAY_SHARE = 0.02
_ZEROS_SHARE = 0.3
_CHAR_BYTES_MAX = 4


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding as Python names it, and the mark before the text that says that it is this one."""

    name: str
    mark: bytes = b""


def marked(beginning: bytes, file: BinaryIO | None = None) -> Encoding | None:
    """Return the encoding of the beginning of a text with its mark, or None where it is no text.

    A `file`, which begins so, is read to its end where that may show that it is no UTF-8; then it is where it was.
    """
    for mark, name in _BY_MARKS:
        if beginning.startswith(mark):
            return Encoding(name, mark)
    found = encoding_of(beginning)
    if found == "utf-8" and file is not None and not _is_utf_8(file):
        found = GUESSED
    return None if found is None else Encoding(found)


def _is_utf_8(file: BinaryIO) -> bool:
    at = file.tell()
    decoder = codecs.getincrementaldecoder("utf-8")()
    has_letters, some = False, b""
    try:
        while some := file.read(SAMPLE_BYTES):
            has_letters |= not decoder.decode(some).isascii()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return has_letters or not some[: error.start].isascii()  # then it is UTF-8 with stray bytes, which are counted
    finally:
        file.seek(at)
    return True


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
    except UnicodeDecodeError as error:
        if not data[: error.start].isascii():
            return "utf-8"  # with stray bytes: by chance no other text begins so
        stray = len(_CONTROLS.findall(data)) + len(_UNDEFINED.findall(data))
        return GUESSED if stray <= _STRAY_SHARE * len(data) else None
    return "utf-8"


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
