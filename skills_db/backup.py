"""Writes all skills and run records into one archive, and brings one back, on whichever database.

The archive is a zip of JSON lines that no database's own format is part of. `skills.jsonl`, `versions.jsonl` and
`runs.jsonl` hold one record a line; `manifest.json` names the format, its number, the program, and the SHA-256 and line
count of each. Reading checks all of them before it gives out a single line.

The vault is not in it: what that keeps is encrypted with a key that the archive must not hold either.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from .content import SkillDraft, SkillKind, json_text
from .engine import Database
from .errors import BackupRefused, SkillRefused
from .runs import RUN_COLUMNS
from .skills import PARTS, TUPLES, next_revision, put_skill, version_row
from .sql import Connection, IntegrityError, Row, batches, insert, sa
from .tables import RUN, SKILL, VERSION

_NAMES_SHOWN = 5
_READ_AT_ONCE = 400


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
    with database.read() as connection:
        members = {SKILLS: _skills(connection), VERSIONS: _versions(connection), RUNS: _runs(connection)}
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
            with database.transaction() as connection:
                return _Restoring(connection, archive, replace=replace).all()
        except (KeyError, TypeError, ValueError, AttributeError, IntegrityError, SkillRefused) as error:
            raise archive.damaged(f"a record is not what it should be ({error})") from error


def _rows(connection: Connection, wanted: sa.Select[*tuple[Any, ...]]) -> Iterator[Row]:
    yield from connection.execute(wanted, execution_options={"yield_per": _READ_AT_ONCE})


def _skills(connection: Connection) -> Iterator[Record]:
    columns = (SKILL.c.name, SKILL.c.last_version, SKILL.c.runs, SKILL.c.last_run, SKILL.c.archived)
    for row in _rows(connection, sa.select(*columns).order_by(SKILL.c.id)):
        yield row._asdict() | {"last_run": None if row.last_run is None else row.last_run.isoformat()}


def _versions(connection: Connection) -> Iterator[Record]:
    joined = sa.select(SKILL.c.name, VERSION).select_from(SKILL.join(VERSION))
    for row in _rows(connection, joined.order_by(VERSION.c.skill_id, VERSION.c.number)):
        yield {
            "skill": row.name,
            "number": row.number,
            "content_hash": row.content_hash,
            "created_at": row.created_at.isoformat(),
            "deleted_at": None if row.deleted_at is None else row.deleted_at.isoformat(),
            **{part: getattr(row, part) for part in PARTS},
        }


def _runs(connection: Connection) -> Iterator[Record]:
    for row in _rows(connection, sa.select(*RUN_COLUMNS).order_by(RUN.c.id)):
        yield row._asdict() | {"started_at": row.started_at.isoformat()}


class _Restoring:
    """One restore, within one transaction that holds back all other changes to skills."""

    def __init__(self, connection: Connection, archive: Archive, *, replace: bool) -> None:
        self._connection = connection
        self._archive = archive
        self._replace = replace
        self._revision = next_revision(connection)
        self._there = {row.name: row for row in connection.execute(sa.select(SKILL))}
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
        runs = sum(self._add_runs(batch) for batch in batches(self._archive.records(RUNS)))
        return RestoredBackup(self._added_skills, self._added_versions, runs, tuple(self._conflicting))

    def _skill(self, record: Record, versions: Iterable[Record]) -> None:
        name = record["name"]
        before = self._there.get(name)
        last, runs, last_run = (0, 0, None) if before is None else (before.last_version, before.runs, before.last_run)
        if before is None:
            new = {"last_version": 0, "revision": self._revision, "archived": record.get("archived")}
            skill_id = put_skill(self._connection, name, new)
            self._added_skills += 1
        else:
            skill_id = before.id
        numbers = sa.select(VERSION.c.number, VERSION.c.content_hash).where(VERSION.c.skill_id == skill_id)
        there = {number: content_hash for number, content_hash in self._connection.execute(numbers)}  # noqa: C416 - rows are not typed
        unseen, conflicting = set(there), False
        for version in versions:
            draft, number = _draft(version), int(version["number"])
            unseen.discard(number)
            if there.get(number) == version["content_hash"]:
                if version["deleted_at"] is None:
                    revived = sa.update(VERSION).where(*_those(skill_id, [number])).values(deleted_at=None)
                    self._connection.execute(revived)
                continue
            if number in there:
                conflicting = True
                if not self._replace:
                    break
                self._connection.execute(sa.delete(VERSION).where(*_those(skill_id, [number])))
            self._add(skill_id, draft, version)
            last = max(last, number)
        if conflicting:
            self._conflicting.append(name)
            self._connection.execute(sa.delete(VERSION).where(*_those(skill_id, unseen)))
        alive = sa.select(sa.func.max(VERSION.c.number)).where(
            VERSION.c.skill_id == skill_id, VERSION.c.deleted_at.is_(None)
        )
        moments = [each for each in (last_run, record["last_run"] and _moment(record["last_run"])) if each is not None]
        values = {
            "live_version": alive.scalar_subquery(),
            "last_version": max(last, record["last_version"]),
            "revision": self._revision,
            "runs": max(runs, record["runs"]),
            "last_run": max(moments, default=None),
        }
        self._connection.execute(sa.update(SKILL).where(SKILL.c.id == skill_id).values(values))

    def _add(self, skill_id: int, draft: SkillDraft, record: Record) -> None:
        created_at, deleted_at = _moment(record["created_at"]), record["deleted_at"]
        row = version_row(skill_id, record["number"], draft, record["content_hash"], created_at)
        row["deleted_at"] = None if deleted_at is None else _moment(deleted_at)
        self._connection.execute(VERSION.insert(), row)
        self._added_versions += 1

    def _add_runs(self, records: Sequence[Record]) -> int:
        rows = [record | {"started_at": _moment(record["started_at"])} for record in records]
        new = insert(RUN).on_conflict_do_nothing().returning(RUN.c.run_id)
        return len(self._connection.execute(new, rows).all())


def _draft(record: Record) -> SkillDraft:
    """Return the draft that a record holds, after a look whether it is the one that was written."""
    parts = {part: record[part] for part in PARTS} | {part: tuple(record[part]) for part in TUPLES}
    draft = SkillDraft(name=record["skill"], **parts | {"kind": SkillKind(record["kind"])})
    draft.check()
    if draft.content_hash() != record["content_hash"]:
        raise ValueError(f"version {record['number']} of {draft.name!r} does not fit its hash")
    return draft


def _those(skill_id: int, numbers: Collection[int]) -> tuple[sa.ColumnElement[bool], ...]:
    return VERSION.c.skill_id == skill_id, VERSION.c.number.in_(numbers)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the moment {text} lacks its time zone")
    return moment


FORMAT = "sealab-backup"
FORMAT_VERSION = 1
SKILLS, VERSIONS, RUNS = "skills.jsonl", "versions.jsonl", "runs.jsonl"
_MEMBERS = (SKILLS, VERSIONS, RUNS)
_MANIFEST = "manifest.json"
_MANIFEST_MAX_BYTES = 100_000
_LINE_MAX_BYTES = 100_000_000

Record = dict[str, Any]


def write_archive(target: Path, members: Mapping[str, Iterable[Record]], *, overwrite: bool) -> dict[str, int]:
    """Write the records of each member and return how many; the file appears at `target` whole or not at all.

    Raises `BackupRefused` when it exists and may not be overwritten, or cannot be written.
    """
    if not overwrite and target.exists():
        raise _exists(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with _removed_afterwards(part), open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                entries = {name: _write_lines(archive, name, records) for name, records in members.items()}
                written = {"format": FORMAT, "version": FORMAT_VERSION, "program": metadata.version("sealab")}
                written |= {"created_at": datetime.now(UTC).isoformat(), "members": entries}
                archive.writestr(_MANIFEST, json.dumps(written, indent=2))
            file.flush()
            os.fsync(file.fileno())
            with reading(part):
                pass
            if overwrite:
                os.replace(part, target)
            else:
                os.link(part, target)
            _sync_folder(target.parent)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise BackupRefused(f"{target} cannot be written: {error.strerror}. Name a place that can be.") from error
    return {name: entry["lines"] for name, entry in entries.items()}


class Archive:
    """An archive whose checksums were found right."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path = path
        self._file = file

    def records(self, member: str) -> Iterator[Record]:
        """Give the records of a member, in their order."""
        with self._file.open(member) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_LINE_MAX_BYTES), b""), start=1):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if not isinstance(record, dict):
                    raise self.damaged(f"line {number} of {member} is not a record")
                yield record

    def damaged(self, how: str) -> BackupRefused:
        """Return the error for an archive that is not as it was written."""
        return BackupRefused(f"{self.path} is not a complete backup: {how}. Take another one; nothing was changed.")

    def check(self) -> None:
        """Raise `BackupRefused` unless everything is there as it was written, in a format that is known."""
        manifest = self._manifest()
        for name in _MEMBERS:
            entry = manifest["members"].get(name)
            if not isinstance(entry, dict):
                raise self.damaged(f"it lacks {name}")
            digest, lines = hashlib.sha256(), 0
            with self._file.open(name) as content:
                while chunk := content.read(1 << 20):
                    digest.update(chunk)
                    lines += chunk.count(b"\n")
            if digest.hexdigest() != entry.get("sha256") or lines != entry.get("lines"):
                raise self.damaged(f"{name} is not as it was written")

    def _manifest(self) -> Record:
        with self._file.open(_MANIFEST) as content:
            try:
                manifest = json.loads(content.read(_MANIFEST_MAX_BYTES))
            except (ValueError, RecursionError):
                manifest = None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self.damaged(f"its {_MANIFEST} does not say that it is one")
        if manifest.get("version") != FORMAT_VERSION:
            raise BackupRefused(
                f"{self.path} has format {manifest.get('version')}, written by sealab {manifest.get('program')}; this "
                f"one, {metadata.version('sealab')}, knows format {FORMAT_VERSION}. Use that version or a later one."
            )
        if not isinstance(manifest.get("members"), dict):
            raise self.damaged(f"its {_MANIFEST} names no members")
        return manifest


@contextmanager
def reading(source: Path) -> Iterator[Archive]:
    """Open an archive and check all of it. Raises `BackupRefused`."""
    try:
        with zipfile.ZipFile(source) as file:
            archive = Archive(source, file)
            archive.check()
            yield archive
    except FileNotFoundError:
        raise BackupRefused(f"There is no file {source}. Name an archive that a backup wrote.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise BackupRefused(
            f"{source} is not a complete backup: {error}. Take another one; nothing was changed."
        ) from error
    except OSError as error:
        raise BackupRefused(f"{source} cannot be read: {error.strerror}. Correct its permissions.") from error


def _write_lines(archive: zipfile.ZipFile, name: str, records: Iterable[Record]) -> dict[str, Any]:
    digest, lines = hashlib.sha256(), 0
    with archive.open(name, "w", force_zip64=True) as member:
        for lines, record in enumerate(records, start=1):  # noqa: B007 - the count is wanted
            line = json_text(record).encode() + b"\n"
            digest.update(line)
            member.write(line)
    return {"sha256": digest.hexdigest(), "lines": lines}


def _exists(target: Path) -> BackupRefused:
    return BackupRefused(f"{target} exists already. Name another file, or say that it may be overwritten.")


@contextmanager
def _removed_afterwards(part: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(part)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
