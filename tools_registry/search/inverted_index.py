"""The inverted index: which terms stand in which documents and what each is worth there.

Two scorers share the postings. BM25F (Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*,
2009, section 3.6) weighs the fields of a document and saturates; the cosine of tf-idf vectors (Salton and Buckley,
*Term-weighting approaches in automatic text retrieval*, 1988) favours short documents that are about the query alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Numbers: TypeAlias = NDArray[np.int64]

SATURATION = 0.9
COSINE_WEIGHT = 0.7


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """The terms of one field over all documents, document after document.

    `terms` holds term numbers, `lengths` how many of them belong to each document. `weight` is the field's, and
    `length_normalization` its `b`: 0 ignores how long a field is, 1 divides by it.
    """

    terms: Numbers
    lengths: Numbers
    weight: float
    length_normalization: float


class InvertedIndex:
    """Postings of `terms` terms in `documents` documents; it never changes."""

    def __init__(self, fields: Sequence[FieldTerms], *, documents: int, terms: int) -> None:
        import numpy as np

        self.documents = documents
        keys, values = [], []
        for field in fields:
            lengths = field.lengths
            total = int(lengths.sum())
            if not total:
                continue
            b = field.length_normalization
            normal = (1 - b) + b * lengths * (documents / total)
            each = np.repeat(np.arange(documents), lengths)
            keys.append(field.terms * documents + each)
            values.append((field.weight / normal)[each])
        key = np.concatenate(keys) if keys else np.zeros(0, np.int64)
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
        frequency = np.add.reduceat(np.concatenate(values)[order], starts) if len(key) else np.zeros(0)
        count = np.diff(np.r_[starts, len(key)])
        term, document = np.divmod(key[starts], documents) if len(key) else (starts, starts)

        holding = np.bincount(term, minlength=terms)
        self.idf = np.log(1 + (documents - holding + 0.5) / (holding + 0.5))
        self.rarest = float(np.log(1 + (documents - 0.5) / 1.5)) if documents else 0.0
        """The idf of a term that stands in one document alone."""
        self._starts: list[int] = np.r_[0, np.cumsum(holding)].tolist()
        self._posted = document.astype(np.int32)
        rarity = self.idf[term]
        self._bm25 = (rarity * frequency * (SATURATION + 1) / (frequency + SATURATION)).astype(np.float32)
        weight = (1 + np.log(count)) * rarity
        length = np.sqrt(np.bincount(document, weights=weight * weight, minlength=documents)) + 1e-9
        self._cosine = (weight / length[document] * rarity).astype(np.float32)

    def scores(self, query: Mapping[int, float]) -> Floats:
        """Score every document for weighted terms; the best has about 1, one without any of the terms 0."""
        import numpy as np

        if not query:
            return np.zeros(self.documents, np.float32)
        postings = [slice(self._starts[term], self._starts[term + 1]) for term in query]
        where = np.concatenate([self._posted[each] for each in postings])
        weights = np.repeat(
            np.fromiter(query.values(), np.float32, len(query)), [each.stop - each.start for each in postings]
        )
        summed = np.zeros(self.documents)
        for values, share in ((self._bm25, 1.0), (self._cosine, COSINE_WEIGHT)):
            found = np.concatenate([values[each] for each in postings]) * weights
            scores = np.bincount(where, weights=found, minlength=self.documents)
            summed += scores * (share / (1 + COSINE_WEIGHT) / max(float(scores.max()), 1e-9))
        return summed.astype(np.float32)

    def evidence(self, query: Mapping[int, float], documents: Sequence[int]) -> tuple[Floats, Floats]:
        """Return for each of some documents its BM25F, and the weighted idf of those of the terms that it holds.

        BM25F counts in the most that one term can be worth.
        """
        import numpy as np

        worth = np.zeros(len(documents), np.float32)
        held = np.zeros(len(documents), np.float32)
        wanted = np.asarray(documents, np.int32)
        for term, weight in query.items():
            start, end = self._starts[term], self._starts[term + 1]
            if start == end:
                continue
            places = np.minimum(np.searchsorted(self._posted[start:end], wanted), end - start - 1) + start
            holds = self._posted[places] == wanted
            worth += holds * self._bm25[places] * np.float32(weight)
            held += holds * np.float32(self.idf[term] * weight)
        return worth / np.float32(max(self.rarest * (SATURATION + 1), 1e-9)), held
