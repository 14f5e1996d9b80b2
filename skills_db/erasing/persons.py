"""What a vault keeps of one person, by a value of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..vault_entries import Person, PersonValue, VaultEntry
from ..vault_keys import AKIN_CHARS
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
        ours = _with_forms((token for token, value in values.items() if holds(value.entry, text)), values)
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


def holds(entry: VaultEntry, text: str) -> bool:
    """Return whether an entry is what a text names: its token, the value, or a part of it that is a word of its own."""
    sought, value = _folded(text), _folded(entry.value.plain)
    return bool(sought) and (value == sought or f" {sought} " in f" {value} " or entry.shown == text.strip())


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())
