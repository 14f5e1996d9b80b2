"""The skills of one store, and those of another that are published for it to read.

A security boundary: of the other store nothing is shown but the skills that are tagged `SHARED`, and of these neither
how often they ran nor what upstream servers answered in their tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..content import SkillPage, SkillSummary
from ..engine import Database
from ..errors import SkillNotFound
from ..skills import SkillStore, StoredSkill

SHARED = "shared"
"""The tag of the skills of the operator's store that every tenant may read and run."""


class ShelvedSkills(SkillStore):
    """A store that also reads the published skills of `shelf`; where both have a name, its own is meant."""

    def __init__(self, database: Database, shelf: SkillStore, *, bytes_max: int | None = None) -> None:
        super().__init__(database, bytes_max=bytes_max)
        self._shelf = shelf
        self._merged: tuple[object, object, Mapping[str, SkillSummary]] = (None, None, {})

    def load(self, name: str, version: int | None = None) -> StoredSkill:
        """Return a version of a skill of its own, or of a published one. Raises `SkillNotFound`."""
        try:
            return super().load(name, version)
        except SkillNotFound:
            if name in super().summaries() or not is_shared(self._shelf, name):
                raise
        found = self._shelf.load(name, version)
        if not publishing(found.draft.tags):  # of before the skill was published
            raise SkillNotFound(
                f"The skill {name!r} has no version {version} that is published. Leave the version out for the newest."
            )
        return replace(found, draft=replace(found.draft, recordings=None), runs=0, last_run=None)

    def summaries(self) -> Mapping[str, SkillSummary]:
        """Return its own skills and the published ones by name; the same object while nothing changes."""
        own, theirs = super().summaries(), self._shelf.summaries()
        known_own, known_theirs, merged = self._merged
        if known_own is not own or known_theirs is not theirs:
            shared = {name: each for name, each in theirs.items() if each.has_tag(SHARED)}
            merged = MappingProxyType(dict(sorted({**shared, **own}.items())))
            self._merged = own, theirs, merged
        return merged

    def with_runs(self, summaries: Sequence[SkillSummary]) -> tuple[SkillSummary, ...]:
        """Return the summaries with how often and when last each of its own skills ran."""
        own = super().summaries()
        counted = {each.name: each for each in super().with_runs([each for each in summaries if each.name in own])}
        found = (counted.get(each.name) if each.name in own else each for each in summaries)
        return tuple(each for each in found if each is not None)

    def list(self, tag: str | None = None, limit: int | None = 50) -> SkillPage:
        """Return the first skills in the order of their names; only those with the tag, if one is given."""
        found = [each for each in self.summaries().values() if tag is None or each.has_tag(tag)]
        return SkillPage(len(found), self.with_runs(found[:limit]))

    def names(self) -> tuple[str, ...]:
        """Return the names of its own skills and of the published ones, in their order."""
        return tuple(self.summaries())


def publishing(tags: Sequence[str]) -> tuple[str, ...]:
    """Return those of the tags that put a skill on the shelf, as they are written."""
    return tuple(tag for tag in tags if tag.casefold() == SHARED)


def is_shared(store: SkillStore, name: str) -> bool:
    """Return whether a store has published a skill."""
    summary = store.summaries().get(name)
    return summary is not None and summary.has_tag(SHARED)
