"""Text into words: folded, split where identifiers are, and stemmed; and the words that say nothing about a tool.

Words of scripts that are written without spaces become overlapping pairs of characters, the usual choice where no
dictionary is at hand (bigram tokenization, Manning, Raghavan and Schütze, *Introduction to Information Retrieval*,
section 2.2.1). English words are stemmed by Snowball's English algorithm (Porter2).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

from ..names import by_pieces

_ASCII_RUN = re.compile(r"[a-zA-Z0-9]+")
# Vowel signs of Indic scripts and of Thai are not letters to `re`, but do not end a word.
_RUN = re.compile(r"(?:[^\W_]|(?=\W)[\u0900-\u0eff])+")
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Thai to Burmese, Khmer, kana, Han, Hangul, and Han of the supplementary planes.
_UNSPACED = re.compile(r"[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003134f]")
_MARKS = re.compile(r"[\u0300-\u036f]")
SHORTEST_STEMMED = 4

# What people wrap around a wish, and what every description says.
_STOP_WORDS = """
    a about after all also am an and any are as at back be because been before being both but by
    can could d did do does doing done down during each either else ever every for from further
    get gets getting give given go goes going had has have having he hello her here hers hey hi him his how
    i if im in into is it its itself ive just kindly know let lets like ll look looking
    m make may me might mine more most much must my myself need needed needs no nor not now
    of off ok on once one only or other our ours out over own per please provide re
    s same several she should show so some such t tell than thank thanks that the their theirs them then there these
    they this those through thus to too toward towards try trying under until up upon us use used uses using
    ve very via want wanted wants was we were what whatever when where whether which while who whom whose why will wish
    with within without would yes yet you your yours yourself
    able allow allows enable enables help helps
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def fold(text: str) -> str:
    """Take accents and width from the letters: `Ｃａｆé` becomes `Cafe`; other scripts keep their marks."""
    if text.isascii():
        return text
    return by_pieces(_without_marks, text)


def _without_marks(text: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))


def runs(text: str) -> list[str]:
    """Cut folded text into its runs of letters and digits, as they are written."""
    return (_ASCII_RUN if text.isascii() else _RUN).findall(text)


def pieces(run: str) -> list[str]:
    """Cut one run into lowercase words: at changes of case, and into pairs where a script has no spaces."""
    if not run.isascii() and _UNSPACED.search(run):
        return [run[start : start + 2] for start in range(max(1, len(run) - 1))]
    if run.islower():
        return [run]
    return _CASE_CHANGE.sub(" ", run).lower().split()


def words(text: str) -> list[str]:
    """All words of a text in their order, lowercase, stop words among them."""
    return [word for run in runs(fold(text)) for word in pieces(run)]


class _Stemmers(threading.local):
    """A stemmer for each thread: one is not to be shared (PyStemmer's documentation)."""

    def __init__(self) -> None:
        import Stemmer

        # Its own cache is off: words are kept by `stem` and by the index.
        self.stem_word = Stemmer.Stemmer("english", 0).stemWord


@lru_cache(maxsize=1)
def _stemmers() -> _Stemmers:
    return _Stemmers()


def stem(word: str) -> str:
    """Snowball's stem of a lowercase English word; words of other alphabets and very short ones are their own."""
    if len(word) < SHORTEST_STEMMED or not word.isascii():
        return word
    stemmed: str = _stemmers().stem_word(word)
    return stemmed
