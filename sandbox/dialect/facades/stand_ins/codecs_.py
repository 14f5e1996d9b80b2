"""`codecs` on text and bytes, and on files of the workspace."""

from __future__ import annotations

import codecs
from importlib import import_module

from ..private import open_file

__all__ = ["decode", "encode", "lookup", "open"]

_WARM = """
ascii base64_codec big5 bz2_codec charmap cp1250 cp1251 cp1252 cp1253 cp1254 cp1257 cp437 cp850 cp866 cp932 cp949 euc_jp
euc_kr gb18030 gb2312 gbk hex_codec idna iso2022_jp iso8859_1 iso8859_15 iso8859_2 iso8859_5 iso8859_7 iso8859_9 koi8_r
koi8_u latin_1 mac_roman punycode quopri_codec raw_unicode_escape rot_13 shift_jis undefined unicode_escape utf_16
utf_16_be utf_16_le utf_32 utf_32_be utf_32_le utf_7 utf_8 utf_8_sig uu_codec zlib_codec
"""
"""The encodings that are loaded while there are files to load them from."""


def preload() -> None:
    """Load the encodings that code may ask for."""
    for name in _WARM.split():
        import_module(f"encodings.{name}")
        codecs.lookup(name)


def encode(obj: object, encoding: str = "utf-8", errors: str = "strict") -> object:
    """Encode `obj`; also by the codecs from text to text (rot13) and from bytes to bytes (hex, base64, zlib)."""
    return codecs.encode(obj, encoding, errors)  # type: ignore[call-overload]  # any object, as the real one takes


def decode(obj: object, encoding: str = "utf-8", errors: str = "strict") -> object:
    """Decode `obj`; see `encode`."""
    return codecs.decode(obj, encoding, errors)  # type: ignore[call-overload]  # any object, as the real one takes


class Codec:
    """What is known of an encoding."""

    __slots__ = ("decode", "encode", "name")

    def __init__(self, name: str) -> None:
        found = codecs.lookup(name)
        self.name = found.name
        self.encode = found.encode
        self.decode = found.decode


def lookup(encoding: str, /) -> Codec:
    """Return the name and functions of an encoding. Raises LookupError."""
    return Codec(encoding)


def open(  # noqa: A001 - Python's own name
    filename: object, mode: str = "r", encoding: str | None = None, errors: str = "strict", buffering: int = -1
) -> object:
    """Open a file of the workspace; with an encoding, as text whose line ends stay as they are."""
    if encoding is None:
        return open_file(filename, mode, buffering)
    return open_file(filename, mode.replace("b", ""), buffering, encoding, errors, newline="")
