"""Archives of all skills: whole or not at all, on both kinds of database and from one to the other."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from sealab.skills_db.backup import BackedUp, RestoredBackup, backup, restore
from sealab.skills_db.content import SkillDraft, SkillKind
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import BackupRefused, SkillNotFound
from sealab.skills_db.runs import RunRecord, RunStore
from sealab.skills_db.skills import SkillStore

RICH = SkillDraft(
    name="rich",
    code="def rich(a: int) -> int:\n    return a\n",
    kind=SkillKind.SCRIPT,
    signature="(a: int) -> int",
    parameters={"type": "object", "properties": {"a": {"type": "integer", "default": 10**30}}},
    description="Grüße, 数据 'and' \"quotes\"",
    tags=("ä", "b"),
    tests="assert rich(1) == 1",
    modules=("json",),
    tools=("files.read",),
    skills=("other",),
    recordings=[{"tool": "files.read", "answer": "\0\ud800"}],
    extra={"license": "MIT", "metadata": {"x": [1.5, None]}},
)
RUN = RunRecord(
    run_id="r1",
    started_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    duration_ms=12.5,
    status="ok",
    isolation="restricted",
    kind="skill",
    skill="rich",
    version=1,
)


def fill(database: Database) -> Database:
    store = SkillStore(database)
    store.save(RICH)
    store.save(SkillDraft(name="rich", code="second"))
    store.save(SkillDraft(name="gone", code="x"))
    store.delete("gone")
    RunStore(database).record(RUN)
    return database


@pytest.fixture
def filled(database: Database) -> Database:
    return fill(database)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    home = tmp_path / "origin"
    home.mkdir()
    with open_database(None, home) as origin:
        return backup(fill(origin), tmp_path / "backup.zip").path


@pytest.fixture
def other(tmp_path: Path) -> Database:
    home = tmp_path / "other"
    home.mkdir()
    with open_database(None, home) as opened:
        yield opened


def contents(database: Database) -> tuple:
    """All that a database holds, but for its own row numbers and revisions."""
    store = SkillStore(database)
    with database.read() as session:
        names = sorted(session.execute(sa.text("SELECT name FROM sealab_skill")).scalars())
    runs = RunStore(database).recent()
    return (
        store.list().skills,
        [store.versions(name) for name in names],
        [store.load(each.name, number) for each in store.list().skills for number in (1, 2)],
        runs,
    )


def rewritten(archive: Path, change) -> Path:
    """A copy of an archive with the contents of one of its files changed by `change(name, content)`."""
    target = archive.with_name("changed.zip")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target


def test_an_archive_restores_into_an_empty_database(filled: Database, other: Database, tmp_path: Path):
    assert restore(other, backup(filled, tmp_path / "b.zip").path) == RestoredBackup(
        skills=2, versions=3, runs=1, replaced=()
    )
    assert contents(other) == contents(filled)
    assert SkillStore(other).load("rich", 1).draft == RICH
    assert SkillStore(other).restore("gone") == (1,)


def test_an_archive_tells_what_it_holds_and_is_its_owners_alone(other: Database, tmp_path: Path):
    fill(other)
    target = tmp_path / "b.zip"
    assert backup(other, target) == BackedUp(target, skills=2, versions=3, runs=1)
    assert target.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*part"))


def test_restoring_twice_adds_nothing_the_second_time(filled: Database, archive: Path):
    before = contents(filled)
    assert restore(filled, archive) == RestoredBackup(skills=0, versions=0, runs=0, replaced=())
    assert contents(filled) == before


def test_restoring_adds_the_versions_that_are_missing_and_keeps_the_later_ones(
    filled: Database, archive: Path, other: Database, tmp_path: Path
):
    later, earlier = SkillStore(filled), SkillStore(other)
    later.save(SkillDraft(name="rich", code="third"))
    earlier.save(RICH)
    assert restore(other, archive).versions == 2
    assert restore(filled, archive).versions == 0
    assert earlier.load("rich").version == 2
    assert later.load("rich").version == 3
    assert earlier.save(SkillDraft(name="rich", code="new")).version == 3


def test_restoring_brings_back_what_was_deleted_since_then(filled: Database, archive: Path):
    store = SkillStore(filled)
    store.delete("rich")
    restore(filled, archive)
    assert store.load("rich").draft.code == "second"
    assert [each.name for each in store.list().skills if each.name == "rich"] == ["rich"]
    with pytest.raises(SkillNotFound):
        store.load("gone")


def test_a_skill_with_another_history_stops_the_whole_restore_unless_it_may_be_replaced(
    archive: Path, database: Database
):
    store = SkillStore(database)
    store.save(SkillDraft(name="rich", code="of another author"))
    store.save(SkillDraft(name="rich", code="second"))
    store.save(SkillDraft(name="rich", code="third"))
    before = contents(database)
    with pytest.raises(BackupRefused, match=r"^1 skills have other content here .*: rich\."):
        restore(database, archive)
    assert contents(database) == before
    assert restore(database, archive, replace=True) == RestoredBackup(skills=1, versions=2, runs=1, replaced=("rich",))
    assert store.load("rich", 1).draft == RICH
    assert [each.version for each in store.versions("rich")] == [1, 2]
    assert store.save(SkillDraft(name="rich", code="new")).version == 4


@pytest.mark.parametrize("member", ["skills.jsonl", "versions.jsonl", "runs.jsonl", "manifest.json"])
def test_an_archive_that_lacks_a_part_or_has_it_changed_is_refused(archive: Path, other: Database, member: str):
    for change in (
        lambda name, content: None if name == member else content,
        lambda name, content: content.replace(b"1", b"2") if name == member else content,
    ):
        with pytest.raises(BackupRefused, match=r"changed\.zip (is not a complete backup|has format 2)"):
            restore(other, rewritten(archive, change))
    assert SkillStore(other).list().total == 0


def test_a_record_that_is_not_what_its_hash_says_stops_the_whole_restore(archive: Path, other: Database):
    """Even where somebody has made the checksums fit again."""
    import hashlib

    with zipfile.ZipFile(archive) as original:
        changed = original.read("versions.jsonl").replace(b"second", b"sec0nd")

    def change(name, content):
        if name == "versions.jsonl":
            return changed
        if name != "manifest.json":
            return content
        manifest = json.loads(content)
        manifest["members"]["versions.jsonl"]["sha256"] = hashlib.sha256(changed).hexdigest()
        return json.dumps(manifest)

    with pytest.raises(BackupRefused, match="version 2 of 'rich' does not fit its hash"):
        restore(other, rewritten(archive, change))
    assert SkillStore(other).list().total == 0


def test_a_newer_archive_is_refused_with_the_version_to_use(archive: Path, other: Database):
    newer = rewritten(archive, lambda _, content: content.replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(BackupRefused, match=r"has format 2, written by sealab .* Use that version or a later one\."):
        restore(other, newer)


def test_half_a_file_and_no_archive_at_all_are_refused(archive: Path, other: Database, tmp_path: Path):
    half = tmp_path / "half.zip"
    half.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(BackupRefused, match="is not a complete backup"):
        restore(other, half)
    with pytest.raises(BackupRefused, match=r"There is no file .*nowhere\.zip"):
        restore(other, tmp_path / "nowhere.zip")
    with pytest.raises(BackupRefused, match="cannot be read"):
        restore(other, tmp_path)


def test_a_file_that_exists_is_overwritten_only_when_asked(other: Database, tmp_path: Path):
    fill(other)
    target = tmp_path / "b.zip"
    target.write_text("precious")
    with pytest.raises(BackupRefused, match=r"b\.zip exists already"):
        backup(other, target)
    assert target.read_text() == "precious"
    assert backup(other, target, overwrite=True).versions == 3
    with pytest.raises(BackupRefused, match="No such file or directory"):
        backup(other, tmp_path / "missing" / "b.zip")
