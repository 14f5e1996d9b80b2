"""The store of skills: saves versions, gives them back, lists them, and buries and digs them up.

Every call blocks for a moment: make it from a thread. Changes are serialised across all programs on one database, by
SQLite's own write lock or an advisory lock of PostgreSQL, so that versions are consecutive and revisions are committed
in their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

from .content import STORE_BYTES_MAX, Json, SkillDraft, SkillKind, SkillPage, SkillSummary, storable
from .engine import Database
from .errors import SkillNotFound, StoreFull
from .models import RevisionRow, RunRow, SkillRow, VersionRow
from .sql import SelectOfScalar, Session, col, sa, select

_LOCK = 0x5EA1AB02
_NAMES_IN_QUERY = 500
_NEAR_NAMES_MAX = 3
_LEAST_RATIO = 60


@dataclass(frozen=True, slots=True)
class Saved:
    """What saving did. When the newest version already held this content, `created` is false and `version` is its."""

    name: str
    version: int
    created: bool
    content_hash: str


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """One stored version: its draft, and what the store adds to it. `latest` is the newest version not deleted."""

    draft: SkillDraft
    version: int
    latest: int
    content_hash: str
    created_at: datetime
    runs: int
    last_run: datetime | None

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.draft.name


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One entry of a skill's history; `deleted_at` is when a version was deleted."""

    version: int
    content_hash: str
    created_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class SkillCounts:
    """How many skills there are, deleted ones left out, how many versions of them, and how often they ran."""

    skills: int
    versions: int
    runs: int


class SkillStore:
    """Skills in a database. Any number of stores, threads and programs may share one."""

    def __init__(self, database: Database, *, bytes_max: int | None = None) -> None:
        """Make it; by default it keeps `STORE_BYTES_MAX`."""
        self._database = database
        self._bytes_max = bytes_max
        self._summaries: Mapping[str, SkillSummary] = {}
        self._summaries_lock = threading.Lock()
        self._summarized = -1
        self.changes = 0
        """How often this store has changed which skills there are, or what they say."""

    def save(self, draft: SkillDraft) -> Saved:
        """Store the draft as the next version of its skill, unless the newest version already holds the same.

        When this returns, the version survives any crash. Raises `SkillRefused`, `StoreFull` and what
        `Database.transaction` does.
        """
        draft.check()
        content_hash = draft.content_hash()
        with self._database.transaction() as session:
            revision = next_revision(session)
            skill = _row(session, draft.name)
            if skill is None:
                skill = SkillRow(name=draft.name, last_version=0, revision=revision)
                session.add(skill)
                session.flush()
            elif skill.live_version is not None:
                newest = _version_row(session, skill, skill.live_version)
                if newest is not None and newest.content_hash == content_hash:
                    session.rollback()
                    return Saved(draft.name, newest.number, created=False, content_hash=content_hash)
            number = skill.last_version + 1
            session.add(version_row(skill, number, draft, content_hash, created_at=datetime.now(UTC)))
            skill.last_version = skill.live_version = number
            skill.revision = revision
            session.flush()
            most = STORE_BYTES_MAX if self._bytes_max is None else self._bytes_max
            if session.exec(select(sa.func.sum(VersionRow.size))).one() > most:
                raise StoreFull(
                    f"The store holds {most // 1_000_000} MB of skills, the most that it keeps for this tenant "
                    "(SKILLS_QUOTA_MB), so nothing was saved. Have the user delete some, and remove them for good with "
                    "`sealab skills purge`."
                )
        self.changes += 1
        return Saved(draft.name, number, created=True, content_hash=content_hash)

    def load(self, name: str, version: int | None = None) -> StoredSkill:
        """Return the newest version of a skill, or the one asked for. Raises `SkillNotFound`."""
        with self._database.read() as session:
            skill = _row(session, name)
            if skill is None or skill.live_version is None:
                raise self._not_found(name, deleted=skill is not None)
            row = _version_row(session, skill, skill.live_version if version is None else version)
            if row is None or row.deleted_at is not None:
                raise SkillNotFound(
                    f"The skill {name!r} has no version {version}. Its newest is {skill.live_version}; "
                    "leave the version out to get that."
                )
            return StoredSkill(
                draft=draft_of(skill.name, row),
                version=row.number,
                latest=skill.live_version,
                content_hash=row.content_hash,
                created_at=row.created_at,
                runs=skill.runs,
                last_run=skill.last_run,
            )

    def list(self, tag: str | None = None, limit: int | None = 50) -> SkillPage:
        """Return the first skills in the order of their names; only those with the tag, if one is given."""
        summaries = self.summaries().values()
        found = [each for each in summaries if tag is None or each.has_tag(tag)]
        return SkillPage(len(found), self.with_runs(found[:limit]))

    def summaries(self) -> Mapping[str, SkillSummary]:
        """Return the newest versions of all skills by name, in the order of names, without how often they ran.

        The first call reads all skills, later ones only what has changed since, in whichever program. While nothing
        changes, the answer is the same object, and the summary of a skill is the same as long as it does not change.
        """
        with self._summaries_lock, self._database.read() as session:
            connection = session.connection()
            number, purged = connection.execute(select(RevisionRow.number, RevisionRow.purged)).one()
            if not purged <= self._summarized <= number:
                self._summaries, self._summarized = {}, -1
            if self._summarized != number:
                summaries = dict(self._summaries)
                for row in connection.execute(_changed_since(self._summarized)):
                    if row.live_version is None:
                        summaries.pop(row.name, None)
                    else:
                        summaries[row.name] = _summary(row)
                self._summaries, self._summarized = MappingProxyType(dict(sorted(summaries.items()))), number
            return self._summaries

    def with_runs(self, summaries: Sequence[SkillSummary]) -> tuple[SkillSummary, ...]:
        """Return the summaries with how often and when last each skill ran; without those of purged skills."""
        if not summaries:
            return ()
        with self._database.read() as session:
            runs = _runs_of(session, [each.name for each in summaries])
        return tuple(
            replace(each, runs=runs[each.name][0], last_run=runs[each.name][1])
            for each in summaries
            if each.name in runs
        )

    def counts(self) -> SkillCounts:
        """Count the skills that are not deleted, their versions, and how often they ran."""
        with self._database.read() as session:
            alive = col(SkillRow.live_version).is_not(None)
            skills, runs = session.exec(
                select(sa.func.count(), sa.func.coalesce(sa.func.sum(SkillRow.runs), 0)).where(alive)
            ).one()
            versions = session.exec(
                select(sa.func.count()).select_from(VersionRow).where(col(VersionRow.deleted_at).is_(None))
            ).one()
        return SkillCounts(int(skills), int(versions), int(runs))

    def names(self) -> tuple[str, ...]:
        """Return the names of all skills that are not deleted, in their order."""
        with self._database.read() as session:
            return tuple(sorted(session.exec(select(SkillRow.name).where(col(SkillRow.live_version).is_not(None)))))

    def versions(self, name: str) -> tuple[VersionInfo, ...]:
        """Return the history of a skill, oldest first, deleted versions too. Raises `SkillNotFound`."""
        with self._database.read() as session:
            skill = _row(session, name)
            if skill is None:
                raise self._not_found(name)
            rows = session.exec(
                select(VersionRow.number, VersionRow.content_hash, VersionRow.created_at, VersionRow.deleted_at)
                .where(VersionRow.skill_id == skill.id)
                .order_by(col(VersionRow.number))
            )
            return tuple(VersionInfo(*row) for row in rows)

    def delete(self, name: str) -> tuple[int, ...]:
        """Delete all versions of a skill and return their numbers; `restore` brings them back until `purge`.

        A skill saved under the name again goes on counting. Raises `SkillNotFound`.
        """
        with self._database.transaction() as session:
            revision = next_revision(session)
            skill = _row(session, name)
            if skill is None or skill.live_version is None:
                raise self._not_found(name, deleted=skill is not None)
            rows = session.exec(_versions_of(skill).where(col(VersionRow.deleted_at).is_(None))).all()
            moment = datetime.now(UTC)
            for row in rows:
                row.deleted_at = moment
            skill.live_version = None
            skill.revision = revision
            self.changes += 1
            return tuple(row.number for row in rows)

    def restore(self, name: str) -> tuple[int, ...]:
        """Restore all deleted versions of a skill; return their numbers. Raises `SkillNotFound` if there are none."""
        with self._database.transaction() as session:
            revision = next_revision(session)
            skill = _row(session, name)
            rows = (
                []
                if skill is None
                else session.exec(_versions_of(skill).where(col(VersionRow.deleted_at).is_not(None))).all()
            )
            if skill is None or not rows:
                raise SkillNotFound(f"There is no deleted skill {name!r} to restore. `list_skills` names the others.")
            for row in rows:
                row.deleted_at = None
            skill.live_version = max(skill.live_version or 0, rows[-1].number)
            skill.revision = revision
            return tuple(row.number for row in rows)

    def purge(self, name: str | None = None, *, deleted_before: datetime | None = None) -> int:
        """Remove deleted versions for good, of one skill or of all, and return how many.

        With `deleted_before`, only those deleted before that moment. A skill without any version left is forgotten,
        with what its run records say of it.
        """
        if name is not None and not storable(name):
            return 0
        with self._database.transaction() as session:
            revision = next_revision(session)
            doomed = select(VersionRow.id).where(col(VersionRow.deleted_at).is_not(None))
            if name is not None:
                doomed = doomed.where(col(VersionRow.skill_id).in_(select(SkillRow.id).where(SkillRow.name == name)))
            if deleted_before is not None:
                doomed = doomed.where(col(VersionRow.deleted_at) < deleted_before)
            purged = session.exec(sa.delete(VersionRow).where(col(VersionRow.id).in_(doomed))).rowcount
            empty = session.exec(
                select(SkillRow).where(~sa.exists().where(col(VersionRow.skill_id) == col(SkillRow.id)))
            ).all()
            for skill in empty:
                session.exec(sa.update(RunRow).where(col(RunRow.skill) == skill.name).values(skill=None, version=None))
                session.delete(skill)
            session.exec(sa.update(RevisionRow).values(purged=revision))
            return purged

    def _not_found(self, name: str, *, deleted: bool = False) -> SkillNotFound:
        if deleted:
            return SkillNotFound(
                f"The skill {name!r} was deleted. Bring it back with `sealab skills delete --restore`, or save it anew."
            )
        from rapidfuzz import fuzz, process

        found = process.extract(name, self.names(), scorer=fuzz.ratio, limit=_NEAR_NAMES_MAX, score_cutoff=_LEAST_RATIO)
        near = [each for each, _, _ in found]
        hint = f"Did you mean {' or '.join(near)}?" if near else "`list_skills` names those that there are."
        return SkillNotFound(f"There is no skill {name!r}. {hint}")


def next_revision(session: Session) -> int:
    """Count the change that the transaction makes, and hold back all other changes to skills until it ends."""
    if session.connection().dialect.name == "postgresql":
        session.connection().exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    session.exec(sa.update(RevisionRow).values(number=col(RevisionRow.number) + 1))
    return session.exec(select(RevisionRow.number)).one()


def version_row(
    skill: SkillRow, number: int, draft: SkillDraft, content_hash: str, *, created_at: datetime
) -> VersionRow:
    """Return the row that keeps a draft as the version `number` of its skill."""
    assert skill.id is not None
    return VersionRow(
        skill_id=skill.id,
        number=number,
        content_hash=content_hash,
        kind=draft.kind.value,
        code=draft.code,
        signature=draft.signature,
        parameters=draft.parameters,
        description=draft.description,
        tags=draft.tags,
        tests=draft.tests,
        modules=draft.modules,
        tools=draft.tools,
        skills=draft.skills,
        recordings=draft.recordings,
        extra=draft.extra,
        created_at=created_at,
        size=draft.size,
    )


def draft_of(name: str, row: VersionRow) -> SkillDraft:
    """Return the draft that a row keeps."""
    return SkillDraft(
        name=name,
        code=row.code,
        kind=SkillKind(row.kind),
        signature=row.signature,
        parameters=cast("Mapping[str, Json]", row.parameters),
        description=row.description,
        tags=_texts(row.tags),
        tests=row.tests,
        modules=_texts(row.modules),
        tools=_texts(row.tools),
        skills=_texts(row.skills),
        recordings=cast("Json", row.recordings),
        extra=cast("Mapping[str, Json]", row.extra),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(cast("Iterable[str]", value))


def _row(session: Session, name: str) -> SkillRow | None:
    if not storable(name):
        return None
    return session.exec(select(SkillRow).where(SkillRow.name == name)).first()


def _version_row(session: Session, skill: SkillRow, number: int) -> VersionRow | None:
    if not 1 <= number <= skill.last_version:
        return None
    return session.exec(_versions_of(skill).where(col(VersionRow.number) == number)).first()


def _versions_of(skill: SkillRow) -> SelectOfScalar[VersionRow]:
    return select(VersionRow).where(VersionRow.skill_id == skill.id).order_by(col(VersionRow.number))


def _changed_since(revision: int) -> sa.Select[*tuple[Any, ...]]:
    """Select, of each skill changed after a revision, its name and what its newest version says of itself."""
    return (
        sa.select(
            col(SkillRow.name),
            col(SkillRow.live_version),
            col(VersionRow.kind),
            col(VersionRow.description),
            col(VersionRow.signature),
            col(VersionRow.tags),
            col(VersionRow.created_at),
        )
        .join(
            VersionRow,
            sa.and_(col(VersionRow.skill_id) == col(SkillRow.id), col(VersionRow.number) == col(SkillRow.live_version)),
            isouter=True,
        )
        .where(col(SkillRow.revision) > revision)
    )


def _summary(row: sa.Row[Any]) -> SkillSummary:
    return SkillSummary(
        name=row.name,
        version=row.live_version,
        kind=SkillKind(row.kind),
        description=row.description,
        signature=row.signature,
        tags=_texts(row.tags),
        created_at=row.created_at,
        runs=0,
        last_run=None,
    )


def _runs_of(session: Session, names: Sequence[str]) -> dict[str, tuple[int, datetime | None]]:
    """Return how often and when last each skill ran."""
    wanted = select(SkillRow.name, SkillRow.runs, SkillRow.last_run)
    if len(names) <= _NAMES_IN_QUERY:
        wanted = wanted.where(col(SkillRow.name).in_(names))
    return {name: (runs, last) for name, runs, last in session.connection().execute(wanted)}


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
