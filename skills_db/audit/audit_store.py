"""Adds lines to the audit log, reads them and checks its chain. Everything here blocks: call it from a thread.

Several programs may write to one log: each reads the head and adds its lines in one transaction that holds the one
place to write (`BEGIN IMMEDIATE` on SQLite, a lock of the head's row on PostgreSQL). So the numbers have no gap.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import AuditDamaged, VaultKeyWrong
from ..postgresql import insert_many, rows_of_one, text_of_many, told_of_many
from ..sql import sa
from .chain import COLUMNS, AuditEvent, AuditKeys, Head, KeptLine

if TYPE_CHECKING:
    from ..engine import Database
    from ..sql import Session

PAGE_LINES = 1000
"""Lines that are read at once."""
_ADD_AT_ONCE = 500
_NOT_THE_NEXT = "a line is missing or was put in"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines are read; what is None or empty leaves none out. Times are in microseconds since 1970."""

    since_us: int | None = None
    until_us: int | None = None
    tenant: str | None = None
    principal: str | None = None
    event: str | None = None
    run: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of the log found: how many lines, its head, and of what is wrong the first line and why."""

    lines: int
    head: Head
    bad_number: int | None = None
    why: str | None = None


class AuditStore:
    """The audit log of one database under one master key; safe to use from several threads."""

    def __init__(self, database: Database, key: bytes) -> None:
        """Open it. Raises `VaultKeyWrong` where the log was begun with another key, and what `Database` raises."""
        self._database = database
        self._keys = AuditKeys(key)
        self._written = Head(0, "")
        """The head as this store left it."""
        self._tried = self._written
        """The head of the last attempt to add lines."""
        with database.read() as session:
            self._check_key(_head_row(session)["key_mark"])

    def add(self, events: Sequence[AuditEvent]) -> Head:
        """Add lines in their order, whole or not at all, and return the head; they survive a crash of the machine.

        Raises `AuditDamaged` where the head was changed by somebody without the key, or went back; and what `Database`
        raises. After `CommitUnknown`, `holds` says whether they were added.
        """
        if not events:
            return self.head()
        rows = [event.columns() for event in events]
        with self._database.transaction() as session:
            try:
                head = (
                    self._add_to_file(session, rows) if self._database.is_file else self._add_at_server(session, rows)
                )
            except sa.exc.IntegrityError:
                raise _damaged("there is a line behind its head") from None
            self._tried = head
        self._written = head
        return head

    def _add_to_file(self, session: Session, rows: Sequence[dict[str, str | int]]) -> Head:
        head = self._chained(self._head(session), rows)
        for at in range(0, len(rows), _ADD_AT_ONCE):
            insert_many(session.connection(), _ADD, rows[at : at + _ADD_AT_ONCE])
        self._seal(session, head)
        return head

    def _add_at_server(self, session: Session, rows: Sequence[dict[str, str | int]]) -> Head:
        """Add lines with one statement behind the head that this store left; where others have added, with two.

        The statement changes nothing where the head is another; it locks it all the same and says what it is.
        """
        first, *others = rows_of_one(rows)
        before = self._written
        expected: Mapping[str, object] = self._columns_of(before)
        for _ in range(2):
            head = self._chained(before, rows)
            told = {f"was_{name}": value for name, value in expected.items()} | self._columns_of(head)
            found = session.execute(_add_behind(len(first)), told | told_of_many(first)).mappings().one_or_none()
            row = _present(found)
            if row.pop("has_moved"):
                break
            before, expected = self._checked(row), row
        else:
            raise _damaged("its head changes while it is locked")
        for part in others:
            insert_many(session.connection(), _ADD, part)
        return head

    def _chained(self, before: Head, rows: Sequence[dict[str, str | int]]) -> Head:
        """Have rows follow a head, and return the head behind them."""
        number, last = before.number, before.hash
        for row in rows:
            number += 1
            row["number"], row["previous"] = number, last
            row["hash"] = last = self._keys.hash_of(number, row, last)
        return Head(number, last, before.before_number, before.before_hash)

    def holds(self) -> bool:
        """Return whether the lines of the last `add`, whose commit was not heard of, are there."""
        head = self._tried
        with self._database.read() as session:
            found = session.execute(_HASH_OF, {"number": head.number}).scalar_one_or_none()
        if found == head.hash:
            self._written = head
            return True
        return False

    def head(self) -> Head:
        """Return the head. Raises `AuditDamaged` where it was changed by somebody without the key."""
        with self._database.read() as session:
            return self._head(session)

    def lines(self, wanted: Wanted) -> Iterator[KeptLine]:
        """Give the newest lines that are wanted, the oldest of them first, read page by page."""
        conditions, given = _conditions(wanted)
        with self._database.read() as session:
            first = session.execute(
                sa.text(
                    f"SELECT number FROM sealab_audit_line{conditions} ORDER BY number DESC LIMIT 1 OFFSET :skipped"  # noqa: S608 - made of the constants below
                ),
                {**given, "skipped": wanted.limit - 1},
            ).scalar_one_or_none()
        after = -(1 << 62) if first is None else first - 1
        while True:
            more = " AND " if conditions else " WHERE "
            with self._database.read() as session:
                rows = (
                    session.execute(
                        sa.text(
                            f"SELECT * FROM sealab_audit_line{conditions}{more}number > :after ORDER BY number LIMIT {PAGE_LINES}"  # noqa: S608, E501 - as above
                        ),
                        {**given, "after": after},
                    )
                    .mappings()
                    .all()
                )
            yield from (_line(dict(row)) for row in rows)
            if len(rows) < PAGE_LINES:
                return
            after = rows[-1]["number"]

    def verify(self, expected: str | None = None) -> Verdict:
        """Check every line and the head; with `expected`, that a line with this hash is among them, or its trimmed end.

        What is found first is said, by the number of its line.
        """
        with self._database.read() as session:
            found = _head_row(session)
            head = _head_of(found)
            if head.number and not self._is_sealed(head, found):
                return Verdict(0, head, head.number, "the head was changed by somebody who has not the key")
            return self._verified(session, head, expected)

    def trim(self, before_us: int, event: AuditEvent) -> int:
        """Remove the lines before the first that is not older, add one that says so, and return how many they were.

        The sealed head says after which line the log begins then, so that what is left can be checked.
        Raises as `add`.
        """
        with self._database.transaction() as session:
            head = self._head(session, for_update=True)
            kept = session.execute(_FIRST_SINCE, {"at": before_us}).scalar_one_or_none()
            last_gone = (head.number if kept is None else kept - 1) if head.number else 0
            if last_gone <= head.before_number:
                return 0
            row = session.execute(_HASH_OF, {"number": last_gone}).scalar_one_or_none()
            if row is None:
                raise _damaged(f"line {last_gone} is missing")
            self._seal(session, Head(head.number, head.hash, last_gone, row))
            gone = session.connection().execute(_REMOVE, {"number": last_gone}).rowcount
        self.add([event])
        return gone

    def _verified(self, session: Session, head: Head, expected: str | None) -> Verdict:
        number, last = head.before_number, head.before_hash
        count = 0
        seen = expected is None or expected == last
        after = -(1 << 62)
        while True:
            rows = session.execute(_PAGE, {"after": after, "most": PAGE_LINES}).mappings().all()
            for row in map(dict, rows):
                number += 1
                if (why := self._wrong(row, number, last, head)) is not None:
                    found = row["number"]
                    return Verdict(count, head, min(number, found) if isinstance(found, int) else number, why)
                last, count = row["hash"], count + 1
                seen = seen or last == expected
            if len(rows) < PAGE_LINES:
                break
            after = rows[-1]["number"]
        if number != head.number:
            return Verdict(count, head, number + 1, f"lines {number + 1} to {head.number} are missing at the end")
        if last != head.hash:
            return Verdict(count, head, number, "the head is not that of the last line")
        if not seen:
            return Verdict(
                count, head, number, "no line has the hash that was expected: the log went back or is another"
            )
        return Verdict(count, head)

    def _wrong(self, row: Mapping[str, object], number: int, last: str, head: Head) -> str | None:
        """Return what is wrong with a row where the line of that number should be; None where nothing is."""
        if row["number"] != number:
            return _NOT_THE_NEXT
        if number > head.number:
            return "a line was put in behind the head"
        if row["previous"] != last:
            return "it does not follow the line before it: one of them was changed, moved, removed or put in"
        columns = {name: row[name] for name in COLUMNS}
        try:
            is_whole = _is_same(self._keys.hash_of(number, columns, last), row["hash"])  # type: ignore[arg-type]  # else it fails
        except (TypeError, ValueError):  # SQLite keeps values of any type in a column
            is_whole = False
        return None if is_whole else "it was changed"

    def _head(self, session: Session, *, for_update: bool = False) -> Head:
        return self._checked(_head_row(session, for_update=for_update and not self._database.is_file))

    def _checked(self, row: Mapping[str, object]) -> Head:
        self._check_key(row["key_mark"])
        head = _head_of(row)
        if (head.number and not self._is_sealed(head, row)) or head.number < self._written.number:
            raise _damaged("its head was changed by somebody who has not the key, or it was put back")
        return head

    def _is_sealed(self, head: Head, row: Mapping[str, object]) -> bool:
        return _is_same(self._keys.seal_of(head), row["seal"])

    def _seal(self, session: Session, head: Head) -> None:
        session.execute(_SEAL, self._columns_of(head))

    def _columns_of(self, head: Head) -> dict[str, object]:
        """Return the row of a head."""
        return {
            "number": head.number,
            "hash": head.hash,
            "before_number": head.before_number,
            "before_hash": head.before_hash,
            "key_mark": self._keys.mark,
            "seal": self._keys.seal_of(head),
        }

    def _check_key(self, mark: object) -> None:
        if mark and not _is_same(self._keys.mark, mark):
            raise VaultKeyWrong(
                "The audit log was begun with another key of the vault, so nothing can be added to it. Give the key "
                "that it was begun with (VAULT_KEY, the keyring, or the key file beside the database)."
            )


def _head_row(session: Session, *, for_update: bool = False) -> Mapping[str, object]:
    return _present(session.execute(_HEAD_LOCKED if for_update else _HEAD).mappings().one_or_none())


def _present(found: Mapping[str, object] | sa.RowMapping | None) -> dict[str, object]:
    if found is None:
        raise _damaged("its head is missing")
    return dict(found)


def _head_of(row: Mapping[str, object]) -> Head:
    try:
        numbers = int(str(row["number"])), int(str(row["before_number"]))
    except ValueError:
        raise _damaged("its head holds no number") from None
    return Head(numbers[0], str(row["hash"]), numbers[1], str(row["before_hash"]))


def _is_same(own: str, found: object) -> bool:
    return hmac.compare_digest(own.encode(), str(found).encode("utf-8", "surrogatepass"))


def _damaged(why: str) -> AuditDamaged:
    return AuditDamaged(
        f"The audit log was changed from outside: {why}. Keep a copy of the database for those who look into it, and "
        "see `sealab audit verify`."
    )


def _line(row: Mapping[str, object]) -> KeptLine:
    fields = {name: row[name] for name in COLUMNS if name != "details"}
    try:
        details = json.loads(str(row["details"])) if row["details"] else {}
    except ValueError:
        details = {"unreadable": str(row["details"])}
    event = AuditEvent(**fields, details=details if isinstance(details, dict) else {"unreadable": str(details)})  # type: ignore[arg-type]  # as the columns are
    return KeptLine(int(str(row["number"])), event, str(row["previous"]), str(row["hash"]))


def _conditions(wanted: Wanted) -> tuple[str, dict[str, object]]:
    chosen = (
        ("at_us >= :since", "since", wanted.since_us),
        ("at_us < :until", "until", wanted.until_us),
        ("tenant = :tenant", "tenant", wanted.tenant),
        ("principal = :principal", "principal", wanted.principal),
        ("event = :event", "event", wanted.event),
        ("run = :run", "run", wanted.run),
    )
    used = [each for each in chosen if each[2] is not None]
    where = f" WHERE {' AND '.join(condition for condition, _, _ in used)}" if used else ""
    return where, {name: value for _, name, value in used}


_HEAD = sa.text("SELECT number, hash, before_number, before_hash, key_mark, seal FROM sealab_audit_head WHERE id = 1")
_HEAD_LOCKED = sa.text(f"{_HEAD.text} FOR UPDATE")
_ADD = sa.text(
    f"INSERT INTO sealab_audit_line (number, previous, hash, {', '.join(COLUMNS)}) "  # noqa: S608 - constants
    f"VALUES (:number, :previous, :hash, {', '.join(f':{name}' for name in COLUMNS)})"
)
_SEAL = sa.text(
    "UPDATE sealab_audit_head SET number = :number, hash = :hash, before_number = :before_number, "
    "before_hash = :before_hash, key_mark = :key_mark, seal = :seal WHERE id = 1"
)
_HEAD_COLUMNS = ("number", "hash", "before_number", "before_hash", "key_mark", "seal")
_LINE_COLUMNS = ("number", "previous", "hash", *COLUMNS)


@lru_cache
def _add_behind(count: int) -> sa.TextClause:
    """Return the statement that adds so many lines behind a head if it is `:was_…`, for PostgreSQL.

    It locks the head and returns it as it was, and whether it has moved.
    """
    names = ", ".join(_LINE_COLUMNS)
    lines = text_of_many(f"VALUES ({', '.join(f':{name}' for name in _LINE_COLUMNS)})", count)
    return sa.text(
        f"WITH head AS ({_HEAD_LOCKED.text}), "  # noqa: S608 - made of constants
        f"moved AS (UPDATE sealab_audit_head AS kept SET {', '.join(f'{name} = :{name}' for name in _HEAD_COLUMNS)} "
        f"FROM head WHERE kept.id = 1 AND {' AND '.join(f'head.{name} = :was_{name}' for name in _HEAD_COLUMNS)} "
        f"RETURNING kept.id), "
        f"added AS (INSERT INTO sealab_audit_line ({names}) SELECT line.* FROM ({lines}) AS line ({names}), moved) "
        f"SELECT head.*, EXISTS (SELECT 1 FROM moved) AS has_moved FROM head"
    )


_HASH_OF = sa.text("SELECT hash FROM sealab_audit_line WHERE number = :number")
_PAGE = sa.text("SELECT * FROM sealab_audit_line WHERE number > :after ORDER BY number LIMIT :most")
_FIRST_SINCE = sa.text("SELECT MIN(number) FROM sealab_audit_line WHERE at_us >= :at")
_REMOVE = sa.text("DELETE FROM sealab_audit_line WHERE number <= :number")
