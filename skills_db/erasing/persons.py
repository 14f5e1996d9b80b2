"""What a vault keeps of one person, by a value of theirs."""

from __future__ import annotations

from collections.abc import Iterable

from ..vault_entries import Person, PersonValue, VaultEntry
from .vault_links import IDENTIFYING, VaultLinks

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
        ours = {token: value for token, value in values.items() if holds(value.entry, text)}
        found += ours.values()
        types = {token: value.entry.value.type for token, value in values.items()}
        followed = [token for token in ours if types[token] in _FOLLOWED]
        beside, others = links.linked(name, followed, types) if followed else (set(), set())
        linked += (values[token] for token in sorted(beside - ours.keys()) if token in values)
        shared += (values[token] for token in sorted(others - ours.keys()) if token in values)
    return Person(tuple(found), tuple(linked), tuple(shared))


def holds(entry: VaultEntry, text: str) -> bool:
    """Return whether an entry is what a text names: its token, the value, or a part of it that is a word of its own."""
    sought, value = _folded(text), _folded(entry.value.plain)
    return bool(sought) and (value == sought or f" {sought} " in f" {value} " or entry.shown == text.strip())


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())
