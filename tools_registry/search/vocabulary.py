"""The words an index knows, each with the number of its term, and what a query word may mean among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from .tokens import stem
from .typos import SHORTEST_WORD, Correction, Spelling

# A part of a word counts if it is most of the word, or a rare word itself.
LEAST_PREFIX_SHARE = 0.55
PREFIX_WEIGHT = 0.7
EXTENSION_WEIGHT = 0.56
PART_WEIGHT = 0.7
SHORTEST_PART = 3
MOST_HOLDING = 50
RARE = 2.0


class Vocabulary:
    """Stems and words of an index; `numbers` maps stems, `surface` words as they were written, to term numbers."""

    def __init__(self, numbers: Mapping[str, int], surface: Mapping[str, int], idf: Sequence[float]) -> None:
        self.numbers = numbers
        self.surface = surface
        self._idf = idf

    def number(self, word: str) -> int | None:
        """Return the term number of a word, by its stem."""
        return self.numbers.get(stem(word))

    def rarity(self, number: int) -> float:
        """Return the idf of a term."""
        return float(self._idf[number])

    def corrections(self, word: str) -> list[Correction]:
        """Return the words of the index that a misspelt one may have meant, all equally near."""
        found = self._spelling.corrections(word)
        return [each for each in found if each.edits == found[0].edits]

    def relatives(self, word: str) -> tuple[int, float] | None:
        """Return the term, and its weight, of a longest beginning of an unknown word, or of a word it begins.

        `protobuf` finds `proto`, `rental` finds `rent`, `config` finds `configuration`.
        """
        for length in range(len(word) - 1, SHORTEST_PART, -1):
            share = length / len(word)
            if share < LEAST_PREFIX_SHARE:
                break
            number = self.surface.get(word[:length])
            if number is not None:
                return number, PREFIX_WEIGHT * share
        longer = {self.surface[each] for each in self._beginning_with(word)}
        if longer:
            return min(longer, key=lambda number: (self._idf[number], number)), EXTENSION_WEIGHT
        return None

    def parts(self, word: str) -> dict[int, float]:
        """Return the terms of the two rare words that an unknown one is made of: `wordcloud`, `word` and `cloud`."""
        for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
            left, right = self.number(word[:cut]), self.number(word[cut:])
            if left is not None and right is not None and min(self._idf[left], self._idf[right]) > RARE:
                return {left: PART_WEIGHT, right: PART_WEIGHT}
        return {}

    def holding(self, part: str) -> set[int]:
        """Return the terms of words that begin with a part of a word, or else of words that have it elsewhere.

        `inv` and `oice` find `invoice`. A part elsewhere needs four letters: shorter ones are in too many words.
        """
        found = set(self._listed_with(f"\n{part}"))
        if not found and (len(part) > SHORTEST_PART or not part.isascii()):
            found = set(self._listed_with(part))
        return found

    def _listed_with(self, part: str) -> Iterator[int]:
        """Give the terms of the first words of the list that have this part."""
        place = self._listed.find(part)
        for _ in range(MOST_HOLDING):
            if place < 0:
                return
            start, end = self._listed.rfind("\n", 0, place + 1) + 1, self._listed.find("\n", place + 1)
            word = self._listed[start:end]
            yield self.surface[word] if word in self.surface else self.numbers[word]
            place = self._listed.find(part, end)

    @cached_property
    def _listed(self) -> str:
        """All words and terms in one text, each on a line, so that looking for a part of any is a single search."""
        return "\n".join(("", *dict.fromkeys((*self.surface, *self.numbers)), ""))

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.surface)

    @cached_property
    def _sorted(self) -> Sequence[str]:
        return sorted(word for word in self.surface if len(word) >= SHORTEST_PART and word.isalpha())

    def _beginning_with(self, word: str) -> Iterator[str]:
        for place in range(bisect_left(self._sorted, word), len(self._sorted)):
            if not self._sorted[place].startswith(word):
                return
            yield self._sorted[place]


def correctable(word: str) -> bool:
    """Return whether a word is long enough, and all letters, so that its spelling can be judged."""
    return len(word) >= SHORTEST_WORD and word.isalpha()
