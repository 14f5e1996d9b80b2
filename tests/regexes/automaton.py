"""An automaton of a regular expression, whose paths are what the backtracking matcher of `re` tries.

A position is a character of the expression; an edge leads from one that was read to one that is read next, in the order
in which the matcher tries them. An assertion about one character beside it is a condition of the edge. Another
lookaround is tried at its place and then taken as if it might hold. What is repeated a few times is written out; else it
is a loop, also where it has a bound. Source: Lib/re/_parser.py and _compiler.py of CPython.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from math import inf
from typing import Any

from re import _compiler as compiler  # isort: skip
from re import _constants as op  # isort: skip
from re import _parser as parser  # isort: skip

START, ACCEPT = -1, -2
_WRITTEN_OUT = 64
"""Characters of an expression that is repeated so often and no oftener, up to which it is written out."""
_EDGES_MAX = 4000
_REFERENCE_MAX = 8


class NotJudged(Exception):
    """What no automaton is made of; the text says why."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is to hold of the letters before and after a place, each a set of bits; `word` is that of `\\b` or `\\B`."""

    before: int = -1
    after: int = -1
    word: str = ""

    def __and__(self, other: Condition) -> Condition:
        if self.word and other.word and self.word != other.word:
            return Condition(0, 0)
        return Condition(self.before & other.before, self.after & other.after, self.word or other.word)


ALWAYS = Condition()


class Sure(IntEnum):
    """What decides whether an edge may be taken: the letters beside it, some of which are always there, or something else."""

    NOT = 0
    BY_LETTERS = 1
    ALWAYS = 2


@dataclass(frozen=True, slots=True)
class Edge:
    """`loops` are those that it repeats."""

    target: int
    condition: Condition
    sure: Sure
    loops: frozenset[int]


Way = tuple[int, Condition, Sure]


@dataclass(slots=True)
class _Node:
    """A letter of `letters` where that is not None, and then its only way; else a choice of ways, in order.

    Some begin or repeat what a loop repeats; the way after the last repetition is the second of those.
    """

    ways: list[Way] = field(default_factory=list)
    letters: int | None = None
    begins: int | None = None
    repeats: int | None = None
    is_aside: bool = False


@dataclass(slots=True)
class Automaton:
    """`letters` is the set of each position, `aside` those within lookarounds; a letter is a class of characters."""

    letters: dict[int, int]
    edges: dict[int, list[Edge]]
    aside: frozenset[int]
    loops: list[float]
    """The most characters that each loop takes."""
    samples: list[str]
    """A character of each class."""
    word: int
    """The letters of words."""

    def alike(self) -> list[int]:
        """Return for each letter the first one that conditions do not tell apart from it where it was read before."""
        conditions = {edge.condition for edges in self.edges.values() for edge in edges}
        masks = [*{each.before for each in conditions}, *([self.word] if any(each.word for each in conditions) else [])]
        first: dict[tuple[int, ...], int] = {}
        return [first.setdefault(tuple(mask >> at & 1 for mask in masks), at) for at in range(len(self.samples))]

    def holds(self, condition: Condition, before: int, after: int) -> bool:
        """Return whether a condition holds between two letters."""
        if not (condition.before >> before & 1 and condition.after >> after & 1):
            return False
        return not condition.word or (condition.word == "b") == ((self.word >> before & 1) != (self.word >> after & 1))


def automaton_of(pattern: str | bytes, flags: int) -> Automaton:
    """Make it. Raises `NotJudged`."""
    made = _Making(parser.parse(pattern, flags), is_bytes=isinstance(pattern, bytes))
    start = made.sequence(made.parsed, made.end, aside=False)
    edges = {START: made.edges_from([(start, ALWAYS, Sure.ALWAYS)])}
    positions = [number for number, node in enumerate(made.nodes) if node.letters is not None]
    edges |= {number: made.edges_from(made.nodes[number].ways) for number in positions}
    letters = {number: made.nodes[number].letters or 0 for number in positions}
    aside = frozenset(number for number in positions if made.nodes[number].is_aside)
    return Automaton(letters, edges, aside, made.loops, made.samples, made.word)


class _Making:
    def __init__(self, parsed: Any, *, is_bytes: bool) -> None:
        self.parsed = parsed
        self.nodes: list[_Node] = []
        self.loops: list[float] = []
        self._inner: list[range] = []
        self._groups: dict[int | None, tuple[Any, int]] = {}
        self.end = self._node()
        self.dead = self._node()
        self._flags = parsed.state.flags
        self._is_bytes = is_bytes
        self._classes()

    def _classes(self) -> None:
        """Divide characters into classes that no set of the expression tells apart."""
        universe = _universe(tuple(sorted(_mentioned(self.parsed))), is_bytes=self._is_bytes)
        fixed = ((r"[\w]", self._flags & re.ASCII), (r"[\n]", 0))
        sets = [*dict.fromkeys((*_sets(self.parsed, self._flags), *fixed))]
        told: dict[str, int] = {}
        for number, (node, flags) in enumerate(sets):
            for character in _members(node, flags, universe, self._is_bytes):
                told[character] = told.get(character, 0) | 1 << number
        kinds: dict[int, str] = {}
        for character in universe:
            kinds.setdefault(told.get(character, 0), character)
        self.samples = list(kinds.values())
        self._letters = {
            key: sum(1 << at for at, kind in enumerate(kinds) if kind >> number & 1) for number, key in enumerate(sets)
        }
        self.word, self._line_end = (self._letters[each] for each in fixed)

    def _node(self, **given: Any) -> int:
        self.nodes.append(_Node(**given))
        return len(self.nodes) - 1

    def _choice(self, *ways: Way) -> int:
        return self._node(ways=list(ways))

    def sequence(self, items: Any, then: int, *, aside: bool, flags: int | None = None) -> int:
        """Return the node where a sequence begins, after which `then` comes."""
        flags = self._flags if flags is None else flags
        for item in reversed(list(items)):
            then = self._item(item, then, aside, flags)
        return then

    def _item(self, item: Any, then: int, aside: bool, flags: int) -> int:
        kind, given = item
        if kind in _ONE_CHARACTER:
            letters = self._letters[_key(item, flags)]
            return self._node(ways=[(then, ALWAYS, Sure.ALWAYS)], letters=letters, is_aside=aside)
        if kind is op.SUBPATTERN:
            group, added, removed, inner = given
            flags = (flags | added) & ~removed
            self._groups[group] = inner, flags
            return self.sequence(inner, then, aside=aside, flags=flags)
        if kind is op.GROUPREF:
            # As what the group may be, where that is short.
            inner, flags = self._groups.get(given) or self._group(given)
            if _width(inner) > _REFERENCE_MAX:
                raise NotJudged("a reference to a group without a small bound is not judged")
            return self.sequence(inner, then, aside=aside, flags=flags)
        if kind is op.ATOMIC_GROUP:
            return self.sequence(given, then, aside=aside, flags=flags)
        if kind is op.BRANCH:
            return self._choice(
                *((self.sequence(each, then, aside=aside, flags=flags), ALWAYS, Sure.ALWAYS) for each in given[1])
            )
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            return self._repeat(kind, *given, then=then, aside=aside, flags=flags)
        if kind is op.AT:
            return self._choice((then, self._place(given, flags), Sure.BY_LETTERS))
        if kind in {op.ASSERT, op.ASSERT_NOT}:
            return self._lookaround(kind, *given, then=then, flags=flags)
        if kind is op.GROUPREF_EXISTS:
            _group, yes, no = given
            ways = [(self.sequence(each or [], then, aside=aside, flags=flags), ALWAYS, Sure.NOT) for each in (yes, no)]
            return self._choice(*ways)
        raise NotJudged(f"{str(kind).lower()} is not judged")

    def _group(self, number: int) -> tuple[Any, int]:
        """Return a group of the expression, which is made from its end."""
        found = (item[1] for item, _ in _within(self.parsed, self._flags) if item[0] is op.SUBPATTERN)
        return next((given[3], self._flags) for given in found if given[0] == number)

    def _repeat(self, kind: Any, least: int, most: Any, inner: Any, *, then: int, aside: bool, flags: int) -> int:
        def body(after: int) -> int:
            return self.sequence(inner, after, aside=aside, flags=flags)

        most = inf if most is op.MAXREPEAT else most
        size, width = _size(inner), _width(inner)
        letters = self._one_letter(inner, flags)
        # What is possessive ends where no further one could be taken.
        ends = Condition(after=~letters) if kind is op.POSSESSIVE_REPEAT and letters is not None else ALWAYS
        written_out = least <= 2 or least * size <= _WRITTEN_OUT
        more = most - least if written_out else most
        first = then
        if more <= 2:
            for _ in range(int(more)):
                first = self._ordered(kind, (body(first), ALWAYS, Sure.ALWAYS), (then, ends, Sure.ALWAYS))
        else:
            loop = len(self.loops)
            self.loops.append(more * width if width and more < inf else (inf if width else 0))
            self._inner.append(range(0))
            is_counted = more < inf or not written_out
            first, again = self._node(), self._node(repeats=loop)
            begin = self._node(ways=[(body(again), ALWAYS, Sure.ALWAYS)], begins=loop)
            self._inner[loop] = range(loop + 1, len(self.loops))
            goes_on = (begin, ALWAYS, Sure.NOT if is_counted else Sure.ALWAYS)
            stops = (then, ALWAYS if is_counted else ends, Sure.ALWAYS if written_out else Sure.NOT)
            self.nodes[first].ways = [stops, goes_on] if kind is op.MIN_REPEAT else [goes_on, stops]
            self.nodes[again].ways = [(first, ALWAYS, Sure.ALWAYS), (then, ALWAYS, Sure.ALWAYS)]
        for _ in range(least if written_out else 0):
            first = body(first)
        return first

    def _ordered(self, kind: Any, again: Way, on: Way) -> int:
        return self._choice(on, again) if kind is op.MIN_REPEAT else self._choice(again, on)

    def _place(self, where: Any, flags: int) -> Condition:
        """Return the condition of an anchor. Before the start and after the end of a text there is no letter."""
        many = bool(flags & re.MULTILINE)
        if where in {op.AT_BOUNDARY, op.AT_NON_BOUNDARY}:
            return Condition(word="b" if where is op.AT_BOUNDARY else "B")
        if where in {op.AT_BEGINNING_STRING, op.AT_BEGINNING}:
            return Condition(before=self._line_end if many and where is op.AT_BEGINNING else 0)
        return Condition(after=0 if where is op.AT_END_STRING else self._line_end)

    def _lookaround(self, kind: Any, direction: int, inner: Any, *, then: int, flags: int) -> int:
        letters = self._one_letter(inner, flags, or_end=True)
        if letters is not None:
            letters = ~letters if kind is op.ASSERT_NOT else letters
            condition = Condition(after=letters) if direction > 0 else Condition(before=letters)
            return self._choice((then, condition, Sure.BY_LETTERS))
        if direction < 0:  # of a fixed width
            return self._choice((then, ALWAYS, Sure.NOT))
        within = self.sequence(inner, self.dead, aside=True, flags=flags)
        return self._choice((within, ALWAYS, Sure.NOT), (then, ALWAYS, Sure.NOT))

    def _one_letter(self, items: Any, flags: int, *, or_end: bool = False) -> int | None:
        """Return the letters of what is always one character, or None. With `or_end` the end of a text counts too."""
        items = list(items)
        if len(items) != 1:
            return None
        ((kind, given),) = items
        if kind in _ONE_CHARACTER:
            return self._letters[_key(items[0], flags)]
        if kind is op.SUBPATTERN:
            return self._one_letter(given[3], (flags | given[1]) & ~given[2], or_end=or_end)
        if kind is op.AT and or_end and given in {op.AT_END_STRING, op.AT_END, op.AT_BEGINNING_STRING}:
            return self._line_end if given is op.AT_END else 0
        if kind is op.BRANCH:
            each = [self._one_letter(one, flags, or_end=or_end) for one in given[1]]
            letters = 0
            for one in each:
                if one is None:
                    return None
                letters |= one
            return letters
        return None

    def edges_from(self, ways: Sequence[Way]) -> list[Edge]:
        """Return where one gets without reading, in the order in which that is tried; nothing is gone through twice."""
        found: list[Edge] = []

        def follow(number: int, condition: Condition, sure: Sure, loops: frozenset[int], begun: frozenset[int]) -> None:
            node = self.nodes[number]
            if number == self.end or node.letters is not None:
                edge = Edge(ACCEPT if number == self.end else number, condition, sure, loops)
                if sum(each.target == edge.target and each.condition == condition for each in found) < 2:
                    found.append(edge)
                if len(found) > _EDGES_MAX:
                    raise NotJudged("it has too many ways")
                return
            ways = node.ways
            if node.begins is not None:
                begun = (begun - frozenset(self._inner[node.begins])) | {node.begins}
            elif node.repeats is not None:
                # What was repeated without reading anything is not repeated once more.
                ways, loops = ways[node.repeats in begun :][:1], loops | {node.repeats}
            for target, more, as_sure in ways:
                follow(target, condition & more, min(sure, as_sure), loops, begun)

        for target, condition, sure in ways:
            follow(target, condition, sure, frozenset(), frozenset())
        return found


_ONE_CHARACTER = {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}
_OF_SETS = re.IGNORECASE | re.ASCII | re.DOTALL | re.UNICODE | re.LOCALE


def _key(item: Any, flags: int) -> tuple[str, int]:
    return _node_text(item), flags & _OF_SETS


_NODES: dict[str, Any] = {}


def _node_text(item: Any) -> str:
    text = repr(item)
    _NODES.setdefault(text, item)
    return text


def _sets(items: Any, flags: int) -> Iterator[tuple[str, int]]:
    for item, inner_flags in _within(items, flags):
        if item[0] in _ONE_CHARACTER:
            yield _key(item, inner_flags)


def _within(items: Any, flags: int) -> Iterator[tuple[Any, int]]:
    """Yield every item of an expression and its flags."""
    for item in items or ():
        kind, given = item
        yield item, flags
        if kind is op.SUBPATTERN:
            yield from _within(given[3], (flags | given[1]) & ~given[2])
        elif kind is op.ATOMIC_GROUP:
            yield from _within(given, flags)
        elif kind is op.BRANCH:
            for each in given[1]:
                yield from _within(each, flags)
        elif kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            yield from _within(given[2], flags)
        elif kind in {op.ASSERT, op.ASSERT_NOT}:
            yield from _within(given[1], flags)
        elif kind is op.GROUPREF_EXISTS:
            yield from _within(given[1], flags)
            yield from _within(given[2], flags)


def _mentioned(items: Any) -> Iterator[int]:
    """Yield the characters beside which a set begins or ends."""
    for (kind, given), _flags in _within(items, 0):
        parts = [(kind, given)] if kind in {op.LITERAL, op.NOT_LITERAL} else given if kind is op.IN else []
        for each, value in parts:
            if each in {op.LITERAL, op.NOT_LITERAL}:
                yield from (value - 1, value, value + 1)
            elif each is op.RANGE:
                yield from (value[0] - 1, *value, value[1] + 1)


@cache
def _universe(mentioned: tuple[int, ...], *, is_bytes: bool) -> tuple[str, ...]:
    """Return characters of every kind that `re` knows, and those mentioned, in both cases."""
    if is_bytes:
        return tuple(map(chr, range(256)))
    own = (case for each in mentioned if 0 <= each <= sys.maxunicode for case in _cases(chr(each)))
    return tuple(dict.fromkeys((*_common(), *own)))


@cache
def _common() -> tuple[str, ...]:
    kinds: dict[tuple[object, ...], int] = {}
    chosen = list(map(chr, range(0x250)))
    for code in range(0x250, 0x20000):
        character = chr(code)
        kind = (
            unicodedata.category(character),
            character.isspace(),
            character.isdecimal(),
            character.isalnum(),
            code >> 10,
        )
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= 1:
            chosen.append(character)
    return tuple(chosen)


def _cases(character: str) -> tuple[str, ...]:
    return tuple(each for each in (character, character.lower(), character.upper()) if len(each) == 1)


@cache
def _members(text: str, flags: int, universe: tuple[str, ...], is_bytes: bool) -> list[str]:
    """Return the characters of one set, as `re` itself finds them."""
    if text in _NODES:
        state = parser.State()
        state.str, state.flags = b"" if is_bytes else "", flags
        one = compiler.compile(parser.SubPattern(state, [_NODES[text]]), flags)
    else:
        one = re.compile(text.encode() if is_bytes else text, flags)
    every = "".join(universe)
    return [each.decode("latin-1") for each in one.findall(every.encode("latin-1"))] if is_bytes else one.findall(every)


def _size(items: Any) -> int:
    """Return how many characters an expression writes."""
    return sum(item[0] in _ONE_CHARACTER for item, _ in _within(items, 0)) or 1


def _width(items: Any) -> float:
    width = items.getwidth()[1]
    return inf if width >= 1 << 31 else width
