"""BERT's WordPiece: the pieces that a text is given to the model in, and where each stands in the text.

Words are cleaned and parted as `BertNormalizer` and `BertPreTokenizer` of Hugging Face's tokenizers do: no control
characters, no accents, small letters, each character of punctuation and each ideogram alone. A word is cut into the
longest pieces of the vocabulary from its left (Devlin et al., 2019, arXiv:1810.04805; Wu et al., 2016,
arXiv:1609.08144).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

_UNKNOWN = "[UNK]"
_LONGEST_WORD = 100
_MOST_CACHED = 16_384
_PLAIN = re.compile(r"[\t\n\r -~]*\Z")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_WORD = re.compile(r"\S+")
_IDEOGRAMS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Pieces(NamedTuple):
    """The numbers of the pieces of a text, and the stretches of it that they stand for."""

    ids: list[int]
    spans: list[tuple[int, int]]


class WordPiece:
    """A vocabulary. Safe to use from several threads."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers: Mapping[str, int] = {piece: number for number, piece in enumerate(pieces)}
        self._unknown = self._numbers[_UNKNOWN]
        self._cut = lru_cache(maxsize=_MOST_CACHED)(self._cut_anew)

    def number(self, piece: str) -> int:
        """Return the number of a piece. Raises `KeyError`."""
        return self._numbers[piece]

    def encode(self, text: str, offset: int = 0) -> Pieces:
        """Return the pieces of a text that begins at `offset`."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        if _PLAIN.match(text):
            for match in _PLAIN_WORD.finditer(text):
                at = match.start() + offset
                for number, start, end in self._cut(match[0].lower()):
                    ids.append(number)
                    spans.append((at + start, at + end))
            return Pieces(ids, spans)
        plain, places = _normalised(text)
        for match in _WORD.finditer(plain):
            at = match.start()
            for number, start, end in self._cut(match[0]):
                ids.append(number)
                spans.append((places[at + start] + offset, places[at + end - 1] + 1 + offset))
        return Pieces(ids, spans)

    def _cut_anew(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """Return number, start and end of each piece of a word."""
        if len(word) > _LONGEST_WORD:
            return ((self._unknown, 0, len(word)),)
        cut: list[tuple[int, int, int]] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else f"##{word[start:end]}"
                number = self._numbers.get(piece)
                if number is not None:
                    cut.append((number, start, end))
                    start = end
                    break
            else:
                return ((self._unknown, 0, len(word)),)
        return tuple(cut)


def _normalised(text: str) -> tuple[str, list[int]]:
    """Return a text as words between spaces, and for each of its characters which one of `text` it came from."""
    plain: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        written = _written(character)
        plain.append(written)
        places += [place] * len(written)
    return "".join(plain), places


@lru_cache(maxsize=_MOST_CACHED)
def _written(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if unicodedata.category(character)[0] == "C" or character == "\ufffd":
        return ""
    if character.isspace():
        return " "
    bare = "".join(c for c in unicodedata.normalize("NFD", character) if unicodedata.category(c) != "Mn")
    small = "".join(c.lower() for c in bare)
    stands_alone = any(first <= ord(character) <= last for first, last in _IDEOGRAMS)
    return "".join(f" {c} " if stands_alone or _is_punctuation(c) else c for c in small)


def _is_punctuation(character: str) -> bool:
    is_sign = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return is_sign or unicodedata.category(character)[0] == "P"
