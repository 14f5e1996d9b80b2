"""Writes all skills and run records into one archive, and brings one back, on whichever database.

The vault is not in it: what that keeps is encrypted with a key that the archive must not hold either.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from .archive import RUNS, SKILLS, VERSIONS, Archive, Record, reading, write_archive
from .content import SkillDraft, SkillKind
from .engine import Database
from .errors import BackupRefused, SkillRefused
from .models import RunRow, SkillRow, VersionRow
from .skills import draft_of, next_revision, version_row
from .sql import IntegrityError, Session, col, sa, select

_BATCH = 500
_NAMES_SHOWN = 5
_DRAFT_PARTS = (
    *("code", "kind", "signature", "parameters", "description", "tags", "tests"),
    *("modules", "tools", "skills", "recordings", "extra"),
)
_TUPLES = ("tags", "modules", "tools", "skills")


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What an archive holds: how many skills (deleted ones, too), versions and run records."""

    path: Path
    skills: int
    versions: int
    runs: int


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """What restoring added, and which skills it replaced. Zeros say that all was there already."""

    skills: int
    versions: int
    runs: int
    replaced: tuple[str, ...]


def backup(database: Database, target: Path, *, overwrite: bool = False) -> BackedUp:
    """Write an archive of one moment of the database to `target`; it appears there whole or not at all.

    Raises `BackupRefused` when the file exists and may not be overwritten, or cannot be written.
    """
    with database.read() as session:
        members = {SKILLS: _skills(session), VERSIONS: _versions(session), RUNS: _runs(session)}
        counts = write_archive(target, members, overwrite=overwrite)
    return BackedUp(target, counts[SKILLS], counts[VERSIONS], counts[RUNS])


def restore(database: Database, source: Path, *, replace: bool = False) -> RestoredBackup:
    """Bring back what an archive holds: all of it or, when anything is wrong, nothing.

    What is not there is added: skills, versions of skills, run records. What is there and in the archive alike stays,
    and is alive afterwards if it is alive in either. Nothing is deleted. Where a version is there with other content
    than in the archive, nothing is restored, unless `replace`: those skills then become what the archive says.
    Raises `BackupRefused`, and what `Database.transaction` does.
    """
    with reading(source) as archive:
        try:
            with database.transaction() as session:
                return _Restoring(session, archive, replace=replace).all()
        except (KeyError, TypeError, ValueError, AttributeError, IntegrityError, SkillRefused) as error:
            raise archive.damaged(f"a record is not what it should be ({error})") from error


def _skills(session: Session) -> Iterator[Record]:
    for row in session.exec(select(SkillRow).order_by(col(SkillRow.id)).execution_options(yield_per=_BATCH)):
        last_run = None if row.last_run is None else row.last_run.isoformat()
        yield {"name": row.name, "last_version": row.last_version, "runs": row.runs, "last_run": last_run}


def _versions(session: Session) -> Iterator[Record]:
    rows = session.exec(
        select(SkillRow.name, VersionRow)
        .join(SkillRow, col(VersionRow.skill_id) == col(SkillRow.id))
        .order_by(col(VersionRow.skill_id), col(VersionRow.number))
        .execution_options(yield_per=_BATCH)
    )
    for name, row in rows:
        draft = draft_of(name, row)
        yield {
            "skill": name,
            "number": row.number,
            "content_hash": row.content_hash,
            "created_at": row.created_at.isoformat(),
            "deleted_at": None if row.deleted_at is None else row.deleted_at.isoformat(),
            **{part: getattr(draft, part) for part in _DRAFT_PARTS},
        }


def _runs(session: Session) -> Iterator[Record]:
    for row in session.exec(select(RunRow).order_by(col(RunRow.id)).execution_options(yield_per=_BATCH)):
        yield row.model_dump(exclude={"id", "started_at"}) | {"started_at": row.started_at.isoformat()}


class _Restoring:
    """One restore, within one transaction that holds back all other changes to skills."""

    def __init__(self, session: Session, archive: Archive, *, replace: bool) -> None:
        self._session = session
        self._archive = archive
        self._replace = replace
        self._revision = next_revision(session)
        self._there = {row.name: row for row in session.exec(select(SkillRow))}
        self._conflicting: list[str] = []
        self._added_skills = self._added_versions = 0

    def all(self) -> RestoredBackup:
        """Add what is missing and say what that was."""
        known = {record["name"]: record for record in self._archive.records(SKILLS)}
        grouped = itertools.groupby(self._archive.records(VERSIONS), key=lambda record: record["skill"])
        for name, versions in grouped:
            self._skill(known.pop(name), versions)
        if self._conflicting and not self._replace:
            shown = ", ".join(self._conflicting[:_NAMES_SHOWN]) + ("…" if len(self._conflicting) > _NAMES_SHOWN else "")
            raise BackupRefused(
                f"{len(self._conflicting)} skills have other content here than in {self._archive.path}: {shown}. "
                "Say that they may be replaced, or restore into an empty home; nothing was changed."
            )
        runs = sum(self._add_runs(batch) for batch in _batches(self._archive.records(RUNS)))
        return RestoredBackup(self._added_skills, self._added_versions, runs, tuple(self._conflicting))

    def _skill(self, record: Record, versions: Iterable[Record]) -> None:
        skill = self._there.get(record["name"])
        if skill is None:
            skill = SkillRow(name=record["name"], last_version=0, revision=self._revision)
            self._session.add(skill)
            self._session.flush()
            self._added_skills += 1
        there = self._hashes(skill)
        unseen, conflicting = set(there), False
        for version in versions:
            draft, number = _draft(version), int(version["number"])
            unseen.discard(number)
            if there.get(number) == version["content_hash"]:
                self._revive(skill, number, version)
                continue
            if number in there:
                conflicting = True
                if not self._replace:
                    break
                self._remove(skill, [number])
            self._add(skill, draft, version)
            skill.last_version = max(skill.last_version, number)
        if conflicting:
            self._conflicting.append(skill.name)
            self._remove(skill, unseen)
        self._count(skill, record)

    def _hashes(self, skill: SkillRow) -> dict[int, str]:
        rows = self._session.exec(
            select(VersionRow.number, VersionRow.content_hash).where(VersionRow.skill_id == skill.id)
        )
        return {number: content_hash for number, content_hash in rows}  # noqa: C416 - dict() of rows is not typed

    def _add(self, skill: SkillRow, draft: SkillDraft, record: Record) -> None:
        created_at, deleted_at = _moment(record["created_at"]), record["deleted_at"]
        row = version_row(skill, record["number"], draft, record["content_hash"], created_at=created_at)
        row.deleted_at = None if deleted_at is None else _moment(deleted_at)
        self._session.add(row)
        self._session.flush()
        self._session.expunge(row)
        self._added_versions += 1

    def _revive(self, skill: SkillRow, number: int, record: Record) -> None:
        if record["deleted_at"] is None:
            self._session.exec(sa.update(VersionRow).where(*_those(skill, [number])).values(deleted_at=None))

    def _remove(self, skill: SkillRow, numbers: Collection[int]) -> None:
        self._session.exec(sa.delete(VersionRow).where(*_those(skill, numbers)))

    def _count(self, skill: SkillRow, record: Record) -> None:
        """Bring what is counted of a skill up to its versions, and to what the archive says of its runs."""
        alive = select(sa.func.max(VersionRow.number)).where(
            VersionRow.skill_id == skill.id, col(VersionRow.deleted_at).is_(None)
        )
        skill.live_version = self._session.exec(alive).one()
        skill.last_version = max(skill.last_version, record["last_version"])
        skill.revision = self._revision
        skill.runs = max(skill.runs, record["runs"])
        if record["last_run"] is not None:
            last_run = _moment(record["last_run"])
            skill.last_run = last_run if skill.last_run is None else max(skill.last_run, last_run)
        self._session.flush()

    def _add_runs(self, records: Sequence[Record]) -> int:
        wanted = {record["run_id"]: record for record in records}
        there = set(self._session.exec(select(RunRow.run_id).where(col(RunRow.run_id).in_(wanted))))
        missing = [record for run_id, record in wanted.items() if run_id not in there]
        self._session.add_all(RunRow(**record | {"started_at": _moment(record["started_at"])}) for record in missing)
        self._session.flush()
        return len(missing)


def _draft(record: Record) -> SkillDraft:
    """Return the draft that a record holds, after a look whether it is the one that was written."""
    parts = {part: record[part] for part in _DRAFT_PARTS} | {part: tuple(record[part]) for part in _TUPLES}
    draft = SkillDraft(name=record["skill"], **parts | {"kind": SkillKind(record["kind"])})
    draft.check()
    if draft.content_hash() != record["content_hash"]:
        raise ValueError(f"version {record['number']} of {draft.name!r} does not fit its hash")
    return draft


def _those(skill: SkillRow, numbers: Collection[int]) -> tuple[sa.ColumnElement[bool], ...]:
    return col(VersionRow.skill_id) == skill.id, col(VersionRow.number).in_(numbers)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the moment {text} lacks its time zone")
    return moment


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    remaining = iter(records)
    while batch := list(itertools.islice(remaining, _BATCH)):
        yield batch
