"""What a list says of each skill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .content import SkillKind


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

    def has_tag(self, tag: str) -> bool:
        """Return whether a tag is one of the skill's, in whatever case."""
        return tag.casefold() in map(str.casefold, self.tags)


@dataclass(frozen=True, slots=True)
class SkillPage:
    """The first skills of a list, and how many there are in all."""

    total: int
    skills: tuple[SkillSummary, ...]
