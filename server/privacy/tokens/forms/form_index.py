"""Finds the forms of many values in a text, whatever their number: the text is folded, and its words are looked up.

A stretch of up to four words (eight, of those that begin with a digit) is looked for by the hash of its letters; longer
forms by that of their first words, and then by the lengths there are. What has the hash is compared letter by letter.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ....base.host_work import checked, checkpoint
from ...detection.lists import ROLES_OF_MAILBOXES
from .dates import dates_in, dates_said
from .escapes import readings
from .folding import (
    Folded,
    Numbers,
    Stretches,
    chain_words,
    chains,
    folded,
    folded_letters,
    folded_small,
    is_alone,
    keys_of,
    windows,
)
from .spellings import WITHIN_LEAST, SpellingRule, fits, fits_within, parts_of_name, spellings, stands_within

Keys = npt.NDArray[np.uint64]
Found = npt.NDArray[np.uint32]

_FLAGS_PER_KEY = 8
_LEAST_BITS = 12
_SECOND = 8
"""Bits of a key below those of its second flag."""
_FEW = 2048
"""So many are kept apart from the sorted ones, or an eighth of these."""


class _KeyTable:
    """Keys and the numbers of values. Changed by one thread at a time; others may look meanwhile."""

    def __init__(self) -> None:
        self._flags: tuple[npt.NDArray[np.bool_], int] = (np.zeros(1 << _LEAST_BITS, np.bool_), 64 - _LEAST_BITS)
        self._sorted: tuple[Keys, Found] = (np.empty(0, np.uint64), np.empty(0, np.uint32))
        self._new: dict[int, list[int]] = {}
        self._new_count = 0

    def __len__(self) -> int:
        return len(self._sorted[0]) + self._new_count

    def add(self, keys: Keys, numbers: Found) -> None:
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True) if len(keys) <= _FEW else ():
            self._new.setdefault(key, []).append(number)
        if len(keys) <= _FEW:
            self._new_count += len(keys)
        if len(keys) > _FEW or self._new_count > max(_FEW, len(self._sorted[0]) // 8):
            self._sort(*((keys, numbers) if len(keys) > _FEW else (keys[:0], numbers[:0])))
        flags, shift = self._flags
        if len(self) * _FLAGS_PER_KEY > len(flags):
            self._grow()
        else:
            _set(flags, shift, keys)

    def _sort(self, keys: Keys, numbers: Found) -> None:
        count = sum(map(len, self._new.values()))
        new_keys = np.fromiter((key for key, some in self._new.items() for _ in some), np.uint64, count)
        new_numbers = np.fromiter((number for some in self._new.values() for number in some), np.uint32, count)
        all_keys = np.concatenate([self._sorted[0], new_keys, keys])
        all_numbers = np.concatenate([self._sorted[1], new_numbers, numbers])
        order = np.argsort(all_keys, kind="stable")
        self._sorted = (all_keys[order], all_numbers[order])  # before the new ones go: no reader misses any
        self._new, self._new_count = {}, 0

    def _grow(self) -> None:
        bits = max(_LEAST_BITS, (2 * len(self) * _FLAGS_PER_KEY - 1).bit_length())
        flags = np.zeros(1 << bits, np.bool_)
        _set(flags, 64 - bits, self._sorted[0])
        _set(flags, 64 - bits, np.fromiter(self._new, np.uint64, len(self._new)))
        self._flags = (flags, 64 - bits)

    def held(self, keys: Keys) -> npt.NDArray[np.intp]:
        flags, shift = self._flags
        places = np.flatnonzero(flags[keys >> np.uint64(shift)])
        some = keys[places]
        places = places[flags[some >> np.uint64(_SECOND) & np.uint64(len(flags) - 1)]]
        some = keys[places]
        known, new = self._sorted[0], self._new
        if len(known):
            is_held = known[np.minimum(np.searchsorted(known, some), len(known) - 1)] == some
        else:
            is_held = np.zeros(len(some), np.bool_)
        if new:
            is_held |= np.fromiter((key in new for key in some.tolist()), np.bool_, len(some))
        found: npt.NDArray[np.intp] = places[is_held]
        return found

    def may_hold(self, key: int) -> bool:
        flags, shift = self._flags
        return bool(flags[key >> shift]) and bool(flags[key >> _SECOND & len(flags) - 1])

    def numbers(self, key: int, most: int) -> Iterator[int]:
        """Yield the numbers of up to `most` values that have a key, and perhaps as many more that are new."""
        keys, numbers = self._sorted
        at = int(np.searchsorted(keys, np.uint64(key)))
        end = min(len(keys), at + most)
        while at < end and keys[at] == key:
            yield int(numbers[at])
            at += 1
        yield from self._new.get(key, ())[:most]


def _set(flags: npt.NDArray[np.bool_], shift: int, keys: Keys) -> None:
    flags[keys >> np.uint64(shift)] = True
    flags[keys >> np.uint64(_SECOND) & np.uint64(len(flags) - 1)] = True


_SMALL_CHARS = 400
_CHUNK_CHARS = 1 << 17
_BATCH, _BATCH_CHARS = 2000, 200_000
"""So many values are worked out at once, of so many characters together."""
_SAME_KEY_MOST = 16
"""So many values of one form are compared: one is enough for it to be hidden."""
_CUT_WORD = re.compile(r"[+(]?[^\W_]+")
_BORDERS = re.compile(r"[\W_]+|(?<=[a-z])[A-Z]|(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d")
_CUT_SHORTEST, _CUT_LEAST, _CUT_MOST = 4, 6, 120
_OUTER_BITS = 18
_DATE_BEFORE, _DATE_AFTER = 26, 26
_IBAN_GROUPED = 12
"""Letters of the first four words of an IBAN that is written in groups of four: GB82 WEST 1234."""
_YEAR_DIGITS, _SHORT_YEAR_DIGITS, _COMPACT_DIGITS = 4, 2, 8


_Owner = tuple[str, str]
"""A value, and its type."""


@dataclass(frozen=True, slots=True)
class FormHit:
    """A form of a value of type `kind` stands from `start` to `end`."""

    start: int
    end: int
    kind: str


class FormIndex:
    """The forms of values. A value that is added is worked out when a text is next looked through."""

    def __init__(self) -> None:
        self._values: list[tuple[str, str]] = []
        self._done = 0
        self._turn = threading.Lock()
        self._table = _KeyTable()
        self._lengths: dict[int, tuple[int, ...]] = {}
        self._lengths_within: dict[int, tuple[int, ...]] = {}
        self._days: dict[date, int] = {}
        self._years: frozenset[str] = frozenset()
        self._begun = (_Outer(backwards=False), _Outer(backwards=True), 0)
        self._longest = 0

    def add(self, text: str, kind: str) -> None:
        """Find the forms of a value from now on."""
        self._values.append((text, kind))

    @property
    def longest(self) -> int:
        """The length of the longest value."""
        return self._longest

    def owners(self, text: str) -> set[tuple[str, str]]:
        """Return the values, with their types, that a text is a form of as a whole; of very many, some."""
        self.work_out()
        said = folded(text)
        if not said.letters:
            return set()
        surface = text[slice(*_surface(said, 0, len(said.letters), text))]
        found = set(self._numbers(said.letters, surface, said.key(0, len(said.letters))))
        if self._days:
            found |= {self._days[day] for day in dates_said(text) if day in self._days}
        return {self._values[number] for number in found}

    def work_out(self) -> None:
        """Take in the values that were added."""
        if self._done == len(self._values):
            return
        with self._turn:
            while self._done < len(self._values):
                checkpoint()
                end, chars = self._done, 0
                while end < min(len(self._values), self._done + _BATCH) and chars < _BATCH_CHARS:
                    chars += len(self._values[end][0])
                    end += 1
                self._take(self._done, end)
                self._done = end

    def _take(self, start: int, end: int) -> None:
        letters: list[str] = []
        numbers: list[int] = []
        begun: list[tuple[str, int]] = []
        within: list[tuple[str, int]] = []
        for number in range(start, end):
            text, kind = self._values[number]
            self._longest = max(self._longest, len(text))
            for spelling in spellings(text, kind):
                letters.append(spelling.letters)
                numbers.append(number)
                if stands_within(kind, spelling.letters):
                    within.append((spelling.letters[:WITHIN_LEAST], len(spelling.letters)))
                if len(spelling.letters) > chain_words("") and is_alone(spelling.letters[0]):
                    begun.append((spelling.letters[: chain_words("")], len(spelling.letters)))
            for first, whole in _first_words(text, kind):
                begun.append((first, len(whole)))
            if kind == "DOB":
                for day in dates_said(text):
                    self._days.setdefault(day, number)
        if letters:
            self._table.add(keys_of(letters), np.array(numbers, np.uint32))
        self._take_beginnings(begun, self._lengths, start)
        self._take_beginnings(within, self._lengths_within, start)
        self._years = frozenset(f"{day.year:04}" for day in self._days)

    def _take_beginnings(
        self, begun: Sequence[tuple[str, int]], lengths: dict[int, tuple[int, ...]], start: int
    ) -> None:
        """Look for forms by their first letters; `begun` has these, and how many letters the form has."""
        if not begun:
            return
        keys = keys_of([first for first, _ in begun])
        new = np.fromiter((key not in lengths for key in keys.tolist()), np.bool_, len(keys))
        self._table.add(np.unique(keys[new]), np.full(len(np.unique(keys[new])), start, np.uint32))
        for key, (_, length) in zip(keys.tolist(), begun, strict=True):
            known = lengths.get(key, ())
            if length not in known:
                lengths[key] = tuple(sorted((*known, length), reverse=True))

    def in_small(self, said: Folded, text: str) -> Iterator[FormHit]:
        """Yield the forms that stand in a short text."""
        starts, ends, table = said.starts, said.ends, self._table
        candidates: list[tuple[int, int, int]] = []
        for word, start in enumerate(starts):
            for last in range(word, min(len(starts), word + chain_words(said.letters[start]))):
                key = said.key(start, ends[last])
                if table.may_hold(key):
                    candidates.append((start, ends[last], key))
        yield from self._in_words(said, text, candidates)
        if self._lengths_within and len(said.letters) > WITHIN_LEAST:
            keys = [said.key(place, place + WITHIN_LEAST) for place in range(len(said.letters) - WITHIN_LEAST + 1)]
            some = [(place, key) for place, key in enumerate(keys) if table.may_hold(key)]
            yield from self._within(said, text, some)
        if self._days and said.letters:
            yield from self._dates(text)

    def in_large(self, said: Folded, text: str, stretches: Stretches, beginnings: Numbers) -> Iterator[FormHit]:
        """Yield the forms that stand in a long text, of which `stretches` are all that may be some.

        `beginnings` are the keys at each of its letters by which numbers within longer ones are looked for.
        """
        if not said.letters:
            return
        starts, ends, keys = stretches
        places = self._table.held(keys)
        rows = zip(starts[places].tolist(), ends[places].tolist(), keys[places].tolist(), strict=True)
        yield from self._in_words(said, text, checked(rows))
        if self._lengths_within:
            places = self._table.held(beginnings)
            yield from self._within(said, text, zip(places.tolist(), beginnings[places].tolist(), strict=True))
        if self._days:
            yield from self._dates_of_large(said, text)

    def _in_words(self, said: Folded, text: str, candidates: Iterable[tuple[int, int, int]]) -> Iterator[FormHit]:
        ends: set[int] | None = None
        none: set[tuple[int, str]] = set()
        for start, end, key in candidates:
            surface = text[slice(*_surface(said, start, end, text))]
            if (key, surface) not in none:  # an everyday word may stand in a text a thousand times
                number = next(self._numbers(said.letters[start:end], surface, key), None)
                if number is None:
                    none.add((key, surface))
                else:
                    yield self._hit(said, start, end, text, number)
            for length in self._lengths.get(key, ()):
                ends = set(map(int, said.ends)) if ends is None else ends
                last = start + length
                if last in ends:
                    surface = text[slice(*_surface(said, start, last, text))]
                    number = next(self._numbers(said.letters[start:last], surface, said.key(start, last)), None)
                    if number is not None:
                        yield self._hit(said, start, last, text, number)

    def _within(self, said: Folded, text: str, candidates: Iterable[tuple[int, int]]) -> Iterator[FormHit]:
        """Yield the forms that touch further digits or letters; those that are whole words are found as such."""
        taken, free = 0, 0
        for start, key in checked(candidates):
            for length in self._lengths_within.get(key, ()):
                end = start + length
                if start < free and length <= taken:
                    break
                if end > len(said.letters) or (_is_in(said.starts, start) and _is_in(said.ends, end)):
                    continue
                whole = said.key(start, end)
                if not self._table.may_hold(whole):
                    continue
                surface = text[slice(*_surface(said, start, end, text))]
                numbers = self._numbers(said.letters[start:end], surface, whole)
                number = next((each for each in numbers if fits_within(surface, _core(self._values[each][0]))), None)
                if number is not None:
                    yield self._hit(said, start, end, text, number)
                    taken, free = length, end
                    break

    def _numbers(self, letters: str, surface: str, key: int) -> Iterator[int]:
        """Yield the values that some letters, as they stand in the text, are a form of."""
        for number in self._table.numbers(key, _SAME_KEY_MOST):
            value, kind = self._values[number]
            rule = _rules(value, kind).get(letters)
            if rule is not None and fits(rule, surface, _core(value)):
                yield number

    def _hit(self, said: Folded, start: int, end: int, text: str, number: int) -> FormHit:
        """Return a hit, with the signs around it that belong to the value."""
        begin, finish = _surface(said, start, end, text)
        value, kind = self._values[number]
        lead, tail = _around(value)
        if lead and text[begin - len(lead) : begin] == lead and begin >= len(lead):
            begin -= len(lead)
        elif kind == "PHONE":
            begin = _phone_begin(text, begin, finish)
        if tail and text[finish : finish + len(tail)] == tail:
            finish += len(tail)
        return FormHit(begin, finish, kind)

    def _dates(self, text: str) -> Iterator[FormHit]:
        for begin, finish, days in dates_in(text):
            if any(day in self._days for day in days):
                yield FormHit(begin, finish, "DOB")

    def _dates_of_large(self, said: Folded, text: str) -> Iterator[FormHit]:
        """Look for dates around the years of known ones alone."""
        for start, end in checked(self._year_words(said)):
            begin, finish = int(said.places[start]), int(said.places[end - 1]) + 1
            moved = max(0, begin - _DATE_BEFORE)
            for hit in self._dates(text[moved : finish + _DATE_AFTER]):
                if hit.start + moved <= begin < hit.end + moved:
                    yield FormHit(hit.start + moved, hit.end + moved, hit.kind)

    def _year_words(self, said: Folded) -> Iterator[tuple[int, int]]:
        starts, ends = np.asarray(said.starts), np.asarray(said.ends)
        first = np.frombuffer(said.letters.encode("utf-32-le", "surrogatepass"), np.uint32)[starts]
        lengths = ends - starts
        numeric = (first >= ord("0")) & (first <= ord("9"))
        short_years = {year[2:] for year in self._years}
        for word in np.flatnonzero(numeric & ((lengths == _YEAR_DIGITS) | (lengths == _COMPACT_DIGITS))).tolist():
            said_word = said.letters[starts[word] : ends[word]]
            if said_word[:4] in self._years or said_word[4:] in self._years:
                yield int(starts[word]), int(ends[word])
        is_short = numeric & (lengths <= _SHORT_YEAR_DIGITS)
        triples = is_short[2:] & is_short[1:-1] & is_short[:-2] & (lengths[2:] == _SHORT_YEAR_DIGITS)
        for word in (np.flatnonzero(triples) + 2).tolist():
            if said.letters[starts[word] : ends[word]] in short_years:
                yield int(starts[word]), int(ends[word])

    def cut_off(self, text: str, *, opens: bool, closes: bool) -> Iterator[FormHit]:
        """Look for values of which a line or an ellipsis cuts off the end, and a line the start: as they were written.

        `opens` and `closes`: whether the text begins and ends as a line does.
        """
        if not self._values or not (opens or closes or "\n" in text or "..." in text or "…" in text):
            return
        begun, ended = self._sorted_texts()
        borders = [(0, 0)] * opens + _borders(text) + [(len(text), len(text))] * closes
        ends, starts = [end for _, end in borders], [start for start, _ in borders]
        for start in checked(begun.places(text)):
            at = bisect_right(starts, start)
            if at < len(starts) and starts[at] - start <= _CUT_MOST:
                last = starts[at]
                while last > start and not text[last - 1].isalnum():
                    last -= 1
                if hit := self._cut(text[start:last], begun, start):
                    yield hit
        for end in checked(ended.places(text)):
            at = bisect_left(ends, end) - 1
            if at >= 0 and end - ends[at] <= _CUT_MOST and (hit := self._cut(text[ends[at] : end], ended, ends[at])):
                yield hit

    def _cut(self, said: str, known: _Outer, start: int) -> FormHit | None:
        """Return a hit where a value begins with a piece at the border of a text, or ends with it."""
        key = said[::-1] if known.backwards else said
        if len(said) > max(known.longest.get(key[:_CUT_SHORTEST], 0), known.longest.get(key[:2], 0)):
            return None
        number = known.first(key)
        if number is None or not _is_cut(said, self._values[number][0], is_start=not known.backwards):
            return None
        return FormHit(start, start + len(said), self._values[number][1])

    def _sorted_texts(self) -> tuple[_Outer, _Outer]:
        """Return the values as written, and backwards."""
        begun, ended, count = self._begun
        if count < len(self._values):
            new = [(self._values[number][0], number) for number in range(count, len(self._values))]
            begun, ended = begun.grown(new), ended.grown([(text[::-1], number) for text, number in new])
            self._begun = (begun, ended, len(self._values))
        return begun, ended


@dataclass(frozen=True, slots=True)
class _Outer:
    """Values as they were written, in order, with their numbers; or all of them backwards.

    By their first letters, four or two, most places of a text are ruled out: `longest` has how long the values are that
    begin with these, and `flags` which hashes of four or two characters there are.
    """

    backwards: bool
    texts: list[tuple[str, int]] = field(default_factory=list)
    longest: dict[str, int] = field(default_factory=dict)
    flags: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1 << _OUTER_BITS, np.bool_))

    def grown(self, new: Sequence[tuple[str, int]]) -> _Outer:
        """Return it with further values; who looks meanwhile sees all that were there."""
        longest, flags = dict(self.longest), self.flags.copy()
        for text, _ in new:
            letters = text[: 2 if is_alone(text[0]) or is_alone(text[-1]) else _CUT_SHORTEST]
            longest[letters] = max(longest.get(letters, 0), len(text))
        pieces = [letters[::-1] if self.backwards else letters for letters in longest.keys() - self.longest.keys()]
        for length in (2, _CUT_SHORTEST):
            some = "".join(piece for piece in pieces if len(piece) == length)
            flags[_hashes(some, length)[::length]] = True
        return _Outer(self.backwards, sorted([*self.texts, *new]), longest, flags)

    def places(self, text: str) -> list[int]:
        """Return where words of a text begin, or end, that values begin or end with."""
        if len(text) <= _SMALL_CHARS:
            words = (word.span() for word in _CUT_WORD.finditer(text))
            return [
                place
                for start, end in words
                for place, key in (((end, text[:end][::-1]) if self.backwards else (start, text[start:])),)
                if key[:_CUT_SHORTEST] in self.longest or key[:2] in self.longest
            ]
        lengths = {len(letters) for letters in self.longest}
        found = [np.flatnonzero(self.flags[_hashes(text, each)]) + each * self.backwards for each in lengths]
        places = (found[0] if len(found) == 1 else np.unique(np.concatenate(found))).tolist()
        if self.backwards:
            return [at for at in places if not text[at : at + 1].isalnum()]
        return [
            at for at in places if text[at] in "+(" or not (at and (text[at - 1].isalnum() or text[at - 1] in "+("))
        ]

    def first(self, key: str) -> int | None:
        """Return the number of a value that begins with these letters, if one does."""
        at = bisect_left(self.texts, (key,))
        return self.texts[at][1] if at < len(self.texts) and self.texts[at][0].startswith(key) else None


def _hashes(text: str, length: int) -> npt.NDArray[np.uint32]:
    """Return a hash of the characters from each place on, as many as are asked for."""
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    count = max(0, len(letters) - length + 1)
    mixed = np.full(count, length, np.uint32)
    for at in range(length):
        mixed = (mixed ^ letters[at : at + count]) * np.uint32(0x9E3779B1)
    return mixed >> np.uint32(32 - _OUTER_BITS)


def _borders(text: str) -> list[tuple[int, int]]:
    """Return where line breaks and ellipses stand, in order."""
    found: list[tuple[int, int]] = []
    for mark in ("\n", "...", "…"):
        at = text.find(mark)
        while at >= 0:
            found.append((at - (mark == "\n" and text[at - 1 : at] == "\r"), at + len(mark)))
            at = text.find(mark, at + len(mark))
    return sorted(found)


def find(text: str, indexes: Sequence[FormIndex], *, opens: bool = True, closes: bool = True) -> list[FormHit]:
    """Return where forms stand in a text, the longest at each place, none overlapping another.

    `opens` and `closes`: whether the text begins and ends as a line does; there, what is cut off counts too.
    """
    for index in indexes:
        index.work_out()
    hits = list(_in_plain(text, indexes))
    for index in indexes:
        hits += index.cut_off(text, opens=opens, closes=closes)
    for reading in readings(text):
        checkpoint()
        hits += [
            FormHit(*reading.place(hit.start, hit.end), hit.kind)
            for hit in _in_plain(reading.text, indexes)
            if reading.concerns(hit.start, hit.end)
        ]
    return list(_longest(text, hits))


def origin_of(text: str, indexes: Sequence[FormIndex]) -> _Owner | None:
    """Return the value, and its type, that a text is another form of; None where it is of none, or of several.

    A beginning that was cut off is none: `Jane Doe` need not be the `Jane Doerr` that is known.
    """
    owners = _owners(text, indexes)
    if any(value == text for value, _kind in owners):
        return None
    return _only(owners)


def _owners(text: str, indexes: Sequence[FormIndex]) -> set[_Owner]:
    owners = {owner for index in indexes for owner in index.owners(text)}
    if owners:
        return owners
    for reading in readings(text):
        hits = find(reading.text, indexes)
        if len(hits) == 1:
            said = reading.text[hits[0].start : hits[0].end]
            owners |= {owner for index in indexes for owner in index.owners(said)}
    return owners


def _only(owners: Collection[_Owner]) -> _Owner | None:
    """Return the owner that the others are forms of; a mailbox is often named for its owner."""
    people = [owner for owner in owners if owner[1] == "PERSON"]
    chosen = people or list(owners)
    if len(chosen) <= 1:
        return chosen[0] if chosen else None
    for value, kind in sorted(chosen, key=lambda owner: (-len(owner[0]), owner)):
        forms = {spelling.letters for spelling in spellings(value, kind)}
        if all(folded_letters(other) in forms for other, _kind in chosen):
            return value, kind
    return None


def _in_plain(text: str, indexes: Sequence[FormIndex]) -> Iterator[FormHit]:
    if len(text) <= _SMALL_CHARS:
        said = folded_small(text)
        for index in indexes:
            yield from index.in_small(said, text)
    else:
        reach = 2 * max(index.longest for index in indexes) + 256
        size = max(_CHUNK_CHARS, 4 * reach)
        for start in range(0, len(text), size):
            checkpoint()
            begin = max(0, start - 2)  # what parts words is seen
            part = text[begin : start + size + reach]
            said = folded(part)
            stretches, beginnings = chains(said), windows(said, WITHIN_LEAST)
            for index in indexes:
                for hit in index.in_large(said, part, stretches, beginnings):
                    if start <= hit.start + begin < start + size:
                        yield FormHit(hit.start + begin, hit.end + begin, hit.kind)


def _longest(text: str, hits: Sequence[FormHit]) -> Iterator[FormHit]:
    """Yield hits that do not overlap, in no order: first those of the most letters, with the least between them."""
    taken: list[tuple[int, int]] = []
    for hit in sorted(hits, key=lambda each: _rank(text, each)):
        at = bisect_right(taken, (hit.start, hit.end))
        is_free = (not at or taken[at - 1][1] <= hit.start) and (at == len(taken) or hit.end <= taken[at][0])
        if is_free:
            taken.insert(at, (hit.start, hit.end))
            yield hit


def _rank(text: str, hit: FormHit) -> tuple[int, int, int]:
    letters = sum(map(str.isalnum, text[hit.start : hit.end]))
    return -letters, hit.end - hit.start, hit.start


@lru_cache(4096)
def _rules(value: str, kind: str) -> dict[str, SpellingRule]:
    return {spelling.letters: spelling.rule for spelling in spellings(value, kind)}


def _first_words(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the words by which a form of many is looked for, and all its letters."""
    letters = folded_letters(text)
    if len(letters) > _IBAN_GROUPED and letters[:2].isalpha() and letters[2:4].isdecimal():
        yield letters[:_IBAN_GROUPED], letters
    if len(_BORDERS.findall(text)) < chain_words("") and text.isascii():
        return
    forms = [text, text.lower()]  # in small letters `McAdam` is one word
    if kind == "EMAIL":
        forms += [each.rpartition("@")[0] for each in forms]
    elif kind == "PERSON":
        parts = parts_of_name(text)
        forms += [" ".join(parts[at:] + parts[:at]) for at in range(len(parts))]
    for said in dict.fromkeys(forms):
        words = folded(said)
        most = chain_words(words.letters)
        if len(words.starts) > most:
            yield words.letters[: int(words.ends[most - 1])], words.letters


def _is_cut(said: str, value: str, *, is_start: bool) -> bool:
    """Return whether a piece that a value begins or ends with says enough of it to be it, though that be a word."""
    letters = sum(1 + is_alone(each) for each in said if each.isalnum())
    if len(said) == len(value) or (not is_start and value[-len(said) - 1] == "@"):
        return False  # the whole, or the host of an address of mail
    if 2 * len(said) < len(value) and letters < _CUT_LEAST:
        return False
    if said.isdecimal() and letters < _CUT_LEAST:
        return False
    if said.lower() in ROLES_OF_MAILBOXES and not (value[len(said)] if is_start else value[-len(said) - 1]).isalnum():
        return False  # `support` of an address of mail
    return letters >= _CUT_SHORTEST


def _is_in(places: Sequence[int], place: int) -> bool:
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def _surface(said: Folded, start: int, end: int, text: str) -> tuple[int, int]:
    begin, finish = int(said.places[start]), int(said.places[end - 1]) + 1
    while finish < len(text) and unicodedata.combining(text[finish]):
        finish += 1
    return begin, finish


def _phone_begin(text: str, begin: int, finish: int) -> int:
    """Return where a number begins with what stands before its first digit: `+`, and what a bracket closes."""
    if begin and text[begin - 1] == "(" and text.find(")", begin, finish) >= 0:
        begin -= 1
    return begin - 1 if begin and text[begin - 1] == "+" else begin


@lru_cache(4096)
def _around(value: str) -> tuple[str, str]:
    """Return the signs that stand before the first and behind the last letter of a value."""
    places = folded(value).places
    if not len(places):
        return "", ""
    finish = int(places[-1]) + 1
    while finish < len(value) and unicodedata.combining(value[finish]):
        finish += 1
    return value[: int(places[0])], value[finish:]


def _core(value: str) -> str:
    lead, tail = _around(value)
    return value[len(lead) : len(value) - len(tail)] if tail else value[len(lead) :]
