"""Where the values of a conversation stood, and what that says of an argument: its source.

A conversation is what one caller read within `WINDOW_SECONDS`, and what its session read before. Hashes are kept under
a key that is made with the process and never leaves it; what outlives the process is the journal, which is encrypted,
kept for its days, and erased by `sealab pii forget`: `use_cases` reads a conversation from it again.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import json
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import TypeVar
from weakref import WeakSet

from ....sandbox.job import Json
from ...base.host_work import Kind, checked, in_thread
from ...base.lru import Lru
from .instructions import GIVES_ORDERS
from .parties import key_has_form
from .reading import Digest, Found, exact, host_of, loose, number

WINDOW_SECONDS = 8 * 3600.0
CONVERSATIONS_MAX = 100
"""Callers whose conversations are known at once."""
VALUES_MAX = 20_000
"""Values of a conversation in each form; of more the oldest are dropped, and what is not known then counts as text."""
ANSWERS_MAX = 10_000
"""Answers of a conversation, sessions that read texts, and texts that gave orders; the oldest are dropped likewise."""
UNREAD_CHARS_MAX = 1_000_000
"""Characters of texts that a conversation has not read yet: most runs write to nobody, and need no look."""
UNREAD_CHARS_IN_ALL = 20_000_000
"""The same, of all conversations of a home."""
_UNREAD_LEAST = 500
"""Characters that a shorter text counts as."""
_DIGEST_CHARS = 100
"""Characters that a digest counts as: what it takes of memory in a set."""
RUNS_MAX = 1_000
"""Runs of a conversation that are not read from the journal again."""
_LOOK_SECONDS = 600.0
CATCH_UP_SECONDS = 30.0
"""How old it may be what a process knows of the journals that others write, and of what `sealab pii forget` erased."""
_PART_LEAST = 4
_PARTS_MAX = 64
_SHOWN_CHARS = 60
_SHOWN_TOOL_CHARS = 300
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
    has_text: bool = False


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
    values = ", ".join(json.dumps(each, ensure_ascii=False) for each in [*arguments.values()][:3])
    tool = tool if len(tool) <= _SHOWN_TOOL_CHARS else tool[:_SHOWN_TOOL_CHARS] + "…"  # a program may name anything
    return f"{tool}({values if len(values) <= _SHOWN_CHARS else values[:_SHOWN_CHARS] + '…'})"


@dataclass(frozen=True, slots=True)
class Unread:
    """A text whose names were not asked for yet; `look` reads them, and blocks."""

    key: int
    """The digest of the call and the text: what is read again has the same."""
    chars: int
    look: Callable[[], Found]
    answers: tuple[int, ...] = ()
    """The first answer and the last that gave it."""

    @classmethod
    def of(cls, called: str, text: str, asked: Collection[int], digest: Digest, look: Callable[[], Found]) -> Unread:
        """Return a text that a call gave; `look` holds it and the digests of what was asked, no more. Blocks."""
        key = digest(f"{called}\0{text}".encode("utf-8", "surrogatepass"))
        return cls(key, max(len(text), _UNREAD_LEAST) + _DIGEST_CHARS * len(asked), look)


_Place = tuple[int, int]
"""The number of an answer, and the line of its text."""


class Conversation:
    """What one caller read and wrote. Changed from one thread at a time; others may look values up meanwhile.

    Of values it keeps keyed hashes. As plain text it keeps the calls as they are shown, and texts that wait to be read:
    both until their run is erased, or until the window has passed: with each run of the home that begins, one
    conversation drops what is old (`drop_before`), but what a session was given that is at work.
    """

    def __init__(self, key: bytes, bound: Callable[[], Awaitable[None]]) -> None:
        self._hash = hashlib.blake2b(key=key, digest_size=8)
        self._bound = bound
        self._fields: dict[int, int] = {}
        self._texts: dict[int, tuple[_Place, _Place]] = {}
        """The first and the last sighting of each."""
        self._ordering: dict[int, tuple[_Place, _Place]] = {}
        """What stands in texts that give orders to an assistant, as in `_texts`."""
        self._written: dict[int, tuple[float, float]] = {}
        """What programs named and calls were given, and when first and last."""
        self._answers: dict[int, Sighted] = {}
        self._unread: dict[int, Unread] = {}
        self.unread_chars = 0
        self._number = 0
        self._text_at: dict[str | None, tuple[float, int]] = {}
        """When free text was last read, in each session, and by which answer."""
        self._is_cut = False
        self._look_at = 0.0
        self._caught_up_until = 0.0
        self._catching_up: asyncio.Task[None] | None = None
        self.orders: dict[int, Sighted] = {}
        """The answers that gave orders to an assistant, by their numbers."""
        self.known_runs: dict[str, float] = {}
        """The runs whose answers are known: each up to the call of this number, infinity for all of them."""

    def digest(self, form: bytes) -> int:
        """Return the keyed hash of a form of a value."""
        hashed = self._hash.copy()
        hashed.update(form)
        return int.from_bytes(hashed.digest())

    def note(self, sighted: Sighted, found: Found) -> None:
        """Take what an answer named."""
        if not found.is_whole or found.fields or found.texts or found.has_text or found.gives_orders:
            self._take(self._answer(sighted, found), found)

    async def note_unread(self, sighted: Sighted, glanced: Found, unread: Unread) -> None:
        """Take a text that is read when a source is first asked for, or `UNREAD_CHARS_MAX` have come after it."""
        answer = self._answer(sighted, glanced)
        same = self._unread.get(unread.key)
        if same is not None:
            self._unread[same.key] = replace(same, answers=(*same.answers[:1], answer))
            return
        self._unread[unread.key] = replace(unread, answers=(answer,))
        self.unread_chars += unread.chars
        await self.read_up(UNREAD_CHARS_MAX)
        await self._bound()

    async def read_up(self, most: int = 0) -> None:
        """Read the texts that were not read yet, the oldest first, until no more than so many characters are left."""
        while self.unread_chars > most:
            each = next(iter(self._unread.values()))
            found = await in_thread(Kind.ANSWERS, each.look, charged=False)
            # Where it is not there any more it was erased, or another call has read it too.
            for answer in self._no_longer_unread(each.key, each.look):
                self._take(answer, found)

    def _no_longer_unread(self, key: int, look: Callable[[], Found]) -> tuple[int, ...]:
        """Drop a text that waits to be read, and return its answers; none where another one waits instead."""
        if (waits := self._unread.get(key)) is None or waits.look is not look:
            return ()
        del self._unread[key]
        self.unread_chars -= waits.chars
        return waits.answers

    def _answer(self, sighted: Sighted, found: Found) -> int:
        """Take an answer, but for what it names; return its number."""
        self._number += 1
        sighted = replace(sighted, gives_orders=found.gives_orders, has_text=found.has_text)
        self._answers[self._number] = sighted
        self._note_text(self._number, sighted)
        if found.gives_orders:
            self.orders[self._number] = sighted
        self._is_cut |= _drop_oldest(self._answers, ANSWERS_MAX) | _drop_oldest(self._text_at, ANSWERS_MAX)
        self._is_cut |= _drop_oldest(self.orders, ANSWERS_MAX)
        return self._number

    def _note_text(self, answer: int, sighted: Sighted) -> None:
        if sighted.has_text:
            self._text_at.pop(sighted.session, None)
            self._text_at[sighted.session] = sighted.at, answer

    def _take(self, answer: int, found: Found) -> None:
        self._is_cut |= not found.is_whole
        if (sighted := self._answers.get(answer)) is None:
            return
        for each in found.fields:
            self._fields.pop(each, None)  # the newest stand last
            self._fields[each] = answer
        for known, named in ((self._texts, found.texts), (self._ordering, found.ordering)):
            for each, line in named.items():
                before = [place for place in known.pop(each, ()) if self._counts(place[0], sighted.session)]
                places = sorted([*before, (answer, line)])
                known[each] = places[0], places[-1]
            self._is_cut |= _drop_oldest(known, VALUES_MAX)
        self._is_cut |= _drop_oldest(self._fields, VALUES_MAX)

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
            self._texts, self._ordering = _without(self._texts, gone), _without(self._ordering, gone)
            self._answers = {each: sighted for each, sighted in self._answers.items() if each not in gone}
            self.orders = {each: sighted for each, sighted in self.orders.items() if each not in gone}
            self._text_at = {}
            for answer, sighted in self._answers.items():
                self._note_text(answer, sighted)
            for unread in [*self._unread.values()]:
                if left := tuple(each for each in unread.answers if each not in gone):
                    self._unread[unread.key] = replace(unread, answers=left)
                else:
                    self._no_longer_unread(unread.key, unread.look)

    def drop_before(self, moment: float) -> bool:
        """Forget what is older, but answers to sessions that were at work since; return whether it was time to look."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        self._written = {each: at for each, at in self._written.items() if at[1] >= moment}
        self.orders = {each: sighted for each, sighted in self.orders.items() if sighted.at >= moment}
        alive = {each.session for each in self._answers.values() if each.at >= moment} - {None}
        self.erase({each.run_id for each in self._answers.values() if each.at < moment and each.session not in alive})
        return True

    def know(self, runs: Mapping[str, float]) -> None:
        """Take how far the answers of some runs are known; see `known_runs`. The last `RUNS_MAX` are kept."""
        for run_id, number_ in runs.items():
            self.known_runs.pop(run_id, None)
            self.known_runs[run_id] = number_
        _drop_oldest(self.known_runs, RUNS_MAX)

    def cut(self) -> None:
        """Take that not all is known: what is not known counts as text from now on."""
        self._is_cut = True

    async def caught_up(self, catch_up: Callable[[], Coroutine[None, None, None]]) -> None:
        """Take what other processes know where it is time to: who asks meanwhile waits until that has ended."""
        if time.monotonic() >= self._caught_up_until:
            if self._catching_up is None:
                self._catching_up = asyncio.create_task(self._catch_up(catch_up))
            await asyncio.shield(self._catching_up)

    async def _catch_up(self, catch_up: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await catch_up()
            self._caught_up_until = time.monotonic() + CATCH_UP_SECONDS
        finally:
            self._catching_up = None

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
        self, form: bytes, session: str | None, texts: Mapping[int, tuple[_Place, _Place]] | None = None
    ) -> _Place | None:
        """Return the first of the sightings of a form that counts."""
        places = (self._texts if texts is None else texts).get(self.digest(form), ())
        return next((place for place in places if self._counts(place[0], session)), None)

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
        before = [(each.called, each.at) for each in self.orders.values() if since <= each.at < moment]
        return min(before, key=lambda each: each[1], default=None)

    def was_named(self, value: Json, before: float) -> bool:
        """Return whether programs and calls named all of an argument before a moment."""
        digests = self.digests(leaves(value))
        return bool(digests) and all(self._written.get(each, (before,))[0] < before for each in digests)

    def orders_now(self) -> list[str]:
        """Return the calls whose answers gave orders to an assistant, within the window."""
        since = time.time() - WINDOW_SECONDS
        return [*dict.fromkeys(each.called for each in self.orders.values() if each.at >= since)]


class Conversations:
    """The conversations of one home, by the scopes of their callers."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._of_scopes: Lru[str, Conversation] = Lru(CONVERSATIONS_MAX)
        self._known: WeakSet[Conversation] = WeakSet()
        """Those too that runs still have."""

    def of(self, scope: str) -> Conversation:
        """Return the conversation of a caller. Of all there are, the first that it is time for drops what is old."""
        since = time.time() - WINDOW_SECONDS
        any(each.drop_before(since) for each in self._of_scopes.values())
        found = self._of_scopes.used(scope)
        if found is None:
            found = self._of_scopes[scope] = Conversation(self._key, self._bound)
            self._known.add(found)
        return found

    async def _bound(self) -> None:
        """Read up the conversation with the most to read while there are more than `UNREAD_CHARS_IN_ALL`."""
        while (beyond := sum(each.unread_chars for each in self._known) - UNREAD_CHARS_IN_ALL) > 0:
            largest = max(self._known, key=lambda each: each.unread_chars)
            await largest.read_up(max(largest.unread_chars - beyond, 0))


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


def _without(sighted: Mapping[int, tuple[_Place, _Place]], gone: Collection[int]) -> dict[int, tuple[_Place, _Place]]:
    left = (
        (each, last if first[0] in gone else first, first if last[0] in gone else last)
        for each, (first, last) in sighted.items()
    )
    return {each: (first, last) for each, first, last in left if first[0] not in gone}


def _form(value: object) -> bytes:
    return number(value) or exact(str(value))
