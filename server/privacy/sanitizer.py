"""Puts tokens in for what is personal, and values back in for tokens: the one place where detection and vault meet.

Several parts (a result, an output, an error) are looked at together, so that a value which one of them gives away by
its context is hidden in all. Whatever goes wrong raises `PrivacyFailed`: then nothing may be shown.

Everything here blocks and is heavy: call it from a thread.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ...sandbox.run import Json
from ..errors import PrivacyFailed
from . import structured
from .known import KnownValues
from .structured import Kind, Leaf, WrittenLeaf
from .tokens import Mention, Span, disjoint, gaps, mentions_in, restored, spliced, tokens_in

if TYPE_CHECKING:
    from ...skills_db.vault import Entry, Form, Value, Vault
    from .detect import Detector
    from .detect import Leaf as DetectorLeaf

_LOG = logging.getLogger(__name__)

SCOPES_MAX = 32
"""Scopes whose known values are held in memory."""
FOUND_MAX = 64
"""Detections that are remembered: where something was found and of what type, never what."""
SHOWN_MAX = 4096
"""Texts that were shown lately, each as its hash."""


@dataclass(frozen=True, slots=True)
class Text:
    """A part that is text; JSON, and lines of JSON, stay that. `exact`: a known value counts however short it is."""

    text: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """A part that is a value."""

    value: Json
    exact: bool = False


class Notation(Protocol):
    """How a text writes its leaves: `structured.JsonNotation` or `tables.TableNotation`."""

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a leaf begins in its source, and where the last ends."""
        ...

    def escaped(self, source: str, text: str) -> str:
        """Return a text as it stands within the source of a leaf."""
        ...

    def tidied(self, source: str) -> str:
        """Return the source of a leaf that something was put into, made valid again."""
        ...


Part: TypeAlias = Text | Tree
Edit: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Hidden:
    """The parts as they may be shown, and how many different values of each type were hidden in them."""

    parts: tuple[Json, ...]
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Restored:
    """What restoring made of something, how many tokens of each type it put values in for, and which it did not."""

    content: Json
    types: Mapping[str, int]
    unknown: tuple[str, ...]
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many tokens were replaced."""
        return sum(self.types.values())


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text as it may be shown, where in the text it really ends, and what was hidden in all of it."""

    text: str
    end: int
    types: Mapping[str, int]


Allows: TypeAlias = "Callable[[tuple[str, ...], str], bool]"
"""Tells whether a value of a type may be put in at a path of keys."""


def allow_all(_path: tuple[str, ...], _kind: str) -> bool:
    """Allow every value everywhere."""
    return True


class Sanitizer:
    """Hides and restores for any number of scopes; safe to use from several threads."""

    def __init__(self, detector: Detector, vault: Vault, *, learner: Detector | None = None) -> None:
        """Make one; `learner` finds what is only learned, where that need not cost as much as what is shown."""
        self._detector = detector
        self._learner = learner or detector
        self._vault = vault
        self._scopes: OrderedDict[str, _Scope] = OrderedDict()
        self._found: OrderedDict[bytes, list[list[Span]]] = OrderedDict()
        self._turn = threading.Lock()

    def hide(self, scope: str, parts: Sequence[Part], kept: Sequence[Part] = ()) -> Hidden:
        """Return the parts with tokens in them, then those that are only kept, which do not count.

        Raises `PrivacyFailed`.
        """
        with _failing_closed():
            sheets = [_sheet(part) for part in (*parts, *kept)]
            counts = self._edit(scope, sheets, counted=len(parts))
            shown = tuple(sheet.finished() for sheet in sheets)
            self._scope(scope).remember_shown([sheet.mark_of_finished() for sheet in sheets])
            return Hidden(shown, counts)

    def hide_window(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it.

        Whatever crosses its end is shown whole. What crosses its start is left out, since the stretch before it showed
        it; so stretches read one after the other are the whole.
        """
        with _failing_closed():
            sheet = _text_sheet(Text(text))
            counts = self._edit(scope, [sheet])
            return Window(_window(text, sheet.edits(), start, end), end, counts)

    def hide_on(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it, or more where something crosses the end; go on from there.

        What stands before `start` was shown and is only looked at.
        """
        with _failing_closed():
            sheet = _TextSheet(Text(text), shown=start)
            counts = self._edit(scope, [sheet])
            edits = sheet.edits()
            inside = [(low, high) for low, high, _ in edits] + tokens_in(text)
            end = max([end, *(high for low, high in inside if low < end < high)])
            kept = [edit for edit in edits if edit[0] < end]
            return Window(spliced(text[:end], kept)[start:], end, counts)

    def warm(self) -> None:
        """Load all that is needed. Raises `PrivacyFailed`."""
        with _failing_closed():
            self._detector.warm()

    def learn(self, scope: str, parts: Sequence[Part]) -> None:
        """Have what is personal in the parts found again wherever it stands, though nothing is shown now."""
        with _failing_closed():
            self._edit(scope, [_sheet(part) for part in parts], detector=self._learner)

    def restore_text(self, scope: str, text: str, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the text with values in for its tokens; where it is JSON it stays that. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        if not mentions:
            return Restored(text, {}, ())
        with _failing_closed():
            entries = self._vault.resolve(scope, {mention.token for mention in mentions})
            tally = _Tally(entries, allows)
            leaves = structured.written_leaves(text)
            if leaves is None:
                return tally.answer(restored(text, mentions, partial(tally.plain, ())))
            return tally.answer(tally.in_written(text, leaves, mentions, structured.JsonNotation()))

    def hide_written(self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> Hidden:
        """Return a text with tokens in its leaves, which somebody has found in it. Raises `PrivacyFailed`."""
        with _failing_closed():
            sheet = _WrittenSheet(text, leaves, notation)
            counts = self._edit(scope, [sheet])
            return Hidden((sheet.finished(),), counts)

    def restore_written(
        self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation, *, lenient: bool = False
    ) -> Restored:
        """Return a text with values in its leaves, which somebody has found in it. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        with _failing_closed():
            entries = self._vault.resolve(scope, {mention.token for mention in mentions})
            tally = _Tally(entries, allow_all)
            return tally.answer(tally.in_written(text, leaves, mentions, notation))

    def restore_value(self, scope: str, value: Json, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the value with values in for its tokens; a number that became a token is a number again."""
        leaves = list(structured.leaves_of(value))
        mentions = [mentions_in(leaf.text, lenient=lenient) for leaf in leaves]
        if not any(mentions):
            return Restored(value, {}, ())
        with _failing_closed():
            wanted = {mention.token for some in mentions for mention in some}
            tally = _Tally(self._vault.resolve(scope, wanted), allows)
            texts = [
                restored(leaf.text, found, partial(tally.plain, leaf.path)) if found else leaf.text
                for leaf, found in zip(leaves, mentions, strict=True)
            ]
            numbers = [
                leaf.kind is Kind.STRING and len(found) == 1 and tally.is_number(leaf.path, leaf.text, found[0])
                for leaf, found in zip(leaves, mentions, strict=True)
            ]
            return tally.answer(_with_numbers(value, iter(zip(texts, numbers, strict=True))))

    def _edit(
        self, scope: str, sheets: Sequence[_Sheet], *, counted: int | None = None, detector: Detector | None = None
    ) -> Counter[str]:
        """Find what is to be hidden in the sheets and give each its token.

        Counts the different values by type, of all sheets or of the first `counted`.
        """
        known = self._scope(scope)
        fresh = [not known.was_shown(sheet.mark()) for sheet in sheets]
        asked = [leaf for sheet, is_fresh in zip(sheets, fresh, strict=True) if is_fresh for leaf in sheet.leaves]
        detected = iter(self._detected(detector or self._detector, asked))
        hidden: dict[Value, str] = {}
        with known.turn:
            known.refresh(self._vault)
            for sheet, is_fresh in zip(sheets, fresh, strict=True):
                for position in range(len(sheet.leaves)):
                    sheet.mark_spans(position, next(detected) if is_fresh else [], known.values)
            # A new value may stand elsewhere too, and what is left between tokens may now be a known one.
            while unnamed := list(dict.fromkeys(value for sheet in sheets for value in sheet.unnamed())):
                entries, grown = known.tokens_for(self._vault, unnamed)
                named = {value: entry.shown for value, entry in entries.items()}
                seen = {value for sheet in sheets[:counted] for value in sheet.unnamed()}
                hidden |= {value: entry.value.type for value, entry in entries.items() if value in seen}
                for sheet in sheets:
                    sheet.name(named)
                    sheet.sweep_gaps(known.values, everywhere=grown)
        return Counter(hidden.values())

    def _detected(self, detector: Detector, leaves: Sequence[Leaf]) -> list[list[Span]]:
        """Return what is detected in each leaf; programs that ask a tool again get the same answer, judged once."""
        if not leaves:
            return []
        mark = _mark_of_leaves(leaves, id(detector))
        with self._turn:
            found = self._found.get(mark)
        if found is None:
            found = _detect(detector, leaves)
            with self._turn:
                self._found[mark] = found
                while len(self._found) > FOUND_MAX:
                    self._found.popitem(last=False)
        return found

    def _scope(self, scope: str) -> _Scope:
        with self._turn:
            known = self._scopes.get(scope)
            if known is None:
                known = self._scopes[scope] = _Scope(scope)
                while len(self._scopes) > SCOPES_MAX:
                    self._scopes.popitem(last=False)
            self._scopes.move_to_end(scope)
            return known


class _Scope:
    """What is known of one scope in this process; changed only by who holds `turn`."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self.turn = threading.RLock()
        self.values = KnownValues()
        self._entries: dict[tuple[Form, str], Entry] = {}
        self._last = 0
        self._purges: int | None = None
        self._shown: OrderedDict[bytes, None] = OrderedDict()

    def refresh(self, vault: Vault) -> None:
        """Take in what this or another server has learned, and begin anew where something was forgotten."""
        news = vault.known(self._scope, self._last)
        if self._purges is not None and news.purges != self._purges:
            self.values, self._last = KnownValues(), 0
            self._entries.clear()
            self._shown.clear()
            news = vault.known(self._scope)
        self._purges = news.purges
        self._add(news.entries)
        self._last = max((entry.number for entry in news.entries), default=self._last)

    def tokens_for(self, vault: Vault, values: Sequence[Value]) -> tuple[dict[Value, Entry], bool]:
        """Return the entry of each value, and whether any value is new; the vault is asked only for what is."""
        entries = {value: entry for value in values if (entry := self._entries.get((value.form, value.text)))}
        missing = [value for value in values if value not in entries]
        if not missing:
            return entries, False
        made = vault.tokens_for(self._scope, missing)
        return entries | dict(zip(missing, made, strict=True)), self._add(made)

    def _add(self, entries: Iterable[Entry]) -> bool:
        """Have values found from now on; tell whether any is new."""
        before = len(self.values)
        for entry in entries:
            self.values.add(entry.value.plain, entry.value.type)
            if entry.expires is None:  # else the vault must know that it was met again
                self._entries[entry.value.form, entry.value.text] = entry
        return len(self.values) > before

    def was_shown(self, mark: bytes | None) -> bool:
        """Tell whether just this was shown lately: what was sanitised is not looked at again."""
        return mark is not None and mark in self._shown

    def remember_shown(self, marks: Iterable[bytes | None]) -> None:
        """Remember that these were shown; None stands for what need not be remembered."""
        with self.turn:
            self._shown |= {mark: None for mark in marks if mark is not None}
            while len(self._shown) > SHOWN_MAX:
                self._shown.popitem(last=False)


class _Sheet:
    """One part while it is worked on: its leaves, and for each the spans to hide with their tokens once named."""

    def __init__(self, leaves: Sequence[Leaf], *, exact: bool) -> None:
        self.leaves = leaves
        self._exact = exact
        self.spans: list[list[Span]] = [[] for _ in leaves]
        self._tokens: list[list[tuple[int, int]]] = [tokens_in(leaf.text) for leaf in leaves]
        self._unnamed: list[tuple[int, Span, Value]] = []
        self._names: dict[tuple[int, int], str] = {}

    def mark_spans(self, position: int, found: Sequence[Span], known: KnownValues) -> None:
        """Decide what of a leaf is hidden: what was detected, and what is known."""
        leaf = self.leaves[position]
        if self._exact and (kind := known.kind_of(leaf.text)) is not None:
            candidates = [Span(0, len(leaf.text), kind)]
        else:
            candidates = [*found, *known.find(leaf.text)]
        if candidates:
            self._hide(position, candidates)

    def sweep_gaps(self, known: KnownValues, *, everywhere: bool) -> None:
        """Look for known values between what is hidden already, or everywhere, which is where nothing is hidden too."""
        for position, leaf in enumerate(self.leaves):
            taken = self._taken(position)
            if not (everywhere or taken) or (leaf.kind is Kind.NUMBER and self.spans[position]):
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
        from ...skills_db.vault import Form, Value  # noqa: PLC0415 - the database is slow to import

        leaf = self.leaves[position]
        form = Form.NUMBER if leaf.kind is Kind.NUMBER else Form.TEXT
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
        if leaf.kind is Kind.NUMBER:
            more = [Span(0, len(leaf.text), candidates[0].type)]
        else:
            more = disjoint(leaf.text, candidates, self._taken(position))
        self._unnamed += ((position, span, self.value_of(position, span)) for span in more)
        self.spans[position] = sorted([*self.spans[position], *more], key=lambda span: span.start)


class _TreeSheet(_Sheet):
    """A value."""

    def __init__(self, part: Tree) -> None:
        super().__init__(
            list(structured.leaves_of(part.value)), exact=part.exact and not isinstance(part.value, Mapping | list)
        )
        self._value = part.value

    def finished(self) -> Json:
        if not any(self.spans):
            return self._value
        texts = ((self.text_of(position), bool(spans)) for position, spans in enumerate(self.spans))
        return structured.rebuilt(self._value, texts)

    def mark(self) -> bytes | None:
        return _mark(self._value) if any(self._tokens) else None

    def mark_of_finished(self) -> bytes | None:
        return _mark(self.finished()) if any(self.spans) else None


class _TextSheet(_Sheet):
    """A text that is no JSON: one leaf, of which the first `shown` characters were shown already."""

    def __init__(self, part: Text, *, shown: int = 0) -> None:
        super().__init__([Leaf((), part.text)], exact=part.exact)
        if shown:
            self._tokens[0] = [(0, shown), *(span for span in self._tokens[0] if span[0] >= shown)]
        self.text = part.text

    def edits(self) -> list[Edit]:
        """Return what is to be replaced in the text by what, in order."""
        return [(span.start, span.end, self.token_of(0, span)) for span in self.spans[0]]

    def finished(self) -> str:
        return spliced(self.text, self.edits())

    def mark(self) -> bytes | None:
        return _mark(self.text) if any(self._tokens) else None

    def mark_of_finished(self) -> bytes | None:
        return _mark(self.finished()) if any(self.spans) else None


class _WrittenSheet(_TextSheet):
    """A text whose leaves are written in some notation, such as JSON."""

    def __init__(self, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> None:
        _Sheet.__init__(self, [written.leaf for written in leaves], exact=False)
        self.text = text
        self._written = leaves
        self._notation = notation
        self._offsets: dict[int, Sequence[int]] = {}

    def value_of(self, position: int, span: Span) -> Value:
        from ...skills_db.vault import Form, Value  # noqa: PLC0415 - as above

        value = super().value_of(position, span)
        if value.form is Form.NUMBER:
            return value
        written = self._written[position]
        start, end = self._source(position, span)
        source = self.text[start:end]
        usual = self._notation.escaped(self.text[written.start : written.end], value.text)
        return value if usual == source else Value(span.type, source, Form.JSON)

    def edits(self) -> list[Edit]:
        made: list[Edit] = []
        for position, spans in enumerate(self.spans):
            for span in spans:
                token = self.token_of(position, span)
                number = self.leaves[position].kind is Kind.NUMBER
                made.append((*self._source(position, span), f'"{token}"' if number else token))
        return made

    def _source(self, position: int, span: Span) -> tuple[int, int]:
        written = self._written[position]
        if written.leaf.kind is Kind.NUMBER:
            return written.start, written.end
        offsets = self._offsets.get(position)
        if offsets is None:
            offsets = self._offsets[position] = self._notation.offsets(self.text[written.start : written.end])
        return written.start + offsets[span.start], written.start + offsets[span.end]


class _Tally:
    """Looks tokens up while something is restored, and keeps count."""

    def __init__(self, entries: Mapping[str, Entry], allows: Allows) -> None:
        self._entries = entries
        self._allows = allows
        self._types: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._unknown: dict[str, None] = {}

    def answer(self, content: Json) -> Restored:
        """Return what came of it."""
        return Restored(content, self._types, tuple(self._unknown), self._kept)

    def plain(self, path: tuple[str, ...], mention: Mention) -> str | None:
        """Return the value that a token in a plain text stands for."""
        entry = self._looked_up(path, mention)
        return None if entry is None else entry.value.plain

    def is_number(self, path: tuple[str, ...], text: str, mention: Mention) -> bool:
        """Tell whether a whole leaf is the token of a number that may be put in."""
        entry = self._entries.get(mention.token)
        return (
            entry is not None
            and (mention.start, mention.end) == (0, len(text))
            and entry.value.form == "number"
            and mention.names(entry.value.type)
            and self._allows(path, entry.value.type)
        )

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
        if form == "number" and (start, end) == (1, len(source) - 1) and source[0] == '"':
            return [(0, len(source), entry.value.text)]
        is_json = isinstance(notation, structured.JsonNotation)
        as_written = entry.value.text if form == "json" and is_json else notation.escaped(source, entry.value.plain)
        return [(start, end, as_written)]

    def _looked_up(self, path: tuple[str, ...], mention: Mention) -> Entry | None:
        entry = self._entries.get(mention.token)
        if entry is None or not mention.names(entry.value.type):
            if not mention.lenient:
                self._unknown.setdefault(f"[{mention.kind}_{mention.token}]")
            return None
        if not self._allows(path, entry.value.type):
            self._kept[entry.value.type] += 1
            return None
        self._types[entry.value.type] += 1
        return entry


def _detect(detector: Detector, leaves: Sequence[Leaf]) -> list[list[Span]]:
    from .detect import Leaf as Asked  # noqa: PLC0415 - the tokens alone do not need detection

    asked: list[DetectorLeaf] = [Asked(leaf.path, leaf.text) for leaf in leaves]
    return [
        [Span(finding.start, finding.end, finding.type) for finding in found] for found in detector.find_leaves(asked)
    ]


def _sheet(part: Part) -> _Sheet:
    return _TreeSheet(part) if isinstance(part, Tree) else _text_sheet(part)


def _text_sheet(part: Text) -> _TextSheet:
    leaves = structured.written_leaves(part.text)
    return _TextSheet(part) if leaves is None else _WrittenSheet(part.text, leaves, structured.JsonNotation())


def _window(text: str, edits: Iterable[Edit], start: int, end: int) -> str:
    tokens = [(low, high, text[low:high]) for low, high in tokens_in(text)]
    pieces: list[Edit] = []
    for low, high, replacement in sorted([*edits, *tokens]):
        if low < start < high:
            start = min(high, end)
        elif start <= low < end:
            pieces.append((low, min(high, end), replacement))
    parts, at = "", start
    for low, high, replacement in pieces:
        parts += text[at:low] + replacement
        at = high
    return parts + text[at:end]


def _with_numbers(value: Json, texts: Iterator[tuple[str, bool]]) -> Json:
    """Rebuild a value; a text that is marked stands for a number."""
    if isinstance(value, Mapping):
        made: dict[str, Json] = {}
        for inner in value.values():
            name, _ = next(texts)
            if name in made:
                raise PrivacyFailed("Two keys of an object are tokens of one value. Restore them one by one.")
            made[name] = _with_numbers(inner, texts)
        return made
    if isinstance(value, str):
        text, number = next(texts)
        return json.loads(text) if number else text
    if isinstance(value, Sequence):
        return [_with_numbers(inner, texts) for inner in value]
    if next(structured.leaves_of(value), None) is not None:
        next(texts)
    return value


def _mark_of_leaves(leaves: Iterable[Leaf], detector: int) -> bytes:
    digest = hashlib.blake2b(str(detector).encode(), digest_size=16)
    for leaf in leaves:
        # Lengths, since a text may hold any separator.
        said = "".join(f"{len(part)}:{part}" for part in (*leaf.path, leaf.text))
        digest.update(f"{len(leaf.path)}|{said}".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _mark(content: Json) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@contextmanager
def _failing_closed() -> Iterator[None]:
    """Raise `PrivacyFailed` for whatever goes wrong. What was being looked at is not said: it may be personal."""
    from ...skills_db.errors import SkillsDbError  # noqa: PLC0415 - only with the database
    from .detect import DetectionFailed  # noqa: PLC0415 - only with detection

    try:
        yield
    except PrivacyFailed:
        raise
    except (DetectionFailed, SkillsDbError) as error:
        raise PrivacyFailed(f"Personal data could not be hidden, so nothing is shown. {error}") from error
    except Exception as error:
        # Neither the message nor the traceback: they could hold values.
        _LOG.error("Hiding personal data failed: %s at %s", type(error).__name__, _where(error))
        raise PrivacyFailed(
            "Personal data could not be hidden, by a fault of sealab itself, so nothing is shown. Its log on stderr "
            "says where."
        ) from error


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(frames[-4:]))
