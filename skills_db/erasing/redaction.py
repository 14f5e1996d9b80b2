"""Takes texts out of what the skills store keeps of upstream answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..content import Json
from ..models import RevisionRow, SkillRow, VersionRow
from ..skills import draft_of
from ..sql import col, sa, select

if TYPE_CHECKING:
    from ..engine import Database


def redact_recordings(database: Database, redacted: Callable[[Json], Json], *, changes: bool) -> list[str]:
    """Replace the recordings of every version by what `redacted` makes of them, and name those that it makes differ.

    Only where `changes`. It is the one change of a stored version: its hash becomes that of what it now holds.
    """
    named: list[str] = []
    with database.transaction() as session:
        rows = session.exec(select(SkillRow.name, VersionRow).where(VersionRow.skill_id == SkillRow.id)).all()
        for name, row in rows:
            recordings = redacted(row.recordings)  # type: ignore[arg-type]  # it is JSON, as it was stored
            if recordings == row.recordings:
                continue
            named.append(f"{name} {row.number}")
            if changes:
                row.recordings = recordings
                draft = draft_of(name, row)
                row.content_hash, row.size = draft.content_hash(), draft.size
                session.add(row)
        if named and changes:
            session.exec(sa.update(RevisionRow).values(number=col(RevisionRow.number) + 1))
    return named
