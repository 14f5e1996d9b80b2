"""Finds documents by their name, however it is written: `git_log`, `gitLog`, `git.git_log`, `Git Log`, or misspelt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from .tokens import fold, pieces, runs

LONGEST_NAME = 128
# A misspelt name is looked for among all names: that is for what looks like one.
LONGEST_MISSPELT = 64
MOST_WORDS = 8
# Two thirds of nothing but typos still pass; two names that share one word of two do not.
LEAST_SIMILARITY = 82
MOST_SIMILAR = 20
# `get_user` and `getUser` may both exist: as it is written comes before any other writing, and that before likeness.
LITERAL_BONUS = 3.0
EXACT_BONUS = 2.0
SIMILAR_BONUS = 1.0


class NameIndex:
    """The names of documents, alone and behind their server's."""

    def __init__(self, names: Sequence[tuple[str, str]], spaced: Sequence[str]) -> None:
        """Take (name, server) pairs and the words of each name; a document is known by its place among them."""
        self._spaced = spaced
        servers = {server: _spaced(server).replace(" ", "") for server in {server for _, server in names}}
        literal: defaultdict[str, list[int]] = defaultdict(list)
        exact: defaultdict[str, list[int]] = defaultdict(list)
        for number, (name, server) in enumerate(names):
            joined = self._spaced[number].replace(" ", "")
            literal[name].append(number)
            exact[joined].append(number)
            if server:
                literal[f"{server}.{name}"].append(number)
                exact[servers[server] + joined].append(number)
        exact.pop("", None)
        self._literal = dict(literal)
        self._exact = dict(exact)

    def bonuses(self, query: str) -> Mapping[int, float]:
        """Return what each document gains because the query is its name, or nearly is."""
        if len(query) > LONGEST_NAME:
            return {}
        spaced = _spaced(query)
        bonuses = self._similar(spaced)
        bonuses.update(dict.fromkeys(self._exact.get(spaced.replace(" ", ""), ()), EXACT_BONUS))
        bonuses.update(dict.fromkeys(self._literal.get(query.strip(), ()), LITERAL_BONUS))
        return bonuses

    def _similar(self, spaced: str) -> dict[int, float]:
        from rapidfuzz import fuzz, process

        if not spaced or len(spaced) > LONGEST_MISSPELT or spaced.count(" ") >= MOST_WORDS:
            return {}
        found = process.extract(
            spaced, self._spaced, scorer=fuzz.ratio, score_cutoff=LEAST_SIMILARITY, limit=MOST_SIMILAR
        )
        return {number: SIMILAR_BONUS * similarity / 100 for _, similarity, number in found}


def _spaced(name: str) -> str:
    return " ".join(word for run in runs(fold(name)) for word in pieces(run))
