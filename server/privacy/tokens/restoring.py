"""Puts values back in for tokens: what may go where, what was not known, and how many of each type there were."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from ....sandbox.job import Json
from ....skills_db.vault_entries import Form, VaultEntry
from ..token_texts import Edit, Mention, spliced
from .notations import JsonNotation, Leaf, LeafKind, Notation, WrittenLeaf


@dataclass(frozen=True, slots=True)
class LeftToken:
    """A token that stays: the outermost key under which it stands, and whether the vault has it."""

    argument: str
    token: str
    is_known: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """What restoring made of something, how many tokens of each type it put values in for, and which it did not.

    `unknown` are those that the vault does not have; `kept` counts those by type that policy withheld; `left` are all.
    """

    content: Json
    types: Mapping[str, int]
    unknown: tuple[str, ...]
    kept: Mapping[str, int] = field(default_factory=dict)
    left: tuple[LeftToken, ...] = ()

    @property
    def count(self) -> int:
        """How many tokens were replaced."""
        return sum(self.types.values())


Allows: TypeAlias = "Callable[[tuple[str, ...], str], bool]"
"""Says whether a value of a type may be put in at a path of keys."""


def allow_all(_path: tuple[str, ...], _kind: str) -> bool:
    """Allow every value everywhere."""
    return True


class RestoredCount:
    """Looks tokens up while something is restored, and keeps count."""

    def __init__(self, entries: Mapping[str, VaultEntry], allows: Allows) -> None:
        self._entries = entries
        self._allows = allows
        self._types: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._unknown: dict[str, None] = {}
        self._left: dict[LeftToken, None] = {}

    def answer(self, content: Json) -> Restored:
        """Return what came of it."""
        return Restored(content, self._types, tuple(self._unknown), self._kept, tuple(self._left))

    def leaf(self, leaf: Leaf, found: Iterable[Mention]) -> Json:
        """Return a leaf of a value with values in for its tokens; None stands for a number as it was."""
        if leaf.kind is LeafKind.NUMBER:
            return None
        edits: list[Edit] = []
        for mention in found:
            entry = self._looked_up(leaf.path, mention)
            if entry is None:
                continue
            is_whole = (mention.start, mention.end) == (0, len(leaf.text))
            if is_whole and entry.value.form is Form.NUMBER and leaf.kind is LeafKind.STRING:
                return cast("Json", json.loads(entry.value.text))
            edits.append((mention.start, mention.end, entry.value.plain))
        return spliced(leaf.text, edits)

    def in_written(
        self, text: str, leaves: Iterable[WrittenLeaf], mentions: Iterable[Mention], notation: Notation
    ) -> str:
        """Return a text with values in its leaves; what stands between them stays."""
        edits: list[Edit] = []
        rest = iter(mentions)
        mention = next(rest, None)
        for written in leaves:
            inner: list[Edit] = []
            source = text[written.start : written.end]
            while mention is not None and mention.start < written.end:
                if mention.start >= written.start:
                    inner += self._edit_in(source, written, mention, notation)
                mention = next(rest, None)
            if inner:
                edits.append((written.start, written.end, notation.tidied(spliced(source, inner))))
        return spliced(text, edits)

    def _edit_in(self, source: str, written: WrittenLeaf, mention: Mention, notation: Notation) -> list[Edit]:
        """Return how a token in the source of a leaf is replaced: nothing, or one edit."""
        entry = self._looked_up(written.leaf.path, mention)
        if entry is None:
            return []
        start, end = mention.start - written.start, mention.end - written.start
        form = entry.value.form
        if form is Form.NUMBER and (start, end) == (1, len(source) - 1) and source[0] == '"':
            return [(0, len(source), entry.value.text)]
        is_json = isinstance(notation, JsonNotation)
        as_written = entry.value.text if form is Form.JSON and is_json else notation.escaped(source, entry.value.plain)
        return [(start, end, as_written)]

    def _looked_up(self, path: tuple[str, ...], mention: Mention) -> VaultEntry | None:
        entry = self._entries.get(mention.token)
        if entry is None or not mention.names(entry.value.type):
            if not mention.lenient:
                token = f"[{mention.kind}_{mention.token}]"
                self._unknown.setdefault(token)
                self._left.setdefault(LeftToken(path[0] if path else "", token, is_known=False))
            return None
        if not self._allows(path, entry.value.type):
            self._kept[entry.value.type] += 1
            self._left.setdefault(LeftToken(path[0] if path else "", entry.shown, is_known=True))
            return None
        self._types[entry.value.type] += 1
        return entry
