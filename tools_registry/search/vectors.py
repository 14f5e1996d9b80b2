"""Small word vectors: what a word means, and which other words mean nearly the same.

The data lie in `data/` with their origin, notice and recipe. A text is the sum of the vectors of its words, whose
lengths already say how much a word matters; nothing but numpy is needed (Reimers and Gurevych, *Sentence-BERT*, 2019,
for the teacher; static distillation as in Tulkens and van Dongen, *Model2Vec*, 2024).
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from .typos import Spelling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Numbers: TypeAlias = NDArray[np.int64]

VECTORS = "wordvec64.npz"
EVERYDAY_VECTORS = "wordvec160.npz"
NEIGHBOURS = "neighbours.txt.gz"
ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class WordVectors:
    """Read with `load_word_vectors`.

    `rows` has one vector for each word, and `number` says which; `near` has for a word its neighbours, as `other:82`
    for a cosine of 0.82, apart by blanks.
    """

    number: Mapping[str, int]
    rows: Floats | NDArray[np.int8]
    near: Mapping[str, str]

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self.rows.shape[1])

    def of_words(self, weights: Mapping[str, float]) -> Floats:
        """Return the unit vector of a text of these words, each with its weight; zeros if none of them is known."""
        import numpy as np

        known = [word for word in weights if word in self.number]
        rows = self.rows[[self.number[word] for word in known]]
        return _unit(np.array([weights[word] for word in known], np.float32) @ rows)

    def neighbours(self, word: str) -> list[tuple[str, float]]:
        """Return the words nearest in meaning to a word, with their cosine, nearest first."""
        pairs = (each.rpartition(":") for each in self.near.get(word, "").split())
        return [(other, int(percent) / 100) for other, _, percent in pairs]

    @cached_property
    def spelling(self) -> Spelling:
        """The words that have a vector, to correct misspelt ones by."""
        return Spelling(self.number)


@lru_cache(maxsize=1)
def load_word_vectors() -> WordVectors:
    """Read the vectors that come with the package, once."""
    import numpy as np

    data = files(__package__) / "data"
    with (data / VECTORS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        rows = arrays["q"].astype(np.float32) * arrays["scale"] * arrays["w"].astype(np.float32)[:, None]
        words = str(arrays["words"]).split("\n")
    lines = gzip.decompress((data / NEIGHBOURS).read_bytes()).decode().splitlines()
    near = dict(line.split(" ", 1) for line in lines)
    return WordVectors({word: number for number, word in enumerate(words)}, rows, near)


@lru_cache(maxsize=1)
def load_everyday_vectors() -> WordVectors:
    """Read vectors of twice as many words, once: larger, and better for what is no description of a tool.

    Their rows are whole numbers, so that they take little memory: only their direction and relative length matter.
    """
    import numpy as np

    with (
        (files(__package__) / "data" / EVERYDAY_VECTORS).open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        rows, words = arrays["q"], str(arrays["words"]).split("\n")
    return replace(load_word_vectors(), rows=rows, number={word: number for number, word in enumerate(words)})


@dataclass(frozen=True, slots=True)
class FieldWords:
    """The known words of one field over all documents: their numbers, how many each document has, and their weight."""

    words: Numbers
    lengths: Numbers
    weight: float


def document_vectors(vectors: WordVectors, fields: Sequence[FieldWords], *, documents: int) -> Floats:
    """Return one unit vector for each document, the weighted sum over its fields' words."""
    import numpy as np

    words = np.concatenate([field.words for field in fields])
    each = np.concatenate([np.repeat(np.arange(documents), field.lengths) for field in fields])
    weights = np.concatenate([np.full(len(field.words), field.weight, np.float32) for field in fields])
    order = np.argsort(each, kind="stable")
    words, each, weights = words[order], each[order], weights[order]
    summed = np.zeros((documents, vectors.dimensions), np.float32)
    bounds = np.searchsorted(each, np.arange(0, documents + ROWS_AT_ONCE, ROWS_AT_ONCE))
    for low, high in pairwise(bounds):  # some thousand documents fit the processor's cache
        if low == high:
            continue
        part = vectors.rows[words[low:high]] * weights[low:high, None]
        owner = each[low:high]
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        summed[owner[starts]] = np.add.reduceat(part, starts, axis=0)
    return _unit(summed)


def _unit(rows: Floats) -> Floats:
    import numpy as np

    unit: Floats = rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + np.float32(1e-9))
    return unit
