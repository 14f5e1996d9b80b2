"""Takes texts out of what the skills store keeps: upstream answers, what is told of skills, and what runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .content import Json
from .models import RevisionRow, RunRow, SkillRow, VersionRow
from .skills import draft_of, next_revision
from .sql import col, sa, select

if TYPE_CHECKING:
    from .engine import Database
    from .sql import Session

_TOLD = ("description", "tags")
_RUNS = ("code", "tests", "signature", "parameters", "modules", "tools", "skills", "extra")
"""What a version runs, or what is made of that when it is saved; `extra` holds the further files of a folder too."""


@dataclass(frozen=True, slots=True)
class SkillTraces:
    """Where texts stand: `recordings`, `descriptions` and `code` name versions as `name number`, `names` skills."""

    recordings: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def redact_skills(
    database: Database, redacted: Callable[[Json], Json], *, changes: bool, in_code: bool = False
) -> SkillTraces:
    """Replace what every version holds by what `redacted` makes of it, and name those that it makes differ.

    Only where `changes`. What runs is replaced only `in_code`, and skills of whose names it would make others are
    removed for good then. It is the one change of a stored version: its hash becomes that of what it now holds, so
    that a run which began with what it held before does not take it for the same.
    """
    found: dict[str, list[str]] = {"recordings": [], "descriptions": [], "code": [], "names": []}
    with database.transaction() as session:
        revision = next_revision(session) if changes else 0
        rows = session.exec(select(SkillRow, VersionRow).where(VersionRow.skill_id == SkillRow.id)).all()
        for skill, row in rows:
            made: dict[str, Any] = {}
            for kind, parts in (("recordings", ("recordings",)), ("descriptions", _TOLD), ("code", _RUNS)):
                others = {
                    part: other for part in parts if (other := redacted(getattr(row, part))) != getattr(row, part)
                }
                if others:
                    found[kind].append(f"{skill.name} {row.number}")
                    made |= others if kind != "code" or in_code else {}
            if changes and made:
                for part, other in made.items():
                    setattr(row, part, other)
                draft = draft_of(skill.name, row)
                row.content_hash, row.size, skill.revision = draft.content_hash(), draft.size, revision
                session.add_all((row, skill))
        for skill in {skill.name: skill for skill, _ in rows}.values():
            if redacted(skill.name) != skill.name:
                found["names"].append(skill.name)
                if changes and in_code:
                    _remove(session, skill, revision)
        if not any(found.values()):
            session.rollback()
    return SkillTraces(**{kind: tuple(named) for kind, named in found.items()})


def _remove(session: Session, skill: SkillRow, revision: int) -> None:
    session.exec(sa.delete(VersionRow).where(col(VersionRow.skill_id) == skill.id))
    session.exec(sa.update(RunRow).where(col(RunRow.skill) == skill.name).values(skill=None, version=None))
    session.delete(skill)
    session.exec(sa.update(RevisionRow).values(purged=revision))
