"""Puts tokens in for what is personal, and values back in for tokens: the one place where detection and vault meet.

Several parts (a result, an output, an error) are looked at together, so that a value which one of them gives away by
its context is hidden in all. Whatever goes wrong raises `PrivacyFailed`: then nothing may be shown.

Everything here blocks and is heavy: call it from a thread.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import traceback
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from ....sandbox.job import Json
from ...errors import HostWorkRefused, PrivacyFailed
from ...host_work import checked, checkpoint
from ..detection.findings import DetectionFailed, KeyedText
from ..token_texts import Mention, Span, gaps, mentions_in, restored, spliced, tokens_in
from .answer_parts import Edit, Notation, Sheet, TextSheet, WrittenSheet, sheet_of, text_sheet
from .forms.escapes import encoded
from .grid_hiding import GridHiding, grouped, kinds_of
from .grids import LEAST_CHARS as LONG_CHARS
from .grids import Grid, grid_of
from .known_values import KnownValues, load_forms
from .learned_values import LEARNED_MAX, LearnedValues
from .long_learning import Learn, Learned, learn_grid, learn_text
from .notations import JsonNotation, Leaf, WrittenLeaf, leaves_of, rebuilt, written_leaves
from .parts import Part, Text
from .records import records_in, records_of_lines
from .restoring import Allows, Restored, RestoredCount, allow_all
from .run_tokens import RunTokens, ShownToken

if TYPE_CHECKING:
    from ....skills_db.vault import Form, Value, Vault, VaultEntry
    from ..detection.findings import Detection, Finding

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)

SCOPES_MAX = 10_000
"""Scopes of which anything is held in memory; an empty one takes a kilobyte."""
KNOWN_IN_ALL_MAX = 200_000
"""Known values of all these scopes; beyond, the scopes that were not asked for longest are read again when they are."""
_COUNT_EVERY = 64
"""Calls after which the known values of all scopes are counted again."""
LOADED_MAX = 10_000
"""Values of a scope that are read from the vault when it is first asked for: the newest."""
ENTRIES_MAX = 20_000
"""Tokens of a scope that are held in memory, of values no longer than `_ENTRY_CHARS_MAX`; the vault has them all."""
FOUND_MAX = 4096
"""Detections that are remembered: where something was found and of what type, never what."""
FOUND_SPANS_MAX = 5_000
"""Detections with more leaves and places than this are not."""
FOUND_IN_ALL_MAX = 300_000
"""Leaves and places of all that are remembered."""
LEARNED_IN_ALL_MAX = 16_000_000
"""Values of all scopes that are known by their hashes; beyond, the scopes that were not asked for longest forget."""
WORDS_OF_TABLES_MAX = 20_000
"""Values of a scope up to which those of tables are also known by their words, not by their hashes alone."""
TEXTS_LEARNED_MAX = 2_000_000
"""Values of a scope's long texts that need not be looked through again where the same text is read again."""
SHOWN_MAX = 4096
"""Texts that were shown lately, each as its hash."""


@dataclass(frozen=True, slots=True)
class HiddenParts:
    """The parts as they may be shown, and how many different values of each type were hidden in them."""

    parts: tuple[Json, ...]
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text as it may be shown, where in the text it really ends, and what was hidden in all of it."""

    text: str
    end: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """Where a known value stands: the keys that lead to the text, the place in it, and the value as it stands there."""

    path: tuple[str, ...]
    span: Span
    text: str


class Sanitizer:
    """Hides and restores for any number of scopes; safe to use from several threads."""

    def __init__(
        self,
        detector: Detection,
        vault: Vault,
        *,
        learner: Detection | None = None,
        durable: bool = True,
        link: Callable[[str, Sequence[Sequence[str]]], None] | None = None,
    ) -> None:
        """Make one; `learner` finds what is only learned, where that need not cost as much as what is shown.

        `link` is told which tokens of a scope stood together in one record.
        `durable`: whether new tokens are on the disk, safe from a power cut, before they are shown; in PostgreSQL they
        always are.
        """
        self._durable = durable
        self._detector = detector
        self._learner = learner or detector
        self._vault = vault
        self._link = link
        self._scopes: OrderedDict[str, _Scope] = OrderedDict()
        self._found: OrderedDict[bytes, list[list[Span]]] = OrderedDict()
        self._turn = threading.Lock()
        self._asked = self._found_size = 0

    def hide(
        self, scope: str, parts: Sequence[Part], kept: Sequence[Part] = (), *, run_tokens: RunTokens | None = None
    ) -> HiddenParts:
        """Return the parts with tokens in them, then those that are only kept, which do not count.

        `run_tokens` are those of the run or request that gave them; without them the scope's own tokens are used.
        Raises `PrivacyFailed`.
        """
        with _failing_closed():
            grids = [self._grid_to_hide(scope, part, run_tokens) for part in (*parts, *kept)]
            if not any(grids):
                sheets = [sheet_of(part) for part in (*parts, *kept)]
                counts = self._edit(scope, sheets, counted=len(parts), run_tokens=run_tokens)
                shown = tuple(sheet.finished() for sheet in sheets)
                self._scope(scope).remember_shown([sheet.mark_of_finished() for sheet in sheets])
                return HiddenParts(shown, counts)
            return self._hide_among_grids(scope, (*parts, *kept), grids, run_tokens, counted=len(parts))

    def hide_grid(self, scope: str, grid: Grid) -> HiddenParts:
        """Return the text of a grid with tokens in it. Raises `PrivacyFailed`."""
        with _failing_closed():
            self._scope(scope).refresh(self._vault)
            return self._hide_among_grids(scope, [Text("")], [grid], None, counted=1)

    def _grid_to_hide(self, scope: str, part: Part, run_tokens: RunTokens | None) -> Grid | None:
        """Return a part as a grid, where it is one that was not hidden already."""
        if not isinstance(part, Text) or (run_tokens is not None and run_tokens.values is not None):
            return None
        grid = grid_of(part.text)
        known = self._scope(scope)
        if grid is None or ("[" in part.text and known.was_shown(_digest(part.text))):
            return None
        known.refresh(self._vault)
        return grid

    def _hide_among_grids(
        self,
        scope: str,
        parts: Sequence[Part],
        grids: Sequence[Grid | None],
        run_tokens: RunTokens | None,
        *,
        counted: int,
    ) -> HiddenParts:
        """Hide parts of which some are grids: what one of them gives away is hidden in all."""
        from ....skills_db.vault import Form

        known = self._scope(scope)
        hidings = [None if grid is None else GridHiding(grid, self._detector) for grid in grids]
        tokens: dict[str, str] = {}
        numbers: dict[str, str] = {}
        for hiding in hidings:
            if hiding is None:
                continue
            for form, values, named in (
                (Form.TEXT, hiding.texts, tokens),
                (Form.NUMBER, hiding.numbers, numbers),
            ):
                new = {text: kind for text, kind in values.items() if text not in named}
                named.update(known.show_many(self._vault, new, form, durable=self._durable, run_tokens=run_tokens))
        parts = list(parts)
        for number, hiding in enumerate(hidings):
            if hiding is not None and hiding.has_personal_keys(self._detector, known.values, known.learned):
                parts[number], hidings[number] = Text(hiding.grid.text()), None
        sheets: list[Sheet] = []
        found: dict[int, list[list[Span]]] = {}
        rests: list[WrittenSheet | None] = []
        counted_sheets = 0
        for part, hiding in zip(parts, hidings, strict=True):
            rest = None if hiding is None else hiding.rest(known.values, known.learned)
            rests.append(None if rest is None else rest[0])
            if hiding is None:
                sheets.append(sheet_of(part))
            elif rest is not None:
                sheets.append(rest[0])
                found[id(rest[0])] = rest[1]
            counted_sheets = len(sheets) if len(rests) <= counted else counted_sheets
        odd = [sheet for hiding in hidings if hiding is not None for sheet in hiding.odd_sheets()]
        first, last = sheets[:counted_sheets], sheets[counted_sheets:]
        count = counted_sheets + len(odd)
        counts = self._edit(scope, [*first, *odd, *last], counted=count, run_tokens=run_tokens, found=found)
        if len(sheets) + len(odd) > len(found):
            # What the other parts gave away may stand in cells of which nothing was known before.
            for number, hiding in enumerate(hidings):
                late = None if hiding is None else hiding.rest(known.values, known.learned)
                if late is not None:
                    rests[number] = late[0]
                    more = self._edit(scope, [late[0]], run_tokens=run_tokens, found={id(late[0]): late[1]})
                    counts += more if number < counted else Counter()
        shown: list[Json] = []
        waiting = iter(sheet for sheet in sheets if id(sheet) not in found)
        odds = iter(odd)
        for hiding, rest_sheet in zip(hidings, rests, strict=True):
            if hiding is None:
                shown.append(next(waiting).finished())
                continue
            hiding.put_in(tokens, numbers, rest_sheet)
            heading_line = str(next(odds).finished())
            for row in hiding.grid.odd:
                hiding.grid.put_odd(row, str(next(odds).finished()))
            shown.append(self._noted(scope, heading_line + hiding.grid.text()))
        known.remember_shown([sheet.mark_of_finished() for sheet in sheets if id(sheet) not in found])
        whole = {
            token
            for hiding in hidings[:counted]
            if hiding is not None
            for values, named in ((hiding.texts, tokens), (hiding.numbers, numbers))
            for token in map(named.__getitem__, values)
        }
        return HiddenParts(tuple(shown), counts + Counter(kinds_of(whole)))

    def _noted(self, scope: str, text: str) -> str:
        """Return the text of a grid, noted as shown; the values of its rows belong together."""
        self._scope(scope).remember_shown([_digest(text)])
        if self._link is not None and (records := records_of_lines(text)):
            self._link(scope, records)
        return text

    def hide_window(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it.

        Whatever crosses its end is shown whole. What crosses its start is left out, since the stretch before it showed
        it; so stretches read one after the other are the whole.
        """
        with _failing_closed():
            sheet = text_sheet(Text(text))
            counts = self._edit(scope, [sheet])
            return Window(_window(text, sheet.edits(), start, end), end, counts)

    def hide_on(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it, or more where something crosses the end; go on from there.

        What stands before `start` was shown and is only looked at.
        """
        with _failing_closed():
            sheet = TextSheet(Text(text), shown=start)
            counts = self._edit(scope, [sheet])
            edits = sheet.edits()
            inside = [(low, high) for low, high, _ in edits] + tokens_in(text)
            end = max([end, *(high for low, high in inside if low < end < high)])
            kept = [edit for edit in edits if edit[0] < end]
            return Window(spliced(text[:end], kept)[start:], end, counts)

    def warm(self) -> None:
        """Load all that is needed. Raises `PrivacyFailed`."""
        with _failing_closed():
            load_forms()
            self._detector.warm()

    def learn(self, scope: str, parts: Sequence[Part], run_tokens: RunTokens | None = None) -> list[str]:
        """Have what is personal in the parts found again wherever it stands, though nothing is shown now; return it.

        It is stored in the vault when it is shown. `run_tokens` are those of the run that was given it.
        """
        with _failing_closed():
            known = self._scope(scope)
            known.refresh(self._vault)
            rest: list[Part] = []
            told: list[str] = []
            for part in parts:
                if isinstance(part, Text) and len(part.text) >= LONG_CHARS:
                    rest += self._learn_long(known, part, run_tokens, told)
                else:
                    rest.append(part)
            sheets = [sheet_of(part) for part in rest]
            detected = iter(self._detected(self._learner, [leaf for sheet in sheets for leaf in sheet.leaves]))
            for sheet in sheets:
                for position in checked(range(len(sheet.leaves))):
                    sheet.mark_spans(position, next(detected), known.values)
            met = list(dict.fromkeys(value for sheet in sheets for value in sheet.unnamed()))
            for some in _batches(met):
                known.learn(some, run_tokens)
            return [*told, *(value.plain for value in met)]

    def _learn_long(self, known: _Scope, part: Text, run_tokens: RunTokens | None, told: list[str]) -> Sequence[Part]:
        """Learn a long text, unless it was learned lately, and return what of it is to be learned as any other.

        Its values that are known by their words are added to those that were `told`.
        """
        run = _number_of(run_tokens)
        digest = _digest(part.text)
        learned = known.learned_before(digest, run)
        if learned is None:
            learn = self._learns(part.text)
            if learn is None:
                return (part,)
            learned = learn(known.learned, run, words=known.room)
            known.keep_learned(digest, learned)
        for some in _batches(learned.values):
            known.learn(some, run_tokens)
        # As long as there is room, values are also known by their words, and so in more forms than by their hashes.
        for some in _batches(learned.words[: known.room]):
            known.learn(some, run_tokens)
        told += (value.plain for value in (*learned.values, *learned.words))
        return [Text(each) for each in learned.rest]

    def _learns(self, text: str) -> Learn | None:
        """Return what learns a long text, or None for one of JSON that is no lines of it."""
        grid = grid_of(text)
        if grid is not None:
            return partial(learn_grid, grid, self._learner)
        if written_leaves(text) is not None:
            return None
        return partial(learn_text, text, partial(_found_in, self._learner, text))

    def restore_text(self, scope: str, text: str, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the text with values in for its tokens; where it is JSON it stays that. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        if not mentions:
            return Restored(text, {}, ())
        with _failing_closed():
            tally = RestoredCount(self._resolved(scope, mentions), allows)
            leaves = written_leaves(text)
            if leaves is None:
                return tally.answer(restored(text, mentions, partial(tally.plain, ())))
            return tally.answer(tally.in_written(text, leaves, mentions, JsonNotation()))

    def hide_written(self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> HiddenParts:
        """Return a text with tokens in its leaves, which were found before. Raises `PrivacyFailed`."""
        with _failing_closed():
            sheet = WrittenSheet(text, leaves, notation)
            counts = self._edit(scope, [sheet])
            return HiddenParts((sheet.finished(),), counts)

    def restore_written(
        self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation, *, lenient: bool = False
    ) -> Restored:
        """Return a text with values in its leaves, which were found before. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        with _failing_closed():
            tally = RestoredCount(self._resolved(scope, mentions), allow_all)
            return tally.answer(tally.in_written(text, leaves, mentions, notation))

    def restore_value(self, scope: str, value: Json, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the value with values in for its tokens; a number that became a token is a number again."""
        leaves = list(leaves_of(value))
        mentions = [mentions_in(leaf.text, lenient=lenient) for leaf in leaves]
        if not any(mentions):
            return Restored(value, {}, ())
        with _failing_closed():
            resolved = self._resolved(scope, [mention for some in mentions for mention in some])
            tally = RestoredCount(resolved, allows)
            return tally.answer(rebuilt(value, map(tally.leaf, leaves, mentions)))

    def known_in(self, scope: str, value: Json) -> list[KnownPlace]:
        """Return where known values stand in a value, outside its tokens. Raises `PrivacyFailed`."""
        with _failing_closed():
            known = self._scope(scope)
            known.refresh(self._vault)
            if not len(known.values) and not len(known.learned):
                return []
            return [
                KnownPlace(leaf.path, span, leaf.text[span.start : span.end])
                for leaf in checked(leaves_of(value))
                for start, end in gaps(len(leaf.text), tokens_in(leaf.text))
                for span in known.places_in(leaf.text, start, end)
            ]

    def _resolved(self, scope: str, mentions: Sequence[Mention]) -> Mapping[str, VaultEntry]:
        """Return the entries of tokens; whoever gets their values may show or pass them on, so these are known then."""
        entries = self._vault.resolve(scope, {mention.token for mention in mentions})
        self._scope(scope).meet(entries.values())
        return entries

    def _edit(
        self,
        scope: str,
        sheets: Sequence[Sheet],
        *,
        counted: int | None = None,
        run_tokens: RunTokens | None = None,
        found: Mapping[int, list[list[Span]]] = MappingProxyType({}),
    ) -> Counter[str]:
        """Find what is to be hidden in the sheets and give each its token.

        Counts the different values by type, of all sheets or of the first `counted`. `found` says, by their `id`, what
        was found before in the leaves of some sheets.
        """
        known = self._scope(scope)
        fresh = [id(sheet) not in found and not known.was_shown(sheet.mark()) for sheet in sheets]
        asked = [leaf for sheet, is_fresh in zip(sheets, fresh, strict=True) if is_fresh for leaf in sheet.leaves]
        detected = iter(self._detected(self._detector, asked))
        hidden: dict[Value, str] = {}
        learned: list[list[list[Span]]] = [[] for _ in sheets]
        if run_tokens is None or run_tokens.values is None:
            known.refresh(self._vault)
            learned = [found.get(id(sheet)) or _learned_within(sheet, known.learned) for sheet in sheets]
        for sheet, is_fresh, there in zip(sheets, fresh, learned, strict=True):
            for position in checked(range(len(sheet.leaves))):
                spans = next(detected) if is_fresh else []
                more = there[position] if there else ()
                sheet.mark_spans(position, [*spans, *more], known.values_for(run_tokens))
        # A new value may stand elsewhere too, and what is left between tokens may now be a known one.
        while unnamed := list(dict.fromkeys(value for sheet in sheets for value in sheet.unnamed())):
            named: dict[Value, ShownToken] = {}
            grown = False
            for some in _batches(unnamed):
                checkpoint()
                tokens, is_new = known.tokens_for(self._vault, some, durable=self._durable, run_tokens=run_tokens)
                named |= tokens
                grown |= is_new
            seen = {value for sheet in sheets[:counted] for value in sheet.unnamed()}
            hidden |= {value: shown.type for value, shown in named.items() if value in seen}
            texts = {value: shown.token for value, shown in named.items()}
            for sheet in sheets:
                sheet.name(texts)
                sheet.sweep_gaps(known.values_for(run_tokens), everywhere=grown)
        if self._link is not None and len(hidden) > 1:
            records = records_in(sheets[:counted])
            if records:
                self._link(scope, records)
        return Counter(hidden.values())

    def _detected(self, detector: Detection, leaves: Sequence[Leaf]) -> list[list[Span]]:
        """Return what is detected in each leaf; programs that ask a tool again get the same answer, judged once."""
        if not leaves:
            return []
        mark = _mark_of_leaves(leaves, id(detector))
        with self._turn:
            found = self._found.get(mark)
        if found is None:
            found = _detect(detector, leaves)
            found = _with_encoded(detector, leaves, found)
            size = _size(found)
            if size > FOUND_SPANS_MAX:
                return found
            with self._turn:
                if mark not in self._found:
                    self._found_size += size
                self._found[mark] = found
                while len(self._found) > FOUND_MAX or self._found_size > FOUND_IN_ALL_MAX:
                    _, oldest = self._found.popitem(last=False)
                    self._found_size -= _size(oldest)
        return found

    def _scope(self, scope: str) -> _Scope:
        with self._turn:
            known = self._scopes.get(scope)
            if known is None:
                known = self._scopes[scope] = _Scope(scope)
            self._scopes.move_to_end(scope)
            self._asked += 1
            if self._asked % _COUNT_EVERY == 0:
                self._drop_oldest()
            return known

    def _drop_oldest(self) -> None:
        held = sum(each.weight for each in self._scopes.values())
        learned = sum(each.learned_weight for each in self._scopes.values())
        while len(self._scopes) > SCOPES_MAX or (
            len(self._scopes) > 1 and (held > KNOWN_IN_ALL_MAX or learned > LEARNED_IN_ALL_MAX)
        ):
            _, oldest = self._scopes.popitem(last=False)
            held -= oldest.weight
            learned -= oldest.learned_weight


class _Scope:
    """What is known of one scope in this process; changed only by who holds `_turn`, and never for long."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._turn = threading.RLock()
        self.values = KnownValues()
        self.learned = LearnedValues()
        self._texts: OrderedDict[bytes, Learned] = OrderedDict()
        self._texts_weight = 0
        self._entries: OrderedDict[tuple[Form, str], VaultEntry] = OrderedDict()
        self._last = 0
        self._purges: int | None = None
        self._shown: OrderedDict[bytes, None] = OrderedDict()

    @property
    def weight(self) -> int:
        """How much memory this takes, counted in known values."""
        return len(self.values) + len(self._shown) // _SHOWN_PER_VALUE

    @property
    def learned_weight(self) -> int:
        """How many hashes this holds."""
        return len(self.learned) + self._texts_weight

    @property
    def room(self) -> int:
        """How many values of tables may still be known by their words."""
        return max(0, WORDS_OF_TABLES_MAX - len(self.values))

    def values_for(self, run_tokens: RunTokens | None) -> KnownValues:
        """Return the values that are found for a run."""
        return self.values if run_tokens is None or run_tokens.values is None else run_tokens.values

    def places_in(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Give where known values stand in `text[start:end]`, those of long texts among them; they may overlap."""
        yield from self.values.find(text, start, end)
        for span in self.learned.find(text[start:end]):
            yield Span(start + span.start, start + span.end, span.type)

    def refresh(self, vault: Vault) -> None:
        """Read what this or another server has shown, and begin anew where something was removed."""
        with self._turn:
            news = vault.known(self._scope, self._last, most=LOADED_MAX)
            if self._purges is not None and self._purges >= 0 and news.purges != self._purges:
                self.values, self._last = KnownValues(), 0
                self.learned = LearnedValues()
                self._texts.clear()
                self._texts_weight = 0
                self._entries.clear()
                self._shown.clear()
                news = vault.known(self._scope, most=LOADED_MAX)
            self._purges = news.purges
            for entry in news.entries:
                self._keep(entry)
            self._last = max((entry.number for entry in news.entries), default=self._last)

    def learned_before(self, digest: bytes, run: int) -> Learned | None:
        """Return what a text had that was learned lately, and note that a run has met it; None where it was not."""
        with self._turn:
            learned = self._texts.get(digest)
            if learned is not None:
                self._texts.move_to_end(digest)
        if learned is None or not all(self.learned.met_again(hashes, run) for hashes in learned.hashes):
            return None
        return learned

    def keep_learned(self, digest: bytes, learned: Learned) -> None:
        """Remember what a text had."""
        with self._turn:
            self._texts[digest] = learned
            self._texts_weight += learned.weight
            while self._texts_weight > TEXTS_LEARNED_MAX:
                _, oldest = self._texts.popitem(last=False)
                self._texts_weight -= oldest.weight

    def learn(self, values: Sequence[Value], run_tokens: RunTokens | None) -> None:
        """Have values found from now on. Raises `HostWorkRefused` where a run brings too many."""
        with self._turn:
            new = [value.plain for value in values if self.values.add(value.plain, value.type)]
        if run_tokens is not None:
            run_tokens.met.update(value.plain for value in values)
            run_tokens.bring(new)

    def meet(self, entries: Iterable[VaultEntry]) -> None:
        """Have the values of entries found from now on, however long ago the vault got them."""
        with self._turn:
            for entry in entries:
                self.values.add(entry.value.plain, entry.value.type)

    def tokens_for(
        self, vault: Vault, values: Sequence[Value], *, durable: bool, run_tokens: RunTokens | None
    ) -> tuple[dict[Value, ShownToken], bool]:
        """Return the token of each value, and whether any value is new.

        The vault is asked only for what is, and for what it has to know that it was met again.
        """
        with self._turn:
            origins = self._origins(values, run_tokens)
            own, apart = self._divided(values, run_tokens)
            tokens: dict[Value, ShownToken] = {}
            for value in own:
                entry = self._entries.get((value.form, value.text))
                if entry is not None and not vault.fades(entry, self._scope):
                    tokens[value] = ShownToken(entry.shown, entry.value.type)
                    self.values.add(entry.value.plain, entry.value.type)
            grown = False
            missing = [value for value in own if value not in tokens]
            if missing:
                missing = self._akin(vault, missing, origins, durable=durable, run_tokens=run_tokens)
                made = vault.tokens_for(self._scope, missing, durable=durable, admits=_admits(missing, run_tokens))
                grown = self._took(made)
                tokens |= _shown(missing, made)
            if run_tokens is not None and apart:
                grown |= self._tell_apart(vault, apart, run_tokens, durable=durable)
                tokens |= {value: run_tokens.tokens[value] for value in apart}
        return tokens, grown

    def _origins(self, values: Sequence[Value], run_tokens: RunTokens | None) -> dict[Value, Value]:
        """Return the values of which some are other forms.

        Where trying values could tell something, only those that a tool or a file gave: a form tells as much.
        """
        if run_tokens is not None and run_tokens.values is not None:
            return {}
        met = None if run_tokens is None or run_tokens.brake is None else run_tokens.met
        found: dict[Value, Value] = {}
        for value in checked(values):
            if value.plain in met if met is not None else (value.form, value.text) in self._entries:
                continue
            origin = self.values.origin_of(value.plain)
            if origin is not None and (
                met is None or origin[0] in met or self.learned.was_met(origin[0], _number_of(run_tokens))
            ):
                found[value] = replace(value, text=origin[0], type=origin[1], form=type(value.form)("text"))
        if run_tokens is not None:
            run_tokens.met.update(value.plain for value in found)  # who was given a value was given its forms
        return found

    def _akin(
        self,
        vault: Vault,
        missing: Sequence[Value],
        origins: Mapping[Value, Value],
        *,
        durable: bool,
        run_tokens: RunTokens | None,
    ) -> list[Value]:
        """Return values with the tokens of those that they are other forms of, which are stored with them."""
        needed = list(dict.fromkeys(origins[value] for value in missing if value in origins))
        if not needed:
            return list(missing)
        made = vault.tokens_for(self._scope, needed, durable=durable, admits=_admits(needed, run_tokens))
        self._took(made)
        tokens = {origin: entry.token for origin, entry in zip(needed, made, strict=True)}
        return [replace(value, akin=tokens[origins[value]]) if value in origins else value for value in missing]

    def show_many(
        self,
        vault: Vault,
        values: Mapping[str, str],
        form: Form,
        *,
        durable: bool,
        run_tokens: RunTokens | None,
    ) -> dict[str, str]:
        """Return the token of each value, given with its type, as it is shown; have all of them found from now on."""
        if not values:
            return {}
        run = _number_of(run_tokens)
        own, apart = self._divided_many(values, form, run_tokens)
        admits = None if run_tokens is None else run_tokens.store
        shown: dict[str, str] = {}
        for some in _batches(list(own), _MANY):
            checkpoint()
            made = vault.show_many(
                self._scope, [(values[text], text) for text in some], form, durable=durable, admits=admits
            )
            shown |= zip(some, made.shown, strict=True)
            with self._turn:
                if made.before == self._last and made.last is not None:
                    self._last = made.last  # no other server's came in between: `refresh` need not read them again
        if run_tokens is not None and apart:
            rest = [self._value(values[text], text, form) for text in apart]
            with self._turn:
                self._tell_apart(vault, rest, run_tokens, durable=durable)
                shown |= {value.text: run_tokens.tokens[value].token for value in rest}
        if run_tokens is None and len(self.learned) + len(own) > LEARNED_MAX:
            self.learned = LearnedValues()  # a file without end: all of its values are in the vault
        for kind, texts in grouped({text: values[text] for text in own}).items():
            _hashes, left = self.learned.add(kind, texts, run)
            for text in [*left, *texts[: self.room]]:
                self.values.add(text, kind)
        return shown

    def _divided_many(
        self, values: Mapping[str, str], form: Form, run_tokens: RunTokens | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Do for many what `_divided` does for some: the vault gives what is met, and some more, the scope's tokens."""
        texts = list(values)
        if run_tokens is None or run_tokens.brake is None:
            return texts, ()
        known, met = self.learned.known_and_met(texts, _number_of(run_tokens))
        own: list[str] = []
        rest: list[tuple[str, bool]] = []
        apart: list[str] = []
        for text, is_known, is_met in zip(texts, known, met, strict=True):
            if self._value(values[text], text, form) in run_tokens.tokens:
                apart.append(text)
            elif is_met or text in run_tokens.met:
                own.append(text)
            else:
                rest.append((text, is_known or self.values.kind_of(text) is not None))
        room = run_tokens.may_share()
        new = [text for text, is_known in rest if not is_known]
        if not room:
            return own, apart + [text for text, _is_known in rest]
        run_tokens.shared(min(len(new), room))
        own += (text for text, is_known in rest if is_known)
        return own + new[:room], apart + new[room:]

    @staticmethod
    def _value(kind: str, text: str, form: Form) -> Value:
        from ....skills_db.vault import Value

        return Value(kind, text, form)

    def _divided(
        self, values: Sequence[Value], run_tokens: RunTokens | None
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Return the values that get the scope's own tokens, and those that get tokens for the run alone."""
        if run_tokens is None:
            return values, ()
        run = _number_of(run_tokens)
        rest = [
            value
            for value in values
            if value.plain not in run_tokens.met
            and value not in run_tokens.tokens
            and not self.learned.was_met(value.plain, run)
        ]
        room = run_tokens.may_share()
        if room:
            rest = [value for value in rest if self._kind_of(value.plain) is None]
            run_tokens.shared(min(len(rest), room))
        apart = {*rest[room:], *(value for value in values if value in run_tokens.tokens)}
        return [value for value in values if value not in apart], list(apart)

    def _kind_of(self, text: str) -> str | None:
        return self.values.kind_of(text) or self.learned.kind_of(text)

    def _tell_apart(self, vault: Vault, values: Sequence[Value], run_tokens: RunTokens, *, durable: bool) -> bool:
        """Make the run's own tokens for values that have none yet; return whether there were any."""
        missing = [value for value in values if value not in run_tokens.tokens]
        if not missing:
            return False
        admits = _admits(missing, run_tokens)
        made = vault.tokens_for(self._scope, missing, durable=durable, salt=run_tokens.salt, admits=admits)
        run_tokens.tokens |= _shown(missing, made)
        known = self.values_for(run_tokens)
        for value in missing:
            known.add(value.plain, value.type)
        return True

    def _took(self, made: Sequence[VaultEntry]) -> bool:
        """Take in what the vault has made; return whether any value is new."""
        numbers = sorted({entry.number for entry in made})
        if numbers == list(range(self._last + 1, self._last + 1 + len(numbers))):
            self._last = numbers[-1]  # no other server's came in between: `refresh` need not read them again
        return sum(self._keep(entry) for entry in made) > 0

    def _keep(self, entry: VaultEntry) -> bool:
        """Have a value found from now on, and remember its token; return whether it is new."""
        value = entry.value
        if not entry.apart and len(value.text) <= _ENTRY_CHARS_MAX:
            self._entries[value.form, value.text] = entry
            if len(self._entries) > ENTRIES_MAX:
                self._entries.popitem(last=False)
        return self.values.add(value.plain, value.type, has_forms=not value.akin)

    def was_shown(self, mark: bytes | None) -> bool:
        """Return whether just this was shown lately: what was sanitised is not looked at again."""
        return mark is not None and mark in self._shown

    def remember_shown(self, marks: Iterable[bytes | None]) -> None:
        """Remember that these were shown; None stands for what need not be remembered."""
        with self._turn:
            self._shown |= {mark: None for mark in marks if mark is not None}
            while len(self._shown) > SHOWN_MAX:
                self._shown.popitem(last=False)


_SHOWN_PER_VALUE = 4
"""So many texts that were shown take as much memory as one value."""
_ENTRY_CHARS_MAX = 256
_ENCODED_LEAST = 8
"""Characters that base64 says, from which on these are looked through as any text is."""
_MANY = 100_000
"""Values of tables that are stored at once: the database's other writers wait for as long."""
_BATCH = 500
"""Values that are given their tokens, or learned, at once: other runs wait for as long."""


def _number_of(run_tokens: RunTokens | None) -> int:
    """Return by what number the values are known that a run met: two runs have the same by chance, once in 65,535."""
    return 0 if run_tokens is None else 1 + int.from_bytes(run_tokens.salt, "big") % 0xFFFF


def _learned_within(sheet: Sheet, learned: LearnedValues) -> list[list[Span]]:
    """Return what is learned by its hash in each leaf of a sheet; nothing where nothing is."""
    if not len(learned):
        return []
    found: list[list[Span]] = [[] for _ in sheet.leaves]
    starts: list[int] = []
    at = 0
    for leaf in sheet.leaves:
        starts.append(at)
        at += len(leaf.text) + 1
    for span in learned.find("\n".join(leaf.text for leaf in sheet.leaves)):
        position = bisect_right(starts, span.start) - 1
        start = starts[position]
        if span.end <= start + len(sheet.leaves[position].text):
            found[position].append(Span(span.start - start, span.end - start, span.type))
    if sheet.is_exact:
        for position, leaf in enumerate(sheet.leaves):
            kind = learned.kind_of(leaf.text)
            if kind is not None:
                found[position].append(Span(0, len(leaf.text), kind))
    return found


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _admits(values: Sequence[Value], run_tokens: RunTokens | None) -> Callable[[int, int], None] | None:
    """Return what the vault asks before it stores what is new of these."""
    return None if run_tokens is None else lambda count, _size: run_tokens.bring(value.text for value in values[:count])


def _shown(values: Sequence[Value], made: Sequence[VaultEntry]) -> dict[Value, ShownToken]:
    return {value: ShownToken(entry.shown, entry.value.type) for value, entry in zip(values, made, strict=True)}


def _batches(values: Sequence[_T], most: int = _BATCH) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), most):
        yield values[start : start + most]


def _detect(detector: Detection, leaves: Sequence[Leaf]) -> list[list[Span]]:
    asked = [KeyedText(leaf.path, leaf.text) for leaf in checked(leaves)]
    return [
        [Span(finding.start, finding.end, finding.type) for finding in found]
        for found in checked(detector.find_leaves(asked))
    ]


def _with_encoded(detector: Detection, leaves: Sequence[Leaf], found: list[list[Span]]) -> list[list[Span]]:
    """Return what was found in each leaf, with what is detected in texts that stand in it as base64 or hexadecimal."""
    said = [(number, each) for number, leaf in enumerate(leaves) for each in encoded(leaf.text)]
    said = [(number, each) for number, each in said if len(each.text) >= _ENCODED_LEAST]
    if not said:
        return found
    found = [list(spans) for spans in found]
    detected = detector.find_leaves([KeyedText((), each.text) for _number, each in said])
    for (number, each), findings in zip(said, detected, strict=True):
        found[number] += (Span(*each.place(one.start, one.end), str(one.type)) for one in findings)
    return found


def _found_in(detector: Detection, text: str) -> Sequence[Finding]:
    return detector.find_leaves([KeyedText((), text)])[0]


def _size(found: Sequence[Sequence[Span]]) -> int:
    return len(found) + sum(map(len, found))


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


def _mark_of_leaves(leaves: Iterable[Leaf], detector: int) -> bytes:
    digest = hashlib.blake2b(str(detector).encode(), digest_size=16)
    for leaf in leaves:
        # Lengths, since a text may hold any separator.
        said = "".join(f"{len(part)}:{part}" for part in (*leaf.path, leaf.text))
        digest.update(f"{len(leaf.path)}|{said}".encode("utf-8", "surrogatepass"))
    return digest.digest()


@contextmanager
def _failing_closed() -> Iterator[None]:
    """Raise `PrivacyFailed` for whatever goes wrong. What was being looked at is not said: it may be personal."""
    from ....skills_db.errors import SkillsDbError

    try:
        yield
    except (PrivacyFailed, HostWorkRefused):
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
