"""Which value a text is another form of: so that both get tokens that show it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .escapes import readings
from .folding import folded_letters
from .form_index import FormIndex, find
from .spellings import spellings

_Owner = tuple[str, str]


def origin_of(text: str, indexes: Sequence[FormIndex]) -> _Owner | None:
    """Return the value, and its type, that a text is another form of; None where it is of none, or of several.

    A beginning that was cut off is none: `Jane Doe` need not be the `Jane Doerr` that is known.
    """
    owners = _owners(text, indexes)
    if any(value == text for value, _kind in owners):
        return None
    return _only(owners)


def _owners(text: str, indexes: Sequence[FormIndex]) -> set[_Owner]:
    owners = {owner for index in indexes for owner in index.owners(text)}
    if owners:
        return owners
    for reading in readings(text):
        hits = find(reading.text, indexes)
        if len(hits) == 1:
            said = reading.text[hits[0].start : hits[0].end]
            owners |= {owner for index in indexes for owner in index.owners(said)}
    return owners


def _only(owners: Collection[_Owner]) -> _Owner | None:
    """Return the owner that the others are forms of; a mailbox is often named for its owner."""
    people = [owner for owner in owners if owner[1] == "PERSON"]
    chosen = people or list(owners)
    if len(chosen) < 2:
        return chosen[0] if chosen else None
    for value, kind in sorted(chosen, key=lambda owner: (-len(owner[0]), owner)):
        forms = {spelling.letters for spelling in spellings(value, kind)}
        if all(folded_letters(other) in forms for other, _kind in chosen):
            return value, kind
    return None
