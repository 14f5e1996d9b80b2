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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...sandbox.run import Json
from ..errors import HostWorkRefused, PrivacyFailed
from . import structured
from .known import KnownValues
from .parts import Part, Text
from .restoring import Allows, Restored, Tally, allow_all, rebuilt
from .sheets import Edit, Notation, Sheet, TextSheet, WrittenSheet, sheet_of, text_sheet
from .structured import Leaf, WrittenLeaf
from .tokens import Span, mentions_in, restored, spliced, tokens_in

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
class Hidden:
    """The parts as they may be shown, and how many different values of each type were hidden in them."""

    parts: tuple[Json, ...]
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text as it may be shown, where in the text it really ends, and what was hidden in all of it."""

    text: str
    end: int
    types: Mapping[str, int]


class Sanitizer:
    """Hides and restores for any number of scopes; safe to use from several threads."""

    def __init__(
        self, detector: Detector, vault: Vault, *, learner: Detector | None = None, durable: bool = True
    ) -> None:
        """Make one; `learner` finds what is only learned, where that need not cost as much as what is shown.

        `durable`: whether new tokens are on the disk, safe from a power cut, before they are shown; in PostgreSQL they
        always are.
        """
        self._durable = durable
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
            sheets = [sheet_of(part) for part in (*parts, *kept)]
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
            self._detector.warm()

    def learn(self, scope: str, parts: Sequence[Part]) -> None:
        """Have what is personal in the parts found again wherever it stands, though nothing is shown now."""
        with _failing_closed():
            self._edit(scope, [sheet_of(part) for part in parts], detector=self._learner)

    def restore_text(self, scope: str, text: str, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the text with values in for its tokens; where it is JSON it stays that. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        if not mentions:
            return Restored(text, {}, ())
        with _failing_closed():
            entries = self._vault.resolve(scope, {mention.token for mention in mentions})
            tally = Tally(entries, allows)
            leaves = structured.written_leaves(text)
            if leaves is None:
                return tally.answer(restored(text, mentions, partial(tally.plain, ())))
            return tally.answer(tally.in_written(text, leaves, mentions, structured.JsonNotation()))

    def hide_written(self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation) -> Hidden:
        """Return a text with tokens in its leaves, which somebody has found in it. Raises `PrivacyFailed`."""
        with _failing_closed():
            sheet = WrittenSheet(text, leaves, notation)
            counts = self._edit(scope, [sheet])
            return Hidden((sheet.finished(),), counts)

    def restore_written(
        self, scope: str, text: str, leaves: Sequence[WrittenLeaf], notation: Notation, *, lenient: bool = False
    ) -> Restored:
        """Return a text with values in its leaves, which somebody has found in it. Raises `PrivacyFailed`."""
        mentions = mentions_in(text, lenient=lenient)
        with _failing_closed():
            entries = self._vault.resolve(scope, {mention.token for mention in mentions})
            tally = Tally(entries, allow_all)
            return tally.answer(tally.in_written(text, leaves, mentions, notation))

    def restore_value(self, scope: str, value: Json, *, lenient: bool = False, allows: Allows = allow_all) -> Restored:
        """Return the value with values in for its tokens; a number that became a token is a number again."""
        leaves = list(structured.leaves_of(value))
        mentions = [mentions_in(leaf.text, lenient=lenient) for leaf in leaves]
        if not any(mentions):
            return Restored(value, {}, ())
        with _failing_closed():
            wanted = {mention.token for some in mentions for mention in some}
            tally = Tally(self._vault.resolve(scope, wanted), allows)
            return tally.answer(rebuilt(value, map(tally.leaf, leaves, mentions)))

    def _edit(
        self, scope: str, sheets: Sequence[Sheet], *, counted: int | None = None, detector: Detector | None = None
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
                entries, grown = known.tokens_for(self._vault, unnamed, durable=self._durable)
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

    def tokens_for(self, vault: Vault, values: Sequence[Value], *, durable: bool) -> tuple[dict[Value, Entry], bool]:
        """Return the entry of each value, and whether any value is new; the vault is asked only for what is.

        And for what it has to know that it was met again.
        """
        met = {value: self._entries.get((value.form, value.text)) for value in values}
        entries = {value: entry for value, entry in met.items() if entry is not None and not vault.fades(entry)}
        missing = [value for value in values if value not in entries]
        if not missing:
            return entries, False
        made = vault.tokens_for(self._scope, missing, durable=durable)
        numbers = sorted({entry.number for entry in made})
        if numbers == list(range(self._last + 1, self._last + 1 + len(numbers))):
            self._last = numbers[-1]  # nobody else's came in between: `refresh` need not read them again
        return entries | dict(zip(missing, made, strict=True)), self._add(made)

    def _add(self, entries: Iterable[Entry]) -> bool:
        """Have values found from now on; tell whether any is new."""
        before = len(self.values)
        for entry in entries:
            self.values.add(entry.value.plain, entry.value.type)
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


def _detect(detector: Detector, leaves: Sequence[Leaf]) -> list[list[Span]]:
    from .detect import Leaf as Asked  # noqa: PLC0415 - the tokens alone do not need detection

    asked: list[DetectorLeaf] = [Asked(leaf.path, leaf.text) for leaf in leaves]
    return [
        [Span(finding.start, finding.end, finding.type) for finding in found] for found in detector.find_leaves(asked)
    ]


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
    from ...skills_db.errors import SkillsDbError  # noqa: PLC0415 - only with the database
    from .detect import DetectionFailed  # noqa: PLC0415 - only with detection

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
