"""What a list says of each skill, and the lists in memory: the same ranking for every database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .content import SkillKind
from .word_index import WordIndex

_NAME, _TAGS, _DESCRIPTION, _SIGNATURE = 4.0, 2.0, 1.0, 0.5


@dataclass(frozen=True, slots=True)
class SkillSummary:
    """What a list says of a skill: its newest version in short, and how often and when last it ran."""

    name: str
    version: int
    kind: SkillKind
    description: str
    signature: str
    tags: tuple[str, ...]
    created_at: datetime
    runs: int
    last_run: datetime | None


@dataclass(frozen=True, slots=True)
class SkillPage:
    """The first skills of a list, and how many there are in all."""

    total: int
    skills: tuple[SkillSummary, ...]


class SkillIndex:
    """The newest versions of all skills, by name, by tag and by word. Not for several threads at once."""

    def __init__(self) -> None:
        self.summaries: dict[str, SkillSummary] = {}
        self._tagged: dict[str, set[str]] = {}
        self._ordered: list[str] | None = None
        self._words = WordIndex()
        self._unread: dict[str, None] = {}

    def put(self, summary: SkillSummary) -> None:
        """Add a skill, or replace what is known of it."""
        self._forget(summary.name)
        self.summaries[summary.name] = summary
        for tag in summary.tags:
            self._tagged.setdefault(tag.casefold(), set()).add(summary.name)

    def remove(self, name: str) -> None:
        """Forget a skill, if it is known."""
        self._forget(name)

    def warm(self) -> None:
        """Bring the words up to date; lists without a query do without them."""
        for name in self._unread:
            summary = self.summaries.get(name)
            if summary is None:
                self._words.remove(name)
                continue
            fields = (name, _NAME), (" ".join(summary.tags), _TAGS), (summary.description, _DESCRIPTION)
            self._words.put(name, (*fields, (summary.signature, _SIGNATURE)))
        self._unread.clear()

    def find(self, query: str | None, tag: str | None, limit: int | None) -> tuple[int, list[str]]:
        """Return how many skills fit, and the names of the first: best first, or by name without a query."""
        tagged = None if tag is None else self._tagged.get(tag.casefold(), set())
        if query is None or not query.strip():
            ordered = self._by_name() if tagged is None else sorted(tagged)
            return len(ordered), ordered[:limit]
        self.warm()
        if not any(map(str.isalnum, query)):
            return self._find_signs(query.strip(), tagged, limit)
        return self._words.search(query, limit, tagged)

    def nearest(self, name: str) -> list[str]:
        """Return the names that a misspelt one may have meant."""
        self.warm()
        return self._words.nearest(name)

    def _forget(self, name: str) -> None:
        old = self.summaries.pop(name, None)
        for tag in () if old is None else old.tags:
            self._tagged[tag.casefold()].discard(name)
        self._ordered = None
        self._unread[name] = None

    def _by_name(self) -> list[str]:
        if self._ordered is None:
            self._ordered = sorted(self.summaries)
        return self._ordered

    def _find_signs(self, query: str, tagged: set[str] | None, limit: int | None) -> tuple[int, list[str]]:
        """Look for a query without any letter or digit as it stands."""
        found = [
            each.name
            for each in map(self.summaries.__getitem__, self._by_name() if tagged is None else sorted(tagged))
            if query in each.name or query in each.description or query in each.signature or query in each.tags
        ]
        return len(found), found[:limit]
