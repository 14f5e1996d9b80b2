"""Turns documents into the columns that the indexes are made of: terms and known words, field by field."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .inverted_index import FieldTerms
from .tokens import STOP_WORDS, fold, pieces, runs, stem
from .vectors import FieldWords

# Nothing a server sends may make the index slow: of longer texts the beginning counts.
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 1500
LONGEST_PARAMETER = 200
MOST_PARAMETERS = 200
LONGEST_SENTENCE = 300
SHORTEST_SENTENCE = 20
SHORTEST_JOINED = 5
# A lexicon is made anew when more than half of it, and this many words, stand in no document.
LEAST_KEPT = 1000

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[\u3002\uff01\uff1f]")


@dataclass(frozen=True, slots=True)
class Searchable:
    """A document of the index: a tool, or a skill (category `skills`).

    `key` is unique and is what a hit names. `parameters` holds (name, description) pairs; a description may be empty.
    """

    key: str
    name: str
    server: str = ""
    category: str = ""
    description: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class IndexedField:
    """How much a field counts: for terms, how far its length is normalized (`b` of BM25F), and for meaning."""

    weight: float
    length_normalization: float
    meaning: float


# Chosen on the development queries of seven public collections of tools (`tests/benchmarks/search.py`); the figures
# change little around these values.
FIELDS = (
    IndexedField(weight=1.0, length_normalization=0.5, meaning=2.0),  # name
    IndexedField(weight=1.0, length_normalization=0.5, meaning=1.0),  # server
    IndexedField(weight=2.0, length_normalization=0.6, meaning=1.0),  # first sentence of the description
    IndexedField(weight=1.0, length_normalization=0.6, meaning=0.5),  # the rest of it
    IndexedField(weight=1.5, length_normalization=0.7, meaning=0.3),  # names of the parameters
    IndexedField(weight=0.5, length_normalization=0.7, meaning=0.0),  # their descriptions
)


@dataclass(frozen=True, slots=True)
class Columns:
    """`numbers` maps stems, `surface` words as written, to term numbers; a column for each field.

    `names` are the words of each document's name, separated by blanks.
    """

    numbers: Mapping[str, int]
    surface: Mapping[str, int]
    terms: Sequence[FieldTerms]
    words: Sequence[FieldWords]
    names: Sequence[str]


@dataclass(slots=True)
class _Lexicon:
    """What was read so far, by number: words, and pairs of words of a name written as one."""

    words: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    entries: list[tuple[str, str | None]] = field(default_factory=list)
    """For each number the term, and the word as it was written; a pair is no word that a query is corrected to."""

    def word(self, word: str) -> int:
        number = self.words.get(word)
        if number is None:
            number = self.words[word] = len(self.entries)
            self.entries.append((stem(word), word))
        return number

    def pair(self, pair: str) -> int:
        number = self.pairs.get(pair)
        if number is None:
            number = self.pairs[pair] = len(self.entries)
            self.entries.append((pair, None))
        return number


@dataclass(frozen=True, slots=True)
class _Reading:
    """A document that was read: the numbers of its words, one after the other, and how many each field has."""

    document: Searchable
    numbers: bytes
    lengths: tuple[int, ...]
    name: str


class DocumentReader:
    """Reads documents into columns; given again, it reads only those that it did not read the last time.

    The columns depend on the documents alone, never on what was read before. Any number of threads may use it. An index
    of 10,000 documents of which one changed is built in a third of the time (`tests/benchmarks/search.py`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lexicon = _Lexicon()
        self._last: dict[str, _Reading] = {}

    def columns(self, documents: Sequence[Searchable], word_numbers: Mapping[str, int]) -> Columns:
        """Read all documents; `word_numbers` numbers the words that have a vector."""
        with self._lock:
            kept: dict[str, tuple[list[str], list[int]]] = {}
            readings = [self._read(document, kept) for document in documents]
            columns, live = _columns(self._lexicon.entries, readings, word_numbers)
            self._last = {each.document.key: each for each in readings}
            if len(self._lexicon.entries) > LEAST_KEPT + 2 * live:  # most of it is in no document any more
                self._lexicon, self._last = _Lexicon(), {}
        return columns

    def _read(self, document: Searchable, kept: dict[str, tuple[list[str], list[int]]]) -> _Reading:
        """Read a document; `kept` holds what runs of letters and digits became, because descriptions repeat them."""
        last = self._last.get(document.key)
        if last is not None and (last.document is document or last.document == document):
            return last
        numbers, lengths, name = array("i"), [], ""
        for place, text in enumerate(_texts(document)):
            before = len(numbers)
            parts: list[str] = []
            for run in runs(fold(text)):
                known = kept.get(run)
                if known is None:
                    cut = pieces(run)
                    known = kept[run] = cut, [self._lexicon.word(part) for part in cut if part not in STOP_WORDS]
                numbers.extend(known[1])
                if place == 0:
                    parts += known[0]
            if place == 0:  # a query may write the name's words as one
                pairs = [left + right for left, right in pairwise(parts) if len(left) + len(right) >= SHORTEST_JOINED]
                numbers.extend(map(self._lexicon.pair, pairs))
                name = " ".join(parts)
            lengths.append(len(numbers) - before)
        return _Reading(document, numbers.tobytes(), tuple(lengths), name)


def _columns(
    entries: Sequence[tuple[str, str | None]], readings: Sequence[_Reading], word_numbers: Mapping[str, int]
) -> tuple[Columns, int]:
    """Return the columns of documents that were read, and how many entries of the lexicon they have.

    Terms are numbered in the order in which the documents have them.
    """
    import numpy as np

    found = np.frombuffer(b"".join([each.numbers for each in readings]), np.intc)
    lengths = np.array([each.lengths for each in readings], np.int64).reshape(-1, len(FIELDS))
    first = np.full(len(entries), len(found))
    first[found[::-1]] = np.arange(len(found))[::-1]  # of several, the last assignment holds
    live = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(found))]

    numbers: dict[str, int] = {}
    surface: dict[str, int] = {}
    of_entry = [entries[entry] for entry in live.tolist()]
    for term, word in of_entry:
        number = numbers.setdefault(term, len(numbers))
        if word is not None:
            surface[word] = number
    term_of = np.zeros(len(entries), np.int64)
    term_of[live] = [numbers[term] for term, _ in of_entry]
    word_of = np.full(len(entries), -1)
    if word_numbers:
        word_of[live] = [-1 if word is None else word_numbers.get(word, -1) for _, word in of_entry]

    owner = np.repeat(np.arange(lengths.size), lengths.ravel())
    place, document = owner % len(FIELDS), owner // len(FIELDS)
    terms, words = [], []
    for at, each in enumerate(FIELDS):
        mine = place == at
        terms.append(FieldTerms(term_of[found[mine]], lengths[:, at], each.weight, each.length_normalization))
        if each.meaning and word_numbers:
            known = word_of[found[mine]]
            having = np.bincount(document[mine][known >= 0], minlength=len(readings))
            words.append(FieldWords(known[known >= 0], having, each.meaning))
    return Columns(numbers, surface, terms, words, [each.name for each in readings]), len(live)


def _texts(document: Searchable) -> tuple[str, ...]:
    """Return the texts of the fields, in the order of `FIELDS`."""
    description = document.description[:LONGEST_DESCRIPTION]
    end = _SENTENCE_END.search(description, SHORTEST_SENTENCE, SHORTEST_SENTENCE + LONGEST_SENTENCE)
    cut = end.end() if end else LONGEST_SENTENCE
    parameters = document.parameters[:MOST_PARAMETERS]
    return (
        document.name[:LONGEST_NAME],
        document.server[:LONGEST_NAME],
        description[:cut],
        description[cut:],
        " ".join(name[:LONGEST_PARAMETER] for name, _ in parameters),
        " ".join(about[:LONGEST_PARAMETER] for _, about in parameters),
    )
