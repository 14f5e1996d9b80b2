"""Keeps the journals of runs in the database, encrypted, for a time and up to a quota for each owner.

This is a security boundary: what a run was given and what it was answered stands in the database as ciphertext alone
(`sealing`). In clear are the run's id, its owner's keyed name, times, limits, isolation and status.

Large answers lie in rows like small ones: one commit takes them with everything else, every replica finds them, and
their bytes are counted in one place. Written durably, 1 MB takes about as long in a row as in a file beside.

A journal that has ended is whole or is not read. Of one that has not, the last pieces may be cut off by whoever can
write to the database, as the whole database may be set back: only what is kept elsewhere could show that.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import (
    JournalDamaged,
    JournalErased,
    JournalNewer,
    JournalNotFound,
    RunNotCut,
    SkillsDbError,
    VaultKeyWrong,
)
from ..leases import NOBODYS, Lease, taken
from ..sql import Connection, IntegrityError, Row, batches, insert_both, insert_many, sa
from ..tables import BACKGROUND, JOURNAL, PIECE
from ..vault import is_key_of
from ..vault_keys import SealBroken
from .forgetting import background_runs_that_hold, erase, erase_background, take_place
from .records import (
    CUT,
    ERASED,
    FORMAT,
    RUNNING,
    Record,
    RecordKind,
    RunBegin,
    RunChange,
    RunSummary,
    SessionPrograms,
    StoredJournal,
    first_line,
    joined,
    parted,
    tools_called,
)
from .schedule_store import ScheduleStore
from .sealing import JournalKeys

if TYPE_CHECKING:
    from ..engine import Database

_COUNT_EVERY_BYTES = 1_000_000
_HEADER, _PIECE, _END = "header", "piece", "end"
_COUNTED_BYTES = 65_536
"""Pieces up to this size are counted when their run ends: they cost one statement less."""
_NEW_LINE = b"\n"
"""Parts what the store itself keeps of a header from what it was given; JSON in one line has none."""
_READ_AT_ONCE = 100
_LEAVES_SESSION = frozenset({"ok", "error", "refused"})
"""How a program ends whose session is kept as the program left it."""
_PLACED = _LEAVES_SESSION | {ERASED}
_GAP_ERASED = "its process ended, and what one of its programs did was erased by `sealab pii forget`"
_RESTRICTED = "restricted"
DAMAGED, NEWER = "damaged", "newer"
"""What a list says in place of the status of a run whose journal cannot be read."""


class JournalStore:
    """The journals of one database under one master key; safe to use from several threads."""

    def __init__(self, database: Database, key: bytes, *, quota_bytes: int) -> None:
        """Open them; the journals of an owner take `quota_bytes` at most.

        Raises `VaultKeyWrong` when the vault was made with another key, and what `Database` raises.
        """
        self._database = database
        self._keys = JournalKeys(key)
        self._quota_bytes = quota_bytes
        self._sizes: dict[str, int] = {}
        self._check_key()

    def owner_of(self, scope: str) -> str:
        """Return what the database calls a scope."""
        return self._keys.owner(scope)

    def write(self, changes: Sequence[RunChange], scopes: Mapping[str, str], *, durable: bool) -> None:
        """Write what there is of several runs in one commit; `scopes` says whose each run is.

        With `durable` it survives a crash of the machine too; what a server of a database has not flushed, it loses
        when it crashes alone, which leaves a gap, so there every commit is durable. Afterwards the oldest ended
        journals of owners above their quota are dropped. Raises what `Database` raises, and
        `JournalErased` of a single run; then nothing was written, but for `CommitUnknown`.
        """
        owners = {run_id: self._keys.owner(scope) for run_id, scope in scopes.items()}
        rows = [self._row(each, owners[each.run_id]) for each in changes]
        try:
            self._write(rows, durable=durable)
        except IntegrityError:
            if len(changes) == 1 and self._is_erased(changes[0].run_id):
                raise JournalErased(changes[0].run_id) from None
            raise
        for row in rows:
            with suppress(SkillsDbError):  # it is written all the same, and the next one counts it
                self._grow(row["owner"], row["bytes"])

    def _write(self, rows: Sequence[dict[str, Any]], *, durable: bool) -> None:
        pieces = [row for row in rows if row["sealed"] is not None]
        later = [row for row in pieces if "began" not in row]
        with self._database.transaction(durable=durable or not self._database.is_file) as connection:
            insert_many(connection, JOURNAL, [row for row in rows if "began" in row and row["sealed"] is None])
            insert_both(connection, JOURNAL, PIECE, [row for row in pieces if "began" in row])
            insert_many(connection, PIECE, later)
            if grown := [(row["run_id"], row["bytes"]) for row in later if row["bytes"] > _COUNTED_BYTES]:
                connection.execute(_GROW, [{"of_run": run_id, "more": more} for run_id, more in grown])
            if ended := [row for row in rows if "began" not in row and row["sealed_end"] is not None]:
                connection.execute(_FINISH, [_end_of(row) for row in ended])

    def _is_erased(self, run_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(sa.select(_RUN.status).where(_RUN.run_id == run_id)).scalar() == ERASED

    def is_written(self, changes: Sequence[RunChange]) -> bool:
        """Return whether these changes are stored, where a commit was not heard of. Raises what `Database` raises."""
        with self._database.read() as connection:
            return any(self._is_there(connection, each) for each in changes)

    def _is_there(self, connection: Connection, change: RunChange) -> bool:
        there = sa.select(1).where(_RUN.run_id == change.run_id, _LEASE.is_of(change.process))
        if change.piece:
            there = there.where(PIECE.c.run_id == _RUN.run_id, PIECE.c.number == change.number)
        elif change.end is not None:
            there = there.where(_RUN.ended.is_not(None))
        return connection.execute(there).first() is not None

    def runs(
        self,
        *,
        since: float = 0.0,
        until: float = math.inf,
        status: str | None = None,
        tool: str | None = None,
        scope: str | None = None,
        limit: int = 50,
        now: Mapping[str, str] = MappingProxyType({}),
        unended: bool = False,
        fits: Callable[[RunSummary], bool] = lambda _run: True,
    ) -> list[RunSummary]:
        """Return the newest runs that fit, newest first: of one owner, of a status, of those that called a tool.

        `tool` is the name of one, or of a server for any tool of it.

        With `unended` it looks at those alone whose journals have no end.

        `now` is the status of runs of which somebody else knows better than their journals.
        """
        wanted = sa.select(JOURNAL).where(_lives(self._database.now()), _RUN.began >= since, *self._of(scope))
        wanted = wanted if until == math.inf else wanted.where(_RUN.began < until)
        if status not in (None, DAMAGED, NEWER):  # what these are is found by reading
            wanted = wanted.where((_RUN.status == status) | _RUN.ended.is_(None))
        wanted = wanted.where(_RUN.ended.is_(None)) if unended else wanted
        wanted = wanted.order_by(_RUN.id.desc()).limit(_READ_AT_ONCE)
        found: list[RunSummary] = []
        before = _FAR
        with self._database.read() as connection:
            while len(found) < limit:
                rows = connection.execute(wanted.where(_RUN.id < before)).all()
                for row in rows:
                    run = self._listed(row, connection)
                    run = replace(run, status=now.get(run.run_id, run.status))
                    if status in (None, run.status) and (tool is None or _called(run, tool)) and fits(run):
                        found.append(replace(run, code=self._line(row, run)))
                if len(rows) < _READ_AT_ONCE:
                    break
                before = rows[-1].id
        return found[:limit]

    def _line(self, row: Row, run: RunSummary) -> str:
        if run.status in {DAMAGED, NEWER}:
            return ""
        header = json.loads(self._opened(row, _HEADER, 0, row.sealed_header).partition(_NEW_LINE)[2])
        return first_line(str(header.get("code", "")))

    def knows(self, run_id: str) -> bool:
        """Return whether there is a journal or a background run of that name."""
        either = (sa.select(each.c.run_id).where(each.c.run_id == run_id) for each in (JOURNAL, BACKGROUND))
        with self._database.read() as connection:
            return connection.execute(sa.union_all(*either)).first() is not None

    def _of(self, scope: str | None) -> tuple[sa.ColumnElement[bool], ...]:
        return () if scope is None else (_RUN.owner == self._keys.owner(scope),)

    def journal(self, run_id: str, *, scope: str | None = None) -> StoredJournal:
        """Return the whole journal of a run.

        Raises `JournalNotFound`, `JournalErased`, `JournalNewer` or `JournalDamaged`.
        """
        with self._database.read() as connection:
            wanted = sa.select(JOURNAL).where(_lives(self._database.now()), _RUN.run_id == run_id, *self._of(scope))
            row = connection.execute(wanted).one_or_none()
            if row is None:
                raise _not_found(run_id)
            if row.status == ERASED:
                raise JournalErased(run_id)
            pieces = _pieces(connection, run_id)
        run = self._summary(row)
        if [number for number, _ in pieces] != list(range(row.pieces or len(pieces))):
            raise _damaged(run_id, "pieces of it are missing")
        context_json, _, header = self._opened(row, _HEADER, 0, row.sealed_header).partition(_NEW_LINE)
        records = tuple(self._records(row, pieces))
        if run.ended is None:
            run = replace(run, tools=tools_called(records))
        return StoredJournal(
            run, json.loads(context_json)["scope"], json.loads(header), records, len(pieces), row.after
        )

    def take_over(self, run_id: str, process: str, seconds: float, *, scope: str | None = None) -> StoredJournal:
        """Take a run that was cut, and return its journal as it then is; its lease is the process's for `seconds`.

        The first that takes it has it. What the process before it still writes is refused, since the number of its next
        piece is taken. Raises `RunNotCut` where the run has ended or another process has it, and as `journal`.
        """
        journal = self.journal(run_id, scope=scope)
        record = Record(RecordKind.RESUMED, _json({"at": self._database.now(), "process": process}))
        piece = joined([record])
        owner = self._keys.owner(journal.scope)
        now = self._database.now()
        cut = (_RUN.run_id == run_id, _RUN.ended.is_(None), _LEASE.is_free(now))
        sealed = self._keys.sealed(owner, run_id, _PIECE, journal.pieces, piece)
        with self._database.transaction() as connection:
            took = connection.execute(
                sa.update(JOURNAL).where(*cut).values({**taken(process, now + seconds), "cancels": 0})
            )
            if took.rowcount != 1 or not take_place(connection, run_id, journal.pieces, sealed):
                raise _not_cut(run_id)
        return replace(journal, records=(*journal.records, record), pieces=journal.pieces + 1)

    def release(self, run_id: str, process: str | None = None) -> None:
        """Let another process take a run that `process` has, or whoever has it, who can then write no more of it."""
        held = (_RUN.run_id == run_id, _RUN.ended.is_(None), *(() if process is None else (_LEASE.is_of(process),)))
        with self._database.transaction() as connection:
            connection.execute(sa.update(JOURNAL).where(*held).values(NOBODYS))

    def renew(self, process: str, seconds: float) -> None:
        """Renew a process's leases of its runs for so long."""
        held = sa.update(JOURNAL).where(_RUN.status == RUNNING, _LEASE.is_of(process))
        with self._database.transaction(durable=False) as connection:
            connection.execute(held.values(leased_until=self._database.now() + seconds))

    def cancel(self, run_id: str) -> bool:
        """Ask the process that has a run for its end; return whether it has not ended yet."""
        unended = sa.update(JOURNAL).where(_RUN.run_id == run_id, _RUN.ended.is_(None))
        with self._database.transaction(durable=False) as connection:
            return connection.execute(unended.values(cancels=1)).rowcount > 0

    def cancelled(self, process: str) -> Sequence[str]:
        """Return the runs that a process has and that are to end."""
        wanted = sa.select(_RUN.run_id).where(_RUN.status == RUNNING, _LEASE.is_of(process), _RUN.cancels == 1)
        with self._database.read() as connection:
            return connection.execute(wanted).scalars().all()

    def session(self, scope: str, name: str) -> SessionPrograms:
        """Return what a session consists of that has no worker: the programs that ended and left it as it was last.

        A program that ran out of time or memory, crashed, or was cancelled or cut is none of them.
        """
        with self._database.read() as connection:
            rows = connection.execute(_in_session(self._keys.owner(scope), self._keys.session(scope, name)))
            last = next((each for each in rows if each.closed or each.status in _PLACED), None)
            if last is None or last.closed:
                return SessionPrograms()
            if last.status == ERASED:
                return SessionPrograms(gap=_GAP_ERASED)
            if last.isolation != _RESTRICTED:
                return SessionPrograms(
                    gap=f"its process ended, and at the isolation {last.isolation} it cannot be rebuilt"
                )
            programs = [last]
            for each in rows:
                if programs[-1].after is None:
                    break
                if each.run_id == programs[-1].after:
                    programs.append(each)
        if any(each.closed for each in programs):
            return SessionPrograms()
        if any(each.status == ERASED for each in programs):
            return SessionPrograms(gap=_GAP_ERASED)
        if programs[-1].after is not None:
            return SessionPrograms(gap="its process ended, and the journal of an earlier program is not kept any more")
        return SessionPrograms(tuple(each.run_id for each in reversed(programs)))

    def close_session(self, scope: str, name: str) -> bool:
        """End a session for good, so that it is never rebuilt; return whether it could have been."""
        could = bool(self.session(scope, name).programs)
        whose = (_RUN.owner == self._keys.owner(scope), _RUN.session == self._keys.session(scope, name))
        with self._database.transaction() as connection:
            connection.execute(sa.update(JOURNAL).where(*whose).values(closed=1))
        return could

    def session_until(self, run_id: str) -> list[str]:
        """Return the programs of the session of a run from its first up to this one; of none, the run alone.

        Raises `JournalNotFound`, and `JournalDamaged` where one of them is not kept any more.
        """
        with self._database.read() as connection:
            row = connection.execute(sa.select(JOURNAL).where(_RUN.run_id == run_id)).one_or_none()
            if row is None:
                raise _not_found(run_id)
            if row.session is None:
                return [run_id]
            programs, wanted = [], run_id
            for each in connection.execute(_in_session(row.owner, row.session).where(_RUN.id <= row.id)):
                if each.run_id != wanted:
                    continue
                programs.append(each.run_id)
                if each.after is None:
                    return programs[::-1]
                wanted = each.after
        raise _damaged(run_id, "an earlier program of its session is not kept any more")

    def drop_expired(self) -> int:
        """Remove the journals that have outlived their time, but of runs under way, and return how many."""
        with self._database.transaction() as connection:
            found = connection.execute(sa.select(_RUN.run_id).where(~_lives(self._database.now()))).scalars().all()
            _drop(connection, found)
        self._sizes.clear()
        return len(found)

    def forget(self, holds: Callable[[str], bool], *, scope: str | None = None, erases: bool = True) -> list[str]:
        """Erase the journals, background runs and schedules in which `holds` is true of any text; return their runs.

        One that cannot be read goes too, and so does a background run that has not ended and whose journal goes. Each
        stays in the list as erased. Without `erases` nothing is changed.
        """
        if erases:
            self.drop_expired()
        owner = None if scope is None else self._keys.owner(scope)
        run_ids = self.of_owner(owner)
        found = {run_id for run_id in run_ids if self._holds(run_id, holds)}
        queued = background_runs_that_hold(self._database, self._keys, partial(_any_text, holds), owner)
        gone = [run_id for run_id in run_ids if run_id in found or run_id in queued]
        if erases:
            erase_background(self._database, queued, unended=gone)
            erase(self._database, self._keys, gone)
            ScheduleStore(self._database, self._keys).forget(partial(_any_text, holds), owner)
            self._sizes.clear()
        return [*gone, *(run_id for run_id in queued if run_id not in gone)]

    def owner(self, scope: str) -> str:
        """Return what the database calls a scope."""
        return self._keys.owner(scope)

    def of_owner(self, owner: str | None) -> list[str]:
        """Return the runs of the scope that the database calls so, or of all, but those that are erased."""
        whose = () if owner is None else (_RUN.owner == owner,)
        wanted = sa.select(_RUN.run_id).where(_RUN.status != ERASED, *whose).order_by(_RUN.id)
        with self._database.read() as connection:
            return list(connection.execute(wanted).scalars())

    def forget_scope(self, owner: str) -> int:
        """Erase all journals, background runs and schedules of the scope that the database calls so.

        Return how many journals there were.
        """
        run_ids = self.of_owner(owner)
        ScheduleStore(self._database, self._keys).forget(None, owner)
        erase_background(self._database, (), owner=owner)
        erase(self._database, self._keys, run_ids)
        self._sizes.pop(owner, None)
        return len(run_ids)

    def used_bytes(self, scope: str | None = None) -> int:
        """Return what the journals and the background runs of a scope take, or of all."""
        return self._size(None if scope is None else self._keys.owner(scope))

    def _size(self, owner: str | None) -> int:
        sizes = (
            sa.select(sa.func.coalesce(sa.func.sum(size), 0))
            .where(*() if owner is None else (table.c.owner == owner,))
            .scalar_subquery()
            for table, size in ((JOURNAL, _RUN.bytes), (BACKGROUND, _OF_BACKGROUND))
        )
        with self._database.read() as connection:
            return int(connection.execute(sa.select(next(sizes) + next(sizes))).scalar_one())

    def _holds(self, run_id: str, holds: Callable[[str], bool]) -> bool:
        try:
            journal = self.journal(run_id)
        except (JournalNotFound, JournalErased):
            return False
        except (JournalDamaged, JournalNewer):
            return True
        values: list[object] = [
            [journal.run.session, journal.run.tools, dict(journal.header)],
            *(each.value for each in journal.records if each.kind is not RecordKind.TRACE),
        ]
        return any(_any_text(holds, value) for value in values)

    def _row(self, change: RunChange, owner: str) -> dict[str, Any]:
        """Return the columns of what is to be written of a run, of its row and of its piece."""
        run_id, end = change.run_id, change.end
        sealed = self._keys.sealed
        piece = sealed(owner, run_id, _PIECE, change.number, change.piece) if change.piece else None
        pieces = change.number + (piece is not None)
        row: dict[str, Any] = {
            "run_id": run_id,
            "owner": owner,
            "number": change.number,
            "sealed": piece,
            "pieces": 0 if end is None else pieces,
            "process": change.process,
            "status": RUNNING,
            "ended": None,
            "sealed_end": None,
        }
        if change.begin is not None:
            row |= self._begun(change.begin, owner)
        if end is not None:
            fields = {name: getattr(end, name) for name in ("tools", "incomplete", "status", "reason", "times")}
            row |= {"status": end.status, "ended": end.ended, "isolation": end.isolation}
            row["sealed_end"] = sealed(owner, run_id, _END, pieces, _json(fields))
        row["bytes"] = sum(len(row.get(part) or b"") for part in ("sealed", "sealed_header", "sealed_end"))
        return row

    def _begun(self, begin: RunBegin, owner: str) -> dict[str, object]:
        header = _json({"scope": begin.scope, "session": begin.session}) + _NEW_LINE + begin.header
        return {
            "format": FORMAT,
            "session": None if begin.session is None else self._keys.session(begin.scope, begin.session),
            "number_of": begin.number,
            "after": begin.after,
            "closed": 0,
            "cancels": 0,
            "isolation": begin.isolation,
            "began": begin.began,
            "expires": begin.expires,
            "timeout_seconds": begin.timeout_seconds,
            "memory_mb": begin.memory_mb,
            **taken(begin.leased_by, self._database.now() + begin.leased_until - begin.began),
            "sealed_header": self._keys.sealed(owner, begin.run_id, _HEADER, 0, header),
        }

    def _listed(self, row: Row, connection: Connection) -> RunSummary:
        """Return a run for a list, in which one that cannot be read hides no other."""
        try:
            run = self._summary(row)
            if run.ended is not None:
                return run
            return replace(run, tools=tools_called(self._records(row, _pieces(connection, run.run_id))))
        except JournalDamaged:
            return _unread(row, DAMAGED)
        except JournalNewer:
            return _unread(row, NEWER)

    def _summary(self, row: Row) -> RunSummary:
        if row.format > FORMAT:
            raise JournalNewer(
                f"The journal of the run {row.run_id} was written by a newer version of sealab. Use that version or a "
                "later one."
            )
        end: dict[str, Any] = {}
        if row.sealed_end is not None:
            end = json.loads(self._opened(row, _END, row.pieces, row.sealed_end))
            if end["status"] != row.status:
                raise _damaged(row.run_id, "its status was changed")
        elif row.status != RUNNING:
            raise _damaged(row.run_id, "its end is missing")
        context = json.loads(self._opened(row, _HEADER, 0, row.sealed_header).partition(_NEW_LINE)[0])
        return replace(
            _unread(row, CUT if row.ended is None and row.leased_until < self._database.now() else row.status),
            session=context["session"],
            tools=end.get("tools", {}),
            incomplete=end.get("incomplete"),
            scope=context["scope"],
            reason=end.get("reason"),
            times=end.get("times", {}),
        )

    def _records(self, row: Row, pieces: Sequence[Row]) -> Iterator[Record]:
        for number, sealed in pieces:
            data = self._opened(row, _PIECE, number, sealed)
            try:
                yield from parted(data)
            except ValueError as error:
                raise _damaged(row.run_id, f"piece {number} cannot be read: {error}") from None

    def _opened(self, row: Row, part: str, position: int, sealed: bytes) -> bytes:
        try:
            return self._keys.opened(row.owner, row.run_id, part, position, sealed)
        except SealBroken:
            raise _damaged(row.run_id, f"its {part} {position} does not open") from None

    def _check_key(self) -> None:
        """Compare the key with the one that the vault was made with, or remember it there. Raises `VaultKeyWrong`."""
        if not is_key_of(self._database, self._keys.mark):
            raise VaultKeyWrong(
                "The journals were written with another key, so they cannot be read. Give the key that the vault was "
                "made with (VAULT_KEY, the keyring, or the key file beside the database)."
            )

    def _grow(self, owner: str, count: int) -> None:
        """Count what an owner's journals grew by, and now and then drop the oldest that are above the quota."""
        waiting = self._sizes[owner] = self._sizes.get(owner, _COUNT_EVERY_BYTES) + count
        if waiting < min(_COUNT_EVERY_BYTES, self._quota_bytes // 10):
            return
        size = self._size(owner)
        if size > self._quota_bytes:
            self._trim(owner, size - self._quota_bytes)
        self._sizes[owner] = 0

    def _trim(self, owner: str, excess: int) -> None:
        own = JOURNAL.outerjoin(BACKGROUND, (BACKGROUND.c.run_id == _RUN.run_id) & (BACKGROUND.c.owner == _RUN.owner))
        oldest = sa.select(_RUN.run_id, _RUN.bytes + sa.func.coalesce(_OF_BACKGROUND, 0)).select_from(own)
        oldest = oldest.where(_RUN.owner == owner, _RUN.status != RUNNING).order_by(_RUN.id)
        with self._database.transaction() as connection:
            gone = []
            for run_id, size in connection.execute(oldest):
                gone.append(run_id)
                excess -= size
                if excess <= 0:
                    break
            _drop(connection, gone)


def _called(run: RunSummary, tool: str) -> bool:
    return tool in run.tools or any(name.startswith(f"{tool}.") for name in run.tools)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _texts(value: object) -> Iterator[str]:
    """Give every text and number in a JSON value, keys too, each as a text."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield str(each)
        elif isinstance(each, Mapping):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, Sequence):
            waiting.extend(each)


def _any_text(holds: Callable[[str], bool], value: object) -> bool:
    return any(holds(text) for text in _texts(value))


def _unread(row: Row, status: str) -> RunSummary:
    """Return what stands of a run in clear."""
    return RunSummary(
        run_id=row.run_id,
        owner=row.owner,
        isolation=row.isolation,
        status=status,
        began=row.began,
        ended=row.ended,
        expires=row.expires,
        bytes=row.bytes,
        session=None,
        number=row.number_of,
        tools={},
        incomplete=None,
    )


def _not_cut(run_id: str) -> RunNotCut:
    return RunNotCut(
        f"The run {run_id} cannot be taken up: it has ended, or a process is still at work on it. `sealab runs list` "
        "shows which runs were cut."
    )


def _not_found(run_id: str) -> JournalNotFound:
    return JournalNotFound(f"There is no journal of the run {run_id}. `sealab runs list` shows those that are kept.")


def _damaged(run_id: str, why: str) -> JournalDamaged:
    return JournalDamaged(
        f"The journal of the run {run_id} was changed or is damaged: {why}. It cannot be used; restore a backup of the "
        "database, or go on without it."
    )


def _drop(connection: Connection, run_ids: Sequence[str]) -> None:
    for some in batches(run_ids):
        connection.execute(sa.delete(PIECE).where(PIECE.c.run_id.in_(some)))
        connection.execute(sa.delete(JOURNAL).where(_RUN.run_id.in_(some)))
        connection.execute(sa.delete(BACKGROUND).where(BACKGROUND.c.run_id.in_(some), BACKGROUND.c.status == "ended"))


def _pieces(connection: Connection, run_id: str) -> Sequence[Row]:
    """Return numbers and contents of the pieces of a run."""
    wanted = sa.select(PIECE.c.number, PIECE.c.sealed).where(PIECE.c.run_id == run_id)
    return connection.execute(wanted.order_by(PIECE.c.number)).all()


def _in_session(owner: str, session: str) -> sa.Select[*tuple[Any, ...]]:
    """Return what selects the programs of a session, the last one first."""
    columns = (_RUN.run_id, _RUN.after, _RUN.closed, _RUN.status, _RUN.isolation)
    return sa.select(*columns).where(_RUN.owner == owner, _RUN.session == session).order_by(_RUN.id.desc())


def _lives(now: float) -> sa.ColumnElement[bool]:
    """Return the condition that a run has not outlived its time, or is under way."""
    return (_RUN.expires > now) | (_RUN.ended.is_(None) & (_RUN.leased_until > now))


def _end_of(row: Mapping[str, Any]) -> dict[str, object]:
    written = {name: row[name] for name in ("pieces", "status", "ended", "isolation", "sealed_end")}
    return written | {"of_run": row["run_id"], "of_process": row["process"], "end_bytes": len(row["sealed_end"])}


_FAR = 1 << 62
_RUN = JOURNAL.c
_LEASE = Lease(JOURNAL)
_OF_RUN = _RUN.run_id == sa.bindparam("of_run")
_GROW = sa.update(JOURNAL).where(_OF_RUN).values(bytes=_RUN.bytes + sa.bindparam("more"))
_PIECES_BYTES = sa.select(sa.func.sum(sa.func.length(PIECE.c.sealed))).where(PIECE.c.run_id == _RUN.run_id)
_FINISH = (
    sa.update(JOURNAL)
    .where(_OF_RUN, _RUN.leased_by == sa.bindparam("of_process"))
    .values(
        bytes=sa.func.length(_RUN.sealed_header)
        + sa.bindparam("end_bytes", type_=sa.Integer)
        + sa.func.coalesce(_PIECES_BYTES.scalar_subquery(), 0)
    )
)
_OF_BACKGROUND = sum(
    (
        sa.func.coalesce(sa.func.length(BACKGROUND.c[f"sealed_{part}"]), 0)
        for part in ("request", "progress", "report", "question", "answer")
    ),
    sa.literal(0),
)
