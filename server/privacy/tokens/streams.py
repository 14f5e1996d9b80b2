"""Files of any size: read, hidden or restored, and written piece by piece, so that nothing is lost at the seams.

A text is judged in windows with what stands before and after them; JSON and tables are cut between their leaves.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, cast

from ...base.errors import UsageError
from ..token_texts import TOKEN
from .grids import Grid, following_grid, grid_of, whole_rows
from .learned_values import LearnedValues
from .notations import JsonNotation, Notation, Scanner, TableNotation, TableScanner, WrittenLeaf, is_json
from .sanitizer import Sanitizer

PIECE_CHARS = 256 * 1024
GRID_CHARS = 2 * 1024 * 1024
"""Of tables and lines of JSON: what is new in them is stored at once, which costs less the more it is."""
_GRID_CHARS_MAX = 4 * GRID_CHARS
_AROUND_CHARS = 8 * 1024
_FIRST_LINE_MAX = 4 * 1024
_TOKEN_CHARS_MAX = 128
_BETWEEN_LEAVES = re.compile(r"(?:[\s\ufeff\x1e{}\[\],:]|true|false|null|NaN|-?Infinity)*+")
"""What JSON writes between its leaves: marks, blanks and words."""
_PARTS_LEAVES = re.compile(r"[\r\n\x1e{}\[\],:]")


class FileKind(StrEnum):
    """What a file is: free text, JSON (one text or many in a row), or separated values with headings."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class TextSource(Protocol):
    """What can be read piece by piece, such as an open text file."""

    def read(self, size: int, /) -> str:
        """Return up to `size` characters, none at the end."""
        ...


@dataclass(slots=True)
class Tally:
    """What was done so far: tokens put in or replaced, by type, and those that the vault does not hold."""

    replaced: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _seen: LearnedValues = field(default_factory=LearnedValues)

    def put_in(self, tokens: Iterable[str]) -> None:
        """Note tokens that were put in; of millions, each is kept as a hash."""
        kinds: dict[str, list[str]] = {}
        for token in tokens:
            kinds.setdefault(token[1:].rpartition("_")[0], []).append(token)
        for kind, some in kinds.items():
            before = len(self._seen)
            self._seen.add("TOKEN", some)
            self._counts[kind] += len(self._seen) - before

    def types(self) -> dict[str, int]:
        """Count the different tokens that were put in, by type."""
        return dict(sorted(self._counts.items()))


def kind_of(name: str, beginning: str) -> FileKind:
    """Return what a file is by its name, else by how it begins."""
    ending = name.rpartition(".")[2].lower()
    if ending in {"json", "jsonl", "ndjson"}:
        return FileKind.JSON
    if ending in {"csv", "tsv"}:
        return FileKind.CSV
    return FileKind.JSON if beginning.lstrip()[:1] in {"{", "["} and _reads_as_json(beginning) else FileKind.TEXT


def sanitized(sanitizer: Sanitizer, scope: str, source: TextSource, kind: FileKind, tally: Tally) -> Iterator[str]:
    """Give a file piece by piece with tokens in it. Raises `PrivacyFailed`, and `UsageError` for JSON that is none."""
    if kind is FileKind.TEXT:
        yield from _sanitized_text(sanitizer, scope, source, tally)
        return

    def hide(text: str, leaves: list[WrittenLeaf], scanner: _Scans) -> str:
        hidden = sanitizer.hide_written(scope, text, leaves, scanner.notation)
        shown = cast("str", hidden.parts[0])
        _note_new(tally, text, shown)
        return shown

    begun = _Rest(source)
    yield from _by_grids(sanitizer, scope, begun, kind, tally)
    yield from _by_leaves(begun, kind, hide, begun=begun)


def restored(sanitizer: Sanitizer, scope: str, source: TextSource, kind: FileKind, tally: Tally) -> Iterator[str]:
    """Give a file piece by piece with values in it. Raises `PrivacyFailed`, and `UsageError` for JSON that is none."""

    def restore(text: str, leaves: list[WrittenLeaf] | None, scanner: _Scans | None) -> str:
        if leaves is None or scanner is None:
            done = sanitizer.restore_text(scope, text, as_it_is=True)
        else:
            done = sanitizer.restore_written(scope, text, leaves, scanner.notation, as_it_is=True)
        for name, count in done.types.items():
            tally.replaced[name] = tally.replaced.get(name, 0) + count
        tally.unknown |= dict.fromkeys(done.unknown)
        return cast("str", done.content)

    if kind is not FileKind.TEXT:
        yield from _by_leaves(source, kind, restore)
        return
    held = ""
    while piece := source.read(PIECE_CHARS):
        held += piece
        # Between words only, since a token may have lost its brackets.
        last = max(0, len(held) - _TOKEN_CHARS_MAX)
        least = max(0, last - _FIRST_LINE_MAX)
        cut = next((at for at in range(last, least, -1) if held[at - 1].isspace()), held.rfind("[", last))
        cut = cut if cut >= 0 else len(held)
        yield restore(held[:cut], None, None)
        held = held[cut:]
    yield restore(held, None, None)


class _Scans(Protocol):
    @property
    def notation(self) -> Notation: ...
    def feed(self, text: str, *, final: bool) -> tuple[list[WrittenLeaf], int]: ...


_Works = Callable[[str, list[WrittenLeaf], _Scans], str]


class _Rest:
    """What is left of a source of which some was read: how many lines were, and the headings of a table."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self.held = ""
        self.lines = 0
        self.separator: str | None = None
        self.headings: tuple[str, ...] = ()

    def read(self, size: int, /) -> str:
        if not self.held:
            return self._source.read(size)
        given, self.held = self.held, ""
        return given

    def hold(self, least: int) -> bool:
        """Read until so many characters are held; return whether more may follow."""
        while len(self.held) < least:
            piece = self._source.read(least - len(self.held))
            if not piece:
                return False
            self.held += piece
        return True


def _by_grids(sanitizer: Sanitizer, scope: str, source: _Rest, kind: FileKind, tally: Tally) -> Iterator[str]:
    """Give a long table, or lines of JSON, with tokens in it, as far as it is one; the rest is left in the source."""
    goes_on = source.hold(GRID_CHARS)
    taken = whole_rows(source.held) if goes_on else len(source.held)
    grid = grid_of(source.held[:taken]) if taken else None
    if grid is None or isinstance(grid.notation, JsonNotation) is not (kind is FileKind.JSON):
        return
    first = grid
    if isinstance(grid.notation, TableNotation):
        source.separator, source.headings = grid.notation.separator, grid.headings
    while grid is not None:
        text = source.held[:taken]
        _refuse_other_lines(grid, source.lines)
        shown = cast("str", sanitizer.hide_grid(scope, grid).parts[0])
        _note_new(tally, text, shown)
        yield shown
        source.held = source.held[taken:]
        source.lines += text.count("\n")
        if not goes_on and not source.held:
            return
        taken = 0
        size = GRID_CHARS
        while not taken and size <= _GRID_CHARS_MAX:
            goes_on = source.hold(size)
            taken = whole_rows(source.held) if goes_on else len(source.held)
            size *= 2  # a row longer than all that was read
        grid = following_grid(first, source.held[:taken]) if taken else None


def _refuse_other_lines(grid: Grid, lines: int) -> None:
    """Refuse lines that are not JSON where all others are."""
    if not isinstance(grid.notation, JsonNotation):
        return
    for start, end in grid.odd:
        if not is_json("".join(grid.fragments[start:end])):
            number = lines + 1 + "".join(grid.fragments[:start]).count("\n")
            raise UsageError(f"Line {number} of the input is not valid JSON. Correct it, or give --as text.")


def _by_leaves(source: TextSource, kind: FileKind, work: _Works, *, begun: _Rest | None = None) -> Iterator[str]:
    scanner: _Scans = Scanner()
    if kind is not FileKind.JSON:
        scanner = TableScanner() if begun is None else TableScanner(begun.separator, begun.headings)
    between = _BetweenLeaves(0 if begun is None else begun.lines)
    held, size = "", PIECE_CHARS
    while True:
        piece = source.read(size)
        held += piece
        leaves, taken = scanner.feed(held, final=not piece)
        if taken:
            if kind is FileKind.JSON:
                between.judge(held[:taken], leaves)
            yield work(held[:taken], leaves, scanner)
            held, size = held[taken:], PIECE_CHARS
        else:
            size *= 2  # a leaf longer than all that was read
        if not piece:
            return


class _BetweenLeaves:
    """Refuses text outside the leaves of JSON: it would be written as it is, since only leaves are looked at."""

    def __init__(self, lines_before: int) -> None:
        self._line = 1 + lines_before
        self._since_leaf: str | None = None

    def judge(self, text: str, leaves: list[WrittenLeaf]) -> None:
        """Judge the next piece. Raises `UsageError` that names the line."""
        end = 0
        for written in leaves:
            self._judge_gap(text, end, written.start)
            if self._since_leaf is not None and not _PARTS_LEAVES.search(self._since_leaf + text[end : written.start]):
                self._refuse(text, written.start)
            self._since_leaf, end = "", written.end
        self._judge_gap(text, end, len(text))
        if self._since_leaf is not None:
            self._since_leaf += text[end:]
        self._line += text.count("\n")

    def _judge_gap(self, text: str, start: int, end: int) -> None:
        match = _BETWEEN_LEAVES.match(text, start, end)
        if match is not None and match.end() < end:
            self._refuse(text, match.end())

    def _refuse(self, text: str, at: int) -> None:
        line = self._line + text.count("\n", 0, at)
        raise UsageError(f"Line {line} of the input is not valid JSON. Correct it, or give --as text.")


def _sanitized_text(sanitizer: Sanitizer, scope: str, source: TextSource, tally: Tally) -> Iterator[str]:
    held = source.read(PIECE_CHARS)
    lead, start = "", 0
    while True:
        piece = source.read(PIECE_CHARS)
        held += piece
        last = len(piece) < PIECE_CHARS
        window = sanitizer.hide_on(
            scope, lead + held, len(lead) + start, len(lead) + len(held) - (0 if last else _AROUND_CHARS)
        )
        _note_new(tally, held, window.text)
        yield window.text
        if last:
            return
        end = window.end - len(lead)
        lead = lead or _first_line(held)
        kept = max(0, end - _AROUND_CHARS)
        held, start = held[kept:], end - kept


def _first_line(text: str) -> str:
    line = text[:_FIRST_LINE_MAX].partition("\n")[0]
    return f"{line}\n" if len(line) < _FIRST_LINE_MAX else ""


def _note_new(tally: Tally, before: str, after: str) -> None:
    there = set(map(_whole, TOKEN.finditer(before))) if "[" in before else set()
    tally.put_in(set(map(_whole, TOKEN.finditer(after))) - there)


def _whole(match: re.Match[str]) -> str:
    return match[0]


def _reads_as_json(beginning: str) -> bool:
    try:
        json.JSONDecoder(parse_int=str).raw_decode(beginning.lstrip())  # a number may have any length
    except json.JSONDecodeError as error:
        return error.pos >= len(beginning.lstrip()) - 1 and len(beginning) >= PIECE_CHARS
    except RecursionError:
        return False
    return True
