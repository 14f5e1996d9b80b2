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

import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from ..errors import (
    JournalDamaged,
    JournalErased,
    JournalNewer,
    JournalNotFound,
    RunNotCut,
    SkillsDbError,
    VaultKeyWrong,
)
from ..sql import batches, sa, with_list
from ..vault_keys import SealBroken
from .forgetting import background_runs_that_hold, erase, erase_background
from .records import (
    CUT,
    ERASED,
    FORMAT,
    RUNNING,
    Journal,
    Record,
    RecordKind,
    RunBegin,
    RunChange,
    RunSummary,
    Session,
    joined,
    parted,
    tools_called,
)
from .sealing import JournalKeys

if TYPE_CHECKING:
    from ..engine import Database
from ..postgresql import insert_both, insert_many

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
        except sa.exc.IntegrityError:
            if len(changes) == 1 and self._is_erased(changes[0].run_id):
                raise JournalErased(changes[0].run_id) from None
            raise
        for row in rows:
            with suppress(SkillsDbError):  # it is written all the same, and the next one counts it
                self._grow(cast("str", row["owner"]), cast("int", row["bytes"]))

    def _write(self, rows: Sequence[dict[str, object]], *, durable: bool) -> None:
        pieces = [row for row in rows if row["piece"] is not None]
        with self._database.transaction(durable=durable or not self._database.is_file) as session:
            connection = session.connection()
            insert_many(connection, _BEGIN, [row for row in rows if "began" in row and row["piece"] is None])
            insert_both(connection, _BEGIN, _ADD_PIECE, [row for row in pieces if "began" in row])
            insert_many(connection, _ADD_PIECE, [row for row in pieces if "began" not in row])
            if grown := [row for row in pieces if "began" not in row and cast("int", row["bytes"]) > _COUNTED_BYTES]:
                connection.execute(_GROW, grown)
            if ended := [row for row in rows if "began" not in row and row["sealed_end"] is not None]:
                connection.execute(_FINISH, ended)

    def _is_erased(self, run_id: str) -> bool:
        with self._database.read() as session:
            return session.execute(_STATUS, {"run": run_id}).scalar_one_or_none() == ERASED

    def is_written(self, changes: Sequence[RunChange]) -> bool:
        """Return whether these changes are stored, where a commit was not heard of. Raises what `Database` raises."""
        with self._database.read() as session:
            return any(self._is_there(session.connection(), each) for each in changes)

    def _is_there(self, connection: sa.Connection, change: RunChange) -> bool:
        ends = change.end is not None
        told = {"run": change.run_id, "process": change.process, "number": change.number, "ends": ends}
        return connection.execute(_HAS_PIECE if change.piece else _HAS_RUN, told).first() is not None

    def runs(
        self,
        *,
        since: float = 0.0,
        status: str | None = None,
        tool: str | None = None,
        scope: str | None = None,
        limit: int = 50,
        now: Mapping[str, str] = MappingProxyType({}),
    ) -> list[RunSummary]:
        """Return the newest runs, newest first: of one owner, of a status, of those that called a tool.

        `now` is the status of runs of which somebody else knows better than their journals.
        """
        owner = None if scope is None else self._keys.owner(scope)
        found: list[RunSummary] = []
        before = _FAR
        with self._database.read() as session:
            while len(found) < limit:
                at = {
                    "since": since,
                    "before": before,
                    "owner": owner,
                    "most": _READ_AT_ONCE,
                    "now": self._database.now(),
                }
                rows = session.execute(_RUNS, at).mappings().all()
                for row in rows:
                    run = self._listed(row, session)
                    run = replace(run, status=now.get(run.run_id, run.status))
                    if status in (None, run.status) and (tool is None or tool in run.tools):
                        found.append(run)
                if len(rows) < _READ_AT_ONCE:
                    break
                before = rows[-1]["id"]
        return found[:limit]

    def journal(self, run_id: str, *, scope: str | None = None) -> Journal:
        """Return the whole journal of a run.

        Raises `JournalNotFound`, `JournalErased`, `JournalNewer` or `JournalDamaged`.
        """
        with self._database.read() as session:
            row = session.execute(_RUN, {"run": run_id, "now": self._database.now()}).mappings().one_or_none()
            if row is None or (scope is not None and row["owner"] != self._keys.owner(scope)):
                raise _not_found(run_id)
            if row["status"] == ERASED:
                raise JournalErased(run_id)
            pieces = session.execute(_PIECES, {"run": run_id}).mappings().all()
        run = self._summary(row)
        if [each["number"] for each in pieces] != list(range(row["pieces"] or len(pieces))):
            raise _damaged(run_id, "pieces of it are missing")
        told, _, header = self._opened(row, _HEADER, 0, row["sealed_header"]).partition(_NEW_LINE)
        records = tuple(self._records(row, pieces))
        if run.ended is None:
            run = replace(run, tools=tools_called(records))
        return Journal(run, json.loads(told)["scope"], json.loads(header), records, len(pieces), row["after"])

    def take_over(self, run_id: str, process: str, seconds: float, *, scope: str | None = None) -> Journal:
        """Take a run that was cut, and return its journal as it then is; its lease is the process's for `seconds`.

        The first that takes it has it. What the process before it still writes is refused, since the number of its next
        piece is taken. Raises `RunNotCut` where the run has ended or another process has it, and as `journal`.
        """
        journal = self.journal(run_id, scope=scope)
        record = Record(RecordKind.RESUMED, _json({"at": self._database.now(), "process": process}))
        piece = joined([record])
        owner = self._keys.owner(journal.scope)
        with self._database.transaction() as session:
            taken = session.execute(
                _TAKE_OVER,
                {
                    "run": run_id,
                    "process": process,
                    "until": self._database.now() + seconds,
                    "now": self._database.now(),
                },
            )
            if cast("sa.CursorResult[Any]", taken).rowcount != 1:
                raise _not_cut(run_id)
            sealed = self._keys.sealed(owner, run_id, _PIECE, journal.pieces, piece)
            kept = session.execute(_TAKE_PLACE, {"run_id": run_id, "number": journal.pieces, "piece": sealed})
            if cast("sa.CursorResult[Any]", kept).rowcount != 1:
                raise _not_cut(run_id)
        return replace(journal, records=(*journal.records, record), pieces=journal.pieces + 1)

    def release(self, run_id: str, process: str | None = None) -> None:
        """Let another process take a run that `process` has, or whoever has it, who can then write no more of it."""
        with self._database.transaction() as session:
            session.execute(_RELEASE, {"run": run_id, "process": process})

    def renew(self, process: str, seconds: float) -> None:
        """Have a process keep the runs that it has for so long."""
        with self._database.transaction(durable=False) as session:
            session.execute(_RENEW, {"process": process, "until": self._database.now() + seconds, "running": RUNNING})

    def session(self, scope: str, name: str) -> Session:
        """Return what a session consists of that has no worker: the programs that ended and left it as it was last.

        A program that ran out of time or memory, crashed, or was cancelled or cut is none of them.
        """
        whose = {"owner": self._keys.owner(scope), "session": self._keys.session(scope, name), "id": _FAR}
        with self._database.read() as session:
            rows = session.execute(_IN_SESSION, whose)
            last = next((each for each in rows if each.closed or each.status in _PLACED), None)
            if last is None or last.closed:
                return Session()
            if last.status == ERASED:
                return Session(gap=_GAP_ERASED)
            if last.isolation != _RESTRICTED:
                return Session(gap=f"its process ended, and at the isolation {last.isolation} it cannot be rebuilt")
            programs = [last]
            for each in rows:
                if programs[-1].after is None:
                    break
                if each.run_id == programs[-1].after:
                    programs.append(each)
        if any(each.closed for each in programs):
            return Session()
        if any(each.status == ERASED for each in programs):
            return Session(gap=_GAP_ERASED)
        if programs[-1].after is not None:
            return Session(gap="its process ended, and the journal of an earlier program is not kept any more")
        return Session(tuple(each.run_id for each in reversed(programs)))

    def close_session(self, scope: str, name: str) -> bool:
        """Have a session end for good, so that it is never rebuilt; return whether it could have been."""
        whose = {"owner": self._keys.owner(scope), "session": self._keys.session(scope, name)}
        could = bool(self.session(scope, name).programs)
        with self._database.transaction() as session:
            session.execute(_CLOSE_SESSION, whose)
        return could

    def session_until(self, run_id: str) -> list[str]:
        """Return the programs of the session of a run from its first up to this one; of none, the run alone.

        Raises `JournalNotFound`, and `JournalDamaged` where one of them is not kept any more.
        """
        with self._database.read() as session:
            row = session.execute(_PLACE, {"run": run_id}).mappings().one_or_none()
            if row is None:
                raise _not_found(run_id)
            if row["session"] is None:
                return [run_id]
            programs, wanted = [], run_id
            for each in session.execute(_IN_SESSION, dict(row)):
                if each.run_id != wanted:
                    continue
                programs.append(each.run_id)
                if each.after is None:
                    return programs[::-1]
                wanted = each.after
        raise _damaged(run_id, "an earlier program of its session is not kept any more")

    def drop_expired(self) -> int:
        """Remove the journals that have outlived their time, but of runs under way, and return how many."""
        with self._database.transaction() as session:
            found = [row.run_id for row in session.execute(_EXPIRED, {"now": self._database.now()})]
            _drop(session.connection(), found)
        self._sizes.clear()
        return len(found)

    def forget(self, holds: Callable[[str], bool], *, scope: str | None = None, erases: bool = True) -> list[str]:
        """Erase the journals and background runs in which `holds` is true of any text, and return their runs.

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
            self._sizes.clear()
        return [*gone, *(run_id for run_id in queued if run_id not in gone)]

    def of_owner(self, owner: str | None) -> list[str]:
        """Return the runs of the scope that the database calls so, or of all, but those that are erased."""
        with self._database.read() as session:
            return [row.run_id for row in session.execute(_OF_OWNER, {"owner": owner, "erased": ERASED})]

    def forget_scope(self, owner: str) -> int:
        """Erase every journal and background run of the scope that the database calls so; return how many journals."""
        run_ids = self.of_owner(owner)
        erase_background(self._database, (), owner=owner)
        erase(self._database, self._keys, run_ids)
        self._sizes.pop(owner, None)
        return len(run_ids)

    def used_bytes(self, scope: str) -> int:
        """Return what the journals and the background runs of a scope take."""
        with self._database.read() as session:
            return int(session.execute(_SIZE, {"owner": self._keys.owner(scope)}).scalar_one() or 0)

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

    def _row(self, change: RunChange, owner: str) -> dict[str, object]:
        run_id = change.run_id
        sealed = self._keys.sealed
        piece = sealed(owner, run_id, _PIECE, change.number, change.piece) if change.piece else None
        pieces = change.number + (piece is not None)
        row: dict[str, object] = {
            "run_id": run_id,
            "owner": owner,
            "number": change.number,
            "piece": piece,
            "pieces": pieces if change.end is not None else 0,
            "process": change.process,
            "bytes": 0 if piece is None else len(piece),
            "status": RUNNING,
            "ended": None,
            "sealed_end": None,
        }
        if change.begin is not None:
            row |= self._begun(change.begin, owner)
            row["bytes"] = cast("int", row["bytes"]) + len(cast("bytes", row["sealed_header"]))
        if change.end is not None:
            told = {"tools": change.end.tools, "incomplete": change.end.incomplete, "status": change.end.status}
            row["sealed_end"] = sealed(owner, run_id, _END, pieces, _json(told))
            row |= {"status": change.end.status, "ended": change.end.ended, "isolation": change.end.isolation}
            row["bytes"] = cast("int", row["bytes"]) + len(cast("bytes", row["sealed_end"]))
        return row

    def _begun(self, begin: RunBegin, owner: str) -> dict[str, object]:
        header = _json({"scope": begin.scope, "session": begin.session}) + _NEW_LINE + begin.header
        return {
            "format": FORMAT,
            "session": None if begin.session is None else self._keys.session(begin.scope, begin.session),
            "number_of": begin.number,
            "after": begin.after,
            "closed": 0,
            "isolation": begin.isolation,
            "began": begin.began,
            "expires": begin.expires,
            "timeout_seconds": begin.timeout_seconds,
            "memory_mb": begin.memory_mb,
            "leased_by": begin.leased_by,
            "leased_until": self._database.now() + begin.leased_until - begin.began,
            "sealed_header": self._keys.sealed(owner, begin.run_id, _HEADER, 0, header),
        }

    def _listed(self, row: sa.RowMapping, session: sa.orm.Session) -> RunSummary:
        """Return a run for a list, in which one that cannot be read hides no other."""
        try:
            run = self._summary(row)
            if run.ended is not None:
                return run
            pieces = session.execute(_PIECES, {"run": run.run_id}).mappings().all()
            return replace(run, tools=tools_called(self._records(row, pieces)))
        except JournalDamaged:
            return _unread(row, DAMAGED)
        except JournalNewer:
            return _unread(row, NEWER)

    def _summary(self, row: sa.RowMapping) -> RunSummary:
        run_id = cast("str", row["run_id"])
        if cast("int", row["format"]) > FORMAT:
            raise JournalNewer(
                f"The journal of the run {run_id} was written by a newer version of sealab. Use that version or a "
                "later one."
            )
        end: dict[str, object] = {}
        if row["sealed_end"] is not None:
            end = self._opened_json(row, _END, cast("int", row["pieces"]), row["sealed_end"])
            if end["status"] != row["status"]:
                raise _damaged(run_id, "its status was changed")
        elif row["status"] != RUNNING:
            raise _damaged(run_id, "its end is missing")
        told = json.loads(self._opened(row, _HEADER, 0, row["sealed_header"]).partition(_NEW_LINE)[0])
        return replace(
            _unread(row, CUT if row["ended"] is None and row["leased_until"] < self._database.now() else row["status"]),
            session=told["session"],
            tools=cast("Mapping[str, Mapping[str, int]]", end.get("tools", {})),
            incomplete=cast("str | None", end.get("incomplete")),
        )

    def _records(self, row: sa.RowMapping, pieces: Sequence[sa.RowMapping]) -> Iterator[Record]:
        for each in pieces:
            number = cast("int", each["number"])
            data = self._opened(row, _PIECE, number, each["sealed"])
            try:
                yield from parted(data)
            except ValueError as error:
                raise _damaged(cast("str", row["run_id"]), f"piece {number} cannot be read: {error}") from None

    def _opened_json(self, row: sa.RowMapping, part: str, position: int, sealed: object) -> dict[str, object]:
        return cast("dict[str, object]", json.loads(self._opened(row, part, position, sealed)))

    def _opened(self, row: sa.RowMapping, part: str, position: int, sealed: object) -> bytes:
        run_id, owner = cast("str", row["run_id"]), cast("str", row["owner"])
        try:
            return self._keys.opened(owner, run_id, part, position, bytes(cast("bytes", sealed)))
        except SealBroken:
            raise _damaged(run_id, f"its {part} {position} does not open") from None

    def _check_key(self) -> None:
        """Compare the key with the one that the vault was made with, or remember it there. Raises `VaultKeyWrong`."""
        with self._database.read() as session:
            kept = session.execute(_KEY_MARK).scalar_one()
        if kept is None:
            with self._database.transaction() as session:
                session.execute(_REMEMBER_KEY, {"mark": self._keys.mark})
                kept = session.execute(_KEY_MARK).scalar_one()
        if not hmac.compare_digest(kept, self._keys.mark):
            raise VaultKeyWrong(
                "The journals were written with another key, so they cannot be read. Give the key that the vault was "
                "made with (VAULT_KEY, the keyring, or the key file beside the database)."
            )

    def _grow(self, owner: str, count: int) -> None:
        """Count what an owner's journals grew by, and now and then drop the oldest that are above the quota."""
        waiting = self._sizes[owner] = self._sizes.get(owner, _COUNT_EVERY_BYTES) + count
        if waiting < min(_COUNT_EVERY_BYTES, self._quota_bytes // 10):
            return
        with self._database.read() as session:
            size = int(session.execute(_SIZE, {"owner": owner}).scalar_one() or 0)
        if size > self._quota_bytes:
            self._trim(owner, size - self._quota_bytes)
        self._sizes[owner] = 0

    def _trim(self, owner: str, excess: int) -> None:
        with self._database.transaction() as session:
            gone = []
            for row in session.execute(_OLDEST, {"owner": owner, "running": RUNNING}):
                gone.append(row.run_id)
                excess -= row.bytes
                if excess <= 0:
                    break
            _drop(session.connection(), gone)


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


def _unread(row: sa.RowMapping, status: str) -> RunSummary:
    """Return what stands of a run in clear."""
    return RunSummary(
        run_id=cast("str", row["run_id"]),
        owner=cast("str", row["owner"]),
        isolation=cast("str", row["isolation"]),
        status=status,
        began=cast("float", row["began"]),
        ended=cast("float | None", row["ended"]),
        expires=cast("float", row["expires"]),
        bytes=cast("int", row["bytes"]),
        session=None,
        number=cast("int | None", row["number_of"]),
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


def _drop(connection: sa.Connection, run_ids: Sequence[str]) -> None:
    for batch in batches(run_ids):
        some = {"runs": batch}
        connection.execute(_DROP_PIECES, some)
        connection.execute(_DROP_RUNS, some)
        connection.execute(_DROP_REPORTS, some)


_FAR = 1 << 62
_LIVES = "(expires > :now OR (ended IS NULL AND leased_until > :now))"
_COLUMNS = (
    "id, run_id, owner, format, after, isolation, status, began, ended, expires, number_of, leased_until, pieces, "
    "bytes, sealed_header, sealed_end"
)
_KEY_MARK = sa.text("SELECT key_mark FROM sealab_vault WHERE id = 1")
_REMEMBER_KEY = sa.text("UPDATE sealab_vault SET key_mark = :mark WHERE id = 1 AND key_mark IS NULL")
_BEGIN = sa.text(
    "INSERT INTO sealab_journal_run (run_id, owner, format, session, number_of, after, closed, isolation, status, "
    "began, ended, expires, timeout_seconds, memory_mb, leased_by, leased_until, pieces, bytes, sealed_header, "
    "sealed_end) VALUES (:run_id, :owner, :format, :session, :number_of, :after, :closed, :isolation, :status, "
    ":began, :ended, :expires, :timeout_seconds, :memory_mb, :leased_by, :leased_until, :pieces, :bytes, "
    ":sealed_header, :sealed_end)"
)
_ADD_PIECE = sa.text("INSERT INTO sealab_journal_piece (run_id, number, sealed) VALUES (:run_id, :number, :piece)")
_HAS_PIECE = sa.text(
    "SELECT 1 FROM sealab_journal_piece AS piece JOIN sealab_journal_run AS run ON run.run_id = piece.run_id "
    "WHERE piece.run_id = :run AND piece.number = :number AND run.leased_by = :process"
)
_HAS_RUN = sa.text(
    "SELECT 1 FROM sealab_journal_run WHERE run_id = :run AND leased_by = :process AND (ended IS NOT NULL OR NOT :ends)"
)
_GROW = sa.text("UPDATE sealab_journal_run SET bytes = bytes + :bytes WHERE run_id = :run_id")
_FINISH = sa.text(
    "UPDATE sealab_journal_run SET pieces = :pieces, status = :status, ended = :ended, isolation = :isolation, "
    "sealed_end = :sealed_end, bytes = length(sealed_header) + length(:sealed_end) + coalesce((SELECT "
    "sum(length(sealed)) FROM sealab_journal_piece WHERE run_id = :run_id), 0) WHERE run_id = :run_id "
    "AND leased_by = :process"
)
_TAKE_OVER = sa.text(
    "UPDATE sealab_journal_run SET leased_by = :process, leased_until = :until "
    "WHERE run_id = :run AND ended IS NULL AND leased_until < :now"
)
_TAKE_PLACE = sa.text(
    "INSERT INTO sealab_journal_piece (run_id, number, sealed) VALUES (:run_id, :number, :piece) ON CONFLICT DO NOTHING"
)
_RELEASE = sa.text(
    "UPDATE sealab_journal_run SET leased_by = '', leased_until = 0 "
    "WHERE run_id = :run AND leased_by = coalesce(:process, leased_by) AND ended IS NULL"
)
_RENEW = sa.text("UPDATE sealab_journal_run SET leased_until = :until WHERE status = :running AND leased_by = :process")
_RUNS = sa.text(
    f"SELECT {_COLUMNS} FROM sealab_journal_run WHERE {_LIVES} AND began >= :since AND id < :before "  # noqa: S608 - constants
    "AND owner = coalesce(:owner, owner) ORDER BY id DESC LIMIT :most"
)
_RUN = sa.text(f"SELECT {_COLUMNS} FROM sealab_journal_run WHERE {_LIVES} AND run_id = :run")  # noqa: S608 - as above
_PIECES = sa.text("SELECT number, sealed FROM sealab_journal_piece WHERE run_id = :run ORDER BY number")
_PLACE = sa.text("SELECT id, owner, session, number_of FROM sealab_journal_run WHERE run_id = :run")
_IN_SESSION = sa.text(
    "SELECT run_id, after, closed, status, isolation FROM sealab_journal_run WHERE owner = :owner "
    "AND session = :session AND id <= :id ORDER BY id DESC"
)
_CLOSE_SESSION = sa.text("UPDATE sealab_journal_run SET closed = 1 WHERE owner = :owner AND session = :session")
_EXPIRED = sa.text(
    "SELECT run_id FROM sealab_journal_run WHERE expires <= :now AND (ended IS NOT NULL OR leased_until <= :now)"
)
_OF_OWNER = sa.text(
    "SELECT run_id FROM sealab_journal_run WHERE owner = coalesce(:owner, owner) AND status <> :erased ORDER BY id"
)
_STATUS = sa.text("SELECT status FROM sealab_journal_run WHERE run_id = :run")
_OF_BACKGROUND = (
    "coalesce(length(sealed_request), 0) + coalesce(length(sealed_progress), 0) + coalesce(length(sealed_report), 0) "
    "+ coalesce(length(sealed_question), 0) + coalesce(length(sealed_answer), 0)"
)
_SIZE = sa.text(
    "SELECT coalesce((SELECT sum(bytes) FROM sealab_journal_run WHERE owner = :owner), 0) "  # noqa: S608 - constants
    f"+ coalesce((SELECT sum({_OF_BACKGROUND}) FROM sealab_background_run WHERE owner = :owner), 0)"
)
_OLDEST = sa.text(
    "SELECT run.run_id, run.bytes + coalesce(background.bytes, 0) AS bytes FROM sealab_journal_run AS run "  # noqa: S608
    f"LEFT JOIN (SELECT run_id, {_OF_BACKGROUND} AS bytes FROM sealab_background_run WHERE owner = :owner) "
    "AS background ON background.run_id = run.run_id "
    "WHERE run.owner = :owner AND run.status <> :running ORDER BY run.id"
)
_DROP_PIECES = with_list("DELETE FROM sealab_journal_piece WHERE run_id IN :runs", "runs")
_DROP_RUNS = with_list("DELETE FROM sealab_journal_run WHERE run_id IN :runs", "runs")
_DROP_REPORTS = with_list("DELETE FROM sealab_background_run WHERE run_id IN :runs AND status = 'ended'", "runs")
