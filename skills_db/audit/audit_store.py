"""Adds lines to the audit log, reads them and checks its chain. Everything here blocks: call it from a thread.

Several programs may write to one log: each reads the head and adds its lines in one transaction that holds the one
place to write (`BEGIN IMMEDIATE` on SQLite, a lock of the head's row on PostgreSQL). So the numbers have no gap.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import AuditDamaged, VaultKeyWrong
from ..sql import Connection, IntegrityError, insert_many, rows_of, sa
from ..tables import AUDIT_HEAD, AUDIT_LINE
from .chain import COLUMNS, AuditEvent, AuditKeys, Head, KeptLine

if TYPE_CHECKING:
    from ..engine import Database

PAGE_LINES = 1000
"""Lines that are read at once."""
_NOT_THE_NEXT = "a line is missing or was put in"


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines are read; what is None or empty leaves none out. Times are in microseconds since 1970."""

    since_us: int | None = None
    until_us: int | None = None
    tenant: str | None = None
    principal: str | None = None
    event: str | None = None
    run: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class LogCheck:
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
        with database.read() as connection:
            self._check_key(_head_row(connection)["key_mark"])

    def add(self, events: Sequence[AuditEvent]) -> Head:
        """Add lines in their order, whole or not at all, and return the head; they survive a crash of the machine.

        Raises `AuditDamaged` where the head was changed by somebody without the key, or went back; and what `Database`
        raises. After `CommitUnknown`, `holds` says whether they were added.
        """
        if not events:
            return self.head()
        rows = [event.columns() for event in events]
        with self._database.transaction() as connection:
            try:
                add = self._add_to_file if self._database.is_file else self._add_at_server
                head = add(connection, rows)
            except IntegrityError:
                raise _damaged("there is a line behind its head") from None
            self._tried = head
        self._written = head
        return head

    def _add_to_file(self, connection: Connection, rows: Sequence[dict[str, str | int]]) -> Head:
        head = self._chained(self._head(connection), rows)
        insert_many(connection, AUDIT_LINE, rows)
        self._seal(connection, head)
        return head

    def _add_at_server(self, connection: Connection, rows: Sequence[dict[str, str | int]]) -> Head:
        """Add lines with one statement behind the head that this store left; where others have added, with two.

        The statement changes nothing where the head is another; it locks it all the same and says what it is.
        """
        before = self._written
        expected: Mapping[str, object] = self._columns_of(before)
        for _ in range(2):
            head = self._chained(before, rows)
            parameters = {f"was_{name}": value for name, value in expected.items()}
            parameters |= {f"head_{name}": value for name, value in self._columns_of(head).items()}
            parameters |= {name: [row[name] for row in rows] for name in _LINE_COLUMNS}
            row = _present(connection.execute(_ADD_BEHIND, parameters).mappings().one_or_none())
            if row.pop("has_moved"):
                return head
            before, expected = self._checked(row), {name: row[name] for name in expected}
        raise _damaged("its head changes while it is locked")

    def _chained(self, before: Head, rows: Sequence[dict[str, str | int]]) -> Head:
        """Chain rows to a head, and return the head behind them."""
        number, last = before.number, before.hash
        for row in rows:
            number += 1
            row["number"], row["previous"] = number, last
            row["hash"] = last = self._keys.hash_of(number, row, last)
        return Head(number, last, before.before_number, before.before_hash)

    def holds(self) -> bool:
        """Return whether the lines of the last `add`, whose commit was not heard of, are there."""
        head = self._tried
        with self._database.read() as connection:
            found = connection.execute(_hash_of(head.number)).scalar()
        if found == head.hash:
            self._written = head
            return True
        return False

    def head(self) -> Head:
        """Return the head. Raises `AuditDamaged` where it was changed by somebody without the key."""
        with self._database.read() as connection:
            return self._head(connection)

    def lines(self, wanted: LineFilter) -> Iterator[KeptLine]:
        """Give the newest lines that are wanted, the oldest of them first, read page by page."""
        which = _conditions(wanted)
        skipped = sa.select(_LINE.number).where(*which).order_by(_LINE.number.desc()).limit(1).offset(wanted.limit - 1)
        with self._database.read() as connection:
            first = connection.execute(skipped).scalar()
        after = _BEFORE_ALL if first is None else first - 1
        while True:
            with self._database.read() as connection:
                rows = connection.execute(_page(after).where(*which)).mappings().all()
            yield from map(_line, rows)
            if len(rows) < PAGE_LINES:
                return
            after = rows[-1]["number"]

    def verify(self, expected: str | None = None) -> LogCheck:
        """Check every line and the head; with `expected`, that a line with this hash is among them, or its trimmed end.

        What is found first is said, by the number of its line.
        """
        with self._database.read() as connection:
            found = _head_row(connection)
            head = _head_of(found)
            if head.number and not self._is_sealed(head, found):
                return LogCheck(0, head, head.number, "the head was changed by somebody who has not the key")
            return self._verified(connection, head, expected)

    def trim(self, before_us: int, event: AuditEvent) -> int:
        """Remove the lines before the first that is not older, add one that says so, and return how many they were.

        The sealed head says after which line the log begins then, so that what is left can be checked.
        Raises as `add`.
        """
        with self._database.transaction() as connection:
            head = self._head(connection, for_update=True)
            kept = connection.execute(sa.select(sa.func.min(_LINE.number)).where(_LINE.at_us >= before_us)).scalar()
            last_gone = (head.number if kept is None else kept - 1) if head.number else 0
            if last_gone <= head.before_number:
                return 0
            last_hash = connection.execute(_hash_of(last_gone)).scalar()
            if last_hash is None:
                raise _damaged(f"line {last_gone} is missing")
            self._seal(connection, Head(head.number, head.hash, last_gone, last_hash))
            gone = connection.execute(sa.delete(AUDIT_LINE).where(_LINE.number <= last_gone)).rowcount
        self.add([event])
        return gone

    def _verified(self, connection: Connection, head: Head, expected: str | None) -> LogCheck:
        number, last = head.before_number, head.before_hash
        count = 0
        seen = expected is None or expected == last
        after = _BEFORE_ALL
        while True:
            rows = connection.execute(_page(after)).mappings().all()
            for row in rows:
                number += 1
                if (why := self._wrong(row, number, last, head)) is not None:
                    found = row["number"]
                    return LogCheck(count, head, min(number, found) if isinstance(found, int) else number, why)
                last, count = row["hash"], count + 1
                seen = seen or last == expected
            if len(rows) < PAGE_LINES:
                break
            after = rows[-1]["number"]
        if number != head.number:
            return LogCheck(count, head, number + 1, f"lines {number + 1} to {head.number} are missing at the end")
        if last != head.hash:
            return LogCheck(count, head, number, "the head is not that of the last line")
        if not seen:
            return LogCheck(
                count, head, number, "no line has the hash that was expected: the log went back or is another"
            )
        return LogCheck(count, head)

    def _wrong(self, row: Mapping[Any, Any], number: int, last: str, head: Head) -> str | None:
        """Return what is wrong with a row where the line of that number should be; None where nothing is."""
        if row["number"] != number:
            return _NOT_THE_NEXT
        if number > head.number:
            return "a line was put in behind the head"
        if row["previous"] != last:
            return "it does not follow the line before it: one of them was changed, moved, removed or put in"
        columns = {name: row[name] for name in COLUMNS}
        try:
            is_whole = _is_same(self._keys.hash_of(number, columns, last), row["hash"])
        except (TypeError, ValueError):  # SQLite keeps values of any type in a column
            is_whole = False
        return None if is_whole else "it was changed"

    def _head(self, connection: Connection, *, for_update: bool = False) -> Head:
        return self._checked(_head_row(connection, for_update=for_update and not self._database.is_file))

    def _checked(self, row: Mapping[str, object]) -> Head:
        self._check_key(row["key_mark"])
        head = _head_of(row)
        if (head.number and not self._is_sealed(head, row)) or head.number < self._written.number:
            raise _damaged("its head was changed by somebody who has not the key, or it was put back")
        return head

    def _is_sealed(self, head: Head, row: Mapping[str, object]) -> bool:
        return _is_same(self._keys.seal_of(head), row["seal"])

    def _seal(self, connection: Connection, head: Head) -> None:
        connection.execute(sa.update(AUDIT_HEAD).values(self._columns_of(head)))

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


def _head_row(connection: Connection, *, for_update: bool = False) -> Mapping[str, object]:
    wanted = sa.select(AUDIT_HEAD)
    found = connection.execute(wanted.with_for_update() if for_update else wanted)
    return _present(found.mappings().one_or_none())


def _present(found: sa.RowMapping | None) -> dict[str, Any]:
    if found is None:
        raise _damaged("its head is missing")
    return {str(name): value for name, value in found.items()}


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


def _line(row: Mapping[Any, Any]) -> KeptLine:
    fields = {name: row[name] for name in COLUMNS if name != "details"}
    try:
        details = json.loads(str(row["details"])) if row["details"] else {}
    except ValueError:
        details = {"unreadable": str(row["details"])}
    event = AuditEvent(**fields, details=details if isinstance(details, dict) else {"unreadable": str(details)})
    return KeptLine(int(str(row["number"])), event, str(row["previous"]), str(row["hash"]))


def _conditions(wanted: LineFilter) -> list[sa.ColumnElement[bool]]:
    which = [] if wanted.since_us is None else [_LINE.at_us >= wanted.since_us]
    which += [] if wanted.until_us is None else [_LINE.at_us < wanted.until_us]
    same = {name: getattr(wanted, name) for name in ("tenant", "principal", "event", "run")}
    return which + [_LINE[name] == value for name, value in same.items() if value is not None]


def _page(after: int) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(AUDIT_LINE).where(_LINE.number > after).order_by(_LINE.number).limit(PAGE_LINES)


def _hash_of(number: int) -> sa.Select[str]:
    return sa.select(_LINE.hash).where(_LINE.number == number)


def _add_behind() -> sa.Select[*tuple[Any, ...]]:
    """Return the statement that adds lines behind a head if it is `:was_…`, for PostgreSQL.

    It locks the head and returns it as it was, and whether it has moved.
    """
    head = sa.select(AUDIT_HEAD).with_for_update().cte("head")
    as_it_was = (head.c[name] == sa.bindparam(f"was_{name}", type_=head.c[name].type) for name in _HEAD_COLUMNS)
    moved = (
        sa.update(AUDIT_HEAD)
        .where(AUDIT_HEAD.c.id == head.c.id, *as_it_was)
        .values({name: sa.bindparam(f"head_{name}") for name in _HEAD_COLUMNS})
        .returning(AUDIT_HEAD.c.id)
        .cte("moved")
    )
    names, lines = rows_of(AUDIT_LINE, _LINE_COLUMNS)
    line = lines.subquery("line")
    behind = sa.select(*line.c).select_from(line.join(moved, sa.true()))
    added = sa.insert(AUDIT_LINE).from_select(names, behind).cte("added")
    has_moved = sa.exists().select_from(moved).label("has_moved")
    return sa.select(*head.c, has_moved).add_cte(added)


_LINE = AUDIT_LINE.c
_BEFORE_ALL = -(1 << 62)
_HEAD_COLUMNS = ("number", "hash", "before_number", "before_hash", "key_mark", "seal")
_LINE_COLUMNS = ("number", "previous", "hash", *COLUMNS)
_ADD_BEHIND = _add_behind()
