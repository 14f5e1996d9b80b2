"""Security boundary: how private names of guest code are spelled inside, and how a text shows them as its author did.

`PREFIX` is a legal start of an identifier (slots and dataclass fields need one), stable under NFKC, and refused in
source. `sealab.sandbox.dialect.names` judges which names are private.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "\u16e5\u02c8"


def exact(text: str) -> str:
    """Return the characters of `text`: a subclass could answer for itself whatever is asked of it."""
    return text if type(text) is str else str.__str__(text)


def demangle(text: str) -> str:
    """Spell every private name in `text` as its author did; works on names, messages and reprs."""
    text = exact(text)
    while PREFIX in text:  # what is taken out may leave another behind
        text = text.replace(PREFIX, "")
    return text
