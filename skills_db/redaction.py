"""Takes texts out of what the skills store keeps: upstream answers, descriptions of skills, and what runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .content import Json
from .skills import draft_of, forget_runs, next_revision
from .sql import sa
from .tables import REVISION, SKILL, VERSION

if TYPE_CHECKING:
    from .engine import Database

_DESCRIPTIONS = ("description", "tags")
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
    with database.transaction() as connection:
        revision = next_revision(connection) if changes else 0
        rows = connection.execute(sa.select(SKILL.c.name, VERSION).select_from(VERSION.join(SKILL))).all()
        for row in rows:
            made: dict[str, Any] = {}
            for kind, parts in (("recordings", ("recordings",)), ("descriptions", _DESCRIPTIONS), ("code", _RUNS)):
                others = {
                    part: other for part in parts if (other := redacted(getattr(row, part))) != getattr(row, part)
                }
                if others:
                    found[kind].append(f"{row.name} {row.number}")
                    made |= others if kind != "code" or in_code else {}
            if changes and made:
                draft = replace(draft_of(row.name, row), **made)
                made |= {"content_hash": draft.content_hash(), "size": draft.size}
                connection.execute(sa.update(VERSION).where(VERSION.c.id == row.id).values(made))
                connection.execute(sa.update(SKILL).where(SKILL.c.id == row.skill_id).values(revision=revision))
        for skill_id, name in {row.skill_id: row.name for row in rows}.items():
            if redacted(name) != name:
                found["names"].append(name)
                if changes and in_code:
                    connection.execute(sa.delete(VERSION).where(VERSION.c.skill_id == skill_id))
                    connection.execute(sa.delete(SKILL).where(SKILL.c.id == skill_id))
                    forget_runs(connection, name)
                    connection.execute(sa.update(REVISION).values(purged=revision))
        if not any(found.values()):
            connection.rollback()
    return SkillTraces(**{kind: tuple(named) for kind, named in found.items()})
