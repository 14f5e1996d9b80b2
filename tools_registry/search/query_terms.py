"""What the words of a query stand for: terms of the index with their weights, and words that have a vector.

A word that the index holds stands for itself; besides, at less weight, for synonyms and the words nearest in meaning. A
word that it does not hold is first taken for a misspelling, then for a relative or a compound of known words, and
besides for a part of any. Its correction brings synonyms and neighbours too: much of what typing errors cost is lost
there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .synonyms import synonyms
from .tokens import STOP_WORDS, stem
from .typos import Correction
from .vectors import WordVectors
from .vocabulary import EXTENSION_WEIGHT, Vocabulary, correctable

SYNONYM_WEIGHT = 0.35
NEIGHBOUR_WEIGHT = 0.5
NEAREST_COSINE = 0.6
MOST_NEIGHBOURS = 5
JOINED_WEIGHT = 0.6
HOLDING_WEIGHT = 0.2
# Each costs up to 0.2 ms; a query of more unknown words is not one of typing errors.
MOST_CORRECTED = 60


@dataclass(slots=True)
class Meaning:
    """Weighted terms of the index, and weighted words that have a vector.

    `rarity` adds up the idf of the words that were read; one that the index does not hold counts as the rarest.
    """

    terms: dict[int, float] = field(default_factory=dict)
    words: dict[str, float] = field(default_factory=dict)
    rarity: float = 0.0

    def raise_term(self, number: int, weight: float) -> None:
        """Give a term at least this weight."""
        if weight > self.terms.get(number, 0.0):
            self.terms[number] = weight


class QueryTerms:
    """Reads the words of one query after another clause; each distinct word is looked up once."""

    def __init__(self, vocabulary: Vocabulary, vectors: WordVectors | None, rarest: float = 0.0) -> None:
        """`rarest` is the idf of a word that the index does not hold."""
        self._vocabulary = vocabulary
        self._rarest = rarest
        self._vectors = vectors
        self._known: dict[str, Meaning] = {}
        self._corrected = 0

    def read(self, words: Sequence[str]) -> Meaning:
        """Return what these words mean together; a repeated word counts more, by the logarithm of how often."""
        counts = Counter(word for word in words if word not in STOP_WORDS) or Counter(words)
        together = Meaning()
        for word, count in counts.items():
            meaning = self._known.get(word)
            if meaning is None:
                meaning = self._known[word] = self._look_up(word)
            together.rarity += meaning.rarity
            for number, weight in meaning.terms.items():
                together.raise_term(number, weight * (1 + math.log(count)))
            for meant, weight in meaning.words.items():
                together.words[meant] = together.words.get(meant, 0.0) + weight * count
        for left, right in pairwise(words):  # "file system" is also the tool that is called `filesystem`
            joined = self._vocabulary.numbers.get(left + right)
            if joined is not None:
                together.terms.setdefault(joined, JOINED_WEIGHT)
        return together

    def _look_up(self, word: str) -> Meaning:
        meaning = Meaning()
        number = self._vocabulary.number(word)
        meaning.rarity = self._rarest if number is None else self._vocabulary.rarity(number)
        spelt = self._vectors is not None and word in self._vectors.number
        if spelt:
            meaning.words[word] = 1.0
        if number is not None:
            meaning.terms[number] = 1.0
        elif self._corrected < MOST_CORRECTED:
            self._corrected += 1
            if correctable(word):
                for meant, weight in self._unknown(word, meaning, spelt=spelt):
                    self._expand(meant, weight, meaning)
            weight = HOLDING_WEIGHT if meaning.terms else EXTENSION_WEIGHT
            for holding in () if spelt else self._vocabulary.holding(word):
                meaning.raise_term(holding, weight)
        self._expand(word, 1.0, meaning)
        return meaning

    def _unknown(self, word: str, meaning: Meaning, *, spelt: bool) -> list[tuple[str, float]]:
        """Add what a word that the index does not hold may mean; return its corrections with their likeness.

        A word that has a vector is spelt well and no misspelling of another.
        """
        corrections = [] if spelt else self._vocabulary.corrections(word)
        if not (corrections and corrections[0].edits == 1 and corrections[0].word[0] == word[0]):
            relative = self._vocabulary.relatives(word)
            if relative is not None:
                meaning.raise_term(*relative)
                # One word in ten is mistyped at its head at most; a relative is the better guess then.
                corrections = [each for each in corrections if each.word[0] == word[0]]
        if not (corrections and corrections[0].edits == 1):
            parts = self._vocabulary.parts(word)
            if parts:
                corrections = []
                for number, weight in parts.items():
                    meaning.raise_term(number, weight)
        for each in corrections:
            meaning.raise_term(self._vocabulary.surface[each.word], _likeness(word, each))
        meant = [(each.word, _likeness(word, each)) for each in corrections]
        if not spelt:
            nearer = self._nearer_in_meaning(word, corrections)
            if nearer is not None:
                meant.append((nearer.word, _likeness(word, nearer)))
                meaning.words[nearer.word] = 1.0
            elif corrections:
                meaning.words[corrections[0].word] = 1.0
        return meant

    def _nearer_in_meaning(self, word: str, corrections: Sequence[Correction]) -> Correction | None:
        """Return a word that has a vector, if it is nearer to a misspelt one than all words of the index."""
        if self._vectors is None or (corrections and corrections[0].edits == 1):
            return None
        found = self._vectors.spelling.corrections(word)
        if found and (not corrections or found[0].edits < corrections[0].edits):
            return found[0]
        return None

    def _expand(self, word: str, weight: float, meaning: Meaning) -> None:
        for other in self._synonyms(word):
            meaning.raise_term(other, SYNONYM_WEIGHT * weight)
        for number, cosine in self._neighbours(word).items():
            meaning.raise_term(number, NEIGHBOUR_WEIGHT * cosine * weight)

    def _synonyms(self, word: str) -> list[int]:
        numbers = (self._vocabulary.numbers.get(other) for other in synonyms().get(stem(word), ()))
        return [number for number in numbers if number is not None]

    def _neighbours(self, word: str) -> Mapping[int, float]:
        if self._vectors is None:
            return {}
        found: dict[int, float] = {}
        for other, cosine in self._vectors.neighbours(word):
            if cosine < NEAREST_COSINE or len(found) == MOST_NEIGHBOURS:
                break
            number = self._vocabulary.number(other)
            if number is not None and other not in STOP_WORDS:
                found.setdefault(number, cosine)
        return found


def _likeness(word: str, correction: Correction) -> float:
    return 1 - correction.edits / len(word)
