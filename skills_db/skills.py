"""The store of skills: saves versions, gives them back, lists them, and buries and digs them up.

Every call blocks for a moment: make it from a thread. Changes are serialised across all programs on one database, by
SQLite's own write lock or an advisory lock of PostgreSQL, so that versions are consecutive and revisions are committed
in their order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from types import MappingProxyType

from .content import STORE_BYTES_MAX, SkillDraft, SkillKind, SkillPage, SkillSummary, json_text, storable
from .engine import Database
from .errors import SkillNotFound, StoreFull
from .sql import Connection, Row, insert, sa
from .tables import REVISION, RUN, SKILL, VERSION

PARTS = tuple(each.name for each in fields(SkillDraft) if each.name != "name")
"""What a draft holds beside its name; the columns of a version are called the same."""
TUPLES = ("tags", "modules", "tools", "skills")
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
        with self._database.transaction() as connection:
            revision = next_revision(connection)
            skill = _skill(connection, draft.name)
            if skill is not None and skill.live_version is not None:
                newest = _version(connection, skill, skill.live_version)
                if newest is not None and newest.content_hash == content_hash:
                    connection.rollback()
                    return Saved(draft.name, newest.number, created=False, content_hash=content_hash)
            number = 1 if skill is None else skill.last_version + 1
            counted = {"last_version": number, "live_version": number, "revision": revision, "archived": None}
            skill_id = put_skill(connection, draft.name, counted)
            connection.execute(VERSION.insert(), version_row(skill_id, number, draft, content_hash, datetime.now(UTC)))
            most = STORE_BYTES_MAX if self._bytes_max is None else self._bytes_max
            if connection.execute(sa.select(sa.func.sum(VERSION.c.size))).scalar_one() > most:
                raise StoreFull(
                    f"The store holds {most // 1_000_000} MB of skills, the most that it keeps for this tenant "
                    "(SKILLS_QUOTA_MB), so nothing was saved. Have the user delete some, and remove them for good with "
                    "`sealab skills purge`."
                )
        self.changes += 1
        return Saved(draft.name, number, created=True, content_hash=content_hash)

    def load(self, name: str, version: int | None = None) -> StoredSkill:
        """Return the newest version of a skill, or the one asked for. Raises `SkillNotFound`."""
        with self._database.read() as connection:
            skill = _skill(connection, name)
            if skill is None or skill.live_version is None:
                raise self._not_found(name, deleted=skill is not None)
            found = _stored(connection, skill, version)
            if found is None:
                raise SkillNotFound(
                    f"The skill {name!r} has no version {version}. Its newest is {skill.live_version}; "
                    "leave the version out to get that."
                )
            return found

    def newest(self, name: str) -> StoredSkill | None:
        """Return the newest version of a skill of its own; None where there is none."""
        with self._database.read() as connection:
            skill = _skill(connection, name)
            return None if skill is None or skill.live_version is None else _stored(connection, skill)

    def users_of(self, name: str) -> tuple[SkillDraft, ...]:
        """Return the newest versions of the skills that use a skill, itself or by others, in the order of names."""
        found: dict[str, SkillDraft] = {}
        waiting = [name]
        with self._database.read() as connection:
            while waiting:
                used = waiting.pop()
                mention = VERSION.c.skills.cast(sa.Text).contains(json_text(used), autoescape=True)
                for row in connection.execute(_NEWEST_OF_ALL.where(mention)):
                    draft = draft_of(row.name, row)
                    if used in draft.skills and row.name not in {name, *found}:
                        found[row.name] = draft
                        waiting.append(row.name)
        return tuple(found[each] for each in sorted(found))

    def list(self, tag: str | None = None, limit: int | None = 50) -> SkillPage:
        """Return the first skills in the order of their names; only those with the tag, if one is given."""
        summaries = self.summaries().values()
        found = [each for each in summaries if tag is None or each.has_tag(tag)]
        return SkillPage(len(found), self.with_runs(found[:limit]))

    def summaries(self) -> Mapping[str, SkillSummary]:
        """Return the newest versions of all skills by name, in the order of names, without how often they ran.

        Archived ones are left out: `archived` has them.

        The first call reads all skills, later ones only what has changed since, in whichever program. While nothing
        changes, the answer is the same object, and the summary of a skill is the same as long as it does not change.
        """
        with self._summaries_lock, self._database.read() as connection:
            number, purged = connection.execute(sa.select(REVISION.c.number, REVISION.c.purged)).one()
            if not purged <= self._summarized <= number:
                self._summaries, self._summarized = {}, -1
            if self._summarized != number:
                summaries = dict(self._summaries)
                for row in connection.execute(_CHANGED_SINCE, {"known": self._summarized}):
                    if row.version is None or row.archived is not None:
                        summaries.pop(row.name, None)
                    else:
                        summaries[row.name] = _summary(row)
                self._summaries, self._summarized = MappingProxyType(dict(sorted(summaries.items()))), number
            return self._summaries

    own_summaries = summaries
    """What `summaries` returns of this store alone, where that has others' too."""

    def archived(self, words: str = "", tag: str | None = None, limit: int | None = 50) -> SkillPage:
        """Return the first archived skills that have all words and the tag, in the order of names."""
        wanted = words.casefold().split()
        with self._database.read() as connection:
            rows = connection.execute(_CHANGED_SINCE.where(SKILL.c.archived.is_not(None), _ALIVE), {"known": -1})
            held = sorted(map(_summary, rows), key=lambda each: each.name)
        found = [
            each
            for each in held
            if (tag is None or each.has_tag(tag))
            and all(word in f"{each.name} {each.description}".casefold() for word in wanted)
        ]
        return SkillPage(len(found), self.with_runs(found[:limit]))

    def archive(self, name: str, *, archived: bool = True) -> None:
        """Take a skill out of lists and searches, or put it back; it can be called all the same.

        Raises `SkillNotFound`.
        """
        with self._database.transaction() as connection:
            revision = next_revision(connection)
            skill = _skill(connection, name)
            if skill is None or skill.live_version is None:
                raise self._not_found(name, deleted=skill is not None)
            connection.execute(_change(skill, archived=time.time() if archived else None, revision=revision))
        self.changes += 1

    def bring_back(self, name: str) -> str:
        """End that a skill is archived or deleted, and return which it was. Raises `SkillNotFound`."""
        if self.newest(name) is None:
            self.restore(name)
            return "deleted"
        self.archive(name, archived=False)
        return "archived"

    def with_runs(self, summaries: Sequence[SkillSummary]) -> tuple[SkillSummary, ...]:
        """Return the summaries with how often and when last each skill ran; without those of purged skills."""
        if not summaries:
            return ()
        wanted = sa.select(SKILL.c.name, SKILL.c.runs, SKILL.c.last_run)
        if len(summaries) <= _NAMES_IN_QUERY:
            wanted = wanted.where(SKILL.c.name.in_([each.name for each in summaries]))
        with self._database.read() as connection:
            runs = {name: (count, last) for name, count, last in connection.execute(wanted)}
        return tuple(
            replace(each, runs=runs[each.name][0], last_run=runs[each.name][1])
            for each in summaries
            if each.name in runs
        )

    def counts(self) -> SkillCounts:
        """Count the skills that are not deleted, their versions, and how often they ran."""
        with self._database.read() as connection:
            skills, runs = connection.execute(
                sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(SKILL.c.runs), 0)).where(_ALIVE)
            ).one()
            versions = connection.execute(
                sa.select(sa.func.count()).select_from(VERSION).where(VERSION.c.deleted_at.is_(None))
            ).scalar_one()
        return SkillCounts(int(skills), versions, int(runs))

    def names(self) -> tuple[str, ...]:
        """Return the names of all skills that are not deleted, in their order."""
        with self._database.read() as connection:
            return tuple(sorted(connection.execute(sa.select(SKILL.c.name).where(_ALIVE)).scalars()))

    def versions(self, name: str) -> tuple[VersionInfo, ...]:
        """Return the history of a skill, oldest first, deleted versions too. Raises `SkillNotFound`."""
        columns = (VERSION.c.number, VERSION.c.content_hash, VERSION.c.created_at, VERSION.c.deleted_at)
        with self._database.read() as connection:
            skill = _skill(connection, name)
            if skill is None:
                raise self._not_found(name)
            of_skill = sa.select(*columns).where(VERSION.c.skill_id == skill.id).order_by(VERSION.c.number)
            return tuple(VersionInfo(*row) for row in connection.execute(of_skill))

    def delete(self, name: str) -> tuple[int, ...]:
        """Delete all versions of a skill and return their numbers; `restore` brings them back until `purge`.

        A skill saved under the name again goes on counting. Raises `SkillNotFound`.
        """
        with self._database.transaction() as connection:
            revision = next_revision(connection)
            skill = _skill(connection, name)
            if skill is None or skill.live_version is None:
                raise self._not_found(name, deleted=skill is not None)
            numbers = _bury(connection, skill, VERSION.c.deleted_at.is_(None), datetime.now(UTC))
            connection.execute(_change(skill, live_version=None, revision=revision))
            self.changes += 1
            return numbers

    def restore(self, name: str) -> tuple[int, ...]:
        """Restore all deleted versions of a skill; return their numbers. Raises `SkillNotFound` if there are none."""
        with self._database.transaction() as connection:
            revision = next_revision(connection)
            skill = _skill(connection, name)
            numbers = () if skill is None else _bury(connection, skill, VERSION.c.deleted_at.is_not(None), None)
            if skill is None or not numbers:
                raise SkillNotFound(f"There is no deleted skill {name!r} to restore. `list_skills` names the others.")
            live = max(skill.live_version or 0, numbers[-1])
            connection.execute(_change(skill, live_version=live, revision=revision))
            self.changes += 1
            return numbers

    def purge(self, name: str | None = None, *, deleted_before: datetime | None = None) -> int:
        """Remove deleted versions for good, of one skill or of all, and return how many.

        With `deleted_before`, only those deleted before that moment. A skill without any version left is forgotten,
        with what its run records say of it.
        """
        if name is not None and not storable(name):
            return 0
        doomed = sa.delete(VERSION).where(VERSION.c.deleted_at.is_not(None))
        if name is not None:
            doomed = doomed.where(VERSION.c.skill_id.in_(sa.select(SKILL.c.id).where(SKILL.c.name == name)))
        if deleted_before is not None:
            doomed = doomed.where(VERSION.c.deleted_at < deleted_before)
        with self._database.transaction() as connection:
            revision = next_revision(connection)
            purged = connection.execute(doomed).rowcount
            empty = sa.delete(SKILL).where(~sa.exists().where(VERSION.c.skill_id == SKILL.c.id))
            for gone in connection.execute(empty.returning(SKILL.c.name)).scalars().all():
                forget_runs(connection, gone)
            connection.execute(sa.update(REVISION).values(purged=revision))
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


def _stored(connection: Connection, skill: Row, version: int | None = None) -> StoredSkill | None:
    row = _version(connection, skill, skill.live_version if version is None else version)
    if row is None or row.deleted_at is not None:
        return None
    return StoredSkill(
        draft=draft_of(skill.name, row),
        version=row.number,
        latest=skill.live_version,
        content_hash=row.content_hash,
        created_at=row.created_at,
        runs=skill.runs,
        last_run=skill.last_run,
    )


def next_revision(connection: Connection) -> int:
    """Count the change that the transaction makes, and hold back all other changes to skills until it ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    counted = sa.update(REVISION).values(number=REVISION.c.number + 1).returning(REVISION.c.number)
    return int(connection.execute(counted).scalar_one())


def forget_runs(connection: Connection, name: str) -> None:
    """Take what run records say of a skill out of them."""
    connection.execute(sa.update(RUN).where(RUN.c.skill == name).values(skill=None, version=None))


def put_skill(connection: Connection, name: str, values: Mapping[str, object]) -> int:
    """Make a skill, or change the one of that name, and return its id."""
    row = insert(SKILL).values(name=name, **values)
    put = row.on_conflict_do_update(index_elements=["name"], set_=values).returning(SKILL.c.id)
    return int(connection.execute(put).scalar_one())


def version_row(
    skill_id: int, number: int, draft: SkillDraft, content_hash: str, created_at: datetime
) -> dict[str, object]:
    """Return the row that keeps a draft as the version `number` of its skill."""
    parts = {part: getattr(draft, part) for part in PARTS} | {"kind": draft.kind.value, "size": draft.size}
    return parts | {
        "skill_id": skill_id,
        "number": number,
        "content_hash": content_hash,
        "created_at": created_at,
    }


def draft_of(name: str, row: Row) -> SkillDraft:
    """Return the draft that a row keeps."""
    parts = {part: getattr(row, part) for part in PARTS} | {part: tuple(getattr(row, part)) for part in TUPLES}
    return SkillDraft(name=name, **parts | {"kind": SkillKind(row.kind)})


def _summary(row: Row) -> SkillSummary:
    parts = {part: value for part, value in row._asdict().items() if part != "archived"}
    return SkillSummary(**parts | {"kind": SkillKind(row.kind), "tags": tuple(row.tags)}, runs=0, last_run=None)


def _skill(connection: Connection, name: str) -> Row | None:
    if not storable(name):
        return None
    return connection.execute(sa.select(SKILL).where(SKILL.c.name == name)).one_or_none()


def _version(connection: Connection, skill: Row, number: int) -> Row | None:
    if not 1 <= number <= skill.last_version:
        return None
    wanted = sa.select(VERSION).where(VERSION.c.skill_id == skill.id, VERSION.c.number == number)
    return connection.execute(wanted).one_or_none()


def _change(skill: Row, **values: object) -> sa.Update:
    return sa.update(SKILL).where(SKILL.c.id == skill.id).values(values)


def _bury(
    connection: Connection, skill: Row, which: sa.ColumnElement[bool], deleted_at: datetime | None
) -> tuple[int, ...]:
    """Delete versions of a skill, or dig them up, and return their numbers."""
    buried = sa.update(VERSION).where(VERSION.c.skill_id == skill.id, which).values(deleted_at=deleted_at)
    return tuple(sorted(connection.execute(buried.returning(VERSION.c.number)).scalars()))


_ALIVE = SKILL.c.live_version.is_not(None)
_NEWEST = sa.and_(VERSION.c.skill_id == SKILL.c.id, VERSION.c.number == SKILL.c.live_version)
_NEWEST_OF_ALL = sa.select(SKILL.c.name, *(VERSION.c[part] for part in PARTS)).join(VERSION, _NEWEST)
_CHANGED_SINCE = (
    sa.select(
        SKILL.c.name,
        SKILL.c.live_version.label("version"),
        SKILL.c.archived,
        *(VERSION.c[each] for each in ("kind", "description", "signature", "tags", "created_at")),
    )
    .select_from(SKILL.outerjoin(VERSION, _NEWEST))
    .where(SKILL.c.revision > sa.bindparam("known"))
)
"""What the newest version says of itself of each skill that was changed after a revision."""
