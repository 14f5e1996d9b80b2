"""Proves that the matcher of `re` takes at most so many steps a character for an expression, in a search.

Paths that fail are what costs. Once a place is reached from which the rest may be empty, the match succeeds, and the
matcher never goes back before it: so such places are one chain in each match, and what fails begins at one of them or at
a start of the search, and leads through other positions alone. In the automaton of those, with a state before them that
stays in its place for any letter, a bounded number of paths for every text is a bounded number of steps a character.

There is no bound where a position leads to itself on two ways (exponential), or where two positions that lead to
themselves, and one to the other, do so for the same text (polynomial; one of them may be the start of the search).
Sources: Weber, Seidl: On the degree of ambiguity of finite automata (1991). Weideman et al.: Analyzing matching time
behavior of backtracking regular expression matchers by using ambiguity of NFA (2016). Wüstholz et al.: Static detection
of DoS vulnerabilities in programs that use regular expressions (2017).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, TypeVar

from .automaton import ACCEPT, START, Automaton, NotJudged, Sure, automaton_of

STEPS_MAX = 128
"""Steps a character, as far as repeats with a bound make them: a megabyte in half a second."""
_STATES_MAX = 400_000
_T = TypeVar("_T")
_Ways = Iterator[tuple[Any, int]]


class Use(Enum):
    """How an expression is used."""

    SEARCH = "search"
    MATCH = "match"
    """At one place, without a search."""
    FULLMATCH = "fullmatch"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`steps` a character at most, where they are bounded; `pump` is a text that repeated makes it slow."""

    steps: float = 1
    is_exponential: bool = False
    pump: str = ""
    why_not: str = ""

    @property
    def is_linear(self) -> bool:
        """Whether it may be used without a bound of its input."""
        return not self.why_not and not self.is_exponential and self.steps <= STEPS_MAX

    def __str__(self) -> str:
        if self.why_not:
            return self.why_not
        if self.is_exponential:
            return f"exponential for repeats of {self.pump!r}"
        if self.steps == inf:
            return f"not linear for repeats of {self.pump!r}"
        return f"up to {self.steps:.0f} steps a character for repeats of {self.pump!r}"


def judge(pattern: str | bytes, flags: int, use: Use) -> Judgement:
    """Return how long an expression takes at worst."""
    try:
        return _Proof(automaton_of(pattern, flags), use).judgement()
    except NotJudged as error:
        return Judgement(why_not=str(error))


class _Proof:
    def __init__(self, automaton: Automaton, use: Use) -> None:
        self.automaton = automaton
        self.use = use
        self._sure = frozenset(
            each
            for each in automaton.edges
            # What a search finds may be found again at its place, if it is empty, and then it is not to be.
            if each != START and use is not Use.FULLMATCH and each not in automaton.aside and self._may_end(each)
        )
        self._tried: dict[tuple[int, int, int], list[int]] = {}
        self._all: dict[tuple[int, int, int], list[int]] = {}
        self._inner: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
        self._alike = automaton.alike()
        failing = [each for each in automaton.letters if each not in self._sure]
        follows = {each: {edge.target for edge in automaton.edges[each]} for each in failing}
        self._part: dict[int, int] = {}
        self._members: list[list[int]] = []
        for part in _parts(follows):
            if len(part) > 1 or part[0] in follows[part[0]]:
                self._part |= dict.fromkeys(part, len(self._members))
                self._members.append(part)
        self._bounds = [self._bound(set(part)) for part in self._members]
        self._reaches = _reaching(failing, follows)

    def _may_end(self, position: int) -> bool:
        return any(edge.target == ACCEPT and edge.sure is Sure.ALWAYS for edge in self.automaton.edges[position])

    def judgement(self) -> Judgement:
        for part in range(len(self._members)):
            if (pump := self._twice(part)) is not None:
                return Judgement(inf, is_exponential=True, pump=pump)
        steps = dict.fromkeys(range(len(self._members)), 1.0)
        pumps = dict.fromkeys(steps, "")
        for number in self._in_order():
            target = self._members[number][0]
            if (pump := self._from_start(number)) is not None:
                steps[number], pumps[number] = self._bounds[number], pump
            for other in range(len(self._members)):
                before = self._members[other][0]
                if other == number or target not in self._reaches[before]:
                    continue
                more = steps[other] * min(self._bounds[other], self._bounds[number])
                if more > steps[number] and (pump := self._in_a_row(other, number)) is not None:
                    steps[number], pumps[number] = more, pump
        worst = max(steps, key=lambda each: steps[each], default=None)
        return Judgement() if worst is None else Judgement(steps[worst], pump=pumps[worst])

    def _in_order(self) -> list[int]:
        return sorted(range(len(self._members)), key=lambda each: -len(self._reaches[self._members[each][0]]))

    def _bound(self, part: set[int]) -> float:
        """Return how many characters are taken at most before a part is left."""
        loops = {
            loop for each in part for edge in self.automaton.edges[each] if edge.target in part for loop in edge.loops
        }
        return max((self.automaton.loops[loop] for loop in loops), default=inf)

    def _next(self, position: int, before: int, letter: int) -> list[int]:
        """Return the positions that may fail, and to which a letter leads; one on two ways stands twice."""
        key = position, before, letter
        if key not in self._tried:
            self._tried[key] = found = []
            for edge in self.automaton.edges[position]:
                if edge.target == ACCEPT:
                    if edge.sure is Sure.ALWAYS and self.use is not Use.FULLMATCH and position != START:
                        break
                    continue
                if not self.automaton.letters[edge.target] >> letter & 1:
                    continue
                if not self.automaton.holds(edge.condition, before, letter):
                    continue
                if edge.target not in self._sure:
                    found.append(edge.target)
                elif edge.sure is not Sure.NOT:
                    break
        return self._tried[key]

    def _within(self, position: int, before: int, part: int) -> list[tuple[int, list[int]]]:
        """Return the letters by which a position leads to others of its part, with these."""
        key = position, before
        if key not in self._inner:
            self._inner[key] = [
                (letter, inner)
                for letter in range(len(self.automaton.samples))
                if (inner := [each for each in self._next(position, before, letter) if self._part.get(each) == part])
            ]
        return self._inner[key]

    def _starts(self, position: int, other: int) -> list[int]:
        """Return what may have been read before two positions are left: one letter for all that are the same there."""
        both = self.automaton.letters[position] & self.automaton.letters.get(other, -1)
        return list(dict.fromkeys(self._alike[letter] for letter in range(len(self._alike)) if both >> letter & 1))

    def _twice(self, part: int) -> str | None:
        """Return a text by which a position of a part leads to itself on two ways."""

        def after(node: tuple[int, int, bool, int]) -> _Ways:
            one, other, _, before = node
            for letter, firsts in self._within(one, before, part):
                seconds = [each for each in self._next(other, before, letter) if self._part.get(each) == part]
                for first, second in _product([firsts, seconds]):
                    yield (first, second, False, self._alike[letter]), letter
                    # Two edges between the same positions are two ways as well.
                    if one == other and first == second and firsts.count(first) > 1:
                        yield (first, first, True, self._alike[letter]), letter

        alike = [(each, each, False, letter) for each in self._members[part] for letter in self._starts(each, each)]
        graph = {node: [following for following, _ in after(node)] for node in {*alike, *_search(alike, after)}}
        for circle in _parts(graph):
            apart = next((node for node in circle if node[0] != node[1] or node[2]), None)
            start = next((node for node in circle if node[0] == node[1]), None)
            if apart is not None and start is not None and (len(circle) > 1 or start in graph[start]):
                return self._pump(start, after, apart) + self._pump(apart, after, start)
        return None

    def _from_start(self, part: int) -> str | None:
        """Return a text for which a part is kept, and to which the start of a search or a sure position leads."""
        origins = [START] if self.use is Use.SEARCH else []
        pumps = (self._from(origin, part) for origin in (*origins, *sorted(self._sure)))
        return next((pump for pump in pumps if pump is not None), None)

    def _from(self, origin: int, part: int) -> str | None:
        """Return a text by which an origin is met again, a part is kept, and the origin leads to that part."""

        def after(node: tuple[int, int, int, int]) -> _Ways:
            again, between, other, before = node
            for letter, others in self._within(other, before, part):
                ways = self._next(between, before, letter)
                if between == START:  # the search is not there yet
                    ways = [START, *ways]
                if ways:
                    firsts = [START] if origin == START else self._any(again, before, letter)
                    for first, way, each in _product([firsts, ways, others]):
                        yield (first, way, each, self._alike[letter]), letter

        for position in self._members[part]:
            for letter in self._starts(position, origin):
                start, end = (origin, origin, position, letter), (origin, position, position, letter)
                if end in _search([start], after):
                    return self._pump(start, after, end)
        return None

    def _any(self, position: int, before: int, letter: int) -> list[int]:
        """Return where a letter leads, be it that a match ends before it and a search goes on."""
        key = position, before, letter
        if key not in self._all:
            found = [
                edge.target
                for edge in self.automaton.edges[position]
                if edge.target != ACCEPT
                and self.automaton.letters[edge.target] >> letter & 1
                and self.automaton.holds(edge.condition, before, letter)
            ]
            if self.use is Use.SEARCH and (position == START or position in self._sure):
                found += [START, *(self._any(START, before, letter) if position != START else [])]
            self._all[key] = list(dict.fromkeys(found))
        return self._all[key]

    def _in_a_row(self, first: int, second: int) -> str | None:
        """Return a text for which positions of two parts lead to themselves, and the first to the second."""

        def after(node: tuple[int, int, int, int]) -> _Ways:
            one, between, other, before = node
            for letter, others in self._within(other, before, second):
                ones = [each for each in self._next(one, before, letter) if self._part.get(each) == first]
                for together in _product([ones, self._next(between, before, letter), others]):
                    yield (*together, self._alike[letter]), letter  # type: ignore[misc]  # of three

        for one in self._members[first]:
            for other in self._members[second]:
                for letter in self._starts(one, other):
                    start, end = (one, one, other, letter), (one, other, other, letter)
                    if end in _search([start], after):
                        return self._pump(start, after, end)
        return None

    def _pump(self, start: _T, after: Callable[[_T], Iterator[tuple[_T, int]]], end: _T) -> str:
        """Return the letters of a shortest way."""
        reached = _search([start], after)
        text, at = "", end
        while not text or at != start:
            at, letter = reached[at]
            text = self.automaton.samples[letter] + text
        return text


def _product(each: list[list[int]]) -> Iterator[tuple[int, ...]]:
    if not each:
        yield ()
        return
    for first in dict.fromkeys(each[0]):
        for rest in _product(each[1:]):
            yield first, *rest


def _search(starts: Iterable[_T], after: Callable[[_T], Iterator[tuple[_T, int]]]) -> dict[_T, tuple[_T, int]]:
    """Return what is reached by at least one step, each with what it is reached from, and by which letter."""
    reached: dict[_T, tuple[_T, int]] = {}
    begun = set(starts)
    queue = deque(begun)
    while queue:
        node = queue.popleft()
        for following, letter in after(node):
            if following not in reached:
                reached[following] = node, letter
                if following not in begun:
                    queue.append(following)
                if len(reached) > _STATES_MAX:
                    raise NotJudged("it is too large to be judged")
    return reached


def _parts(follows: Mapping[_T, Iterable[_T]]) -> list[list[_T]]:
    """Return the strongly connected parts (Tarjan 1972), without recursion."""
    index: dict[_T, int] = {}
    low: dict[_T, int] = {}
    stack: dict[_T, None] = {}
    found: list[list[_T]] = []
    for root in follows:
        if root in index:
            continue
        way: list[tuple[_T, Iterator[_T]]] = [(root, iter(follows[root]))]
        index[root] = low[root] = len(index)
        stack[root] = None
        while way:
            node, others = way[-1]
            each = next((other for other in others if other in follows), None)
            if each is None:
                way.pop()
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[node])
                if low[node] == index[node]:
                    part = [stack.popitem()[0]]
                    while part[-1] != node:
                        part.append(stack.popitem()[0])
                    found.append(part)
            elif each not in index:
                index[each] = low[each] = len(index)
                stack[each] = None
                way.append((each, iter(follows[each])))
            elif each in stack:
                low[node] = min(low[node], index[each])
    return found


def _reaching(nodes: Iterable[int], follows: Mapping[int, set[int]]) -> dict[int, set[int]]:
    found = {}
    for node in nodes:
        seen: set[int] = set()
        queue = [node]
        while queue:
            for each in follows.get(queue.pop(), ()):
                if each in follows and each not in seen:
                    seen.add(each)
                    queue.append(each)
        found[node] = seen
    return found
