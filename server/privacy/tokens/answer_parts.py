"""The parts of an answer while tokens are put into them: what of each is hidden, and how it is then written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ....sandbox.job import Json
from ...host_work import checked
from ..token_texts import Span, disjoint, gaps, spliced, tokens_in
from .known_values import KnownValues
from .notations import JsonNotation, Leaf, LeafKind, WrittenLeaf, leaves_of, rebuilt, written_leaves
from .parts import Part, Text, Tree

if TYPE_CHECKING:
    from ....skills_db.vault import Value

Edit: TypeAlias = tuple[int, int, str]
"""What is replaced, from a character to another, by what."""


class Notation(Protocol):
    """How a text writes its leaves: `JsonNotation` or `separated_values.TableNotation`."""

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a leaf begins in its source, and where the last ends."""
        ...

    def escaped(self, source: str, text: str) -> str:
        """Return a text as it stands within the source of a leaf."""
        ...

    def tidied(self, source: str) -> str:
        """Return the source of a leaf that something was put into, made valid again."""
        ...


class Sheet:
    """One part while it is worked on: its leaves, and for each the spans to hide with their tokens once named."""

    def __init__(self, leaves: Sequence[Leaf], *, exact: bool) -> None:
        self.leaves = leaves
        self.is_exact = exact
        self.spans: list[list[Span]] = [[] for _ in leaves]
        self._tokens: list[list[tuple[int, int]]] = [tokens_in(leaf.text) for leaf in checked(leaves)]
        self._unnamed: list[tuple[int, Span, Value]] = []
        self._names: dict[tuple[int, int], str] = {}

    def mark_spans(self, position: int, found: Sequence[Span], known: KnownValues) -> None:
        """Decide what of a leaf is hidden: what was detected, and what is known."""
        leaf = self.leaves[position]
        if self.is_exact and (kind := known.kind_of(leaf.text)) is not None:
            candidates = [Span(0, len(leaf.text), kind)]
        else:
            candidates = [*found, *known.find(leaf.text)]
        if candidates:
            self._hide(position, candidates)

    def sweep_gaps(self, known: KnownValues, *, everywhere: bool) -> None:
        """Look for known values between what is hidden already, or everywhere, which is where nothing is hidden too."""
        for position, leaf in checked(enumerate(self.leaves)):
            taken = self._taken(position)
            if not (everywhere or taken) or (leaf.kind is LeafKind.NUMBER and self.spans[position]):
                continue
            found = [span for start, end in gaps(len(leaf.text), taken) for span in known.find(leaf.text, start, end)]
            if found:
                self._hide(position, found)

    def unnamed(self) -> Iterator[Value]:
        """Give the values that have no token yet."""
        return (value for _position, _span, value in self._unnamed)

    def name(self, named: Mapping[Value, str]) -> None:
        """Give the values their tokens."""
        for position, span, value in self._unnamed:
            self._names[position, span.start] = named[value]
        self._unnamed.clear()

    def token_of(self, position: int, span: Span) -> str:
        """Return the token of a span of a leaf."""
        return self._names[position, span.start]

    def value_of(self, position: int, span: Span) -> Value:
        """Return what a span stands on, as the vault keeps it."""
        from ....skills_db.vault import Form, Value

        leaf = self.leaves[position]
        form = Form.NUMBER if leaf.kind is LeafKind.NUMBER else Form.TEXT
        return Value(span.type, leaf.text[span.start : span.end], form)

    def text_of(self, position: int) -> str:
        """Return a leaf with its tokens in."""
        edits = ((span.start, span.end, self.token_of(position, span)) for span in self.spans[position])
        return spliced(self.leaves[position].text, edits)

    def finished(self) -> Json:
        """Return the part as it may be shown."""
        raise NotImplementedError

    def mark(self) -> bytes | None:
        """Return the hash of the part as it was given."""
        raise NotImplementedError

    def mark_of_finished(self) -> bytes | None:
        """Return the hash of the part as it may be shown, or None where nothing was hidden."""
        raise NotImplementedError

    def _taken(self, position: int) -> list[tuple[int, int]]:
        return [*self._tokens[position], *((span.start, span.end) for span in self.spans[position])]

    def _hide(self, position: int, candidates: Sequence[Span]) -> None:
        """Hide what of the candidates is still free."""
        leaf = self.leaves[position]
        if leaf.kind is LeafKind.NUMBER:
            more = [Span(0, len(leaf.text), candidates[0].type)]
        else:
            more = disjoint(leaf.text, candidates, self._taken(position))
        self._unnamed += ((position, span, self.value_of(position, span)) for span in more)
        self.spans[position] = sorted([*self.spans[position], *more], key=lambda span: span.start)


class TreeSheet(Sheet):
    """A value."""

    def __init__(self, part: Tree) -> None:
        super().__init__(
            list(checked(leaves_of(part.value))),
            exact=part.exact and not isinstance(part.value, Mapping | list),
        )
        self._value = part.value

    def finished(self) -> Json:
        """Return it as it may be shown."""
        if not any(self.spans):
            return self._value
        return rebuilt(self._value, map(self._shown_leaf, checked(range(len(self.leaves)))))

    def _shown_leaf(self, position: int) -> str | None:
        is_as_it_was = self.leaves[position].kind is LeafKind.NUMBER and not self.spans[position]
        return None if is_as_it_was else self.text_of(position)

    def mark(self) -> bytes | None:
        """Return the hash of what was given, or None where it holds no token and need not be remembered."""
        return _mark(self._value) if any(self._tokens) else None

    def mark_of_finished(self) -> bytes | None:
        """Return the hash of what may be shown, or None where nothing was hidden."""
        return _mark(self.finished()) if any(self.spans) else None


class TextSheet(Sheet):
    """A text that is not valid JSON: one leaf, of which the first `shown` characters were shown already."""

    def __init__(self, part: Text, *, shown: int = 0) -> None:
        super().__init__([Leaf((), part.text)], exact=part.exact)
        if shown:
            self._tokens[0] = [(0, shown), *(span for span in self._tokens[0] if span[0] >= shown)]
        self.text = part.text

    def edits(self) -> list[Edit]:
        """Return what is to be replaced in the text by what, in order."""
        return [(span.start, span.end, self.token_of(0, span)) for span in self.spans[0]]

    def finished(self) -> str:
        """Return it as it may be shown."""
        return spliced(self.text, self.edits())

    def mark(self) -> bytes | None:
        """Return the hash of what was given, or None where it holds no token and need not be remembered."""
        return _mark(self.text) if any(self._tokens) else None

    def mark_of_finished(self) -> bytes | None:
        """Return the hash of what may be shown, or None where nothing was hidden."""
        return _mark(self.finished()) if any(self.spans) else None


class WrittenSheet(TextSheet):
    """A text whose leaves are written in some notation, such as JSON."""

    def __init__(self, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> None:
        Sheet.__init__(self, [written.leaf for written in leaves], exact=False)
        self.text = text
        self._written = leaves
        self._notation = notation
        self._offsets: dict[int, Sequence[int]] = {}

    def value_of(self, position: int, span: Span) -> Value:
        """Return what a span stands on; as JSON writes it, where it is not written as usual."""
        from ....skills_db.vault import Form, Value

        value = super().value_of(position, span)
        if value.form is Form.NUMBER:
            return value
        written = self._written[position]
        start, end = self._source(position, span)
        source = self.text[start:end]
        usual = self._notation.escaped(self.text[written.start : written.end], value.text)
        return value if usual == source else Value(span.type, source, Form.JSON)

    def edits(self) -> list[Edit]:
        """Return what is to be replaced in the source by what, in order."""
        made: list[Edit] = []
        for position, spans in checked(enumerate(self.spans)):
            for span in spans:
                token = self.token_of(position, span)
                number = self.leaves[position].kind is LeafKind.NUMBER
                made.append((*self._source(position, span), f'"{token}"' if number else token))
        return made

    def pieces(self) -> Iterator[str]:
        """Give the source of each leaf with its tokens in, in order."""
        edits = self.edits()
        at = 0
        for written in checked(self._written):
            mine: list[Edit] = []
            while at < len(edits) and edits[at][0] < written.end:
                low, high, token = edits[at]
                mine.append((low - written.start, high - written.start, token))
                at += 1
            yield spliced(self.text[written.start : written.end], mine)

    def _source(self, position: int, span: Span) -> tuple[int, int]:
        written = self._written[position]
        if written.leaf.kind is LeafKind.NUMBER:
            return written.start, written.end
        offsets = self._offsets.get(position)
        if offsets is None:
            offsets = self._offsets[position] = self._notation.offsets(self.text[written.start : written.end])
        return written.start + offsets[span.start], written.start + offsets[span.end]


def sheet_of(part: Part) -> Sheet:
    """Return a part ready to be worked on."""
    return TreeSheet(part) if isinstance(part, Tree) else text_sheet(part)


def text_sheet(part: Text) -> TextSheet:
    """Return a text ready to be worked on, by its leaves where it is JSON."""
    leaves = written_leaves(part.text)
    return TextSheet(part) if leaves is None else WrittenSheet(part.text, leaves, JsonNotation())


def _mark(content: Json) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
