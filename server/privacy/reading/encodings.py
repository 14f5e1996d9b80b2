"""In which encodings a text may be written, where nothing says it.

UTF-8, and UTF-16 and UTF-32 by their marks or by their zeros, are recognized for sure. What is none of these and looks
like text is read as Windows-1252, which has all of Latin-1: the letters of another encoding are wrong then, its digits,
signs and ASCII are right.

For personal data a text is looked through in all encodings in which it reads as words of a language. An encoding fits
by the script of its letters, by where capitals stand in a word, and, of those of East Asia, by how many of the
characters are those of the first level, which are the usual ones (JIS X 0208, GB 2312, Big5 and KS X 1001 have such
levels).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final

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


ENCODINGS_MAX: Final = 6
"""In so many encodings a text is looked through at most."""
_EAST_ASIAN: Final = {
    "cp932": ((0x88, 0x97), "\u3000-\u30ff\uff01-\uff5e"),
    "euc_jp": ((0xB0, 0xCF), "\u3000-\u30ff\uff01-\uff5e"),
    "gb18030": ((0xB0, 0xD7), "\u3000-\u301f\uff01-\uff5e"),
    "big5": ((0xA4, 0xC6), "\u3000-\u301f\uff01-\uff5e"),
    "cp949": ((0xB0, 0xC8), "\u3000-\u301f\uff01-\uff5e"),
}
_OF_ONE_SCRIPT: Final = {
    **dict.fromkeys(("cp1251", "koi8_u", "iso8859_5", "cp866"), "\u0400-\u04ff"),
    "cp1253": "\u0370-\u03ff",
    "cp1255": "\u0590-\u05ff",
    "cp1256": "\u0600-\u06ff",
    "cp874": "\u0e00-\u0e7f",
}
_LATIN: Final = (GUESSED, "cp1250", "cp1254", "iso8859_2", "cp1257")
_FITS_EAST_ASIAN, _FITS_ONE_SCRIPT, _FITS_LATIN = 0.8, 0.85, 0.95
_WORD: Final = re.compile(r"[^\s\x00-\x40\x5b-\x60\x7b-\x7f]+")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARS_LOOKED_AT: Final = 20_000


def encodings_of(data: bytes) -> tuple[str, ...]:
    """Return the encodings that the beginning of a text may have, the likeliest first; none where it is no text."""
    found = encoding_of(data)
    data = data[:SAMPLE_BYTES]
    is_mixed = found == "utf-8" and _decoded(data, "utf-8") is None
    if found is not None and found != GUESSED and not is_mixed:
        return (found,)
    if found is None and _CONTROL.search(data):
        return ()
    scored = [*_east_asian(data), *_of_one_script(data)]
    if found == GUESSED:
        scored += _latin(data)
    elif is_mixed:
        scored.append((1.0, "utf-8", ""))
    scored.sort(key=lambda each: -each[0])  # what is as likely stays in this order
    chosen: list[str] = []
    texts: set[str] = set()
    for _score, encoding, text in scored:
        if text not in texts and len(chosen) < ENCODINGS_MAX:
            texts.add(text)
            chosen.append(encoding)
    return tuple(chosen) if GUESSED in chosen or found != GUESSED else (*chosen[: ENCODINGS_MAX - 1], GUESSED)


_Scored = tuple[float, str, str]


def _east_asian(data: bytes) -> list[_Scored]:
    scored = []
    for encoding, (level, common) in _EAST_ASIAN.items():
        text = _decoded(data, encoding)
        letters = [] if text is None else [letter for letter in text[:_CHARS_LOOKED_AT] if not letter.isascii()]
        if text is None or not letters:
            continue
        usual = re.compile(f"[{common}]")
        share = sum(_is_usual(letter, encoding, level, usual) for letter in letters) / len(letters)
        if share >= _FITS_EAST_ASIAN:
            scored.append((share, encoding, text))
    return scored


def _is_usual(letter: str, encoding: str, level: tuple[int, int], usual: re.Pattern[str]) -> bool:
    if usual.match(letter):
        return True
    written = letter.encode(encoding, "ignore")
    return len(written) > 1 and level[0] <= written[0] <= level[1]


def _of_one_script(data: bytes) -> list[_Scored]:
    scored = []
    for encoding, script in _OF_ONE_SCRIPT.items():
        text = _decoded(data, encoding)
        share = 0.0 if text is None else _share(text, _is_of(re.compile(f"[{script}]+")))
        if text is not None and share >= _FITS_ONE_SCRIPT:
            scored.append((share, encoding, text))
    return scored


def _is_of(script: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda word: script.fullmatch(word) is not None and _cased(word)


def _latin(data: bytes) -> list[_Scored]:
    scored = []
    for encoding in _LATIN:
        text = _decoded(data, encoding, errors="replace" if encoding == GUESSED else "strict")
        share = 0.0 if text is None else _share(text, lambda word: word.isalpha() and _cased(word))
        if text is not None and (share >= _FITS_LATIN or encoding == GUESSED):
            # Some of the Latin ones fit many texts of others.
            scored.append((share * 0.99, encoding, text))
    return scored


def _share(text: str, fits: Callable[[str], bool]) -> float:
    words = [word for word in _WORD.findall(text[:_CHARS_LOOKED_AT]) if not word.isascii()]
    return sum(1 for word in words if fits(word)) / len(words) if words else 1.0


def _cased(word: str) -> bool:
    """Return whether a word has capitals as words have them: all, the first, or none."""
    return word.islower() or word.isupper() or word[1:].islower() or word.upper() == word.lower()


def _decoded(data: bytes, encoding: str, errors: str = "strict") -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)(errors).decode(data)
    except UnicodeDecodeError:
        return None


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
