"""Finds documents by their name, however it is written: `git_log`, `gitLog`, `git.git_log`, `Git Log`, or misspelt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from .tokens import fold, pieces, runs

LONGEST_NAME = 64
MOST_WORDS = 8
# Two thirds of nothing but typos still pass; two names that share one word of two do not.
LEAST_SIMILARITY = 82
MOST_SIMILAR = 20
EXACT_BONUS = 2.0
SIMILAR_BONUS = 1.0


class NameIndex:
    """The names of documents, alone and behind their server's."""

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        """Take (name, server) pairs; a document is known by its place among them."""
        self._spaced = [_spaced(name) for name, _ in names]
        exact: defaultdict[str, list[int]] = defaultdict(list)
        for number, (_, server) in enumerate(names):
            name = self._spaced[number].replace(" ", "")
            exact[name].append(number)
            if server:
                exact[_spaced(server).replace(" ", "") + name].append(number)
        exact.pop("", None)
        self._exact = dict(exact)

    def bonuses(self, query: str) -> Mapping[int, float]:
        """Return what each document gains because the query is its name (`EXACT_BONUS`) or nearly is."""
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only searching needs it, starting does not

        if len(query) > LONGEST_NAME:
            return {}
        spaced = _spaced(query)
        if not 0 < len(spaced.split(" ")) <= MOST_WORDS:
            return {}
        bonuses = {
            number: SIMILAR_BONUS * similarity / 100
            for _, similarity, number in process.extract(
                spaced, self._spaced, scorer=fuzz.ratio, score_cutoff=LEAST_SIMILARITY, limit=MOST_SIMILAR
            )
        }
        bonuses.update(dict.fromkeys(self._exact.get(spaced.replace(" ", ""), ()), EXACT_BONUS))
        return bonuses


def _spaced(name: str) -> str:
    return " ".join(word for run in runs(fold(name)) for word in pieces(run))
