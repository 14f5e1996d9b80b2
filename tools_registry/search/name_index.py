"""Finds documents by their name, however it is written: `git_log`, `gitLog`, `git.git_log`, `Git Log`, or misspelt."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice

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
# "use the getRandomImage API": a name as programs write it, within a sentence.
NAMED_BONUS = 0.5
SHORTEST_NAMED = 6
SHORTEST_NAMED_PART = 8
MOST_NAMED = 20
_IDENTIFIER = re.compile(
    r"(?<![\w/.])(?:[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+)(?![\w/])"
)


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

    def named_in(self, query: str) -> Mapping[int, float]:
        """Return what each document gains because the query has its name, or a long part of it, as an identifier."""
        bonuses: dict[int, float] = {}
        for written in dict.fromkeys(_IDENTIFIER.findall(query)):
            joined = "".join(_words_of(written))
            numbers = self._holding(joined) if len(joined) >= SHORTEST_NAMED else []
            if len(numbers) <= MOST_NAMED:
                bonuses.update(dict.fromkeys(numbers, NAMED_BONUS))
        return bonuses

    def _holding(self, joined: str) -> list[int]:
        """Return the documents that are called so, or whose name has it as a part; at most one more than count."""
        if len(joined) < SHORTEST_NAMED_PART:
            named = (number for number in self._exact.get(joined, ()) if self._joined[number] == joined)
            return list(islice(named, MOST_NAMED + 1))
        numbers: list[int] = []
        place = self._listed.find(joined)
        while place >= 0 and len(numbers) <= MOST_NAMED:
            numbers.append(bisect_right(self._starts, place) - 1)
            place = self._listed.find(joined, self._listed.find("\n", place))
        return numbers

    @cached_property
    def _joined(self) -> list[str]:
        return [name.replace(" ", "") for name in self._spaced]

    @cached_property
    def _listed(self) -> str:
        """All names in one text, each on a line, so that looking for a part of any is a single search."""
        return "".join(f"{name}\n" for name in self._joined)

    @cached_property
    def _starts(self) -> list[int]:
        """Where in `_listed` each name begins."""
        return [0, *accumulate(len(name) + 1 for name in self._joined)]

    def _similar(self, spaced: str) -> dict[int, float]:
        from rapidfuzz import fuzz, process

        if not spaced or len(spaced) > LONGEST_MISSPELT or spaced.count(" ") >= MOST_WORDS:
            return {}
        found = process.extract(
            spaced, self._spaced, scorer=fuzz.ratio, score_cutoff=LEAST_SIMILARITY, limit=MOST_SIMILAR
        )
        return {number: SIMILAR_BONUS * similarity / 100 for _, similarity, number in found}


def _words_of(name: str) -> list[str]:
    return [word for run in runs(fold(name)) for word in pieces(run)]


def _spaced(name: str) -> str:
    return " ".join(_words_of(name))
