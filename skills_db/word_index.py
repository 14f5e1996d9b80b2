"""Ranks named texts by the words of a query, in memory and in a few milliseconds for ten thousand of them.

A word of the query is looked up by its stem; one that nothing has, as a part of words, then as a misspelling. Texts are
ranked by the rarity of the words they share with the query and by the fields that have them (inverse document
frequency with field weights; Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, sections 6.1 and
6.2); a name that holds the whole query gains by that, and one that is the query comes first.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import Stemmer
from numpy.typing import NDArray

_EXACT_NAME, _NAME_START, _NAME_PART = 100.0, 6.0, 3.0
_PART_SHARE, _MISSPELT_SHARE = 0.6, 0.5
_EXPANSIONS_MAX = 50
_SHORTEST_STEMMED = 4
_TWO_SLIPS_FROM = 8
_NEAR_NAMES = 60
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_WORD = re.compile(r"[^\W_]+")
# fmt: off
_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "for", "from", "i", "in", "is", "it", "me", "my",
    "of", "on", "or", "that", "the", "this", "to", "with",
})
# fmt: on


class WordIndex:
    """Names, each with texts of different weight. Not for several threads at once."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._stems_of: list[Iterable[str]] = []
        self._weights: dict[str, dict[int, float]] = {}
        self._arrays: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        self._stem_of_word: dict[str, str] = {}
        self._stem_word = Stemmer.Stemmer("english", 0).stemWord
        self._squeezed: list[str] = []
        self._all_names: _Joined | None = None
        self._vocabulary: list[str] = []
        self._all_words: _Joined | None = None

    def put(self, name: str, fields: Iterable[tuple[str, float]]) -> None:
        """Add a name with its texts and their weights, or replace what it had."""
        self.remove(name)
        weights: dict[str, float] = {}
        for text, weight in fields:
            for word in set(words(text)):
                stem = self._stem_of_word.get(word)
                if stem is None:
                    stem = self._stem_of_word[word] = self._stem(word)
                weights[stem] = weights.get(stem, 0.0) + weight
        slot = self._slots[name] = len(self._names)
        self._names.append(name)
        self._squeezed.append("".join(words(name)))
        self._all_names = self._all_words = None
        self._stems_of.append(tuple(weights))
        for stem, weight in weights.items():
            self._weights.setdefault(stem, {})[slot] = weight
            self._arrays.pop(stem, None)

    def remove(self, name: str) -> None:
        """Forget a name, if it is known."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return
        for stem in self._stems_of[slot]:
            having = self._weights[stem]
            del having[slot]
            self._arrays.pop(stem, None)
            if not having:
                del self._weights[stem]
        # Its slot stays empty: slots count upwards, and the names of all are read in their order.
        self._names[slot] = self._squeezed[slot] = ""
        self._stems_of[slot] = ()
        self._all_names = self._all_words = None

    def search(self, query: str, limit: int | None, among: Collection[str] | None = None) -> tuple[int, list[str]]:
        """Return how many names share anything with the query, and the best of them, the best one first."""
        scores = self._scores(query)
        if among is not None:
            allowed = np.zeros(len(scores), dtype=bool)
            allowed[[self._slots[name] for name in among]] = True
            scores[~allowed] = 0.0
        found = np.flatnonzero(scores)
        return len(found), self._best(found, scores[found], len(found) if limit is None else limit)

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Return the names that a misspelt one may have meant."""
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a wrong name needs it

        found = process.extract(name, self._slots.keys(), scorer=fuzz.ratio, limit=limit, score_cutoff=_NEAR_NAMES)
        return [each for each, _, _ in found]

    def _best(self, slots: NDArray[np.intp], scores: NDArray[np.float64], limit: int) -> list[str]:
        """Return the names of the highest scores; equal ones in the order of their names."""
        limit = min(limit, len(slots))
        if limit <= 0:
            return []
        least = np.partition(scores, -limit)[-limit]
        above, equal = slots[scores > least].tolist(), slots[scores == least].tolist()
        first = sorted(zip((-scores[scores > least]).tolist(), map(self._names.__getitem__, above), strict=True))
        return [name for _, name in first] + heapq.nsmallest(limit - len(first), map(self._names.__getitem__, equal))

    def _scores(self, query: str) -> NDArray[np.float64]:
        scores = np.zeros(len(self._names))
        asked = list(dict.fromkeys(words(query)))
        for word in [word for word in asked if word not in _STOP_WORDS] or asked:
            for stem, share in self._matches(word):
                slots, weights = self._postings(stem)
                scores[slots] += share * math.log(1 + len(self._slots) / len(slots)) * weights
        whole = "".join(asked)
        if whole:
            if self._all_names is None:
                self._all_names = _Joined(self._squeezed)
            for slot, start, length in self._all_names.holding(whole):
                exact = start == 0 and length == len(whole)
                scores[slot] += _EXACT_NAME if exact else _NAME_START if start == 0 else _NAME_PART
        return scores

    def _postings(self, stem: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the slots that have a stem, and what each is worth: more in more fields, but ever less so."""
        arrays = self._arrays.get(stem)
        if arrays is None:
            having = self._weights[stem]
            weights = np.fromiter(having.values(), np.float64, len(having))
            arrays = self._arrays[stem] = np.fromiter(having, np.intp, len(having)), weights / (weights + 1)
        return arrays

    def _matches(self, word: str) -> list[tuple[str, float]]:
        """Return the stems to look up for a word, each with the share of its score that it is worth."""
        stem = self._stem_of_word.get(word) or self._stem(word)
        if stem in self._weights:
            return [(stem, 1.0)]
        if self._all_words is None:
            self._vocabulary = sorted(word for word, stem in self._stem_of_word.items() if stem in self._weights)
            self._all_words = _Joined(self._vocabulary)
        parts = [(position, start) for position, start, _ in self._all_words.holding(word)]
        near = [self._vocabulary[position] for position, start in parts if start == 0]
        if not near and (len(word) >= _SHORTEST_STEMMED or not word.isascii()):
            near = [self._vocabulary[position] for position, _ in parts]
        share = _PART_SHARE
        if not near and len(word) >= _SHORTEST_STEMMED:
            near, share = self._misspellings(word), _MISSPELT_SHARE
        stems = dict.fromkeys(self._stem_of_word[each] for each in near)
        return [(each, share) for each in itertools.islice(stems, _EXPANSIONS_MAX)]

    def _misspellings(self, word: str) -> list[str]:
        from rapidfuzz import process  # noqa: PLC0415 - only a word that nothing has needs it
        from rapidfuzz.distance import OSA  # noqa: PLC0415 - as above

        most = 1 if len(word) < _TWO_SLIPS_FROM else 2
        found = process.extract(word, self._vocabulary, scorer=OSA.distance, score_cutoff=most, limit=5)
        return [each for each, distance, _ in found if distance == found[0][1]]

    def _stem(self, word: str) -> str:
        if len(word) < _SHORTEST_STEMMED or not word.isascii():
            return word
        stem: str = self._stem_word(word)
        return stem


class _Joined:
    """Many short texts in one long one, so that looking for a part of any of them is a single search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        lengths = np.fromiter((len(text) + 1 for text in texts), np.intp, len(texts))
        self._ends: NDArray[np.intp] = np.cumsum(lengths)

    def holding(self, part: str) -> Iterator[tuple[int, int, int]]:
        """Give the position of each text that holds `part`, where in it that starts, and the text's length."""
        found = self._text.find(part)
        while found >= 0:
            position = int(np.searchsorted(self._ends, found, side="right"))
            start = int(self._ends[position - 1]) if position else 0
            end = int(self._ends[position])
            yield position, found - start, end - start - 1
            found = self._text.find(part, end)


def words(text: str) -> list[str]:
    """Return the words of a text without accents, width and case, identifiers cut where their parts meet.

    `readCSVFile` gives `read`, `csv`, `file`; `sha256_sum` gives `sha`, `256`, `sum`.
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(each for each in decomposed if not unicodedata.combining(each))
    return _WORD.findall(_CASE_CHANGE.sub(" ", text).casefold())
