"""The parts of an answer while tokens are put into them: what of each is hidden, and how it is then written."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....sandbox.job import Json
from ....skills_db.vault_entries import Form, Value
from ...base.host_work import checked, checkpoint
from ..detection.findings import Detection
from ..token_texts import Edit, Span, disjoint, gaps, spliced, tokens_in
from .grids import Grid, GridColumn
from .known_values import KnownValues
from .learned_values import LearnedValues
from .notations import (
    PLAIN,
    JsonNotation,
    Leaf,
    LeafKind,
    Notation,
    TableNotation,
    WrittenLeaf,
    cell_pattern,
    cell_said,
    leaves_of,
    rebuilt,
    written_leaves,
)
from .parts import Part, Text, Tree
from .scope import KnownScope, digest_of


class Sheet:
    """One part while it is worked on: its leaves, and for each the spans to hide with their tokens once named.

    `found` is what stands in each leaf, where that was found out before. Of the first leaf `shown` characters were
    shown already.
    """

    def __init__(
        self,
        content: Json,
        leaves: Sequence[Leaf],
        *,
        exact: bool = False,
        found: Sequence[list[Span]] | None = None,
        shown: int = 0,
    ) -> None:
        self._content = content
        self.leaves = leaves
        self.found = found
        self.spans: list[list[Span]] = [[] for _ in leaves]
        self._is_exact = exact
        self._tokens: list[list[tuple[int, int]]] = [tokens_in(leaf.text) for leaf in checked(leaves)]
        if shown:
            self._tokens[0] = [(0, shown), *(span for span in self._tokens[0] if span[0] >= shown)]
        self._unnamed: list[tuple[int, Span, Value]] = []
        self._names: dict[tuple[int, int], str] = {}

    def find_learned(self, learned: LearnedValues) -> Sequence[list[Span]]:
        """Return what is learned by its hash in each leaf."""
        found: list[list[Span]] = [[] for _ in self.leaves]
        for position, span in _spans_in([leaf.text for leaf in self.leaves], learned.find):
            found[position].append(span)
        for position, leaf in enumerate(self.leaves) if self._is_exact else ():
            if (kind := learned.kind_of(leaf.text)) is not None:
                found[position].append(Span(0, len(leaf.text), kind))
        return found

    def mark_spans(self, position: int, found: Sequence[Span], known: KnownValues) -> None:
        """Decide what of a leaf is hidden: what was detected, and what is known."""
        leaf = self.leaves[position]
        if self._is_exact and (kind := known.kind_of(leaf.text)) is not None:
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

    def finished(self) -> Json:
        """Return the part as it may be shown."""
        raise NotImplementedError

    def mark(self) -> bytes | None:
        """Return the hash of the part as it was given, or None where it holds no token and need not be remembered."""
        return _mark(self._content) if any(self._tokens) else None

    def mark_of_finished(self) -> bytes | None:
        """Return the hash of the part as it may be shown, or None where nothing was hidden."""
        return _mark(self.finished()) if any(self.spans) else None

    def _value_of(self, position: int, span: Span) -> Value:
        """Return what a span stands on, as the vault keeps it."""
        leaf = self.leaves[position]
        form = Form.NUMBER if leaf.kind is LeafKind.NUMBER else Form.TEXT
        return Value(span.type, leaf.text[span.start : span.end], form)

    def _taken(self, position: int) -> list[tuple[int, int]]:
        return [*self._tokens[position], *((span.start, span.end) for span in self.spans[position])]

    def _hide(self, position: int, candidates: Sequence[Span]) -> None:
        leaf = self.leaves[position]
        if leaf.kind is LeafKind.NUMBER:
            more = [Span(0, len(leaf.text), candidates[0].type)]
        else:
            more = disjoint(leaf.text, candidates, self._taken(position))
        self._unnamed += ((position, span, self._value_of(position, span)) for span in more)
        self.spans[position] = sorted([*self.spans[position], *more], key=lambda span: span.start)


class _TreeSheet(Sheet):
    """A value."""

    def __init__(self, part: Tree) -> None:
        exact = part.exact and not isinstance(part.value, Mapping | list)
        super().__init__(part.value, list(checked(leaves_of(part.value))), exact=exact)

    def finished(self) -> Json:
        if not any(self.spans):
            return self._content
        return rebuilt(self._content, map(self._shown_leaf, checked(range(len(self.leaves)))))

    def _shown_leaf(self, position: int) -> str | None:
        leaf, spans = self.leaves[position], self.spans[position]
        if leaf.kind is LeafKind.NUMBER and not spans:
            return None
        return spliced(leaf.text, ((span.start, span.end, self.token_of(position, span)) for span in spans))


class WrittenSheet(Sheet):
    """A text whose leaves are written in some notation, such as JSON; one that has none is a leaf as it is."""

    def __init__(
        self,
        text: str,
        leaves: Sequence[WrittenLeaf],
        notation: Notation,
        *,
        exact: bool = False,
        found: Sequence[list[Span]] | None = None,
        shown: int = 0,
    ) -> None:
        super().__init__(text, [written.leaf for written in leaves], exact=exact, found=found, shown=shown)
        self.text = text
        self.written = leaves
        self.notation = notation
        self._offsets: dict[int, Sequence[int]] = {}

    def finished(self) -> str:
        """Return it as it may be shown."""
        return spliced(self.text, self.edits())

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
        for written in checked(self.written):
            mine: list[Edit] = []
            while at < len(edits) and edits[at][0] < written.end:
                low, high, token = edits[at]
                mine.append((low - written.start, high - written.start, token))
                at += 1
            yield spliced(self.text[written.start : written.end], mine)

    def _value_of(self, position: int, span: Span) -> Value:
        """Return what a span stands on; as JSON writes it, where it is not written as usual."""
        value = super()._value_of(position, span)
        if value.form is Form.NUMBER:
            return value
        written = self.written[position]
        start, end = self._source(position, span)
        source = self.text[start:end]
        usual = self.notation.escaped(self.text[written.start : written.end], value.text)
        return value if usual == source else Value(span.type, source, Form.JSON)

    def _source(self, position: int, span: Span) -> tuple[int, int]:
        written = self.written[position]
        if written.leaf.kind is LeafKind.NUMBER:
            return written.start, written.end
        offsets = self._offsets.get(position)
        if offsets is None:
            offsets = self._offsets[position] = self.notation.offsets(self.text[written.start : written.end])
        return written.start + offsets[span.start], written.start + offsets[span.end]


def sheet_of(part: Part) -> Sheet:
    """Return a part ready to be worked on."""
    return _TreeSheet(part) if isinstance(part, Tree) else text_sheet(part)


def text_sheet(part: Text) -> WrittenSheet:
    """Return a text ready to be worked on, by its leaves where it is JSON."""
    leaves = written_leaves(part.text)
    return plain_sheet(part) if leaves is None else WrittenSheet(part.text, leaves, JsonNotation())


def plain_sheet(part: Text, *, shown: int = 0) -> WrittenSheet:
    """Return a text ready to be worked on as it is, of which the first `shown` characters were shown already."""
    leaf = WrittenLeaf(Leaf((), part.text), 0, len(part.text))
    return WrittenSheet(part.text, [leaf], PLAIN, exact=part.exact, shown=shown)


@dataclass(slots=True)
class _Cells:
    """The different cells of one column, as they are written: those that are hidden whole, and the others."""

    column: GridColumn
    whole: dict[str, str] = field(default_factory=dict)
    """Source to text."""
    others: dict[str, tuple[str, list[Span]]] = field(default_factory=dict)
    """Source to text, and what was found in it."""

    def to_edit(self) -> Iterator[tuple[str, str, list[Span]]]:
        """Give those of the others that hold something, or a token."""
        return ((source, text, found) for source, (text, found) in self.others.items() if found or "[" in text)


class GridPart:
    """A long table, or lines of JSON, while tokens are put into it column by column.

    First its whole cells are named, then its `sheets` are worked on as any others.
    """

    def __init__(self, grid: Grid, detector: Detection) -> None:
        """Look through the columns. Raises `DetectionFailed` and `HostWorkRefused`."""
        self.grid = grid
        self.whole: dict[Form, dict[str, str]] = {Form.TEXT: {}, Form.NUMBER: {}}
        """The values that are whole cells, and their types."""
        self._detector = detector
        self._cells = [self._looked_at(column) for column in grid.columns]
        self._around: list[WrittenSheet] = []
        self._rest: WrittenSheet | None = None

    def has_personal_keys(self, known: KnownScope) -> bool:
        """Return whether keys of lines of JSON are to be hidden too, which is not done column by column."""
        if isinstance(self.grid.notation, TableNotation):
            return False
        found = self._detector.find_column((), self.grid.headings)
        return bool(found.whole or found.within) or any(True for _span in known.find("\n".join(self.grid.headings)))

    def sheets(self, known: KnownScope) -> Sequence[Sheet]:
        """Return the line of headings, the rows that are no part of a column, and the cells not hidden whole."""
        odd = (_odd_sheet(self.grid, row) for row in self.grid.odd)
        self._around = [text_sheet(Text(self.grid.heading_line)), *odd]
        return [*self._around, *self.rest(known)]

    def rest(self, known: KnownScope) -> Sequence[Sheet]:
        """Return the cells that are not hidden whole but hold something known by now, or found, as a sheet."""
        leaves: list[WrittenLeaf] = []
        spans: list[list[Span]] = []
        sources: list[str] = []
        at = 0
        for cells in self._cells:
            checkpoint()
            others = list(cells.others.values())
            for number, span in _spans_in([text for text, _found in others], known.find):
                others[number][1].append(span)
            for source, text, found in cells.to_edit():
                leaves.append(WrittenLeaf(Leaf(cells.column.path, text, cells.column.kind), at, at + len(source)))
                sources.append(source)
                spans.append(found)
                at += len(source)
        self._rest = WrittenSheet("".join(sources), leaves, self.grid.notation, found=spans) if leaves else None
        return [] if self._rest is None else [self._rest]

    def finished(self, named: Mapping[Form, Mapping[str, str]]) -> str:
        """Return the text as it may be shown; `named` are the tokens of its whole cells."""
        pieces = iter(self._rest.pieces() if self._rest is not None else ())
        for cells in self._cells:
            checkpoint()
            number = cells.column.kind is LeafKind.NUMBER
            tokens = named[Form.NUMBER if number else Form.TEXT]
            new = {
                source: f'"{tokens[text]}"' if number or source[0] == '"' else tokens[text]
                for source, text in cells.whole.items()
            }
            new |= {source: next(pieces) for source, _text, _found in cells.to_edit()}
            if new:
                self.grid.put(cells.column, [new.get(source, source) for source in self.grid.sources(cells.column)])
        for row, sheet in zip(self.grid.odd, self._around[1:], strict=True):
            self.grid.put_odd(row, sheet.finished())
        return self._around[0].finished() + self.grid.text()

    def _looked_at(self, column: GridColumn) -> _Cells:
        checkpoint()
        cells = _Cells(column)
        said = {source: column.says(source) for source in dict.fromkeys(self.grid.sources(column))}
        found = self._detector.find_column(column.path, list(dict.fromkeys(said.values())), self.grid.headings)
        kinds = {text: kind for kind, texts in found.whole.items() for text in texts}
        values = self.whole[Form.NUMBER if column.kind is LeafKind.NUMBER else Form.TEXT]
        for source, text in checked(said.items()):
            kind = kinds.get(text)
            if kind is not None and "[" not in text and "\\" not in source:
                cells.whole[source] = text
                values.setdefault(text, kind)
            elif text:
                spans = [Span(each.start, each.end, str(each.type)) for each in found.within.get(text, ())]
                cells.others[source] = text, [*spans, *([Span(0, len(text), kind)] if kind is not None else [])]
        return cells


def _odd_sheet(grid: Grid, row: tuple[int, int]) -> WrittenSheet:
    text = grid.odd_text(row)
    if not isinstance(grid.notation, TableNotation):
        return text_sheet(Text(text))
    leaves: list[WrittenLeaf] = []
    for number, match in enumerate(cell_pattern(grid.notation.separator).finditer(text)):
        heading = grid.headings[number] if number < len(grid.headings) else ""
        leaves.append(WrittenLeaf(Leaf(("0", heading), cell_said(match[1])), *match.span(1)))
    return WrittenSheet(text, leaves, grid.notation)


def _spans_in(texts: Sequence[str], find: Callable[[str], Iterable[Span]]) -> Iterator[tuple[int, Span]]:
    """Give what is found in each of some texts, with the number of the text; they are looked through as one."""
    starts: list[int] = []
    at = 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    for span in find("\n".join(texts)):
        number = bisect_right(starts, span.start) - 1
        low, high = span.start - starts[number], span.end - starts[number]
        if high <= len(texts[number]):
            yield number, Span(low, high, span.type)


def _mark(content: Json) -> bytes:
    return digest_of(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))
