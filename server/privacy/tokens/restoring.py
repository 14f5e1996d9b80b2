"""Puts values back in for tokens: what may go where, what was not known, and how many of each type there were."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from ....sandbox.job import Json
from ....skills_db.vault_entries import Form, VaultEntry
from ..token_texts import Edit, Mention, spliced
from .notations import Leaf, LeafKind, Notation, WrittenLeaf

if TYPE_CHECKING:
    from .places import Put


@dataclass(frozen=True, slots=True)
class LeftToken:
    """A token that stays: the outermost key under which it stands, and whether the vault has it."""

    argument: str
    token: str
    is_known: bool


@dataclass(frozen=True, slots=True)
class UnfitToken:
    """A token whose value cannot be written where it stands, such as in a comment of SQL."""

    argument: str
    token: str
    where: str


@dataclass(frozen=True, slots=True)
class Restored:
    """What restoring made of something, how many tokens of each type it put values in for, and which it did not.

    `unknown` are those that the vault does not have; `kept` counts those by type that policy withheld; `left` are all.
    `unfit` are those whose values have no writing where they stand.
    """

    content: Json
    types: Mapping[str, int]
    unknown: tuple[str, ...]
    kept: Mapping[str, int] = field(default_factory=dict)
    left: tuple[LeftToken, ...] = ()
    unfit: tuple[UnfitToken, ...] = ()

    @property
    def count(self) -> int:
        """How many tokens were replaced."""
        return sum(self.types.values())


Allows: TypeAlias = "Callable[[tuple[str, ...], str], bool]"
"""Returns whether a value of a type may be put in at a path of keys."""


def allow_all(_path: tuple[str, ...], _kind: str) -> bool:
    """Allow every value everywhere."""
    return True


class RestoredCount:
    """Looks tokens up while something is restored, and keeps count."""

    def __init__(self, entries: Mapping[str, VaultEntry], allows: Allows) -> None:
        from . import places  # its expressions take a tenth of a second, which the event loop has not

        self._places = places
        self._entries = entries
        self._allows = allows
        self._types: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._unknown: dict[str, None] = {}
        self._left: dict[LeftToken, None] = {}
        self._unfit: dict[UnfitToken, None] = {}

    def answer(self, content: Json) -> Restored:
        """Return what came of it."""
        return Restored(content, self._types, tuple(self._unknown), self._kept, tuple(self._left), tuple(self._unfit))

    def leaf(self, leaf: Leaf, found: Iterable[Mention]) -> Json:
        """Return a leaf of a value with values in for its tokens; None stands for a number as it was."""
        if leaf.kind is LeafKind.NUMBER:
            return None
        puts = self._puts(leaf, found)
        if not puts:
            return leaf.text
        value = puts[0].entry.value
        if (puts[0].start, puts[0].end) == (0, len(leaf.text)) and value.form is Form.NUMBER:
            return cast("Json", json.loads(value.text)) if leaf.kind is LeafKind.STRING else value.text
        return (
            self._fitted(leaf, lambda: spliced(leaf.text, self._places.placed(leaf.text, puts, _hint(leaf))))
            or leaf.text
        )

    def in_written(
        self,
        text: str,
        leaves: Iterable[tuple[WrittenLeaf, Sequence[Mention]]],
        notation: Notation,
        hint: str | None = "",
    ) -> str:
        """Return a text with values in its leaves, for the tokens of each; what stands between them stays.

        Without a `hint`, None, a leaf is no text of a notation of its own.
        """
        edits: list[Edit] = []
        for written, found in leaves:
            puts = self._puts(written.leaf, found)
            if puts:
                source = text[written.start : written.end]
                work = partial(self._places.written_in, source, written.leaf, notation, puts, hint=hint)
                edits.append((written.start, written.end, self._fitted(written.leaf, work) or source))
        return spliced(text, edits)

    def _puts(self, leaf: Leaf, found: Iterable[Mention]) -> list[Put]:
        looked_up = ((mention, self._looked_up(leaf, mention)) for mention in found)
        return [
            self._places.Put(mention.start, mention.end, entry) for mention, entry in looked_up if entry is not None
        ]

    def _fitted(self, leaf: Leaf, work: Callable[[], str]) -> str | None:
        try:
            return work()
        except self._places.DoesNotFit as error:
            token = error.entry.shown if error.entry is not None else ""
            self._unfit.setdefault(UnfitToken(_argument(leaf), token, error.where))
            return None

    def _looked_up(self, leaf: Leaf, mention: Mention) -> VaultEntry | None:
        entry = self._entries.get(mention.token) if mention.token else None
        if entry is None or not mention.names(entry.value.type):
            if mention.clear or entry is not None:
                token = " ".join(leaf.text[mention.start : mention.end].split())
                self._unknown.setdefault(token)
                self._left.setdefault(LeftToken(_argument(leaf), token, is_known=False))
            return None
        if not self._allows(leaf.path, entry.value.type):
            self._kept[entry.value.type] += 1
            self._left.setdefault(LeftToken(_argument(leaf), entry.shown, is_known=True))
            return None
        self._types[entry.value.type] += 1
        return entry


def _argument(leaf: Leaf) -> str:
    return leaf.path[0] if leaf.path else ""


def _hint(leaf: Leaf) -> str:
    return leaf.path[-1] if leaf.path else ""
