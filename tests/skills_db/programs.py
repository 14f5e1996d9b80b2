"""What other programs do to a database in tests; they start faster without the test's own imports."""

from __future__ import annotations

from pathlib import Path

from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import open_database
from sealab.skills_db.skills import SkillStore

SAVES = 5


def save_some(url: str | None, home: Path, client: int, start, results) -> None:
    """Once told to start, open the database and save versions of one skill; put (client, number, version) of each."""
    start.wait()
    with open_database(url, home) as database:
        store = SkillStore(database)
        results.put(
            [(client, n, store.save(SkillDraft(name="shared", code=f"{client}.{n}")).version) for n in range(SAVES)]
        )
