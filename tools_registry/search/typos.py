"""Finds the words that a misspelt one may have meant, among the words that are known.

The distance is optimal string alignment: insertions, deletions, replacements and exchanges of two neighbours (Damerau,
*A technique for computer detection and correction of spelling errors*, 1964, found these four in 80 % of misspellings).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

# From this length on, two edits still leave enough of a word to know it by.
LONG_WORD = 8
# A word of three letters may have lost its fourth; any other edit would match too many words.
SHORTEST_WORD = 3
MOST_CORRECTIONS = 3


class Correction(NamedTuple):
    """A known word and how many edits it is away."""

    word: str
    edits: int


class Spelling:
    """Known words, the most frequent first, kept by length and first letter: people seldom mistype the first letter."""

    def __init__(self, known: Iterable[str]) -> None:
        self._by_head: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        self._by_tail: defaultdict[str, list[str]] = defaultdict(list)
        self._pools: dict[tuple[str, int, int], list[str]] = {}
        self._rank: dict[str, int] = {}
        for rank, word in enumerate(known):
            if len(word) > 2 and word.isalpha():  # noqa: PLR2004 - shorter words resemble everything
                self._rank[word] = rank
                self._by_head[len(word), word[0]].append(word)
                self._by_tail[word[1:]].append(word)

    def corrections(self, word: str) -> list[Correction]:
        """Return the nearest known words, nearest first, at most three; none for a word that is too short.

        Of words equally near, those of the same letters come first, then those that were given first.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        if len(word) < SHORTEST_WORD:
            return []
        most = 1 if len(word) < LONG_WORD else 2
        shortest = len(word) - most if len(word) > SHORTEST_WORD else len(word) + 1
        pool = self._pool(word[0], shortest, len(word) + most)
        found = process.extract(word, pool, scorer=OSA.distance, limit=None, score_cutoff=most)
        if found:
            letters = sorted(word)
            nearest = sorted(found, key=lambda each: (each[1], sorted(each[0]) != letters, self._rank[each[0]]))
            return [Correction(known, int(edits)) for known, edits, _ in nearest[:MOST_CORRECTIONS]]
        return [Correction(known, 1) for known in self._with_other_head(word)[:MOST_CORRECTIONS]]

    def _pool(self, head: str, shortest: int, longest: int) -> list[str]:
        """Known words of these lengths, gathered when first asked for."""
        pool = self._pools.get((head, shortest, longest))
        if pool is None:
            lengths = range(shortest, longest + 1)
            pool = [word for length in lengths for word in self._by_head.get((length, head), ())]
            if pool:  # so that no odd letter or length of a query is kept
                self._pools[head, shortest, longest] = pool
        return pool

    def _with_other_head(self, word: str) -> list[str]:
        """Known words one edit away that begin with another letter: each is found by a look-up."""
        if len(word) == SHORTEST_WORD:
            return self._by_tail.get(word, [])
        swapped = word[1] + word[0] + word[2:]
        without = word[1:]
        return [
            *self._by_tail.get(word[1:], ()),  # the first letter replaced
            *self._by_tail.get(word, ()),  # the first letter left out
            *(known for known in (without,) if known in self._by_tail.get(without[1:], ())),  # a letter put before
            *(known for known in (swapped,) if known in self._by_tail.get(swapped[1:], ())),
        ]
