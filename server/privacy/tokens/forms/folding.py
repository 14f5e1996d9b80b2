"""A text as its letters and digits alone: without case, accents and what stands between words, but with the words.

`Jane Doe`, `JANE_DOE`, `jané.doe` and `JaneDoe` are the same letters in the same two words; `janedoe` is one word of
them. A word ends where its letters end, where a small letter is followed by a capital one, and between letters and
digits, or letters with and without case. In scripts that are written without spaces each character is a word.

Stretches of a text are compared by their hashes, sums of letter times power (R. M. Karp, M. O. Rabin, "Efficient
randomized pattern-matching algorithms", IBM J. Res. Dev. 31, 1987). They only say what is worth a look.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.uint64]
Stretches: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Numbers]
"""Where stretches of letters begin and end, and their keys."""

_BETWEEN, _MARK, _LOWER, _UPPER, _DIGIT, _OTHER, _WIDE = range(7)
"""Classes of characters. Marks belong to the letter before them, others are letters without case, of words or alone."""
_ALONE = (
    (0x0E00, 0x0EFF),  # Thai and Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul in parts
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0xA4CF),  # Han, kana, bopomofo, Yi
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x1B000, 0x1B2FF),
    (0x20000, 0x323AF),
)
_DROPPED_MARKS = (
    (0x0300, 0x036F),
    (0x0483, 0x0487),
    (0x0591, 0x05BD),
    (0x064B, 0x065F),
    (0x093C, 0x093C),  # the dot of Hindi letters, which is a letter with it or a mark of its own
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x3099, 0x309A),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
)
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
"""What is written within words and not seen."""
_BARE = {"ı": "i", "ł": "l", "đ": "d", "ø": "o", "ß": "s", "æ": "a", "œ": "o", "þ": "t", "ð": "d", "ħ": "h", "ŧ": "t", "ς": "σ", "ə": "a"}  # fmt: skip
"""Letters that are no letter with an accent to Unicode."""
_WORDS_OF_LETTERS, _WORDS_WITH_DIGITS = 4, 8
"""Words of which a form is found by the hash of all of it; a longer one by that of as many words of it."""
_ANY_CODE = 0x110000
_SMALL_CHARS = 400
"""Up to this length a text is folded without numpy, whose calls cost more than the loop."""

_M64 = (1 << 64) - 1
_BASE = secrets.randbits(64) | 1  # nobody can choose texts that have the hash of another
_MIX, _LAST = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_INVERSE = pow(_BASE, -1, 1 << 64)


def _of_character(character: str) -> tuple[str, int]:
    code = ord(character)
    if character in _INVISIBLE or any(low <= code <= high for low, high in _DROPPED_MARKS):
        return "", _MARK
    category = unicodedata.category(character)
    if category[0] not in "LNM":
        return "", _BETWEEN
    if any(low <= code <= high for low, high in _ALONE):
        bare = _without_marks(character) if code < _ALONE[-1][0] else character
        return bare, _WIDE
    if category == "Nd":
        return str(unicodedata.decimal(character)), _DIGIT
    folded = _without_marks(_BARE.get(character.lower(), character).casefold())
    folded = _BARE.get(folded[:1], folded[:1]) or character
    if category[0] == "N":
        return folded, _DIGIT if folded.isdigit() else _OTHER
    return folded, _UPPER if category in {"Lu", "Lt"} else _LOWER if category == "Ll" else _OTHER


def _without_marks(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    if 0x1100 <= ord(parts[0]) <= 0x11FF and text != parts:
        return text
    return next((each for each in parts if not any(low <= ord(each) <= high for low, high in _DROPPED_MARKS)), text)


_NO_SIGNS = {code: None for code in range(128) if not chr(code).isalnum()}
_FOLDS: dict[str, tuple[str, int]] = {}


def _fold(character: str) -> tuple[str, int]:
    known = _FOLDS.get(character)
    if known is None:
        known = _of_character(character)
        _FOLDS[character] = known
    return known


def folded_letters(text: str) -> str:
    """Return the letters and digits of a text as they are compared."""
    if text.isascii():
        return text.translate(_NO_SIGNS).lower()
    return "".join([_fold(character)[0] for character in text])


def is_alone(character: str) -> bool:
    """Return whether a character is a word, as those of scripts without spaces are."""
    return _fold(character)[1] == _WIDE


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text; words are numbered, and given by places in `letters`.

    `places[n]` is where the letter `n` stands in the text, `sums[n]` what the hash of all before it is made of.
    """

    letters: str
    places: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]
    sums: Sequence[int]

    def key(self, start: int, end: int) -> int:
        """Return the hash of a stretch of letters."""
        total = (int(self.sums[end]) - int(self.sums[start])) * _inverse(start) & _M64
        return (total ^ total >> 32) * _LAST & _M64

    def word_spans(self) -> list[tuple[int, int]]:
        """Return where the words stand in the text."""
        return [
            (self.places[start], self.places[end - 1] + 1) for start, end in zip(self.starts, self.ends, strict=True)
        ]


def folded_small(text: str) -> Folded:
    """Fold a short text."""
    letters: list[str] = []
    places: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    sums = [0]
    total, before, is_apart = 0, _BETWEEN, True
    powers = _SMALL_POWERS
    for place, character in enumerate(text):
        letter, kind = _FOLDS.get(character) or _fold(character)
        if kind <= _MARK:
            is_apart = is_apart or kind == _BETWEEN
            continue
        count = len(letters)
        if (
            is_apart
            or _WIDE in (kind, before)
            or (kind == _UPPER and before == _LOWER)
            or ((kind == _DIGIT) != (before == _DIGIT))
            or ((kind == _OTHER) != (before == _OTHER))
        ):
            if count:
                ends.append(count)
            starts.append(count)
        elif kind == _LOWER and before == _UPPER and count - starts[-1] > 1:
            # HTMLText: the capital before a small letter begins the next word.
            ends.append(count - 1)
            starts.append(count - 1)
        letters.append(letter)
        places.append(place)
        total = total + (ord(letter) + 1) * _MIX * powers[count] & _M64
        sums.append(total)
        before, is_apart = kind, False
    if letters:
        ends.append(len(letters))
    return Folded("".join(letters), places, starts, ends, sums)


def folded(text: str) -> Folded:
    """Fold a text of any length that fits into memory some thirty times."""
    if len(text) <= _SMALL_CHARS:
        return folded_small(text)
    if text.isascii():
        codes: npt.NDArray[np.generic] = np.frombuffer(text.encode("ascii"), np.uint8)
        kinds, letters = _ASCII_KINDS[codes], _ASCII_LETTERS[codes]
    else:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _kinds_of(codes)
        letters = _LETTERS[codes]
    places = np.flatnonzero(kinds > _MARK)
    kinds, letters = kinds[places] if len(places) < len(kinds) else kinds, letters[places]
    count = len(places)
    if not count:
        return Folded("", [], [], [], [0])
    begins = np.ones(count, np.bool_)
    begins[1:] = _has_between(text, codes, places)
    before, here = kinds[:-1], kinds[1:]
    begins[1:] |= (here == _UPPER) & (before == _LOWER)
    begins[1:] |= (here == _DIGIT) != (before == _DIGIT)
    begins[1:] |= (here == _OTHER) != (before == _OTHER)
    begins[1:] |= (here == _WIDE) | (before == _WIDE)
    begins[1:-1] |= (kinds[2:] == _LOWER) & (here[:-1] == _UPPER) & (before[:-1] == _UPPER) & ~begins[2:]
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], count)
    sums = np.zeros(count + 1, np.uint64)
    powers = powers_of_base(count)[0]
    np.cumsum((letters.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX) * powers[:count], out=sums[1:])
    if letters.dtype == np.uint8:
        said = letters.tobytes().decode("ascii")
    else:
        said = letters.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return Folded(said, places, starts, ends, sums)  # type: ignore[arg-type]  # arrays are sequences of numbers


def _has_between(text: str, codes: npt.NDArray[np.generic], places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return, for each letter but the first, whether something that parts words stands before it."""
    if text.isascii():
        return np.diff(places) > 1
    parts = np.cumsum(_KINDS[codes] == _BETWEEN)[places]
    return np.diff(parts) > 0


def _kinds_of(codes: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """Return the classes of characters; those that are met for the first time are looked up one by one."""
    kinds: npt.NDArray[np.uint8] = _KINDS[codes]
    new = kinds == _UNKNOWN
    if new.any():
        for code in np.unique(codes[new]).tolist():
            letter, kind = _fold(chr(code))
            _LETTERS[code] = ord(letter) if letter else 0
            _KINDS[code] = kind
        kinds = _KINDS[codes]
    return kinds


_UNKNOWN = 255
_KINDS = np.full(_ANY_CODE, _UNKNOWN, np.uint8)
_LETTERS = np.zeros(_ANY_CODE, np.uint32)
_ASCII_KINDS = np.array([_fold(chr(code))[1] for code in range(128)], np.uint8)
_ASCII_LETTERS = np.array([ord(_fold(chr(code))[0] or "\0") for code in range(128)], np.uint8)


def chains(folded: Folded) -> Stretches:
    """Return all stretches of so many words as are looked for by their hash."""
    starts, ends = np.asarray(folded.starts, np.int64), np.asarray(folded.ends, np.int64)
    sums = np.asarray(folded.sums, np.uint64)
    inverses = powers_of_base(len(folded.letters) + 1)[1][starts]
    before = sums[starts]
    after = sums[ends]
    has_digit = np.frombuffer(folded.letters.encode("utf-32-le", "surrogatepass"), np.uint32)[starts]
    numeric = np.flatnonzero((has_digit >= ord("0")) & (has_digit <= ord("9")))
    found_starts, found_ends, found_keys = [], [], []
    count = len(starts)
    for more in range(_WORDS_WITH_DIGITS):
        if more < _WORDS_OF_LETTERS:
            if count <= more:
                break
            first = slice(0, count - more)
            last = slice(more, count)
            found_starts.append(starts[first])
            found_ends.append(ends[last])
            found_keys.append((after[last] - before[first]) * inverses[first])
        else:
            some = numeric[numeric < count - more]
            found_starts.append(starts[some])
            found_ends.append(ends[some + more])
            found_keys.append((after[some + more] - before[some]) * inverses[some])
    if not found_keys:
        empty = np.empty(0, np.int64)
        return empty, empty, np.empty(0, np.uint64)
    keys = np.concatenate(found_keys)
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(_LAST)
    return np.concatenate(found_starts), np.concatenate(found_ends), keys


def windows(folded: Folded, length: int) -> Numbers:
    """Return the key of each stretch of so many letters."""
    sums = np.asarray(folded.sums, np.uint64)
    keys: Numbers = (sums[length:] - sums[:-length]) * powers_of_base(len(sums))[1][: max(0, len(sums) - length)]
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(_LAST)
    return keys


def chain_words(letters: str) -> int:
    """Return how many words a stretch that begins with these letters may have to be looked for by its own hash."""
    return _WORDS_WITH_DIGITS if "0" <= letters[:1] <= "9" else _WORDS_OF_LETTERS


def keys_of(texts: Sequence[str]) -> Numbers:
    """Return the keys of texts of letters, as `Folded.key` gives them."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    powers, inverses = powers_of_base(len(codes) + 1)
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum((codes.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX) * powers[: len(codes)], out=sums[1:])
    keys: Numbers = (sums[ends] - sums[starts]) * inverses[starts]
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(_LAST)
    return keys


_TABLES: list[tuple[Numbers, Numbers]] = []


def powers_of_base(count: int) -> tuple[Numbers, Numbers]:
    """Return the powers of the base, and their inverses, at least so many of each."""
    if not _TABLES or len(_TABLES[-1][0]) < count:
        size = max(1 << 12, 1 << (count - 1).bit_length())
        made = []
        for base in (_BASE, _INVERSE):
            table = np.full(size, np.uint64(base))
            table[0] = 1
            made.append(np.cumprod(table, dtype=np.uint64))
        _TABLES[:] = [(made[0], made[1])]
    return _TABLES[-1]


def _inverse(place: int) -> int:
    return int(powers_of_base(place + 1)[1][place])


_SMALL_POWERS = [pow(_BASE, place, 1 << 64) for place in range(_SMALL_CHARS + 1)]
