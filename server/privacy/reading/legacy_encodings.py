"""In which encodings a text may be written that is no Unicode: all in which it reads as words of a language.

The same bytes read as words in more than one, so a text is looked through in each of these. An encoding fits by the
script of its letters, by where capitals stand in a word, and, of those of East Asia, by how many of the characters are
those of the first level, which are the usual ones (JIS X 0208, GB 2312, Big5 and KS X 1001 have such levels).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

from .encodings import GUESSED, SAMPLE_BYTES, encoding_of

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
