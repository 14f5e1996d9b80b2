"""What a vault keeps of one person, by a value of theirs: which values stood together in one record tells of them.

A security boundary as the vault itself: links name tokens, never values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .sql import batches, insert, sa
from .tables import VAULT_LINK, VAULT_VALUE
from .vault_entries import Person, PersonValue, VaultEntry
from .vault_keys import AKIN_CHARS

if TYPE_CHECKING:
    from .engine import Database

IDENTIFYING = frozenset(
    "EMAIL PHONE CARD IBAN BANK CRYPTO SSN TAX_ID NATIONAL_ID PASSPORT DL MEDICAL USERNAME".split()  # noqa: SIM905 - a table of words
)
"""Types of which no two people have the same value: what else stands beside it tells of the same person."""
FOLLOWED_MAX = 10
"""A value in more records than this, beside those of the person, is not theirs alone, such as that of a sales team."""


class VaultLinks:
    """The links of one database. Scopes are what the database calls them; tokens have neither type nor brackets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, scope: str, records: Iterable[Sequence[str]]) -> None:
        """Keep which tokens stood together. What is kept already stays as it is."""
        rows = [
            {"scope": scope, "record": hashlib.sha256(" ".join(record).encode()).hexdigest()[:32], "token": token}
            for record in records
            for token in record
        ]
        if rows:
            with self._database.transaction(durable=False) as connection:
                connection.execute(insert(VAULT_LINK).on_conflict_do_nothing(), rows)

    def linked(self, scope: str, tokens: Collection[str], types: dict[str, str]) -> tuple[set[str], set[str]]:
        """Return the tokens that tell of the people of these, and those that tell of others too; `types` are of all.

        Records are followed from the given tokens, and on from values that identify one person.
        """
        records: dict[str, set[str]] = {}
        person = set(tokens)
        asked = list(tokens)
        while asked:
            of_asked = self._records_of(scope, asked)
            asked = []
            for token, its in of_asked.items():
                new = its - records.keys()
                if token not in tokens and len(new) > FOLLOWED_MAX:
                    continue
                for record, members in self._members_of(scope, new).items():
                    records[record] = members
                    more = {each for each in members if types.get(each) in IDENTIFYING} - person
                    person |= more
                    asked += more
        others = {each for members in records.values() for each in members} - person
        ours = {
            token
            for token, its in self._records_of(scope, [*others, *(person - set(tokens))]).items()
            if its <= records.keys()
        }
        linked = {token for token in (others | person) - set(tokens) if token in ours}
        return linked, (others | person) - set(tokens) - linked

    def _records_of(self, scope: str, tokens: Iterable[str]) -> dict[str, set[str]]:
        return self._those(scope, _LINK.token, tokens, _LINK.record)

    def _members_of(self, scope: str, records: Iterable[str]) -> dict[str, set[str]]:
        return self._those(scope, _LINK.record, records, _LINK.token)

    def _those(
        self, scope: str, known: sa.Column[str], names: Iterable[str], wanted: sa.Column[str]
    ) -> dict[str, set[str]]:
        """Return, by what is known of a link, what is wanted of all links of it."""
        found: dict[str, set[str]] = {}
        with self._database.read() as connection:
            for some in batches(names):
                of_some = sa.select(known, wanted).where(_LINK.scope == scope, known.in_(some))
                for name, other in connection.execute(of_some):
                    found.setdefault(name, set()).add(other)
        return found


_LINK = VAULT_LINK.c
DROP_ORPHANS = sa.delete(VAULT_LINK).where(
    ~sa.exists().where(VAULT_VALUE.c.scope == _LINK.scope, VAULT_VALUE.c.token == _LINK.token)
)
"""Removes the links of values that are gone."""


_FOLLOWED = IDENTIFYING | {"PERSON"}
"""Types of values that lead to what stood beside them: a town leads to nobody."""


def person_of(entries: Iterable[tuple[str, VaultEntry]], links: VaultLinks, text: str) -> Person:
    """Return what a text names among entries, each with the name of its scope, and what stood in one record with it."""
    scopes: dict[str, dict[str, PersonValue]] = {}
    for name, entry in entries:
        scopes.setdefault(name, {})[entry.token] = PersonValue(name, entry)
    found: list[PersonValue] = []
    linked: list[PersonValue] = []
    shared: list[PersonValue] = []
    for name, values in scopes.items():
        ours = _with_forms((token for token, value in values.items() if _holds(value.entry, text)), values)
        found += ours.values()
        types = {token: value.entry.value.type for token, value in values.items()}
        followed = [token for token in ours if types[token] in _FOLLOWED]
        beside, others = links.linked(name, followed, types) if followed else (set(), set())
        linked += (value for token, value in sorted(_with_forms(beside, values).items()) if token not in ours)
        shared += (value for token, value in sorted(_with_forms(others, values).items()) if token not in ours)
    return Person(tuple(found), tuple(linked), tuple(shared))


def _with_forms(tokens: Iterable[str], values: Mapping[str, PersonValue]) -> dict[str, PersonValue]:
    """Return the values of tokens, and those whose tokens begin alike: their other forms."""
    begun = {token[:AKIN_CHARS] for token in tokens}
    return {token: value for token, value in values.items() if token[:AKIN_CHARS] in begun}


def _holds(entry: VaultEntry, text: str) -> bool:
    """Return whether an entry is what a text names: its token, the value, or a part of it that is a word of its own."""
    sought, value = _folded(text), _folded(entry.value.plain)
    return bool(sought) and (value == sought or f" {sought} " in f" {value} " or entry.shown == text.strip())


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())
