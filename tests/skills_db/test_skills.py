"""The store of skills, on SQLite and on PostgreSQL."""

from __future__ import annotations

from sealab.skills_db.content import SkillDraft
from sealab.skills_db.skills import SkillStore


def test_what_was_saved_is_loaded_exactly(store: SkillStore):
    draft = SkillDraft(name="a", code="def a(): pass", tags=("x",), recordings={"k": ["\0\ud800", 10**40, 0.1]})
    saved = store.save(draft)
    assert (saved.version, saved.created) == (1, True)
    assert store.load("a").draft == draft
