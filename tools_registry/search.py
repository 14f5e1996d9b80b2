"""Finds the right tools and skills for a query: one index over all of them, built whenever the catalog changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORDS = re.compile(r"[^\W_]+")


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
class Hit:
    """A document that was found; scores compare within one answer only, and more is better."""

    key: str
    name: str
    server: str
    category: str
    score: float


class SearchIndex:
    """An index that never changes: any number of threads may search it."""

    def __init__(self, documents: Iterable[Searchable]) -> None:
        self._documents = tuple(sorted(documents, key=lambda each: (each.name, each.server, each.key)))

    def __len__(self) -> int:
        return len(self._documents)

    def search(self, query: str, *, category: str | None = None, limit: int = 10) -> list[Hit]:
        """Return at most `limit` documents, best first; equal scores in the order of their names.

        `category` keeps only the documents of that category. A query without a letter or digit in it that is empty or
        blank lists the documents in the order of their names, with score 0. Raises ValueError for a limit below 1.
        """
        if limit < 1:
            raise ValueError(f"limit is {limit}: it must be at least 1")
        chosen = [each for each in self._documents if category is None or each.category == category]
        words = set(_WORDS.findall(query.lower()))
        scored = []
        for each in chosen:
            text = f"{each.name} {each.server} {each.description}".lower().replace("_", " ")
            scored.append((len(words & set(_WORDS.findall(text))), each))
        found = [pair for pair in scored if pair[0] or not query.strip()]
        found.sort(key=lambda pair: -pair[0])
        return [Hit(each.key, each.name, each.server, each.category, float(score)) for score, each in found[:limit]]
