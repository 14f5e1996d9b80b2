"""Remembers millions of values that files gave, each as a hash of 64 bits, and finds them again in texts.

A file of a million people has more values than can be kept as words. So of each only a hash is kept, of its letters
without case and accents, its type, and which run met it last: eleven bytes. A text is looked through by its words:
every stretch of up to `WORDS_MAX` of them is hashed, all at once, and looked up. The base of the hash is random for
each process; what is taken for a value by chance is hidden, and that is all.

The hash is polynomial modulo 2^64, so that the one of any stretch follows from two sums (Karp and Rabin, 1987).
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...base.errors import HostWorkRefused
from ...base.host_work import checkpoint
from ..token_texts import Span
from .forms.folding import powers_of_base
from .forms.spellings import DIGITS_WITHIN, NEVER_WITHIN, WITHIN_LEAST, WITHIN_MOST

LEARNED_MAX = 16_000_000
"""Values that one of these holds: 176 MB."""
VALUE_CHARS_MAX = 256
WORDS_MAX = 12
_CHUNK_CHARS = 65_536
_TIER_FACTOR = 4
_TIER_MAX = 1_000_000
"""Values in one tier, so that adding some takes no time and no memory for all the others."""
_PLANE = 0x10000
_FIRST_UNSPACED = 0x2E80
"""From this letter on scripts are written without spaces, where a word has no borders."""
_AS_WORDS, _ANYWHERE, _KIND = 0x40, 0x80, 0x3F
"""In the byte of a value: found where its words stand, or wherever its letters do; and its type."""
_NAME_LEAST, _TEXT_LEAST, _DIGITS_LEAST = 2, 4, 6
_NO_WORDS = frozenset({"SECRET"})
"""Types whose values stand within other letters too, which are not looked for here."""
_BORNE_BY_WORDS = frozenset({"PERSON", "LOCATION"})
"""Types whose values, where they are one word, are everyday words in small letters: `will`, `may`."""

_Hashes = NDArray[np.uint64]
_Places = NDArray[np.int64]
_Marks = NDArray[np.uint8]
_Runs = NDArray[np.uint16]
_Tier = tuple[_Hashes, _Marks, _Runs]


class LearnedValues:
    """Values by their hashes; safe to use from several threads."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._tiers: tuple[_Tier, ...] = ()
        self._kinds: tuple[str, ...] = ()
        self._most_words = 0
        self._lengths: frozenset[int] = frozenset()
        self._lengths_within: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _marks, _runs in self._tiers)

    def add(self, kind: str, texts: Sequence[str], run: int = 0) -> tuple[list[_Hashes], list[str]]:
        """Find values of a type from now on, which `run` has met.

        Return the hashes, for `met_again`, and the values that cannot be kept here, such as very long ones.
        Raises `HostWorkRefused` where there are too many.
        """
        if kind in _NO_WORDS or (kind not in self._kinds and len(self._kinds) > _KIND):
            return [], list(texts)
        left: list[str] = []
        hashes: list[_Hashes] = []
        some: list[str] = []
        chars = 0
        for text in texts:
            if len(text) > VALUE_CHARS_MAX:
                left.append(text)
                continue
            some.append(text)
            chars += len(text) + 1
            if chars >= _CHUNK_CHARS:
                hashes.append(self._add_some(kind, some, run, left))
                some, chars = [], 0
                checkpoint()
        if some:
            hashes.append(self._add_some(kind, some, run, left))
        return hashes, left

    def met_again(self, hashes: _Hashes, run: int) -> bool:
        """Note that a run has met the values of hashes again; return whether all of these are known."""
        left = len(hashes)
        with self._changing:
            for known, _marks, runs in self._tiers:
                at, there = _places_in(known, hashes)
                runs[at[there]] = run
                left -= int(there.sum())
        return left == 0

    def was_met(self, text: str, run: int) -> bool:
        """Return whether a value is known that this run has met."""
        found = self._hash_of(text)
        if found is None:
            return False
        for known, _marks, runs in self._tiers:
            at, there = _places_in(known, found)
            if there[0]:
                return int(runs[at[0]]) == run
        return False

    def known_and_met(self, texts: Sequence[str], run: int) -> tuple[list[bool], list[bool]]:
        """Return of each text whether it is a value, and whether this run has met it."""
        known, met = [False] * len(texts), [False] * len(texts)
        some: list[int] = []
        chars = 0
        for number, text in enumerate(texts):
            if len(text) <= VALUE_CHARS_MAX:
                some.append(number)
                chars += len(text) + 1
            if some and (chars >= _CHUNK_CHARS or number == len(texts) - 1):
                self._look_up([texts[each] for each in some], some, run, known, met)
                some, chars = [], 0
                checkpoint()
        return known, met

    def _look_up(
        self, texts: Sequence[str], numbers: Sequence[int], run: int, known: list[bool], met: list[bool]
    ) -> None:
        view = _View("\n".join(texts))
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(lengths + 1) - 1
        starts, ends, kept = view.cores(ends - lengths, ends)
        hashes = view.hashes(starts, ends)
        for tier, _marks, runs in self._tiers:
            at, there = _places_in(tier, hashes)
            for each in np.flatnonzero(there):
                number = numbers[int(kept[each])]
                known[number] = True
                met[number] = met[number] or int(runs[at[each]]) == run

    def kind_of(self, text: str) -> str | None:
        """Return the type of a value that is just this text, or None where there is none."""
        found = self._hash_of(text)
        mark = _UNKNOWN if found is None else int(self._marks_of(found)[0])
        return None if mark == _UNKNOWN else self._kinds[mark & _KIND]

    def find(self, text: str) -> Iterator[Span]:
        """Give where values stand in a text; they may overlap."""
        if not self._tiers:
            return
        start = 0
        while start < len(text):
            end = _border(text, start + _CHUNK_CHARS)
            for span in self._find_some(text[start : end + VALUE_CHARS_MAX]):
                if span.start < end - start:
                    yield Span(start + span.start, start + span.end, span.type)
            start = end
            checkpoint()

    def _hash_of(self, text: str) -> _Hashes | None:
        if not self._tiers or not text or len(text) > VALUE_CHARS_MAX:
            return None
        view = _View(text)
        starts, ends, kept = view.cores(np.zeros(1, np.int64), np.full(1, len(text), np.int64))
        return view.hashes(starts, ends) if len(kept) else None

    def _add_some(self, kind: str, texts: Sequence[str], run: int, left: list[str]) -> _Hashes:
        view = _View("\n".join(texts))
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(lengths + 1) - 1
        starts, ends, kept = view.cores(ends - lengths, ends)
        words = view.words_within(starts, ends)
        spans = view.unspaced_within(starts, ends)
        stands_out = view.stands_out(starts, ends, is_name=kind == "PERSON")
        lengths = ends - starts
        within = (words == 1) & (lengths >= WITHIN_LEAST) & (lengths <= WITHIN_MOST) & view.has_number(starts, ends)
        usable = (words <= WORDS_MAX) | spans
        left += (texts[int(each)] for each in kept[~usable])
        # What does not stand out is not looked for, but known where it is asked for by itself.
        marks = np.where(stands_out, np.where(spans, _ANYWHERE, _AS_WORDS), 0).astype(np.uint8)[usable]
        hashes = view.hashes(starts[usable], ends[usable])
        order = np.argsort(hashes, kind="stable")
        hashes, marks = hashes[order], marks[order]
        first = np.ones(len(hashes), np.bool_)
        first[1:] = hashes[1:] != hashes[:-1]
        hashes, marks = hashes[first], marks[first]
        with self._changing:
            if kind not in self._kinds:
                self._kinds += (kind,)
            new = np.ones(len(hashes), np.bool_)
            for known, _marks, runs in self._tiers:
                at, there = _places_in(known, hashes)
                runs[at[there]] = run
                new &= ~there
            self._keep(hashes[new], marks[new] | np.uint8(self._kinds.index(kind)), run)
            self._most_words = max(self._most_words, int(words[usable].max(initial=0)))
            self._lengths |= set(lengths[usable & spans & stands_out].tolist())
            self._lengths_within |= set(() if kind in NEVER_WITHIN else lengths[within].tolist())
        return hashes

    def _keep(self, hashes: _Hashes, marks: _Marks, run: int) -> None:
        """Take in sorted hashes. Few large tiers are kept, so that adding and looking cost the logarithm."""
        if len(self) + len(hashes) > LEARNED_MAX:
            raise HostWorkRefused(
                f"More than {LEARNED_MAX} personal values would be known here, the most that are kept in memory. "
                "Work on less, or in another session."
            )
        runs = np.full(len(hashes), run, np.uint16)
        tiers = list(self._tiers)
        while tiers and len(hashes) <= _TIER_MAX and len(tiers[-1][0]) < min(_TIER_FACTOR * len(hashes), _TIER_MAX):
            their_hashes, their_marks, their_runs = tiers.pop()
            hashes = np.concatenate((their_hashes, hashes))
            marks = np.concatenate((their_marks, marks))
            runs = np.concatenate((their_runs, runs))
            order = np.argsort(hashes, kind="stable")  # two runs that are sorted already: a merge
            hashes, marks, runs = hashes[order], marks[order], runs[order]
        if len(hashes):
            tiers.append((hashes, marks, runs))
        self._tiers = tuple(tiers)

    def _marks_of(self, hashes: _Hashes) -> NDArray[np.int16]:
        found = np.full(len(hashes), _UNKNOWN, np.int16)
        for known, marks, _runs in self._tiers:
            at, there = _places_in(known, hashes)
            found[there] = marks[at[there]]
        return found

    def _find_some(self, text: str) -> Iterator[Span]:
        """Give the longest at each place, and none within others: of values that are parts of one another, some."""
        view, found = _View(text), _Longest(len(text))
        starts, ends = view.words()
        for count in range(min(self._most_words, WORDS_MAX, len(starts))):
            lows, highs = starts[: len(starts) - count], ends[count:]
            self._look_at(found, view, lows, highs, _AS_WORDS, one_word=count == 0)
        if self._lengths and view.unspaced.any():
            places = np.flatnonzero(view.is_word)
            for length in sorted(self._lengths):
                checkpoint()
                lows = places[places + length <= len(text)]
                self._look_at(found, view, lows, lows + length, _ANYWHERE)
        if self._lengths_within:
            self._look_within(found, view, starts, ends)
        for low, high, kind in found.spans():
            yield Span(low, high, self._kinds[kind])

    def _look_within(self, found: _Longest, view: _View, starts: _Places, ends: _Places) -> None:
        """Note the numbers that touch further digits or letters."""
        long = (ends - starts > min(self._lengths_within)) & view.has_number(starts, ends)
        places = [np.arange(low, high) for low, high in zip(starts[long], ends[long], strict=True)]
        if not places:
            return
        lows, most = np.concatenate(places), np.repeat(ends[long], (ends - starts)[long])
        for length in sorted(self._lengths_within):
            checkpoint()
            there = lows[lows + length <= most]
            there = there[view.has_number(there, there + length)]
            self._look_at(found, view, there, there + length, _AS_WORDS, within=True)

    def _look_at(
        self,
        found: _Longest,
        view: _View,
        lows: _Places,
        highs: _Places,
        mark: int,
        *,
        one_word: bool = False,
        within: bool = False,
    ) -> None:
        """Note which of some stretches are values, of each place one at most."""
        marks = self._marks_of(view.hashes(lows, highs))
        there = np.flatnonzero((marks != _UNKNOWN) & (marks & mark != 0))
        kinds = marks[there] & _KIND
        left_out = _BORNE_BY_WORDS if one_word else NEVER_WITHIN if within else ()
        refused = np.isin(kinds, [number for number, kind in enumerate(self._kinds) if kind in left_out])
        if one_word:
            refused[refused] = [view.text[low].islower() for low in lows[there[refused]].tolist()]
        found.note(lows[there[~refused]], highs[there[~refused]], kinds[~refused])


class _Longest:
    """The longest value that begins at each place of a text."""

    def __init__(self, length: int) -> None:
        self._ends = np.zeros(length, np.int64)
        self._kinds = np.zeros(length, np.int16)

    def note(self, lows: _Places, highs: _Places, kinds: NDArray[np.int16]) -> None:
        """Note values, no two of which begin at one place."""
        longer = highs > self._ends[lows]
        self._ends[lows[longer]] = highs[longer]
        self._kinds[lows[longer]] = kinds[longer]

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Give where each begins and ends, with its kind, but those that others of their kind cover."""
        before = np.maximum.accumulate(np.concatenate((np.zeros(1, np.int64), self._ends)))[:-1]
        lows = np.flatnonzero(self._ends > before)
        covered, of, best = 0, -1, None
        for low, high, kind in zip(lows.tolist(), self._ends[lows].tolist(), self._kinds[lows].tolist(), strict=True):
            if best is not None and (low > covered or kind != best[2]):
                yield best
                (_, covered, of), best = best, None
            if low > covered or kind != of:
                yield low, high, kind
                covered, of = high, kind
            else:
                best = low, high, kind
        if best is not None:
            yield best


_UNKNOWN = -1


def _places_in(known: _Hashes, hashes: _Hashes) -> tuple[_Places, NDArray[np.bool_]]:
    at = np.searchsorted(known, hashes)
    at[at == len(known)] = 0
    return at, known[at] == hashes


class _View:
    """A text as numbers, with what is needed to hash any stretch of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        letters = _letters()
        if text.isascii():
            codes = np.frombuffer(text.encode(), np.uint8).astype(np.uint32)
        else:
            codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        low = np.minimum(codes, _PLANE - 1)
        self._classes = letters.classes[low]
        folded = np.where(codes < _PLANE, letters.folded[low], codes).astype(np.uint64)
        powers, self._inverse = powers_of_base(len(codes) + 1)
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        scattered = (folded + np.uint64(1)) * _SCATTER
        np.cumsum((scattered ^ (scattered >> np.uint64(29))) * powers[: len(codes)], out=self._sums[1:])
        self.is_word = self._classes & _WORD != 0
        self.unspaced = (codes >= _FIRST_UNSPACED) & self.is_word

    def hashes(self, starts: _Places, ends: _Places) -> _Hashes:
        made = (self._sums[ends] - self._sums[starts]) * self._inverse[starts]
        made ^= made >> np.uint64(32)
        made *= _SCATTER
        return made ^ (made >> np.uint64(29))

    def words(self) -> tuple[_Places, _Places]:
        changes = np.diff(self.is_word.astype(np.int8), prepend=0, append=0)
        return np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)

    def cores(self, starts: _Places, ends: _Places) -> tuple[_Places, _Places, _Places]:
        """Return stretches from their first word to their last, and which of them have any."""
        places = np.append(np.flatnonzero(self.is_word), len(self.is_word))
        first = places[np.searchsorted(places, starts)]
        last = places[np.searchsorted(places, ends) - 1]
        kept = np.flatnonzero((first < ends) & (last >= starts))
        return first[kept], last[kept] + 1, kept

    def words_within(self, starts: _Places, ends: _Places) -> _Places:
        begins = np.diff(self.is_word.astype(np.int8), prepend=0) == 1
        return self._counted(begins, starts + 1, ends) + 1

    def unspaced_within(self, starts: _Places, ends: _Places) -> NDArray[np.bool_]:
        return self._counted(self.unspaced, starts, ends) > 0

    def stands_out(self, starts: _Places, ends: _Places, *, is_name: bool) -> NDArray[np.bool_]:
        """Return which stretches are looked for in any text: `12` is not, though it be a house number."""
        letters = self._counted(self._classes & _LETTER != 0, starts, ends)
        digits = self._counted(self._classes & _DIGIT != 0, starts, ends)
        enough = letters + digits >= (_NAME_LEAST if is_name else _TEXT_LEAST)
        if is_name:
            enough &= (letters == 0) | (self._counted(self._classes & _UPPER != 0, starts, ends) > 0)
        return enough & ((letters > 0) | (digits >= _DIGITS_LEAST))

    def has_number(self, starts: _Places, ends: _Places) -> NDArray[np.bool_]:
        """Return which stretches have as many digits as a number that is looked for within longer runs."""
        return self._counted(self._classes & _DIGIT != 0, starts, ends) >= DIGITS_WITHIN

    @staticmethod
    def _counted(flags: NDArray[np.bool_], starts: _Places, ends: _Places) -> _Places:
        sums = np.zeros(len(flags) + 1, np.int64)
        np.cumsum(flags, out=sums[1:])
        return sums[ends] - sums[starts]


_WORD, _LETTER, _DIGIT, _UPPER = 1, 2, 4, 8


class _Letters:
    """What the letters of the basic plane are, and what they are without case and accents."""

    def __init__(self) -> None:
        self.classes = np.zeros(_PLANE, np.uint8)
        self.folded = np.arange(_PLANE, dtype=np.uint32)
        self.classes[-1] = _WORD  # stands for all beyond
        for code in range(_PLANE - 1):
            letter = chr(code)
            if not (letter.isalnum() or letter == "_"):
                continue
            kind = _WORD | (_LETTER if letter.isalpha() else _DIGIT if letter.isdigit() else 0)
            self.classes[code] = kind | (_UPPER if letter.isalpha() and not letter.islower() else 0)
            plain = unicodedata.normalize("NFKD", letter)[0].lower()
            self.folded[code] = ord(plain) if len(plain) == 1 else code


@cache
def _letters() -> _Letters:
    return _Letters()


_SCATTER = np.uint64(0xFF51AFD7ED558CCD)


def _border(text: str, at: int) -> int:
    """Return where the first word after that place begins, but not much further on."""
    if at >= len(text):
        return len(text)
    end = at
    while end < min(len(text), at + VALUE_CHARS_MAX) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return end
