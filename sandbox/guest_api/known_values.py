"""Which values the calls in a source have, as far as the source says them, and how often each call is made at most.

A user is shown them before the program starts. No protection depends on it: the host compares what it showed with each
call that is made, and asks again about one that differs. So what is read here may be wrong where a source is odd, such
as a list that is changed after it was bound.

Known are literals, names that are bound once to something known, variables that the program starts with, f-strings and
plain arithmetic of these, the items of a loop over a known sequence, and the parameters of a function that is only
called, from its calls.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, cast

from ..job import Json
from ..skill_source.literals import UnknownValue
from .written_arguments import LITERAL_CHARS_MAX, judged

ROWS_MAX: Final = 1_000
"""Different calls of one place that are reported."""
SOURCE_CHARS_MAX: Final = 200
"""Of the text from which a value is computed."""
_CHARS_MAX: Final = 100_000
"""Approximate characters of the values of one call's place that are reported."""
_STEPS_MAX: Final = 50_000
_DEPTH_MAX: Final = 12

Values = Mapping[str, Json]
"""What names mean where a call stands."""
Around = tuple[ast.AST, ...]
"""The loops and functions in which a node stands, outermost first."""


@dataclass(frozen=True, slots=True)
class Times:
    """Values with which a place is reached, and how often at most; None where the source does not say."""

    values: Values
    times: int | None = 1


@dataclass(frozen=True, slots=True)
class Reached:
    """How a place is reached; with `more`, also in further ways that are not listed."""

    ways: Sequence[Times]
    more: bool = False


ONCE: Final = Reached((Times({}),))
OFTEN: Final = Reached((Times({}, None),))


@dataclass(frozen=True, slots=True)
class KnownCall:
    """What is known of a call: the values of its arguments by name or position, else from what they are computed."""

    given: Mapping[str, Json]
    computed: Mapping[str, str]
    positional: Sequence[Json]
    """`[value]` for a known one, else the text from which it is computed."""
    times: int | None

    def as_json(self) -> Json:
        """Return it as JSON."""
        return [dict(self.given), dict(self.computed), list(self.positional), self.times]


@dataclass(slots=True, repr=False, eq=False)
class SourceValues:
    """The values of one source. `bound` and `loaded` say how often it binds and reads each name.

    Whoever reads the source counts these, and gives each node to `note`. `variables` are what the source starts with.
    `entry` is a function of the source that other sources call as `entered` says, None where that is not all known.
    """

    source: str
    bound: Counter[str]
    loaded: Counter[str]
    variables: Mapping[str, object]
    entry: str | None = None
    entered: Sequence[tuple[ast.Call, SourceValues]] | None = None
    around: dict[int, Around] = field(default_factory=dict)
    """What each call stands in, by its `id`."""
    assigned: dict[str, tuple[ast.expr, ast.expr]] = field(default_factory=dict)
    """The target that holds a name, and what is assigned to it."""
    looped: dict[str, tuple[ast.expr, ast.expr]] = field(default_factory=dict)
    sites: dict[str, list[ast.Call]] = field(default_factory=dict)
    ways: dict[str, Reached] = field(default_factory=dict)
    """How each function is reached, once that was found."""
    lines: list[bytes] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        """Take the source's lines."""
        self.lines = [line.encode("utf-8", "replace") for line in self.source.split("\n")]

    def note(self, node: ast.AST, around: Around) -> dict[int, Around]:
        """Take in a node, which stands in `around`; return what the parts stand in that it repeats, by their `id`."""
        deep = around if len(around) > _DEPTH_MAX else (*around, node)
        repeated: Sequence[ast.AST] = ()
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._note_target(self.assigned, target, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                repeated = node.body
            case ast.For() | ast.AsyncFor():
                self._note_target(self.looped, node.target, node.iter)
                repeated = node.body
            case ast.While():
                repeated = [node.test, *node.body]
            case ast.Lambda():
                repeated = [node.body]
            case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
                repeated = [elt]
            case ast.DictComp():
                repeated = [node.key, node.value]
            case ast.comprehension():
                self._note_target(self.looped, node.target, node.iter)
            case ast.Call():
                self.around[id(node)] = around
                if isinstance(node.func, ast.Name):
                    self.sites.setdefault(node.func.id, []).append(node)
        return dict.fromkeys(map(id, repeated), deep)

    @staticmethod
    def _note_target(found: dict[str, tuple[ast.expr, ast.expr]], target: ast.expr, value: ast.expr) -> None:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found[each.id] = target, value

    def calls(
        self, call: ast.Call, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> tuple[list[KnownCall], bool]:
        """Return what is known of a call that passes these arguments, and whether it is made in further ways."""
        for source in (self, *(source for _, source in self.entered or ())):
            source.steps = 0
        try:
            reached = self.reached(call)
        except UnknownValue:
            reached = OFTEN
        found: dict[int, KnownCall] = {}
        chars = 0
        for way in reached.ways:
            shown = self._shown(way, positional, keywords)
            said = repr((shown.given, shown.computed, shown.positional))
            before = found.get(hash(said))
            if before is not None:
                times = None if before.times is None or shown.times is None else before.times + shown.times
                shown = KnownCall(shown.given, shown.computed, shown.positional, times)
            chars += len(said) if before is None else 0
            if chars > _CHARS_MAX:
                return list(found.values()), True
            found[hash(said)] = shown
        return list(found.values()), reached.more

    def reached(self, call: ast.Call, depth: int = 0) -> Reached:
        """Return how a call is reached. Raises `UnknownValue` where that takes too long to find."""
        around = self.around.get(id(call), ())
        if len(around) > _DEPTH_MAX or depth > _DEPTH_MAX:
            return OFTEN
        reached = ONCE
        for each in around:
            match each:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    reached = self._called(each, depth)
                case ast.For() | ast.AsyncFor():
                    reached = self._looped([(each.target, each.iter)], reached)
                case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                    reached = self._looped([(one.target, one.iter) for one in each.generators], reached)
                case _:
                    reached = _often(reached)
        return reached

    def _called(self, function: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> Reached:
        """Return how a function is reached, from its calls; one that is passed on is reached in ways unknown."""
        name = function.name
        sites: Sequence[tuple[ast.Call, SourceValues]] | None = [(each, self) for each in self.sites.get(name, ())]
        if name == self.entry:
            sites = self.entered
        elif self.loaded[name] != len(self.sites.get(name, ())):
            sites = None
        if not sites or self.bound[name] != 1:
            return OFTEN
        if (before := self.ways.get(name)) is not None:
            return before
        self.ways[name] = OFTEN  # what it is where it calls itself
        ways: list[Times] = []
        more = False
        for call, source in sorted(sites, key=lambda each: (each[0].lineno, each[0].col_offset)):
            reached = source.reached(call, depth + 1)
            more = more or reached.more
            for way in reached.ways[: ROWS_MAX + 1 - len(ways)]:
                self._step()
                ways.append(Times(source.bound_to(function.args, call, way.values), way.times))
        self.ways[name] = _bounded(ways, more=more)
        return self.ways[name]

    def bound_to(self, parameters: ast.arguments, call: ast.Call, values: Values) -> Values:
        """Return the values of a function's parameters, as far as a call of it says them."""
        positional, keywords = self.passed(call)
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        given: dict[str, ast.expr] = {}
        if not any(isinstance(each, ast.Starred) for each in positional):
            given = dict(zip(names, positional, strict=False))
        found: dict[str, Json] = {}
        whole: Mapping[str, Json] = {}
        for each in keywords:
            if each.arg is not None:
                given[each.arg] = each.value
            else:
                whole = {**whole, **self._dict(each.value, values)}
        for name, value in given.items():
            self._put(found, name, value, values)
        defaults = dict(zip(reversed(names), reversed(parameters.defaults), strict=False))
        defaults |= {
            each.arg: value
            for each, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
            if value is not None
        }
        for name, value in defaults.items():
            if name not in given and name not in whole:
                self._put(found, name, value, {})
        return {**found, **whole}

    def passed(self, call: ast.Call) -> tuple[Sequence[ast.expr], Sequence[ast.keyword]]:
        """Return what a call of a function or a skill passes; `call_skill` has the skill's arguments in one dict."""
        if isinstance(call.func, ast.Name) and call.func.id == "call_skill":
            return [], [ast.keyword(None, each) for each in call.args[2:3]]
        return call.args, call.keywords

    def _dict(self, value: ast.expr, values: Values) -> Mapping[str, Json]:
        try:
            known = self.value(value, values)
        except UnknownValue:
            return {}
        return known if isinstance(known, dict) else {}

    def _put(self, found: dict[str, Json], name: str, value: ast.expr, values: Values) -> None:
        try:
            found[name] = self.value(value, values)
        except UnknownValue:
            found.pop(name, None)

    def _looped(self, loops: Sequence[tuple[ast.expr, ast.expr]], reached: Reached) -> Reached:
        """Return how the body of loops is reached, each of which may use what those before it bind."""
        for target, items in loops:
            ways: list[Times] = []
            more = reached.more
            for way in reached.ways:
                try:
                    known = self._items(items, way.values)
                except UnknownValue:
                    unbound = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
                    left = {name: value for name, value in way.values.items() if name not in unbound}
                    ways.append(Times(left, None))
                    continue
                for item in known:
                    self._step()
                    if len(ways) > ROWS_MAX:
                        break
                    ways.append(Times({**way.values, **self._unpacked(target, item)}, way.times))
            reached = _bounded(ways, more=more)
        return reached

    def _unpacked(self, target: ast.expr, item: Json) -> Mapping[str, Json]:
        match target:
            case ast.Name(id=name):
                return {name: item}
            case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(item, list) and len(item) == len(
                targets
            ):
                found: dict[str, Json] = {}
                for one, part in zip(targets, item, strict=True):
                    found |= self._unpacked(one, part)
                return found
        return {}

    def _items(self, items: ast.expr, values: Values) -> Sequence[Json]:
        match items:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if self.bound["range"] == 0:
                numbers = [self.value(each, values) for each in args]
                if numbers and all(type(each) is int for each in numbers):
                    try:
                        return [*islice(range(*cast("list[int]", numbers)), ROWS_MAX + 1)]
                    except (TypeError, ValueError):
                        raise UnknownValue from None
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]) if self.bound["enumerate"] == 0:
                return [[number, each] for number, each in enumerate(self._items(inner, values))]
            case ast.Call(func=ast.Name(id="zip"), args=[*inner], keywords=[]) if self.bound["zip"] == 0 and inner:
                return [[*each] for each in zip(*(self._items(one, values) for one in inner), strict=False)]
            case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[], keywords=[]):
                known = self.value(inner, values)
                if isinstance(known, dict):
                    return [[key, each] for key, each in known.items()]
            case _:
                known = self.value(items, values)
                if isinstance(known, dict | list):
                    return [*known]
        raise UnknownValue

    def value(self, expression: ast.expr, values: Values, depth: int = 0) -> Json:
        """Return the value of an expression. Raises `UnknownValue`."""
        self._step()
        if depth > _DEPTH_MAX:
            raise UnknownValue
        match expression:
            case ast.Constant(value=None | bool() | int() | float() | str() as literal):
                return judged(literal)
            case ast.Name(id=name):
                return self._named(name, values, depth)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.value(operand, values, depth + 1)
                if isinstance(number, int | float) and not isinstance(number, bool):
                    return -number
            case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= LITERAL_CHARS_MAX:
                return [self.value(each, values, depth + 1) for each in items]
            case ast.Dict(keys=keys, values=inner) if len(keys) <= LITERAL_CHARS_MAX:
                return {
                    self._key(key, values, depth): self.value(each, values, depth + 1)
                    for key, each in zip(keys, inner, strict=True)
                }
            case ast.JoinedStr(values=parts):
                return judged("".join(self._part(each, values, depth) for each in parts))
            case ast.BinOp(left=left, op=operator, right=right):
                return _computed(self.value(left, values, depth + 1), operator, self.value(right, values, depth + 1))
            case ast.Subscript(value=inner, slice=index):
                return _item(self.value(inner, values, depth + 1), self.value(index, values, depth + 1))
            case ast.Call(func=ast.Name(id="str"), args=[only], keywords=[]) if self.bound["str"] == 0:
                known = self.value(only, values, depth + 1)
                if isinstance(known, str | int):
                    return judged(str(known))
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words) if self.bound["dict"] == 0 and all(
                each.arg for each in words
            ):
                return {str(each.arg): self.value(each.value, values, depth + 1) for each in words}
        raise UnknownValue

    def _named(self, name: str, values: Values, depth: int) -> Json:
        if name in values:
            return values[name]
        if self.bound[name] == 1 and name in self.assigned:
            target, value = self.assigned[name]
            found = self._unpacked(target, self.value(value, values, depth + 1))
            if name in found:
                return found[name]
        if self.bound[name] == 0 and name in self.variables:
            return judged(self.variables[name], _DEPTH_MAX)
        raise UnknownValue

    def _key(self, key: ast.expr | None, values: Values, depth: int) -> str:
        known = None if key is None else self.value(key, values, depth + 1)
        if isinstance(known, str):
            return known
        raise UnknownValue

    def _part(self, part: ast.expr, values: Values, depth: int) -> str:
        match part:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                known = self.value(inner, values, depth + 1)
                if isinstance(known, str | int) and not isinstance(known, bool):
                    return str(known)
        raise UnknownValue

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS_MAX:
            raise UnknownValue

    def _shown(self, way: Times, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> KnownCall:
        given: dict[str, Json] = {}
        computed: dict[str, str] = {}
        by_position: list[Json] = []
        items: list[tuple[str | None, ast.expr]] = [(each.arg, each.value) for each in keywords]
        if len(positional) == 1 and (isinstance(positional[0], ast.Dict) or self._dict(positional[0], way.values)):
            items.insert(0, (None, positional[0]))  # one dict by position stands for arguments by name
            positional = ()
        for each in positional:
            try:
                by_position.append([self.value(each, way.values)])
            except UnknownValue:
                by_position.append(self.text(each))
        while items:
            name, value = items.pop(0)
            if name is not None:
                try:
                    given[name] = self.value(value, way.values)
                except UnknownValue:
                    computed[name] = self.text(value)
            elif isinstance(value, ast.Dict) and all(
                each is None or isinstance(each, ast.Constant) for each in value.keys
            ):
                items = [
                    (None if key is None else str(cast("ast.Constant", key).value), each)
                    for key, each in zip(value.keys, value.values, strict=True)
                ] + items
            elif known := self._dict(value, way.values):
                given |= known
            else:
                computed["**"] = self.text(value)
        return KnownCall(given, computed, by_position, way.times)

    def text(self, expression: ast.expr) -> str:
        """Return the source of an expression, with that from which the name that it is comes, if it is one."""
        said = self._source_of(expression)
        if not isinstance(expression, ast.Name):
            names = {each.id for each in islice(ast.walk(expression), ROWS_MAX) if isinstance(each, ast.Name)}
            name = next((each for each in sorted(names) if each in self.looped or each in self.assigned), None)
        else:
            name = expression.id
        if name is not None and self.bound[name] == 1 and name in self.assigned:
            return f"{said}, where {name} = {self._source_of(self.assigned[name][1])}"
        if name is not None and name in self.looped:
            target, items = self.looped[name]
            return f"{said}, for {self._source_of(target)} in {self._source_of(items)}"
        return said

    def _source_of(self, node: ast.expr) -> str:
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else b""
        end = node.end_col_offset if node.lineno == node.end_lineno else None
        most = node.col_offset + SOURCE_CHARS_MAX
        cut = line[node.col_offset : most if end is None else min(end, most)].decode("utf-8", "ignore").strip()
        return cut if end is not None and end <= most else f"{cut}…"


def _often(reached: Reached) -> Reached:
    return Reached([Times(each.values, None) for each in reached.ways], reached.more)


def _bounded(ways: Sequence[Times], *, more: bool) -> Reached:
    return Reached(ways[:ROWS_MAX], more or len(ways) > ROWS_MAX)


def _computed(left: Json, operator: ast.operator, right: Json) -> Json:
    if isinstance(left, str) and isinstance(right, str) and isinstance(operator, ast.Add):
        return judged(left + right)
    if isinstance(left, bool) or isinstance(right, bool):
        raise UnknownValue
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise UnknownValue
    try:
        match operator:
            case ast.Add():
                return judged(left + right)
            case ast.Sub():
                return judged(left - right)
            case ast.Mult():
                return judged(left * right)
            case ast.Div():
                return judged(left / right)
    except ArithmeticError:
        raise UnknownValue from None
    raise UnknownValue


def _item(value: Json, index: Json) -> Json:
    try:
        if isinstance(value, list) and type(index) is int:
            return cast("Json", value[index])
        if isinstance(value, dict) and isinstance(index, str):
            return cast("Json", value[index])
    except LookupError:
        pass
    raise UnknownValue
