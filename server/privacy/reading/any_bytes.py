"""The text that bytes may be, in whatever encoding, and wherever in it they begin: nothing need say which it is."""

from __future__ import annotations

import codecs
import re

CHAR_BYTES_MAX = 4
_ENCODINGS = (("utf-8", 1), ("cp1252", 1), ("utf-16-le", 2), ("utf-16-be", 2), ("utf-32-le", 4), ("utf-32-be", 4))
"""What a text may be in, and how many bytes a unit of it has: it may begin at any of them."""
_PRINTED_SHARE = 0.95
_LETTER = rb"[\x20-\x7e\xa0-\xff\t\r\n]"
_PRINTED = re.compile(
    rb"[\x20-\x7e\t\r\n]{6,}|(?:%b\0){6,}|(?:\0%b){6,}|(?:%b\0\0\0){6,}|(?:\0\0\0%b){6,}" % ((_LETTER,) * 4)
)
"""Printable text in whatever else there is, in ASCII, UTF-16 or UTF-32, wherever it begins."""


def text_of_any(data: bytes) -> str:
    """Return the text that bytes are, or one after the other all that they may be: nothing need say which it is.

    They begin at a multiple of `CHAR_BYTES_MAX` in their file, or texts in other encodings would be read askew.
    """
    first = next((at for at, byte in enumerate(data[:CHAR_BYTES_MAX]) if byte & 0xC0 != 0x80), 0)  # noqa: PLR2004 - RFC 3629
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data[first:])  # an edge may cut a character
        if "\0" not in text:
            return text
    except UnicodeDecodeError:
        pass
    readings = [part.translate(None, b"\0").decode("latin-1") for part in _PRINTED.findall(data)]
    for encoding, unit_bytes in _ENCODINGS:
        for start in range(unit_bytes):
            text = data[start:].decode(encoding, "replace").replace("\0", "")
            if _is_plausible(text):
                readings.append(text)
    return "\n".join(dict.fromkeys(readings))


def _is_plausible(text: str) -> bool:
    """Return whether nearly all of a text can be printed, as of random bytes in no encoding."""
    written = "".join(text.split())
    printed = sum(map(str.isprintable, written)) - written.count("\ufffd")
    return printed >= _PRINTED_SHARE * len(written)
