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
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from ....skills_db.errors import SkillsDbError
from ....skills_db.vault_entries import Form, Value, VaultEntry
from ...base.errors import HostWorkRefused, PrivacyFailed
from ...base.host_work import checked, checkpoint
from ..detection.findings import Detection, DetectionFailed, KeyedText
from ..token_texts import TOKEN, Edit, Mention, Span, gaps, mentions_in, spliced, tokens_in
from .forms.escapes import encoded, mail
from .grids import LEAST_CHARS as LONG_CHARS
from .grids import Grid, grid_of
from .known_values import load_forms
from .notations import Leaf, Notation, WrittenLeaf, leaves_of, rebuilt
from .parts import Part, Text
from .records import records_in, records_of_lines
from .restoring import Allows, Restored, RestoredCount, allow_all
from .run_tokens import RunTokens, ShownToken
from .scope import KnownScope, batches, digest_of
from .sheets import GridPart, Sheet, WrittenSheet, plain_sheet, sheet_of, text_sheet

if TYPE_CHECKING:
    from ....skills_db.vault import Vault

_LOG = logging.getLogger(__name__)

SCOPES_MAX = 10_000
"""Scopes of which anything is held in memory; an empty one takes a kilobyte."""
KNOWN_IN_ALL_MAX = 200_000
"""Known values of all scopes; beyond it, the scopes unused for longest are dropped, and read again when used."""
_COUNT_EVERY = 64
"""Calls after which the known values of all scopes are counted again."""
FOUND_MAX = 4096
"""Detections that are remembered: where something was found and of what type, never what."""
FOUND_SPANS_MAX = 5_000
"""Larger detections, in leaves plus places, are not remembered."""
FOUND_IN_ALL_MAX = 300_000
"""Leaves and places of all that are remembered."""
LEARNED_IN_ALL_MAX = 16_000_000
"""Values of all scopes that are known by their hashes; beyond, the scopes that were not asked for longest forget."""
_ENCODED_LEAST = 8
"""Decoded base64 of at least this many characters is looked through as any text is."""


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

        `link` is called with a scope and the tokens that stood together in its records.
        `durable`: whether new tokens are on the disk, safe from a power cut, before they are shown; in PostgreSQL they
        always are.
        """
        self._durable = durable
        self._detector = detector
        self._learner = learner or detector
        self._vault = vault
        self._link = link
        self._scopes: OrderedDict[str, KnownScope] = OrderedDict()
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
            pieces = [self._piece(scope, part, run_tokens) for part in (*parts, *kept)]
            return self._hide(scope, pieces, counted=len(parts), run_tokens=run_tokens)

    def hide_grid(self, scope: str, grid: Grid) -> HiddenParts:
        """Return the text of a grid with tokens in it. Raises `PrivacyFailed`."""
        with _failing_closed():
            self._scope(scope).refresh()
            return self._hide(scope, [GridPart(grid, self._detector)])

    def hide_written(self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> HiddenParts:
        """Return a text with tokens in its leaves, which were found before. Raises `PrivacyFailed`."""
        with _failing_closed():
            return self._hide(scope, [WrittenSheet(text, leaves, notation)])

    def _piece(self, scope: str, part: Part, run_tokens: RunTokens | None) -> Sheet | GridPart:
        """Return a part as a grid, where it is one that was not hidden before, else as a sheet."""
        if not isinstance(part, Text) or (run_tokens is not None and run_tokens.values is not None):
            return sheet_of(part)
        grid = grid_of(part.text)
        known = self._scope(scope)
        if grid is None or ("[" in part.text and known.was_shown(digest_of(part.text))):
            return text_sheet(part)
        known.refresh()
        return GridPart(grid, self._detector)

    def _hide(
        self,
        scope: str,
        pieces: Sequence[Sheet | GridPart],
        *,
        counted: int = 1,
        run_tokens: RunTokens | None = None,
    ) -> HiddenParts:
        """Hide pieces together: what one of them gives away is hidden in all."""
        known = self._scope(scope)
        named: dict[Form, dict[str, str]] = {Form.TEXT: {}, Form.NUMBER: {}}
        for piece in pieces:
            for form, values in piece.whole.items() if isinstance(piece, GridPart) else ():
                new = {text: kind for text, kind in values.items() if text not in named[form]}
                named[form] |= known.show_many(new, form, run_tokens)
        whole = {
            named[form][text]
            for piece in pieces[:counted]
            if isinstance(piece, GridPart)
            for form, values in piece.whole.items()
            for text in values
        }
        pieces = [
            text_sheet(Text(piece.grid.text()))
            if isinstance(piece, GridPart) and piece.has_personal_keys(known)
            else piece
            for piece in pieces
        ]
        sheets = [piece.sheets(known) if isinstance(piece, GridPart) else [piece] for piece in pieces]
        before = len(known.values)
        count = sum(map(len, sheets[:counted]))
        hidden = self._edit(scope, [sheet for some in sheets for sheet in some], counted=count, run_tokens=run_tokens)
        for number, piece in enumerate(pieces):
            if isinstance(piece, GridPart) and len(known.values) != before:
                # What was given away may stand in cells of which nothing was known before.
                late = self._edit(scope, piece.rest(known), run_tokens=run_tokens)
                hidden |= late if number < counted else {}
        shown: list[Json] = []
        for piece in pieces:
            if isinstance(piece, GridPart):
                text = piece.finished(named)
                shown.append(text)
                known.remember_shown([digest_of(text)])
                if self._link is not None and (records := records_of_lines(text)):
                    self._link(scope, records)
            else:
                shown.append(piece.finished())
                known.remember_shown([piece.mark_of_finished()])
        kinds = (token[1:].rpartition("_")[0] for token in whole)
        return HiddenParts(tuple(shown), Counter(hidden.values()) + Counter(kinds))

    def hide_window(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it.

        Whatever crosses its end is shown whole. What crosses its start is left out, since the stretch before it showed
        it; so stretches read one after the other are the whole.
        """
        with _failing_closed():
            sheet = text_sheet(Text(text))
            types = Counter(self._edit(scope, [sheet]).values())
            return Window(_window(text, sheet.edits(), start, end), end, types)

    def hide_on(self, scope: str, text: str, start: int, end: int) -> Window:
        """Return `text[start:end]` with tokens in it, or more where something crosses the end; go on from there.

        What stands before `start` was shown and is only looked at.
        """
        with _failing_closed():
            sheet = plain_sheet(Text(text), shown=start)
            types = Counter(self._edit(scope, [sheet]).values())
            edits = sheet.edits()
            inside = [(low, high) for low, high, _ in edits] + tokens_in(text)
            end = max([end, *(high for low, high in inside if low < end < high)])
            kept = [edit for edit in edits if edit[0] < end]
            return Window(spliced(text[:end], kept)[start:], end, types)

    def warm(self) -> None:
        """Load all that is needed. Raises `PrivacyFailed`."""
        with _failing_closed():
            load_forms()
            self._detector.warm()

    def learn(self, scope: str, parts: Sequence[Part], run_tokens: RunTokens | None = None) -> list[str]:
        """Learn what is personal in the parts, so that it is found wherever it stands; return it.

        It is stored in the vault when it is shown. `run_tokens` are those of the run that was given it.
        """
        with _failing_closed():
            known = self._scope(scope)
            known.refresh()
            rest: list[Part] = []
            plain_values: list[str] = []
            for part in parts:
                learned = None
                if isinstance(part, Text) and len(part.text) >= LONG_CHARS:
                    learned = known.learn_text(part.text, self._learner, run_tokens)
                if learned is None:
                    rest.append(part)
                else:
                    plain_values += learned.plain_values
                    rest += map(Text, learned.rest)
            sheets = [sheet_of(part) for part in rest]
            detected = iter(self._detected(self._learner, [leaf for sheet in sheets for leaf in sheet.leaves]))
            for sheet in sheets:
                for position in checked(range(len(sheet.leaves))):
                    sheet.mark_spans(position, next(detected), known.values)
            met = list(dict.fromkeys(value for sheet in sheets for value in sheet.unnamed()))
            known.learn(met, run_tokens)
            return [*plain_values, *(value.plain for value in met)]

    def restore_text(
        self, scope: str, text: str, *, hint: str = "", as_it_is: bool = False, allows: Allows = allow_all
    ) -> Restored:
        """Return the text with values in for its tokens; where it is JSON, HTML, SQL or the like it stays that.

        `hint` is what it is called, such as `orders.csv`. With `as_it_is` values are written as they are, but for the
        notation of the whole. Raises `PrivacyFailed`.
        """
        if not (TOKEN.search(text) or mentions_in(text)):
            return Restored(text, {}, ())
        sheet = text_sheet(Text(text))
        return self.restore_written(
            scope, text, sheet.written, sheet.notation, hint=hint, as_it_is=as_it_is, allows=allows
        )

    def restore_written(
        self,
        scope: str,
        text: str,
        leaves: Sequence[WrittenLeaf],
        notation: Notation,
        *,
        hint: str = "",
        as_it_is: bool = False,
        allows: Allows = allow_all,
    ) -> Restored:
        """Return a text with values in its leaves, which were found before. Raises `PrivacyFailed`."""
        with _failing_closed():
            found = [(leaf, mentions) for leaf in checked(leaves) if (mentions := mentions_in(leaf.leaf.text))]
            tally = RestoredCount(self._resolved(scope, [each for _, some in found for each in some]), allows)
            return tally.answer(tally.in_written(text, found, notation, None if as_it_is else hint))

    def restore_value(self, scope: str, value: Json, *, allows: Allows = allow_all) -> Restored:
        """Return the value with values in for its tokens; a number that became a token is a number again."""
        leaves = list(leaves_of(value))
        mentions = [mentions_in(leaf.text) for leaf in leaves]
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
            known.refresh()
            if not len(known.values) and not len(known.learned):
                return []
            return [
                KnownPlace(leaf.path, span, leaf.text[span.start : span.end])
                for leaf in checked(leaves_of(value))
                for start, end in gaps(len(leaf.text), tokens_in(leaf.text))
                for span in known.find(leaf.text, start, end)
            ]

    def _resolved(self, scope: str, mentions: Sequence[Mention]) -> Mapping[str, VaultEntry]:
        """Return the entries of tokens, and know their values from now on: whoever gets them may show them."""
        entries = self._vault.resolve(scope, {mention.token for mention in mentions if mention.token})
        self._scope(scope).meet(entries.values())
        return entries

    def _edit(
        self,
        scope: str,
        sheets: Sequence[Sheet],
        *,
        counted: int | None = None,
        run_tokens: RunTokens | None = None,
    ) -> dict[Value, str]:
        """Find what is to be hidden in the sheets and give each its token.

        Return the different values with their types, of all sheets or of the first `counted`.
        """
        known = self._scope(scope)
        values = known.values_for(run_tokens)
        fresh = [sheet.found is None and not known.was_shown(sheet.mark()) for sheet in sheets]
        asked = [leaf for sheet, is_fresh in zip(sheets, fresh, strict=True) if is_fresh for leaf in sheet.leaves]
        detected = iter(self._detected(self._detector, asked))
        if values is known.values:
            known.refresh()
            values = known.values
        for sheet, is_fresh in zip(sheets, fresh, strict=True):
            there = sheet.found
            if there is None and values is known.values and len(known.learned):
                there = sheet.find_learned(known.learned)
            for position in checked(range(len(sheet.leaves))):
                spans = next(detected) if is_fresh else []
                sheet.mark_spans(position, [*spans, *(there[position] if there else ())], values)
        hidden: dict[Value, str] = {}
        # A new value may stand elsewhere too, and what is left between tokens may now be a known one.
        while unnamed := list(dict.fromkeys(value for sheet in sheets for value in sheet.unnamed())):
            named: dict[Value, ShownToken] = {}
            grown = False
            for some in batches(unnamed):
                checkpoint()
                tokens, is_new = known.tokens_for(some, run_tokens)
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
        return hidden

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

    def _scope(self, scope: str) -> KnownScope:
        with self._turn:
            known = self._scopes.get(scope)
            if known is None:
                known = self._scopes[scope] = KnownScope(scope, self._vault, durable=self._durable)
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


def _detect(detector: Detection, leaves: Sequence[Leaf]) -> list[list[Span]]:
    asked = [KeyedText(leaf.path, leaf.text) for leaf in checked(leaves)]
    return [
        [Span(finding.start, finding.end, finding.type) for finding in found]
        for found in checked(detector.find_leaves(asked))
    ]


def _with_encoded(detector: Detection, leaves: Sequence[Leaf], found: list[list[Span]]) -> list[list[Span]]:
    """Return what was found in each leaf, with what is detected in texts that stand in it as base64 or hexadecimal."""
    said = [(number, each) for number, leaf in enumerate(leaves) for each in (*mail(leaf.text), *encoded(leaf.text))]
    said = [(number, each) for number, each in said if len(each.text) >= _ENCODED_LEAST]
    if not said:
        return found
    found = [list(spans) for spans in found]
    detected = detector.find_leaves([KeyedText((), each.text) for _number, each in said])
    for (number, each), findings in zip(said, detected, strict=True):
        found[number] += (
            Span(*each.place(one.start, one.end), str(one.type))
            for one in findings
            if each.concerns(one.start, one.end)
        )
    return found


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
