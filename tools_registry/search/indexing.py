"""Turns documents into the columns that the indexes are made of: terms and known words, field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class Field:
    """How much a field counts: for terms, how far its length is normalized (`b` of BM25F), and for meaning."""

    weight: float
    length_normalization: float
    meaning: float


# Chosen on the development queries of seven public collections of tools (`tests/benchmarks/search.py`); the figures
# change little around these values.
FIELDS = (
    Field(weight=1.0, length_normalization=0.5, meaning=2.0),  # name
    Field(weight=1.0, length_normalization=0.5, meaning=1.0),  # server
    Field(weight=2.0, length_normalization=0.6, meaning=1.0),  # first sentence of the description
    Field(weight=1.0, length_normalization=0.6, meaning=0.5),  # the rest of it
    Field(weight=1.5, length_normalization=0.7, meaning=0.3),  # names of the parameters
    Field(weight=0.5, length_normalization=0.7, meaning=0.0),  # their descriptions
)


@dataclass(frozen=True, slots=True)
class Columns:
    """`numbers` maps stems, `surface` words as written, to term numbers; a column for each field."""

    numbers: Mapping[str, int]
    surface: Mapping[str, int]
    terms: Sequence[FieldTerms]
    words: Sequence[FieldWords]


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run of letters and digits becomes, kept because descriptions repeat each other."""

    pieces: Sequence[str]
    terms: Sequence[int]
    words: Sequence[int]


def columns_of(documents: Sequence[Searchable], word_numbers: Mapping[str, int]) -> Columns:
    """Read all documents; `word_numbers` numbers the words that have a vector."""
    numbers: dict[str, int] = {}
    surface: dict[str, int] = {}
    kept: dict[str, _Run] = {}

    def read(run: str) -> _Run:
        parts = pieces(run)
        telling = [part for part in parts if part not in STOP_WORDS]
        for part in telling:
            if part not in surface:
                surface[part] = numbers.setdefault(stem(part), len(numbers))
        terms = [surface[part] for part in telling]
        known = [word_numbers[part] for part in telling if part in word_numbers]
        made = kept[run] = _Run(parts, terms, known)
        return made

    terms: list[list[int]] = [[] for _ in FIELDS]
    words: list[list[int]] = [[] for _ in FIELDS]
    term_lengths: list[list[int]] = [[] for _ in FIELDS]
    word_lengths: list[list[int]] = [[] for _ in FIELDS]
    for document in documents:
        for place, text in enumerate(_texts(document)):
            terms_before, words_before = len(terms[place]), len(words[place])
            read_runs = [kept.get(run) or read(run) for run in runs(fold(text))]
            for each in read_runs:
                terms[place] += each.terms
                words[place] += each.words
            if place == 0:  # a query may write the name's words as one
                parts = [part for each in read_runs for part in each.pieces]
                terms[place] += [
                    numbers.setdefault(left + right, len(numbers))
                    for left, right in pairwise(parts)
                    if len(left) + len(right) >= SHORTEST_JOINED
                ]
            term_lengths[place].append(len(terms[place]) - terms_before)
            word_lengths[place].append(len(words[place]) - words_before)
    return Columns(
        numbers,
        surface,
        [
            FieldTerms(column, lengths, field.weight, field.length_normalization)
            for column, lengths, field in zip(terms, term_lengths, FIELDS, strict=True)
        ],
        [
            FieldWords(column, lengths, field.meaning)
            for column, lengths, field in zip(words, word_lengths, FIELDS, strict=True)
            if field.meaning
        ],
    )


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
