"""Where the values of a conversation stood, and what that says of an argument: its source.

A conversation is what one caller read within `WINDOW_SECONDS`, and what its session read before. Hashes are kept under
a key that is made with the process and never leaves it; what outlives the process is the journal, which is encrypted,
kept for its days, and erased by `sealab pii forget`: `use_cases` reads a conversation from it again.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import TypeVar

from ....sandbox.job import Json
from ...base.host_work import Kind, checked, in_thread
from ...base.lru import Lru
from .instructions import GIVES_ORDERS
from .parties import key_has_form
from .reading import Found, exact, host_of, loose, number

WINDOW_SECONDS = 8 * 3600.0
CONVERSATIONS_MAX = 100
"""Callers whose conversations are known at once."""
VALUES_MAX = 20_000
"""Values of a conversation in each form; of more the oldest are dropped, and what is not known then counts as text."""
ANSWERS_MAX = 10_000
"""Answers of a conversation, sessions that read texts, and texts that gave orders; the oldest are dropped likewise."""
UNREAD_CHARS_MAX = 1_000_000
"""Characters of texts that a conversation has not read yet: most runs write to nobody, and need no look."""
_UNREAD_LEAST = 500
"""Characters that a shorter text counts as."""
RUNS_MAX = 1_000
"""Runs of a conversation that are not read from the journal again."""
_LOOK_SECONDS = 600.0
CATCH_UP_SECONDS = 30.0
"""How old it may be what a process knows of the journals that others write, and of what `sealab pii forget` erased."""
_PART_LEAST = 4
_PARTS_MAX = 64
_SHOWN_CHARS = 60
_ITEMS_MAX = 1000
_ITEMS_A_CHECK = 10
"""Values between two checkpoints: each may be looked for in a program of megabytes."""
_REST = "\0more"
"""Stands for the values of an argument beyond `_ITEMS_MAX`. They count as text."""


_K = TypeVar("_K")
_V = TypeVar("_V")


class Source(StrEnum):
    """Where the value of an argument comes from, the safest first."""

    OPERATOR = "operator"
    """It stands in the operator's list."""
    FIELD = "field"
    """It stood in a field of its own, such as a contact's address."""
    PROGRAM = "program"
    """The program has it, and nothing that was read."""
    COMPUTED = "computed"
    """The program made it of something else."""
    TEXT = "text"
    """It stood in free text alone, or was computed where such was read."""


_RISK = tuple(Source)


@dataclass(frozen=True, slots=True)
class ProgramTexts:
    """What a program names: `has` says whether it, or what it was given, holds a text.

    `sent` is when it came, as `time.time()`: what is read from then on, it does not have from there.
    """

    has: Callable[[str], bool] = lambda _: False
    sent: float = math.inf


@dataclass(frozen=True, slots=True)
class Sighted:
    """One answer: the call that gave it as it is shown, the run, its session, and when that was, as `time.time()`."""

    called: str
    run_id: str
    session: str | None = None
    at: float = field(default_factory=time.time)
    gives_orders: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of one value, and for a text the call that gave it and the line of it, where that is known."""

    source: Source
    called: str = ""
    line: int | None = None
    is_exact: bool = True
    """Whether the text has it as it is, or in parts, reversed, or as what it was computed from."""
    is_ordered: bool = False
    """Whether it stands in a text that gives orders to an assistant, in a field too or not."""

    def clause(self, name: str, value: object) -> str | None:
        """Return a clause that says in which text an argument stands, its value whole; None where there is none."""
        said = f"{name} {json.dumps(value, ensure_ascii=False)}"
        line = (f", line {self.line}" if self.line else "") + (f", {GIVES_ORDERS}" if self.is_ordered else "")
        if self.source is not Source.TEXT:
            return f"{said} stands in the text of {self.called}{line}" if self.is_ordered else None
        if not self.called:
            return f"{said} may stand only in a text that was read before, of which not all is known any more"
        made = "stands" if self.is_exact else "was made by the program, of what may stand"
        return f"{said} {made} only in the text of {self.called}{line}"


def shown_call(tool: str, arguments: Mapping[str, Json]) -> str:
    """Return a call as a clause names it: `bank.read_file("bill.txt")`; of what is longer, its beginning."""
    told = ", ".join(json.dumps(each, ensure_ascii=False) for each in [*arguments.values()][:3])
    return f"{tool}({told if len(told) <= _SHOWN_CHARS else told[:_SHOWN_CHARS] + '…'})"


@dataclass(frozen=True, slots=True)
class _Unread:
    """A text whose names were not asked for yet; `look` reads them, and blocks."""

    answer: int
    chars: int
    look: Callable[[], Found]


class Conversation:
    """What one caller read and wrote. Changed from one thread at a time; others may look values up meanwhile."""

    def __init__(self, key: bytes) -> None:
        self._hash = hashlib.blake2b(key=key, digest_size=8)
        self._fields: dict[int, int] = {}
        self._texts: dict[int, tuple[int, int]] = {}
        self._ordering: dict[int, tuple[int, int]] = {}
        """What stands in texts that give orders to an assistant, as in `_texts`."""
        self._written: dict[int, tuple[float, float]] = {}
        """What programs named and calls were given, and when first and last."""
        self._answers: dict[int, Sighted] = {}
        self._unread: dict[int, _Unread] = {}
        """By the digest of the call and the text: what is read again is one of these."""
        self._unread_chars = 0
        self._number = 0
        self._text_at: dict[str | None, tuple[float, int]] = {}
        """When free text was last read, in each session, and by which answer."""
        self._is_cut = False
        self._look_at = 0.0
        self._caught_up_until = 0.0
        self.orders: dict[str, float] = {}
        """The calls whose answers gave orders to an assistant, as they are shown, and when that was."""
        self.known_runs: dict[str, float] = {}
        """The runs whose answers are known: each up to the call of this number, infinity for all of them."""

    def digest(self, form: bytes) -> int:
        """Return the keyed hash of a form of a value."""
        hashed = self._hash.copy()
        hashed.update(form)
        return int.from_bytes(hashed.digest())

    def note(self, sighted: Sighted, found: Found, ordering: Collection[int] = ()) -> None:
        """Take what an answer named; `ordering` are digests of what stands in those of its texts that give orders."""
        if not found.is_whole or found.fields or found.texts or found.has_text or found.gives_orders:
            self._take(self._answer(sighted, found, ordering), found)

    async def note_unread(
        self, sighted: Sighted, text: str, glanced: Found, look: Callable[[], Found], ordering: Collection[int] = ()
    ) -> None:
        """Take a text that is read when a source is first asked for, or `UNREAD_CHARS_MAX` have come after it."""
        answer = self._answer(sighted, glanced, ordering)
        key = self.digest(f"{sighted.called}\0{text}".encode("utf-8", "surrogatepass"))
        same = self._unread.get(key)
        if same is None or not self._counts(same.answer, sighted.session):
            self._forget_unread(key)
            self._unread[key] = _Unread(answer, max(len(text), _UNREAD_LEAST), look)
            self._unread_chars += self._unread[key].chars
            await self.read_up(UNREAD_CHARS_MAX)

    async def read_up(self, most: int = 0) -> None:
        """Read the texts that were not read yet, the oldest first, until no more than so many characters are left."""
        while self._unread_chars > most:
            key, each = next(iter(self._unread.items()))
            found = await in_thread(Kind.ANSWERS, each.look, charged=False)
            if self._unread.get(key) is each:  # else it was erased, or another call has read it too
                self._forget_unread(key)
                self._take(each.answer, found)

    def _forget_unread(self, key: int) -> None:
        if (gone := self._unread.pop(key, None)) is not None:
            self._unread_chars -= gone.chars

    def _answer(self, sighted: Sighted, found: Found, ordering: Collection[int]) -> int:
        """Take an answer, but for what it names; return its number."""
        self._number += 1
        self._answers[self._number] = replace(sighted, gives_orders=found.gives_orders)
        self._ordering.update((each, (self._number, 0)) for each in ordering)
        if found.has_text:
            self._text_at.pop(sighted.session, None)
            self._text_at[sighted.session] = sighted.at, self._number
        if found.gives_orders:
            self.orders[sighted.called] = sighted.at
        self._is_cut |= _drop_oldest(self._answers, ANSWERS_MAX) | _drop_oldest(self._text_at, ANSWERS_MAX)
        self._is_cut |= _drop_oldest(self.orders, ANSWERS_MAX) | _drop_oldest(self._ordering, VALUES_MAX)
        return self._number

    def _take(self, answer: int, found: Found) -> None:
        self._is_cut |= not found.is_whole
        if (sighted := self._answers.get(answer)) is None:
            return
        for each in found.fields:
            self._fields.pop(each, None)  # the newest stand last
            self._fields[each] = answer
        for each, line in found.texts.items():
            first = self._texts.pop(each, None)  # the first sighting that counts is kept
            is_first = first is not None and first[0] < answer and self._counts(first[0], sighted.session)
            self._texts[each] = first if first is not None and is_first else (answer, line)
            if self._ordering and self._ordering.get(each, (0, 0))[0] == answer:
                self._ordering[each] = answer, line
        self._is_cut |= _drop_oldest(self._fields, VALUES_MAX) | _drop_oldest(self._texts, VALUES_MAX)

    def name(self, values: Iterable[object]) -> None:
        """Take values that a program or a call named."""
        self.named(self.digests(values))

    def digests(self, values: Iterable[object]) -> list[int]:
        """Return the digests of values that are named."""
        return [self.digest(_form(each)) for each in checked(values, every=_ITEMS_A_CHECK) if each != _REST]

    def named(self, digests: Iterable[int]) -> None:
        """Take the digests of what a program or a call named."""
        now = time.time()
        for each in digests:
            self._written[each] = self._written.get(each, (now, now))[0], now
        _drop_oldest(self._written, VALUES_MAX)

    def in_texts(self, values: Iterable[str]) -> dict[str, str]:
        """Return which of some values stand only in texts, with the call whose text that is."""
        origins = ((each, self.origin(each, None, ProgramTexts(lambda _: True))) for each in dict.fromkeys(values))
        return {each: origin.called for each, origin in origins if origin.source is Source.TEXT}

    def erase(self, run_ids: Collection[str]) -> None:
        """Forget what the answers of some runs named."""
        gone = {each for each, sighted in self._answers.items() if sighted.run_id in run_ids}
        if gone:
            self._fields = {each: answer for each, answer in self._fields.items() if answer not in gone}
            self._texts = {each: place for each, place in self._texts.items() if place[0] not in gone}
            self._ordering = {each: place for each, place in self._ordering.items() if place[0] not in gone}
            self._answers = {each: sighted for each, sighted in self._answers.items() if each not in gone}
            for key in [key for key, each in self._unread.items() if each.answer in gone]:
                self._forget_unread(key)

    def drop_before(self, moment: float) -> None:
        """Forget what is older, but answers to sessions that were at work since; it looks now and then."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        self._written = {each: at for each, at in self._written.items() if at[1] >= moment}
        self.orders = {each: at for each, at in self.orders.items() if at >= moment}
        alive = {each.session for each in self._answers.values() if each.at >= moment} - {None}
        self.erase({each.run_id for each in self._answers.values() if each.at < moment and each.session not in alive})

    def know(self, runs: Mapping[str, float]) -> None:
        """Take how far the answers of some runs are known; see `known_runs`. The last `RUNS_MAX` are kept."""
        for run_id, number_ in runs.items():
            self.known_runs.pop(run_id, None)
            self.known_runs[run_id] = number_
        _drop_oldest(self.known_runs, RUNS_MAX)

    def cut(self) -> None:
        """Take that not all is known: what is not known counts as text from now on."""
        self._is_cut = True

    def is_behind(self) -> bool:
        """Return whether it is time to look for what other processes know, and count it as done."""
        now = time.monotonic()
        if now < self._caught_up_until:
            return False
        self._caught_up_until = now + CATCH_UP_SECONDS
        return True

    def is_first(self, value: Json, session: str | None) -> bool:
        """Return whether no answer and no call before named any of these values."""
        named = [*leaves(value)]
        return bool(named) and not any(
            self.digest(_form(each)) in self._written
            or (found := self.origin(each, session, ProgramTexts())).source is Source.FIELD
            or (found.source is Source.TEXT and found.is_exact)
            for each in checked(named, every=_ITEMS_A_CHECK)
        )

    def origin_of(self, value: Json, session: str | None, program: ProgramTexts) -> Origin:
        """Return the source of an argument: of several values in it that of the worst."""
        found = [self.origin(each, session, program) for each in checked(leaves(value), every=_ITEMS_A_CHECK)]
        return max(found, key=lambda each: _RISK.index(each.source), default=Origin(Source.PROGRAM))

    def origin(self, value: Json, session: str | None, program: ProgramTexts) -> Origin:
        """Return the source of one text or number.

        What a program names that was sent before the first text with it was read is the program's, but where that text
        gives orders to an assistant.
        """
        if value == _REST:
            return Origin(Source.TEXT, is_exact=False)
        text = value if isinstance(value, str) else json.dumps(value)
        numeric = number(value)
        forms = [exact(text), *([] if numeric is None else [numeric])]
        whole, host = loose(text) or exact(text), host_of(text)
        sought = (whole, *forms[1:], *([] if host is None else [loose(host)]))
        ordered = next((place for form in sought if (place := self._in_text(form, session, self._ordering))), None)
        if any(self._in_field(each, session) for each in forms):
            return Origin(Source.FIELD) if ordered is None else self._of_text(ordered, Source.FIELD, is_ordered=True)
        if ordered is not None:
            return self._of_text(
                ordered, is_ordered=True, is_exact=host is None or self._in_text(whole, session) is not None
            )
        places = (self._in_text(form, session) for form in (whole, *forms[1:]))
        place, is_exact = next((each for each in places if each is not None), None), True
        if place is None and isinstance(value, str):
            place, is_exact = self._in_other_forms(text, whole, session), False
        is_named = program.has(text) or (numeric is not None and program.has(numeric[1:].decode()))
        if place is not None and not (is_named and self._is_later(place, program)):
            return self._of_text(place, is_exact=is_exact)
        return Origin(Source.PROGRAM) if is_named else self._made(value, host, session, program)

    def _made(self, value: Json, host: str | None, session: str | None, program: ProgramTexts) -> Origin:
        """Return the source of what is in no text, and not in the program."""
        if host is not None:  # a part is new, and it goes to a place that is known
            if self._in_field(exact(host), session) or program.has(host):
                return Origin(Source.COMPUTED)
            if (place := self._in_text(loose(host), session)) is not None:
                return self._of_text(place, is_exact=False)
        if self.digest(_form(value)) in self._written and not self._is_cut:
            return Origin(Source.PROGRAM)
        if (place := self._free_text(session)) is not None or self._is_cut:
            return self._of_text(place, is_exact=False)
        return Origin(Source.COMPUTED)

    def _is_later(self, place: tuple[int, int], program: ProgramTexts) -> bool:
        sighted = self._answers.get(place[0])
        return sighted is not None and sighted.at >= program.sent and not sighted.gives_orders

    def _of_text(
        self,
        place: tuple[int, int] | None,
        source: Source = Source.TEXT,
        *,
        is_exact: bool = True,
        is_ordered: bool = False,
    ) -> Origin:
        number_, line = place or (0, 0)
        sighted = self._answers.get(number_)
        return Origin(source, "" if sighted is None else sighted.called, line or None, is_exact, is_ordered)

    def _in_field(self, form: bytes, session: str | None) -> bool:
        return self._counts(self._fields.get(self.digest(form)), session)

    def _in_text(
        self, form: bytes, session: str | None, texts: Mapping[int, tuple[int, int]] | None = None
    ) -> tuple[int, int] | None:
        place = (self._texts if texts is None else texts).get(self.digest(form))
        return place if place is not None and self._counts(place[0], session) else None

    def _counts(self, answer: int | None, session: str | None) -> bool:
        sighted = None if answer is None else self._answers.get(answer)
        if sighted is None:
            return False
        return sighted.at >= time.time() - WINDOW_SECONDS or (session is not None and sighted.session == session)

    def _in_other_forms(self, text: str, whole: bytes, session: str | None) -> tuple[int, int] | None:
        """Return where a value stands reversed, in ROT13, or in parts."""
        for form in (whole[::-1], loose(codecs.encode(text, "rot13"))):
            if len(form) >= _PART_LEAST and (place := self._in_text(form, session)) is not None:
                return place
        reached: dict[int, tuple[int, int]] = {0: (0, 0)}  # the ends of what parts make from the beginning on
        length = len(whole) if len(whole) <= _PARTS_MAX else 0
        for start in range(length - _PART_LEAST + 1):
            for end in range(start + _PART_LEAST, length + 1) if start in reached else ():
                if end not in reached and (place := self._in_text(whole[start:end], session)) is not None:
                    reached[end] = reached[start] if start else place
        return reached.get(length) if length else None

    def _free_text(self, session: str | None) -> tuple[int, int] | None:
        for of_session, (at, answer) in reversed([*self._text_at.items()]):
            if at >= time.time() - WINDOW_SECONDS or (session is not None and of_session == session):
                return answer, 0
        return None

    def ordered_before(self, moment: float) -> tuple[str, float] | None:
        """Return the call whose answer was the first within the window to give orders, before a moment, and when."""
        since = time.time() - WINDOW_SECONDS
        before = [(called, at) for called, at in self.orders.items() if since <= at < moment]
        return min(before, key=lambda each: each[1], default=None)

    def was_named(self, value: Json, before: float) -> bool:
        """Return whether programs and calls named all of an argument before a moment."""
        digests = self.digests(leaves(value))
        return bool(digests) and all(self._written.get(each, (before,))[0] < before for each in digests)

    def orders_now(self) -> list[str]:
        """Return the calls whose answers gave orders to an assistant, within the window."""
        since = time.time() - WINDOW_SECONDS
        return [called for called, at in self.orders.items() if at >= since]


class Conversations:
    """The conversations of one home, by the scopes of their callers."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._of_scopes: Lru[str, Conversation] = Lru(CONVERSATIONS_MAX)

    def of(self, scope: str) -> Conversation:
        """Return the conversation of a caller."""
        found = self._of_scopes.used(scope)
        if found is None:
            found = self._of_scopes[scope] = Conversation(self._key)
        return found


def leaves(value: Json) -> Iterator[Json]:
    """Give the texts and numbers of an argument, and the keys that name something.

    These are the first `_ITEMS_MAX`; `_REST` stands for those beyond.
    """
    left: list[Json] = [value]
    count = 0
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            left += each.values()
            left += [key for key in each if key_has_form(key)]
        elif isinstance(each, list):
            left += each
        elif each is not None and not isinstance(each, bool) and each != "":
            yield each
            count += 1
            if count >= _ITEMS_MAX and left:
                yield _REST
                return


_LITERAL = re.compile(r"""(?<=["'])[^"'\n]{1,200}(?=["'])""")
_LITERALS_MAX = 2_000


def literals_of(code: str) -> list[str]:
    """Return what stands between quotes in code, the first of many: its literals, and what is between two of them."""
    return [each[0] for each in islice(_LITERAL.finditer(code), _LITERALS_MAX)]


def _drop_oldest(kept: dict[_K, _V], most: int) -> bool:
    """Drop what is beyond so many entries, and return whether that was any."""
    oldest = [*islice(kept, max(len(kept) - most, 0))]  # to look for the first one each time is quadratic
    for each in oldest:
        del kept[each]
    return bool(oldest)


def _form(value: object) -> bytes:
    return number(value) or exact(str(value))
