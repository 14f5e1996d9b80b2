"""Keeps the values that tokens stand for, encrypted, and gives the same value the same token.

This is a security boundary: nothing below may write a value, or anything that distinguishes two values without the key,
to the disk. What a row holds is ciphertext and keyed hashes (`vault_keys`); the master key is never in the database.
Since tokens follow from the value alone, several servers with one master key and one database agree on them; the unique
constraints settle who came first.

New entries are committed before they are returned, so a crash of the program loses none. In a file, whether a crash of
the whole machine may is for the caller to say: with `durable=False` it may lose the last moments, up to the last
durable change. A token lost so is unknown when it comes back, and is made again, the same, when its value is met again:
whoever remembered its entry went down with the file. A PostgreSQL server may crash alone, and a program that lives on
would go on showing what it remembers with no row behind it; so entries are always durable there.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import hmac
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from .errors import VaultDamaged, VaultFull, VaultKeyWrong
from .sql import Connection, Row, batches, insert, rows_of, sa
from .tables import VAULT, VAULT_AUDIT, VAULT_TOTAL, VAULT_VALUE
from .vault_entries import (
    NEVER_PURGED,
    AuditLine,
    Form,
    ManyShown,
    NewEntries,
    Note,
    Person,
    PersonValue,
    Value,
    VaultEntry,
    VaultTotals,
)
from .vault_keys import ALPHABET, KEY_BYTES, TOKEN_CHARS, ScopeKeys, SealBroken, VaultKeys
from .vault_links import DROP_ORPHANS, VaultLinks, person_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .engine import Database

    Admits = Callable[[int, int], None]
    """Called with how many new values, of how many bytes, are about to be stored; raises where that is too much."""

__all__ = [
    "ALPHABET",
    "KEY_BYTES",
    "TOKEN_CHARS",
    "AuditLine",
    "Form",
    "ManyShown",
    "NewEntries",
    "Note",
    "Person",
    "PersonValue",
    "Value",
    "Vault",
    "VaultEntry",
    "VaultTotals",
]

SECONDS_PER_DAY = 86_400.0
BRIEF_DAYS = 1.0
"""The longest that values live in a scope that is identified by a connection alone."""
AUDIT_DAYS = 365
"""How long the audit remembers."""

SCOPE_VALUES_MAX = 12_000_000
"""Values that a scope may have."""
SCOPE_BYTES_MAX = 1024 * 1024 * 1024
"""Bytes that the values of a scope may have together."""
BRIEF_VALUES_MAX = 2_000_000
"""Values that such a scope may have."""
BRIEF_BYTES_MAX = 256 * 1024 * 1024
"""Bytes that these may have together."""

_SAMPLE = 64
"""Of many values, so many are looked up to see whether any are known."""
_MANY_CACHE_KB = 65_536
"""What a connection of SQLite's may hold in memory while many values are inserted."""
_FEW = 4
"""So many new values are faster inserted one by one, each returning its number, than together and then looked up."""


def is_keyed(database: Database) -> bool:
    """Return whether the vault of a database was made with a key."""
    with database.read() as connection:
        return connection.execute(_KEY_MARK).scalar_one() is not None


def is_key_of(database: Database, mark: str) -> bool:
    """Return whether a key of that mark is the one of the vault, and so of the journals, or is so from now on."""
    with database.read() as connection:
        kept = connection.execute(_KEY_MARK).scalar_one()
    if kept is None:
        with database.transaction() as connection:
            connection.execute(sa.update(VAULT).where(VAULT.c.key_mark.is_(None)).values(key_mark=mark))
            kept = connection.execute(_KEY_MARK).scalar_one()
    return hmac.compare_digest(kept, mark)


def drop_expired(database: Database) -> int:
    """Remove from the vault of a database what has outlived its time, and return how many values that were."""
    now = time.time()
    with database.read() as connection:
        if not connection.execute(_EXPIRED, {"now": now}).scalar_one():
            return 0
    with database.transaction() as connection:
        gone = 0
        for row in connection.execute(_EXPIRED_SIZES, {"now": now}).all():
            _take(connection, row.scope, _Size(row.values_of, row.bytes_of))
            gone += row.values_of
        connection.execute(sa.delete(VAULT_VALUE).where(_VALUE.expires <= now))
        connection.execute(sa.delete(VAULT_AUDIT).where(_NOTED.made_at <= now - AUDIT_DAYS * SECONDS_PER_DAY))
        _note_purge(connection)
    return gone


class Vault:
    """The values of one database under one master key; safe to use from several threads."""

    def __init__(
        self,
        database: Database,
        key: bytes,
        *,
        ttl_days: float | None = None,
        is_brief: Callable[[str], bool] = lambda _scope: False,
        values_max: int | None = None,
    ) -> None:
        """Open the vault; entries live `ttl_days` after they were last met, or without end.

        A scope has at most `values_max` of them, by default `SCOPE_VALUES_MAX`.

        Those of a scope that `is_brief` live no longer than `BRIEF_DAYS`: they cannot be asked for after that.
        Raises `VaultKeyWrong` when the vault was made with another key, and what `Database` raises.
        """
        if len(key) != KEY_BYTES:
            raise VaultKeyWrong(f"The vault's key has {len(key)} bytes. Give one of {KEY_BYTES}.")
        self._database = database
        self._keys = VaultKeys(key)
        self._ttl_seconds = None if ttl_days is None else ttl_days * SECONDS_PER_DAY
        self._is_brief = is_brief
        self._values_max = values_max
        self._links = VaultLinks(database)
        self._check_key()
        drop_expired(database)

    def tokens_for(
        self,
        scope: str,
        values: Sequence[Value],
        *,
        durable: bool = True,
        salt: bytes | None = None,
        admits: Admits | None = None,
    ) -> list[VaultEntry]:
        """Return the entry of each value, making those that are missing. A value known as another type keeps it.

        A caller that has an entry need not ask again until it `fades`. `durable`: see above. With a `salt` the tokens
        are the scope's, but show only with the salt whether a value is the one of another token.
        Raises `VaultFull`, or what `admits` raises, and then stores none of them.
        """
        keys = self._keys.of_scope(scope)
        keys = keys if salt is None else keys.apart(salt)
        lookups = [keys.lookup(value) for value in values]
        wanted = dict(zip(lookups, values, strict=True))
        with self._database.transaction(durable=durable or not self._database.is_file) as connection:
            found, new = self._made(connection, keys, wanted, self._life_of(scope))
            if new.values:
                if admits is not None:
                    admits(new.values, new.bytes)
                self._admit(connection, scope, new)
        if salt is not None:
            found = {lookup: replace(entry, apart=True) for lookup, entry in found.items()}
        return [found[lookup] for lookup in lookups]

    def show_many(
        self,
        scope: str,
        values: Sequence[tuple[str, str]],
        form: Form = Form.TEXT,
        *,
        durable: bool = True,
        admits: Admits | None = None,
    ) -> ManyShown:
        """Return the token of each value, given as type and text, as the model sees it; what is new is stored at once.

        It does what `tokens_for` does, in one transaction, for tens of thousands of values that are all different.
        """
        keys = self._keys.of_scope(scope)
        life = self._life_of(scope)
        lookups = keys.lookups_of(form, (text for _kind, text in values))
        wanted = dict(zip(lookups, values, strict=True))
        chosen = self._database.transaction(durable=durable or not self._database.is_file)
        with chosen as connection, self._large_cache(connection):
            before = connection.execute(_NEWEST_ID).scalar_one()
            shown: dict[str, str] = {}
            if self._shown(connection, keys, lookups[:: len(lookups) // _SAMPLE + 1], life):
                shown = self._shown(connection, keys, lookups, life)
            missing = {lookup: value for lookup, value in wanted.items() if lookup not in shown}
            new = self._store_many(connection, keys, missing, form, life=life, shown=shown)
            if new.values:
                if admits is not None:
                    admits(new.values, new.bytes)
                self._admit(connection, scope, new)
            last = connection.execute(_NEWEST_ID).scalar_one()
        return ManyShown([shown[lookup] for lookup in lookups], new.values, before, last)

    def fades(self, entry: VaultEntry, scope: str) -> bool:
        """Return whether an entry that is met again should live longer; at most once a day, or a tenth of its life."""
        return _fades(entry, self._life_of(scope))

    def _life_of(self, scope: str) -> float | None:
        """Return for how many seconds an entry of a scope lives after it was last met."""
        brief = BRIEF_DAYS * SECONDS_PER_DAY
        if not self._is_brief(scope):
            return self._ttl_seconds
        return brief if self._ttl_seconds is None else min(brief, self._ttl_seconds)

    def resolve(self, scope: str, tokens: Collection[str]) -> dict[str, VaultEntry]:
        """Return the entries of those tokens that the scope has; what is unknown costs as much as what is known."""
        keys = self._keys.of_scope(scope)
        found: dict[str, VaultEntry] = {}
        with self._database.read() as connection:
            for some in batches(dict.fromkeys(tokens)):
                rows = connection.execute(_BY_TOKEN, {"scope": keys.name, "tokens": some, "now": time.time()})
                found |= {row.token: self._opened(keys, row) for row in rows}
        for token in tokens:
            if token not in found:
                self._keys.spend(keys, token)
        return found

    def known(self, scope: str, after: int = 0, *, most: int = SCOPE_VALUES_MAX) -> NewEntries:
        """Return the scope's entries whose number is above `after`, in order, but only the newest `most`."""
        keys = self._keys.of_scope(scope)
        with self._database.read() as connection:
            newest = connection.execute(_NEWEST_ID).scalar_one()
            purges = connection.execute(_PURGES, {"scope": keys.name}).scalar_one_or_none()
            purges = NEVER_PURGED if purges is None else purges
            if newest <= after:
                return NewEntries((), purges)
            wanted = {"scope": keys.name, "now": time.time(), "after": after, "most": most}
            found = connection.execute(_NEWEST, wanted).all()
        return NewEntries(tuple(self._opened(keys, row) for row in reversed(found)), purges)

    def scopes(self) -> list[str]:
        """Return what the database, and so the audit, calls the scopes that have values."""
        with self._database.read() as connection:
            return list(connection.execute(sa.select(_VALUE.scope).distinct().order_by(_VALUE.scope)).scalars())

    def scope_name(self, scope: str) -> str:
        """Return what the database calls a scope."""
        return self._keys.of_scope(scope).name

    def types_of_scope(self, name: str) -> dict[str, int]:
        """Count by type the values of the scope that the database calls so."""
        with self._database.read() as connection:
            rows = connection.execute(_COUNTS, {"now": 0.0}).all()
        return dict(sorted((row.type, row.values_of) for row in rows if row.scope == name))

    def forget_scope(self, name: str) -> dict[str, int]:
        """Forget every value of the scope that the database calls so, and count them by type."""
        forgotten = self.types_of_scope(name)
        if forgotten:
            self._drop([name])
        return forgotten

    def link(self, scope: str, records: Iterable[Sequence[str]]) -> None:
        """Keep which tokens of a scope, as they are shown, stood together in one record."""
        self._links.add(self._keys.of_scope(scope).name, ([_bare(token) for token in record] for record in records))

    def person(self, text: str) -> Person:
        """Return the entries of all scopes that are `text` or hold it, and what stood beside them.

        Case does not matter; within a longer value the text must stand as a word of its own. A token is taken for the
        value that it stands for. The forms of a value that was kept under tokens like its own are found with it.
        """
        return person_of(self._every_entry(), self._links, text)

    def forget_entries(self, values: Iterable[PersonValue]) -> dict[str, int]:
        """Forget these, and count them by type."""
        wanted = {value.entry.number: value.entry.value.type for value in values}
        gone: list[str] = []
        sizes: dict[str, _Size] = {}
        with self._database.transaction() as connection:
            for some in batches(wanted):
                delete = sa.delete(VAULT_VALUE).where(_VALUE.id.in_(some))
                deleted = (_VALUE.id, _VALUE.scope, sa.func.length(_VALUE.sealed).label("bytes_of"))
                for row in connection.execute(delete.returning(*deleted)):
                    gone.append(wanted[row.id])
                    size = sizes.get(row.scope, _Size(0, 0))
                    sizes[row.scope] = _Size(size.values + 1, size.bytes + row.bytes_of)
            for scope, size in sizes.items():
                _take(connection, scope, size)
            if gone:
                _note_purge(connection)
        return dict(sorted(Counter(gone).items()))

    def _every_entry(self) -> Iterator[tuple[str, VaultEntry]]:
        with self._database.read() as connection:
            rows = connection.execute(sa.select(VAULT_VALUE)).all()
        for row in rows:
            try:
                yield row.scope, self._opened(self._keys.named(row.scope), row)
            except VaultDamaged:
                yield row.scope, VaultEntry(row.id, row.token, Value(row.type, ""), row.expires)

    def drop_scopes(self, scopes: Iterable[str]) -> None:
        """Remove all values of scopes that have ended."""
        self._drop(self._keys.of_scope(scope).name for scope in scopes)

    def _drop(self, names: Iterable[str]) -> None:
        with self._database.transaction() as connection:
            for some in batches(names):
                connection.execute(sa.delete(VAULT_VALUE).where(_VALUE.scope.in_(some)))
                connection.execute(sa.delete(VAULT_TOTAL).where(_TOTAL.scope.in_(some)))
            _note_purge(connection)

    def note(self, *notes: Note) -> None:
        """Write down, all at once, what was done with values. Durable, and whatever was committed before is with it."""
        lines = [
            {
                "made_at": note.at,
                "scope": self._keys.of_scope(note.scope).name,
                "action": note.action,
                "destination": note.destination,
                "type": kind,
                "count_of": count,
                "run": note.run,
            }
            for note in notes
            for kind, count in sorted(note.counts.items())
        ]
        if lines:
            with self._database.transaction() as connection:
                fresh = [line for line in lines if not (line["run"] and _noted_more(connection, line))]
                if fresh:
                    connection.execute(VAULT_AUDIT.insert(), fresh)

    def audit(self, limit: int = 100) -> list[AuditLine]:
        """Return the newest lines of the audit, newest first; scopes are named by their keyed hash."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(VAULT_AUDIT).order_by(_NOTED.id.desc()).limit(limit)).all()
        return [
            AuditLine(row.made_at, row.scope, row.action, row.destination, row.type, row.count_of, row.run)
            for row in rows
        ]

    def counts(self) -> VaultTotals:
        """Count what is kept, in all scopes."""
        with self._database.read() as connection:
            rows = connection.execute(_COUNTS, {"now": time.time()}).all()
        types: dict[str, int] = {}
        for row in rows:
            types[row.type] = types.get(row.type, 0) + row.values_of
        return VaultTotals(sum(types.values()), len({row.scope for row in rows}), dict(sorted(types.items())))

    def _check_key(self) -> None:
        """Compare the key with the one that the vault was made with, or remember it. Raises `VaultKeyWrong`."""
        if not is_key_of(self._database, self._keys.mark):
            raise VaultKeyWrong(
                "The vault was made with another key, so its values cannot be read. Give the key that it was made with "
                "(VAULT_KEY, the keyring, or the key file beside the database)."
            )

    def _admit(self, connection: Connection, scope: str, new: _Size) -> None:
        """Count what is new, and raise `VaultFull` where a scope has too much with it."""
        added = {"scope": self._keys.of_scope(scope).name, "values_of": new.values, "bytes_of": new.bytes}
        total = connection.execute(_ADD_TO_TOTAL, added).one()
        values, size = SCOPE_VALUES_MAX if self._values_max is None else self._values_max, SCOPE_BYTES_MAX
        if self._is_brief(scope):
            values, size = min(values, BRIEF_VALUES_MAX), min(size, BRIEF_BYTES_MAX)
        if total.values_of > values or total.bytes_of > size:
            raise VaultFull(
                f"The vault holds {values} values or {size} bytes of this caller, the most that it keeps "
                "(VAULT_VALUES_MAX). Have some "
                "forgotten with `sealab pii forget`, or kept for less time with PRIVACY_TTL_DAYS."
            )

    def _made(
        self, connection: Connection, keys: ScopeKeys, wanted: Mapping[str, Value], life: float | None
    ) -> tuple[dict[str, VaultEntry], _Size]:
        """Insert what is missing, again with the next counter where a token is another value's; return what was new."""
        expires = None if life is None else time.time() + life
        found: dict[str, VaultEntry] = {}
        inserted = inserted_bytes = counter = 0
        while missing := {lookup: value for lookup, value in wanted.items() if lookup not in found}:
            rows = [self._row(keys, lookup, value, counter, expires) for lookup, value in missing.items()]
            if len(rows) <= _FEW:
                for row, (lookup, value) in zip(rows, missing.items(), strict=True):
                    number = connection.execute(_INSERT_ONE, row).scalar_one_or_none()
                    if number is not None:
                        found[lookup] = VaultEntry(number, str(row["token"]), value, expires)
                        inserted, inserted_bytes = inserted + 1, inserted_bytes + _sealed_bytes(row)
            else:
                count = self._inserted(connection, [tuple(row[name] for name in _INSERTED) for row in rows])
                inserted += count
                inserted_bytes += sum(map(_sealed_bytes, rows)) * count // len(rows)
            if others := {lookup: value for lookup, value in missing.items() if lookup not in found}:
                found |= self._found(connection, keys, others)
            counter += 1
        faded = {lookup: replace(entry, expires=expires) for lookup, entry in found.items() if _fades(entry, life)}
        for some in batches(entry.number for entry in faded.values()):
            connection.execute(_LONGER, {"ids": some, "until": expires})
        return found | faded, _Size(inserted, inserted_bytes)

    @contextmanager
    def _large_cache(self, connection: Connection) -> Iterator[None]:
        """Let a connection of SQLite's hold the pages in memory that many values change again and again."""
        if not self._database.is_file:
            yield
            return
        from .engine import CACHE_KB

        connection.exec_driver_sql(f"PRAGMA cache_size = -{_MANY_CACHE_KB}")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"PRAGMA cache_size = -{CACHE_KB}")

    def _store_many(
        self,
        connection: Connection,
        keys: ScopeKeys,
        missing: Mapping[str, tuple[str, str]],
        form: Form,
        *,
        life: float | None,
        shown: dict[str, str],
    ) -> _Size:
        """Insert values that are missing, take their tokens up in `shown`, and return what was new."""
        if not missing:
            return _Size(0, 0)
        tokens = keys.tokens_of(missing.values(), form)
        sealed = self._keys.sealed_many(keys, missing.values(), form, tokens)
        expires = None if life is None else time.time() + life
        rows = [
            (keys.name, token, kind, form.value, lookup, each, expires)
            for (lookup, (kind, _text)), token, each in zip(missing.items(), tokens, sealed, strict=True)
        ]
        rows.sort(key=itemgetter(4))  # near each other in the index, where they are written at once
        count = self._inserted(connection, rows)
        size = sum(map(len, sealed))
        if count == len(rows):
            shown |= {
                lookup: f"[{kind}_{token}]"
                for (lookup, (kind, _text)), token in zip(missing.items(), tokens, strict=True)
            }
            return _Size(count, size)
        # Some were there, or have the token of another value: then they get another, as a few would.
        shown |= self._shown(connection, keys, list(missing), life)
        rest = {lookup: Value(kind, text, form) for lookup, (kind, text) in missing.items() if lookup not in shown}
        made, more = self._made(connection, keys, rest, life)
        shown |= {lookup: entry.shown for lookup, entry in made.items()}
        return _Size(count + more.values, size * count // len(rows) + more.bytes)

    def _inserted(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> int:
        """Insert rows, whose values are in the order of `_INSERTED`, and return how many were not there."""
        if self._database.is_file:
            return connection.exec_driver_sql(_INSERT_MANY, list(rows)).rowcount
        arrays = dict(zip(_INSERTED, map(list, zip(*rows, strict=True)), strict=True))
        return connection.execute(_INSERT_ARRAYS, arrays).rowcount

    def _shown(
        self, connection: Connection, keys: ScopeKeys, lookups: Sequence[str], life: float | None
    ) -> dict[str, str]:
        """Return the tokens of those values that are there, which live longer for having been met."""
        found: dict[str, str] = {}
        faded: list[int] = []
        least = None if life is None else time.time() + life - min(SECONDS_PER_DAY, life / 10)
        for some in batches(lookups):
            if self._database.is_file:
                places = ", ".join("?" * len(some))
                rows = connection.exec_driver_sql(_BY_LOOKUP_MANY.format(places), (keys.name, *some)).all()
            else:
                rows = connection.execute(_BY_LOOKUP, {"scope": keys.name, "lookups": some}).all()
            for number, token, kind, lookup, expires in rows:
                found[lookup] = f"[{kind}_{token}]"
                if expires is not None and (least is None or expires < least):
                    faded.append(number)
        until = None if life is None else time.time() + life
        for some_faded in batches(faded):
            connection.execute(_LONGER, {"ids": some_faded, "until": until})
        return found

    def _found(self, connection: Connection, keys: ScopeKeys, wanted: Mapping[str, Value]) -> dict[str, VaultEntry]:
        found: dict[str, VaultEntry] = {}
        for some in batches(wanted):
            for row in connection.execute(_BY_LOOKUP, {"scope": keys.name, "lookups": some}):
                value = replace(wanted[row.lookup], type=row.type)
                found[row.lookup] = VaultEntry(row.id, row.token, value, row.expires)
        return found

    def _row(
        self, keys: ScopeKeys, lookup: str, value: Value, counter: int, expires: float | None
    ) -> dict[str, object]:
        token = keys.token(value, counter)
        return {
            "scope": keys.name,
            "token": token,
            "type": value.type,
            "form": value.form.value,
            "lookup": lookup,
            "sealed": self._keys.sealed(keys, value, token),
            "expires": expires,
        }

    def _opened(self, keys: ScopeKeys, row: Row) -> VaultEntry:
        try:
            value = self._keys.opened(keys, Value(row.type, "", Form(row.form)), row.token, row.sealed)
        except SealBroken:
            raise VaultDamaged(
                f"The vault's entry {row.id} was changed or is damaged, and is not used. Restore a backup, or "
                f"remove it with `sealab pii forget [{row.type}_{row.token}]`."
            ) from None
        return VaultEntry(row.id, row.token, value, row.expires, apart=row.lookup != keys.lookup(value))


@dataclass(frozen=True, slots=True)
class _Size:
    """How many values there are, of how many bytes."""

    values: int
    bytes: int


def _take(connection: Connection, scope: str, size: _Size) -> None:
    rest = {"values_of": _TOTAL.values_of - size.values, "bytes_of": _TOTAL.bytes_of - size.bytes}
    rest["purges"] = _TOTAL.purges + 1
    connection.execute(sa.update(VAULT_TOTAL).where(_TOTAL.scope == scope).values(rest))


def _noted_more(connection: Connection, line: Mapping[str, object]) -> bool:
    """Count a line with that of the same run that says the same, where there is one."""
    more = {f"of_{name}": line[name] for name in _SAME_NOTE} | {"more": line["count_of"], "at": line["made_at"]}
    return connection.execute(_NOTE_MORE, more).rowcount > 0


def _fades(entry: VaultEntry, life: float | None) -> bool:
    if life is None or entry.expires is None:
        return entry.expires is not None
    return entry.expires < time.time() + life - min(SECONDS_PER_DAY, life / 10)


def _sealed_bytes(row: Mapping[str, object]) -> int:
    return len(cast("bytes", row["sealed"]))


def _bare(token: str) -> str:
    return token.rstrip("]").rpartition("_")[2]


def _note_purge(connection: Connection) -> None:
    connection.execute(DROP_ORPHANS)
    connection.execute(sa.update(VAULT).values(purges=VAULT.c.purges + 1))


_VALUE, _TOTAL, _NOTED = VAULT_VALUE.c, VAULT_TOTAL.c, VAULT_AUDIT.c
_NOW = sa.bindparam("now", type_=sa.Double)
_LIVES = _VALUE.expires.is_(None) | (_VALUE.expires > _NOW)
_OF_SCOPE = _VALUE.scope == sa.bindparam("scope")
_SIZES = (sa.func.count().label("values_of"), sa.func.sum(sa.func.length(_VALUE.sealed)).label("bytes_of"))
_KEY_MARK = sa.select(VAULT.c.key_mark)
_EXPIRED = sa.select(sa.func.count()).where(_VALUE.expires <= _NOW)
_EXPIRED_SIZES = sa.select(_VALUE.scope, *_SIZES).where(_VALUE.expires <= _NOW).group_by(_VALUE.scope)
_LOOKED_UP = (_VALUE.id, _VALUE.token, _VALUE.type, _VALUE.lookup, _VALUE.expires)
_BY_LOOKUP = sa.select(*_LOOKED_UP).where(_OF_SCOPE, _VALUE.lookup.in_(sa.bindparam("lookups", expanding=True)))
_BY_LOOKUP_MANY = "SELECT id, token, type, lookup, expires FROM sealab_vault_value WHERE scope = ? AND lookup IN ({})"
"""The same for SQLite's driver, which takes it as it is: of tens of thousands of values, half of the time."""
_BY_TOKEN = sa.select(VAULT_VALUE).where(_OF_SCOPE, _VALUE.token.in_(sa.bindparam("tokens", expanding=True)), _LIVES)
_NEWEST_ID = sa.select(sa.func.coalesce(sa.func.max(_VALUE.id), 0))
_PURGES = sa.select(_TOTAL.purges).where(_TOTAL.scope == sa.bindparam("scope"))
_NEWEST = (
    sa.select(VAULT_VALUE)
    .where(_OF_SCOPE, _VALUE.id > sa.bindparam("after"), _LIVES)
    .order_by(_VALUE.id.desc())
    .limit(sa.bindparam("most"))
)
_COUNTED = insert(VAULT_TOTAL).values(purges=sa.select(VAULT.c.purges).scalar_subquery())
_ADD_TO_TOTAL = _COUNTED.on_conflict_do_update(
    index_elements=["scope"],
    set_={name: _TOTAL[name] + _COUNTED.excluded[name] for name in ("values_of", "bytes_of")},
).returning(_TOTAL.values_of, _TOTAL.bytes_of)
_COUNTS = sa.select(_VALUE.scope, _VALUE.type, _SIZES[0]).where(_LIVES).group_by(_VALUE.scope, _VALUE.type)
_LONGER = (
    sa.update(VAULT_VALUE)
    .where(_VALUE.id.in_(sa.bindparam("ids", expanding=True)))
    .values(expires=sa.bindparam("until"))
)
_INSERTED = ("scope", "token", "type", "form", "lookup", "sealed", "expires")
_INSERT_ONE = insert(VAULT_VALUE).on_conflict_do_nothing().returning(_VALUE.id)
_INSERT_ARRAYS = insert(VAULT_VALUE).from_select(*rows_of(VAULT_VALUE, _INSERTED)).on_conflict_do_nothing()
_INSERT_MANY = (
    f"INSERT INTO sealab_vault_value ({', '.join(_INSERTED)}) "  # noqa: S608 - constants
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_SAME_NOTE = ("run", "scope", "action", "destination", "type")
_NOTE_MORE = (
    sa.update(VAULT_AUDIT)
    .where(*(_NOTED[name] == sa.bindparam(f"of_{name}") for name in _SAME_NOTE))
    .values(count_of=_NOTED.count_of + sa.bindparam("more"), made_at=sa.bindparam("at"))
)
