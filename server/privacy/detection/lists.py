"""Lists of names and words, of our own making: the files `*.txt` beside this module have them below headings.

Names are facts, gathered from lists of names and registers of towns. Of those that are common in single countries a
word alone is no name: it takes a second one beside it, or a word that marks it.
"""

from __future__ import annotations

import re
from pathlib import Path

_HEADING = re.compile(r"^\[([^\]\n]+)\]\n", re.MULTILINE)
_COMMENT = re.compile(r"^#.*\n", re.MULTILINE)


def lists(name: str) -> dict[str, str]:
    """Return the texts of a file by their headings, in its order."""
    text = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    parts = _HEADING.split(_COMMENT.sub("", text))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


_LISTS = lists("words")
MONTHS = {name: number for number, names in enumerate(_LISTS.pop("months").split("\n"), 1) for name in names.split()}
"""Names of months and what they are cut to, in small letters without accents, with their numbers."""
_WORDS = {heading: frozenset(words.split()) for heading, words in _LISTS.items()}
SMALL = _WORDS["small"]
"""The small words: many of them make a line prose."""
NO_NAMES = SMALL | _WORDS["no names"]
"""Capitalised or not, these never count as names."""
LABELS = _WORDS["labels"]
"""What stands before numbers, in capitals: never names, unlike `Iban`, which is one."""
EVERYDAY = NO_NAMES | _WORDS["everyday"]
"""At the start of a sentence, or in a line without capital letters, these are hardly ever names."""
PLAIN_WORDS = EVERYDAY | _WORDS["plain"]
"""Words that are no name beside others of the kind: `mark`, `price`, but not `amber`."""
ALSO_NAMES = PLAIN_WORDS | _WORDS["names and words"]
"""Words that are no name where they stand in small letters."""
GLUED_WORDS = ALSO_NAMES | _WORDS["initial and name"]
"""What an initial and a family name may be that are written together: S. Park, P. Rice, C. Ross."""
ROLES_OF_MAILBOXES = ALSO_NAMES | _WORDS["roles of mailboxes"]
"""What stands before the `@` of an address that nobody is named in."""
