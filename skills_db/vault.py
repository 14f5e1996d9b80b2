"""Keeps the values that tokens stand for, encrypted, and gives the same value the same token.

This is a security boundary: nothing below may write a value, or anything that tells two values apart without the key,
to the disk. What a row holds is ciphertext and keyed hashes:

    scope    HMAC of the scope's name: whose token this is
    token    ten letters of Crockford's base 32: HMAC-SHA256(scope key, type, counter, form, value); the counter goes up
             when another value has that token already
    lookup   HMAC of form and value under another key of the scope: tells that a value is known, whatever its type
    sealed   12 bytes of nonce, then AES-256-GCM of the value, with scope, type, token and form as associated data, so
             that no row can stand in for another

All keys are derived from one master key, which is never in the database. Since tokens follow from the value alone,
several servers with one master key and one database agree on them; the unique constraints settle who came first.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa

from .errors import VaultDamaged, VaultKeyWrong

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from sqlmodel import Session

    from .engine import Database

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TOKEN_CHARS = 10
KEY_BYTES = 32
SECONDS_PER_DAY = 86_400.0
AUDIT_DAYS = 365
"""How long the audit remembers."""

_NONCE_BYTES = 12
_HASH_BYTES = 16
_BATCH = 400
"""Values in one statement: below the least number of parameters that SQLite was ever built with."""

_T = TypeVar("_T")


class Form(StrEnum):
    """How a value stood where it was found, and so how it is put back."""

    TEXT = "text"
    NUMBER = "number"
    """A whole number of JSON, whose token became a string."""
    JSON = "json"
    """Part of a JSON string, escaped in a way that `json.dumps` would not choose."""


@dataclass(frozen=True, slots=True)
class Value:
    """Something personal, as it stood."""

    type: str
    text: str
    form: Form = Form.TEXT

    @property
    def plain(self) -> str:
        """The value without the escapes of JSON."""
        return str(json.loads(f'"{self.text}"', strict=False)) if self.form is Form.JSON else self.text


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and its token; `number` counts the vault's entries, `expires` is seconds since 1970 or None."""

    number: int
    token: str
    value: Value
    expires: float | None

    @property
    def shown(self) -> str:
        """The token as the model sees it."""
        return f"[{self.value.type}_{self.token}]"


@dataclass(frozen=True, slots=True)
class Known:
    """What a scope got since it was last asked; where `purges` has changed, entries have gone too: begin anew."""

    entries: tuple[Entry, ...]
    purges: int


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What was done with how many values of a type. `destination` is a tool, a file's kind, or the model."""

    at: float
    scope: str
    action: str
    destination: str
    type: str
    count: int


@dataclass(frozen=True, slots=True)
class VaultCounts:
    """How much the vault holds."""

    values: int
    scopes: int
    types: Mapping[str, int]


class Vault:
    """The values of one database under one master key; safe to use from several threads."""

    def __init__(self, database: Database, key: bytes, *, ttl_days: float | None = None) -> None:
        """Open the vault; entries live `ttl_days` after they were last met, or for ever.

        Raises `VaultKeyWrong` when the vault was made with another key, and what `Database` raises.
        """
        if len(key) != KEY_BYTES:
            raise VaultKeyWrong(f"The vault's key has {len(key)} bytes. Give one of {KEY_BYTES}.")
        self._database = database
        self._key = key
        self._ttl_seconds = None if ttl_days is None else ttl_days * SECONDS_PER_DAY
        self._scopes: dict[str, _ScopeKeys] = {}
        self._cipher: AESGCM | None = None
        self._check_key()
        self.drop_expired()

    def tokens_for(self, scope: str, values: Sequence[Value]) -> list[Entry]:
        """Return the entry of each value, making those that are missing. A value known as another type keeps it."""
        keys = self._keys(scope)
        lookups = [keys.lookup(value) for value in values]
        wanted = dict(zip(lookups, values, strict=True))
        found: dict[str, Entry] = {}
        if self._ttl_seconds is not None:
            # Where entries never end, whoever asks knows those that there are (`known`): these are new.
            with self._database.read() as session:
                found = self._found(session, keys, wanted)
        now = time.time()
        if len(found) < len(wanted) or any(self._fades(entry, now) for entry in found.values()):
            with self._database.transaction() as session:
                found = self._made(session, keys, wanted, now)
        return [found[lookup] for lookup in lookups]

    def resolve(self, scope: str, tokens: Collection[str]) -> dict[str, Entry]:
        """Return the entries of those tokens that the scope has; what is unknown costs as much as what is known."""
        keys = self._keys(scope)
        found: dict[str, Entry] = {}
        with self._database.read() as session:
            for some in _batches(dict.fromkeys(tokens)):
                rows = session.execute(_BY_TOKEN, {"scope": keys.name, "tokens": some, "now": time.time()})
                found |= {row.token: self._opened(keys, row) for row in rows}
        for token in tokens:
            if token not in found:
                self._spend(keys, token)
        return found

    def known(self, scope: str, after: int = 0) -> Known:
        """Return the scope's entries whose number is above `after`, in order."""
        keys = self._keys(scope)
        with self._database.read() as session:
            news = session.execute(_NEWS).one()
            if (news.newest or 0) <= after:
                return Known((), news.purges)
            wanted = {"scope": keys.name, "now": time.time()}
            rows = (
                session.execute(_SINCE, wanted | {"after": after}) if after else session.execute(_OF_SCOPE, wanted)
            ).all()
        return Known(tuple(self._opened(keys, row) for row in rows), news.purges)

    def forget_scope(self, scope: str) -> int:
        """Forget every value of a scope and return how many there were."""
        return self._forget(lambda entry: True, only=self._keys(scope).name)  # noqa: ARG005 - every entry

    def forget_value(self, text: str, scope: str | None = None) -> dict[str, int]:
        """Forget every entry that is `text` or holds it, in one scope or in all, and count them by type.

        Case does not matter; within a longer value the text must stand as a word of its own. A token is taken for the
        value that it stands for.
        """
        sought = _folded(text)
        forgotten: dict[str, int] = {}
        if not sought:
            return forgotten

        def holds(entry: Entry) -> bool:
            value = _folded(entry.value.plain)
            if value != sought and f" {sought} " not in f" {value} " and entry.shown != text.strip():
                return False
            forgotten[entry.value.type] = forgotten.get(entry.value.type, 0) + 1
            return True

        self._forget(holds, only=None if scope is None else self._keys(scope).name)
        return forgotten

    def drop_expired(self) -> int:
        """Remove what has outlived its time, and return how many values that were."""
        now = time.time()
        with self._database.read() as session:
            if not session.execute(_EXPIRED, {"now": now}).scalar_one():
                return 0
        with self._database.transaction() as session:
            gone = session.execute(_EXPIRED, {"now": now}).scalar_one()
            session.execute(sa.text("DELETE FROM sealab_vault_value WHERE expires <= :now"), {"now": now})
            session.execute(
                sa.text("DELETE FROM sealab_vault_audit WHERE made_at <= :before"),
                {"before": now - AUDIT_DAYS * SECONDS_PER_DAY},
            )
            session.execute(_PURGED)
        return int(gone)

    def note(self, scope: str, action: str, destination: str, counts: Mapping[str, int]) -> None:
        """Write down that something was done with values: their types and number, never what they are."""
        at = time.time()
        lines = [
            {
                "at": at,
                "scope": self._keys(scope).name,
                "action": action,
                "destination": destination,
                "type": kind,
                "count": count,
            }
            for kind, count in sorted(counts.items())
        ]
        if lines:
            with self._database.transaction(durable=False) as session:
                session.execute(_NOTE, lines)

    def audit(self, limit: int = 100) -> list[AuditLine]:
        """Return the newest lines of the audit, newest first; scopes are named by their keyed hash."""
        with self._database.read() as session:
            rows = session.execute(_AUDIT, {"limit": limit}).all()
        return [AuditLine(row.made_at, row.scope, row.action, row.destination, row.type, row.count_of) for row in rows]

    def scope_name(self, scope: str) -> str:
        """Return what the audit calls a scope."""
        return self._keys(scope).name

    def counts(self) -> VaultCounts:
        """Count what is kept, in all scopes."""
        with self._database.read() as session:
            rows = session.execute(_COUNTS, {"now": time.time()}).all()
        types: dict[str, int] = {}
        for row in rows:
            types[row.type] = types.get(row.type, 0) + row.count_of
        return VaultCounts(sum(types.values()), len({row.scope for row in rows}), dict(sorted(types.items())))

    def _check_key(self) -> None:
        """Compare the key with the one that the vault was made with, or remember it. Raises `VaultKeyWrong`."""
        mark = hmac.digest(self._key, b"sealab vault check", hashlib.sha256).hex()
        with self._database.read() as session:
            kept = session.execute(_KEY_MARK).scalar_one()
        if kept is None:
            with self._database.transaction() as session:
                session.execute(
                    sa.text("UPDATE sealab_vault SET key_mark = :mark WHERE id = 1 AND key_mark IS NULL"),
                    {"mark": mark},
                )
                kept = session.execute(_KEY_MARK).scalar_one()
        if not hmac.compare_digest(kept, mark):
            raise VaultKeyWrong(
                "The vault was made with another key, so its values cannot be read. Give the key that it was made with "
                "(VAULT_KEY, the keyring, or the key file beside the database)."
            )

    def _keys(self, scope: str) -> _ScopeKeys:
        keys = self._scopes.get(scope)
        if keys is None:
            name = _derived(self._key, "scope name", scope).hex()[: 2 * _HASH_BYTES]
            keys = self._scopes[scope] = self._keys_named(name)
        return keys

    def _keys_named(self, name: str) -> _ScopeKeys:
        return _ScopeKeys(name, _derived(self._key, "tokens", name), _derived(self._key, "lookups", name))

    def _fades(self, entry: Entry, now: float) -> bool:
        """Tell whether an entry that is met again should live longer; at most once a day, or a tenth of its life."""
        if self._ttl_seconds is None:
            return entry.expires is not None
        slack = min(SECONDS_PER_DAY, self._ttl_seconds / 10)
        return entry.expires is not None and entry.expires < now + self._ttl_seconds - slack

    def _found(self, session: Session, keys: _ScopeKeys, wanted: Mapping[str, Value]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for some in _batches(wanted):
            for row in session.execute(_BY_LOOKUP, {"scope": keys.name, "lookups": some}):
                value = Value(row.type, wanted[row.lookup].text, wanted[row.lookup].form)
                found[row.lookup] = Entry(row.id, row.token, value, row.expires)
        return found

    def _made(self, session: Session, keys: _ScopeKeys, wanted: Mapping[str, Value], now: float) -> dict[str, Entry]:
        """Insert what is missing, again with the next counter where a token is another value's."""
        expires = None if self._ttl_seconds is None else now + self._ttl_seconds
        found = self._found(session, keys, wanted)
        fading = [entry.number for entry in found.values() if self._fades(entry, now)]
        for some in _batches(fading):
            session.execute(_LONGER, {"ids": some, "expires": expires})
        counter = 0
        while missing := {lookup: value for lookup, value in wanted.items() if lookup not in found}:
            rows = [self._row(keys, lookup, value, counter, expires) for lookup, value in missing.items()]
            session.execute(_INSERT, rows)
            found |= self._found(session, keys, missing)
            counter += 1
        return found

    def _row(
        self, keys: _ScopeKeys, lookup: str, value: Value, counter: int, expires: float | None
    ) -> dict[str, object]:
        token = keys.token(value, counter)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._aead().encrypt(nonce, _bytes(value.text), _bound(keys.name, value, token))
        return {
            "scope": keys.name,
            "token": token,
            "type": value.type,
            "form": value.form.value,
            "lookup": lookup,
            "sealed": sealed,
            "expires": expires,
        }

    def _opened(self, keys: _ScopeKeys, row: sa.Row[tuple[object, ...]]) -> Entry:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - costs a start that needs no vault

        bound = _bound(keys.name, Value(row.type, "", Form(row.form)), row.token)
        sealed = bytes(row.sealed)
        try:
            text = self._aead().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
        except InvalidTag:
            raise VaultDamaged(
                f"The vault's entry {row.id} was changed or is damaged, and is not used. Restore a backup, or "
                f"remove it with `sealab pii forget [{row.type}_{row.token}]`."
            ) from None
        return Entry(
            row.id, row.token, Value(row.type, text.decode("utf-8", "surrogatepass"), Form(row.form)), row.expires
        )

    def _spend(self, keys: _ScopeKeys, token: str) -> None:
        """Do for an unknown token the work of opening one, so that time does not tell which tokens exist."""
        nonce = bytes(_NONCE_BYTES)
        hidden = self._aead().encrypt(os.urandom(_NONCE_BYTES), token.encode("utf-8", "surrogatepass"), None)
        hmac.compare_digest(hidden, nonce + keys.tokens)

    def _aead(self) -> AESGCM:
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

            self._cipher = AESGCM(_derived(self._key, "values", ""))
        return self._cipher

    def _forget(self, chosen: _Chooses, only: str | None) -> int:
        gone: list[int] = []
        with self._database.transaction() as session:
            for row in session.execute(_ALL, {"scope": only}).all():
                keys = self._keys_named(row.scope)
                try:
                    entry = self._opened(keys, row)
                except VaultDamaged:
                    entry = Entry(row.id, row.token, Value(row.type, ""), row.expires)
                if chosen(entry):
                    gone.append(row.id)
            for some in _batches(gone):
                session.execute(_DELETE, {"ids": some})
            if gone:
                session.execute(_PURGED)
        return len(gone)


@dataclass(frozen=True, slots=True)
class _ScopeKeys:
    """What is derived from the master key for one scope; `name` stands for the scope in the database."""

    name: str
    tokens: bytes
    lookups: bytes

    def token(self, value: Value, counter: int) -> str:
        """Return the token that a value gets when `counter` others were taken."""
        message = f"{value.type}\0{counter}\0{value.form}\0".encode() + _bytes(value.text)
        number = int.from_bytes(hmac.digest(self.tokens, message, hashlib.sha256), "big")
        return "".join(ALPHABET[number >> 5 * place & 31] for place in range(TOKEN_CHARS))

    def lookup(self, value: Value) -> str:
        """Return the hash by which a value is found again, whatever its type."""
        message = f"{value.form}\0".encode() + _bytes(value.text)
        return hmac.digest(self.lookups, message, hashlib.sha256)[:_HASH_BYTES].hex()


if TYPE_CHECKING:
    from collections.abc import Callable

    _Chooses = Callable[[Entry], bool]


def _derived(key: bytes, purpose: str, what: str) -> bytes:
    """Derive a key: HMAC as a pseudo-random function, with the purpose as its label (NIST SP 800-108)."""
    return hmac.digest(key, f"sealab vault|{purpose}|".encode() + _bytes(what), hashlib.sha256)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bound(scope: str, value: Value, token: str) -> bytes:
    return f"{scope}|{value.type}|{token}|{value.form}".encode()


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(items)
    while some := list(islice(rest, _BATCH)):
        yield some


def _in(statement: str, name: str) -> sa.TextClause:
    return sa.text(statement).bindparams(sa.bindparam(name, expanding=True))


_COLUMNS = "id, scope, token, type, form, lookup, sealed, expires"
_LIVES = "(expires IS NULL OR expires > :now)"
_KEY_MARK = sa.text("SELECT key_mark FROM sealab_vault WHERE id = 1")
_PURGED = sa.text("UPDATE sealab_vault SET purges = purges + 1 WHERE id = 1")
_EXPIRED = sa.text("SELECT count(*) FROM sealab_vault_value WHERE expires <= :now")
_BY_LOOKUP = _in(
    "SELECT id, token, type, lookup, expires FROM sealab_vault_value WHERE scope = :scope AND lookup IN :lookups",
    "lookups",
)
_BY_TOKEN = _in(
    f"SELECT {_COLUMNS} FROM sealab_vault_value WHERE scope = :scope AND token IN :tokens AND {_LIVES}",  # noqa: S608 - constants
    "tokens",
)
_NEWS = sa.text("SELECT purges, (SELECT max(id) FROM sealab_vault_value) AS newest FROM sealab_vault WHERE id = 1")
_OF_SCOPE = sa.text(f"SELECT {_COLUMNS} FROM sealab_vault_value WHERE scope = :scope AND {_LIVES} ORDER BY id")  # noqa: S608 - as above
# By number, not by scope: what is new is little, and what a scope holds may be much. The `||` keeps its index out.
_SINCE = sa.text(
    f"SELECT {_COLUMNS} FROM sealab_vault_value WHERE id > :after AND scope || '' = :scope AND {_LIVES} ORDER BY id"  # noqa: S608 - as above
)
_ALL = sa.text(f"SELECT {_COLUMNS} FROM sealab_vault_value WHERE scope = coalesce(:scope, scope)")  # noqa: S608 - as above
_DELETE = _in("DELETE FROM sealab_vault_value WHERE id IN :ids", "ids")
_LONGER = _in("UPDATE sealab_vault_value SET expires = :expires WHERE id IN :ids", "ids")
_INSERT = sa.text(
    "INSERT INTO sealab_vault_value (scope, token, type, form, lookup, sealed, expires) "
    "VALUES (:scope, :token, :type, :form, :lookup, :sealed, :expires) ON CONFLICT DO NOTHING"
)
_NOTE = sa.text(
    "INSERT INTO sealab_vault_audit (made_at, scope, action, destination, type, count_of) "
    "VALUES (:at, :scope, :action, :destination, :type, :count)"
)
_AUDIT = sa.text(
    "SELECT made_at, scope, action, destination, type, count_of FROM sealab_vault_audit ORDER BY id DESC LIMIT :limit"
)
_COUNTS = sa.text(
    f"SELECT scope, type, count(*) AS count_of FROM sealab_vault_value WHERE {_LIVES} GROUP BY scope, type"  # noqa: S608 - as above
)
