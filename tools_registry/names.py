"""Names of tools, servers and parameters as Python can write them, and names as they compare."""

from __future__ import annotations

import keyword
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

_NOT_WORD = re.compile(r"\W+", re.ASCII)
_NOT_ALNUM = re.compile(r"[\W_]+")
NEAR_SCORE_MIN = 60.0
"""How alike two names are that may be meant for each other, of 100."""
_COMPARED_AT_ONCE = 500
_COMPARED_CHARS_MAX = 512
_PIECE_CHARS = 256
_PIECE = re.compile(rf"\S{{1,{_PIECE_CHARS}}}|\s+")


def test_of(server: str) -> str:
    """Return the command that tests a server, in backticks, its name quoted as a shell needs it."""
    return f"`sealab servers test {shlex.quote(server)}`"


def identifier(name: str) -> str:
    """Return the name as an ASCII Python identifier that is not a keyword and starts with no underscore.

    A name that is one already stays as it is. `get-user` becomes `get_user`, `2fa` becomes `n2fa`, `from` becomes
    `from_`, `日本` becomes `unnamed`.
    """
    if name.isascii() and name.isidentifier() and name[0] != "_" and not keyword.iskeyword(name):
        return name
    folded = by_pieces(partial(unicodedata.normalize, "NFKD"), name).encode("ascii", "ignore").decode("ascii")
    clean = _NOT_WORD.sub("_", folded).strip("_") or "unnamed"
    if clean[0].isdigit():
        clean = f"n{clean}"
    return f"{clean}_" if keyword.iskeyword(clean) else clean


def aliases(names: Iterable[str]) -> dict[str, str]:
    """Give each name its own identifier: `{identifier: name}`, the same for the same names in any order.

    A name that is an identifier keeps it; of others that would share one, the later in alphabetical order get a number.
    """
    free = FreeNames()
    ordered = sorted(set(names), key=lambda name: (identifier(name) != name, name))
    return {free.take(identifier(name)): name for name in ordered}


class FreeNames:
    """Gives each name once; one that is wanted again gets a number: `get`, `get_2`, `get_3`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name not in self._taken

    def take(self, wanted: str) -> str:
        """Return the wanted name, or the first with a number that is free. Many of one name take linear time."""
        name = wanted
        while name in self._taken:
            self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            name = f"{wanted}_{self._numbers[wanted]}"
        self._taken.add(name)
        return name


def by_pieces(normalize: Callable[[str], str], text: str) -> str:
    """Normalize a text in time that grows as the text does.

    Marks in a row are sorted in time by the square of their number, so a word longer than `_PIECE_CHARS` is taken a
    piece at a time: at the seams of its pieces marks stay as they are. Source: Unicode Standard Annex 15, section 13.
    """
    return normalize(text) if len(text) <= _PIECE_CHARS else _PIECE.sub(lambda found: normalize(found[0]), text)


def fold(name: str) -> str:
    """Return what is left of a name when case, underscores and punctuation do not count: `userId` is `user_id`."""
    return _NOT_ALNUM.sub("", name).casefold()


def inverted(table: Mapping[str, str]) -> dict[str, str]:
    """Return `{value: key}` of a table whose values are distinct."""
    return {value: key for key, value in table.items()}


def nearest(name: str, known: Sequence[str], limit: int, score_min: float = NEAR_SCORE_MIN) -> list[int]:
    """Return where among the known names those stand that are nearest to a name, nearest first.

    Takes CPU time: call it in a thread where there may be many. They are compared in parts, since the library keeps all
    other threads waiting meanwhile; of a name that is longer than any, its beginning.
    """
    from rapidfuzz import fuzz, process

    wanted = name[:_COMPARED_CHARS_MAX].casefold()
    found: list[tuple[float, int]] = []
    for start in range(0, len(known), _COMPARED_AT_ONCE):
        part = [each.casefold() for each in known[start : start + _COMPARED_AT_ONCE]]
        near = process.extract(wanted, part, scorer=fuzz.ratio, limit=limit, score_cutoff=score_min)
        found = sorted([*found, *((-score, start + index) for _, score, index in near)])[:limit]
    return [index for _, index in found]
