"""Views of a text that expressions can read, of the same length, so that what is found keeps its place.

In scripts of India and South-East Asia vowels are marks, which are no letters to `re`: नाम would be two words. And
between Chinese, Japanese or Thai letters and Latin ones there is no space, so that an e-mail address would be one word
with what stands around it. A text of other scripts is its own view.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

CAPITALS = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĞĢİĪĶĹĽŁŃŅŇŌŐŘŚŞŠŢŤŪŮŰŹŻŽ"
"""Latin letters at the beginning of a name."""
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3007"
KANA = "\u3041-\u3096\u30a1-\u30fa\u30fc"
HANGUL = "\uac00-\ud7a3"
CYRILLIC = "\u0400-\u052f"
ARABIC = "\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff"
DEVANAGARI = "\u0900-\u0963\u0970-\u097f"
UNSPACED = f"{HAN}{KANA}\u0e01-\u0e4e"
"""Letters of scripts that put no space between words."""

_MARKED = re.compile(
    "[\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0eff\u200c\u200d\u3000\uff0b\uff0d\uff10-\uff19\uff20-\uff3a\uff41-\uff5a]"
)
# Of a vowel sign of Devanagari the letter of the same vowel, so that words stay different; of other marks any letter.
_VOWELS = {
    "ा": "आ", "ि": "इ", "ी": "ई", "ु": "उ", "ू": "ऊ", "ृ": "ऋ", "े": "ए", "ै": "ऐ", "ो": "ओ", "ौ": "औ", "ॉ": "ऑ", "ॅ": "ऍ",
    "ं": "ऽ", "ँ": "ऽ", "ः": "ॠ", "़": "ॲ", "्": "ॐ",
}  # fmt: skip
_FIRST_OF_INDIA = 0x0900
_LETTERS: dict[int, int] = {
    mark: ord("अ") if mark >= _FIRST_OF_INDIA else ord("ء")
    for mark in (*range(0x0610, 0x0660), 0x0670, *range(0x0900, 0x0F00))
    if unicodedata.category(chr(mark)).startswith("M")
}
_LETTERS.update({0x200C: ord("ऽ"), 0x200D: ord("ऽ"), 0x3000: ord(" ")})
_LETTERS.update(
    {
        wide: wide - 0xFEE0
        for wide in (0xFF0B, 0xFF0D, *range(0xFF10, 0xFF1A), *range(0xFF20, 0xFF3B), *range(0xFF41, 0xFF5B))
    }
)
_LETTERS.update({ord(mark): ord(letter) for mark, letter in _VOWELS.items()})
_TOUCHES = re.compile(f"[{UNSPACED}{HANGUL}](?=[A-Za-z0-9+(])|(?<=[A-Za-z0-9)])[{UNSPACED}{HANGUL}]")


@lru_cache(maxsize=4)
def readable(text: str) -> str:
    """Return a text with letters in place of the marks that belong to words."""
    if text.isascii() or not _MARKED.search(text):
        return text
    return text.translate(_LETTERS)


@lru_cache(maxsize=4)
def parted(text: str) -> str:
    """Return a text with a space for each letter of an unspaced script that touches a Latin letter or a digit."""
    return text if text.isascii() else _TOUCHES.sub(" ", text)


def without_accents(words: str) -> str:
    """Return words without accents, as keys are compared: `Číslo` is `Cislo`, `फ़ोन` is `फोन`."""
    apart = unicodedata.normalize("NFKD", words.translate(_PLAIN_LETTERS))
    bare = "".join(c for c in apart if not unicodedata.combining(c) or c == "्")
    return readable(unicodedata.normalize("NFC", bare))


_PLAIN_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ł": "l",
        "Ł": "L",
        "ø": "o",
        "Ø": "O",
        "ı": "i",
        "æ": "ae",
        "đ": "d",
        "\u0640": None,
        "ॲ": None,
        "№": "no",
        "〒": "郵便",
    }
)


_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=4)
def lowered(text: str) -> str:
    """Return a text in lower case and of the same length, with the letters that `re.IGNORECASE` takes for ASCII's too.

    Of all letters only `İ` has a small one of two characters; the sign for kelvin has `k`.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").replace("\u0131", "i").replace("\u017f", "s").lower()


@lru_cache(maxsize=4)
def has_digit(text: str) -> bool:
    """Return whether any digit stands in a text."""
    return _DIGIT.search(text) is not None


def holds(text: str, parts: Iterable[str]) -> bool:
    """Return whether any of the parts stands in a text."""
    return any(part in text for part in parts)
