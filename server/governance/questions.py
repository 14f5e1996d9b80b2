"""Security boundary: what a user is asked before calls are made, and what they answer, the same on every way.

What names a party, a place or a sum stands in a question whole, since a yes covers that and nothing else. All else may
be cut, and says so. Whatever code, servers and files wrote is quoted, so that it cannot be taken for words of the
question.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Self, cast

from pydantic import BaseModel, ConfigDict

from ..base.arguments import shown

THIS_CALL = "this call"
THIS_RUN = "such calls in this run"
ALWAYS = "such calls always"
EACH_CALL = "ask at each call"
"""What a yes covers, as a user chooses it."""

REST = "**"
"""Stands for the arguments of a call whose names are not known before it is made."""
CALLS_MAX = 40
"""Calls of one question; those beyond it are asked about in the next one, or when they are made."""
CHARS_MAX = 8_000
"""Characters of the calls of one question, but for its first one, which is shown whole."""
NAMING_CHARS_MAX = 20_000
"""Characters of what names parties, places and sums in one call; a call with more cannot be asked about."""
SAMPLES = 3
"""Values that are shown of an argument that differs from call to call."""
REASON_CHARS_MAX = 1_000

_VALUE_CHARS_MAX = 300
_NAME_CHARS_MAX = 120
_ARGUMENTS_SHOWN = 12
"""Arguments of a call that are shown though they name no party, place or sum."""
_TABLE_ROWS_MIN = 3
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,150}")
_NUMBERS = re.compile(r"[\s,;]*(?:[0-9]{1,4}(?:[\s,;]+|$))*")

_TOP = re.compile(r"[.\[]")
"""What follows the name of an argument where a clause is about a part of it."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)

    def changed(self, **changes: object) -> Self:
        """Return it with other values of some fields; `model_copy` would keep what was computed of the old ones."""
        return self.model_validate({name: getattr(self, name) for name in type(self).model_fields} | changes)


class AskedArgument(_Model):
    """One argument of a call: its value, or from what it is computed; `others` are values that it has in like calls.

    What is `identifying` names a party, a place or a sum. A `source_clause` says where its value comes from.
    """

    name: str
    value: object = None
    identifying: bool = False
    source_clause: str | None = None
    computed: str | None = None
    others: tuple[object, ...] = ()


class AskedCall(_Model):
    """A call, or several that name the same parties, places and sums.

    `place` says where it stands, `times` how often it is made at most, None where the program does not say.
    """

    server: str
    tool: str
    arguments: tuple[AskedArgument, ...] = ()
    place: str = ""
    times: int | None = 1

    @property
    def full_name(self) -> str:
        """The tool's full name."""
        return f"{self.server}.{self.tool}"

    @cached_property
    def naming(self) -> dict[str, object]:
        """The arguments that name parties, places and sums."""
        return {each.name: each.value for each in self.arguments if each.identifying}

    @cached_property
    def key(self) -> str:
        """What a yes is kept under: the tool, and all that names parties, places and sums."""
        text = json.dumps([self.full_name, self.naming], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def naming_chars(self) -> int:
        """How long what it names is; of much more than `NAMING_CHARS_MAX`, that it is more."""
        chars = 0
        for name, value in self.naming.items():
            chars += len(name) + len(shown(value, NAMING_CHARS_MAX))
            if chars > NAMING_CHARS_MAX:
                break
        return chars

    def __str__(self) -> str:
        """Return it as a line of a question has it."""
        return self.line()

    def line(self, without: frozenset[str] = frozenset()) -> str:
        """Return it as a line, without the arguments of these names."""
        shown_ones: list[str] = []
        left = 0
        for each in self.arguments:
            if each.name in without:
                continue
            if each.identifying or len(shown_ones) < _ARGUMENTS_SHOWN:
                shown_ones.append(_argument(each))
            else:
                left += 1
        more = f", and {left} more arguments" if left else ""
        return f"{named(self.shown_name)}({', '.join(shown_ones)}{more})"

    @property
    def shown_name(self) -> str:
        """The tool's full name as it is shown: reading a resource is kept apart from a tool of that name by a NUL."""
        return self.full_name.removesuffix("\0")

    @property
    def where(self) -> str:
        """Where it stands and how often it is made, in brackets; empty where that says nothing."""
        often = (
            "" if self.times == 1 else "any number of times" if self.times is None else f"at most {self.times} times"
        )
        said = ", ".join(filter(None, (self.place, often)))
        return f" [{said}]" if said else ""

    def shows(self, other: AskedCall) -> bool:
        """Return whether it says all that another of the same key does: as many calls, and where values come from."""
        is_as_often = self.times is None or (other.times is not None and other.times <= self.times)
        return is_as_often and {*other.clauses} <= {*self.clauses}

    @property
    def clauses(self) -> Iterator[str]:
        """What is said of where its values come from."""
        return (each.source_clause for each in self.arguments if each.source_clause)


def with_clauses(call: AskedCall, clauses: Mapping[str, str]) -> AskedCall:
    """Return a call with what is said of where its values come from, by the names of arguments."""
    if not clauses:
        return call
    of: dict[str, list[str]] = {}
    for name, clause in clauses.items():
        of.setdefault(name if any(each.name == name for each in call.arguments) else _TOP.split(name)[0], []).append(
            clause
        )
    return call.changed(
        arguments=tuple(
            each.changed(source_clause="; ".join(of[each.name])) if each.name in of else each for each in call.arguments
        )
    )


class Question(_Model):
    """One question. `calls` are what a yes covers; `later` are those that are asked about when they are made.

    A question about something else than calls is its `plain` text.
    """

    plain: str = ""
    title: str = ""
    who: str = ""
    calls: tuple[AskedCall, ...] = ()
    later: tuple[AskedCall, ...] = ()
    left: int = 0
    effects: tuple[str, ...] = ()
    covers: str = ""
    rules: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """The question as it is put to a user."""
        return self.plain or "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        of = f", in {quoted(self.title)}" if self.title else ""
        by = f" It is asked for {quoted(self.who)[1:-1]}." if self.who else ""
        calls = "this call" if len(self.calls) == 1 else f"these {len(self.calls)} calls"
        yield f"May the running code make {calls}{of}?{by}"
        yield from self._numbered()
        yield from self.effects
        if self.later:
            yield "A yes does not cover these; each is asked about when it is made:"
            for each in self.later:
                yield f"- {each}{each.where}"
                yield from (f"  {clause}" for clause in each.clauses)
        if self.left:
            yield f"There is no room here for {self.left} more: each is asked about when it is made."
        if self.covers:
            yield self.covers
        if self.rules:
            yield f'"{ALWAYS}" writes the rule: {"; ".join(self.rules)}.'

    def _numbered(self) -> Iterator[str]:
        """Give the calls with their numbers, those that are alike as a table of what differs."""
        number = 0
        for _, alike in groupby(self.calls, lambda each: (each.full_name, [one.name for one in each.arguments])):
            rows = [*alike]
            same: frozenset[str] = frozenset()
            if len(rows) >= _TABLE_ROWS_MIN:
                same = frozenset(
                    each.name
                    for at, each in enumerate(rows[0].arguments)
                    if all(row.arguments[at] == each for row in rows)
                )
                shared = ", ".join(_argument(each) for each in rows[0].arguments if each.name in same)
                count = (
                    "any number of" if any(row.times is None for row in rows) else sum(row.times or 0 for row in rows)
                )
                yield f"{named(rows[0].shown_name)}, {count} calls{f', in each {shared}' if shared else ''}:"
            for row in rows:
                number += 1
                yield f"{number}. {row.line(same)}{row.where}"
                yield from (f"   {clause}" for clause in row.clauses)

    def texts(self) -> list[list[object]]:
        """Return what of it names no party, place or sum: the title, then the values and sources of each call."""
        calls = [*self.calls, *self.later]
        return [[self.plain, self.title], *(_texts(each) for each in calls)]

    def with_texts(self, texts: Sequence[Sequence[object]]) -> Question:
        """Return the question with other texts in place of those of `texts`."""
        (plain, title), *of_calls = texts
        calls = [
            _with_texts(each, its_texts) for each, its_texts in zip((*self.calls, *self.later), of_calls, strict=True)
        ]
        count = len(self.calls)
        return self.changed(plain=plain, title=title, calls=tuple(calls[:count]), later=tuple(calls[count:]))

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def asks_the_same(self, other: Question) -> bool:
        """Return whether an answer to another question answers this one, and shows nothing that the other did not."""
        if self.plain or other.plain:
            return self.plain == other.plain
        asked = {each.key: each for each in other.calls}
        return bool(self.calls) and all(each.key in asked and asked[each.key].shows(each) for each in self.calls)

    def without(self, asked: Question) -> Question | None:
        """Return what of it another question does not ask; None where that is nothing."""
        keys = {each.key for each in asked.calls}
        left = tuple(each for each in self.calls if each.key not in keys)
        return self.changed(calls=left) if left else None


class Reply(_Model):
    """What a user answered: a choice, an empty one where there was none, or None for a no.

    A yes may be a no to some calls, by their numbers from 1. A `reason` is for the code.
    """

    choice: str | None = None
    reason: str = ""
    refused: tuple[int, ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Reply:
        """Return the reply that `as_json` made these fields of; other fields are ignored."""
        return cls.model_validate({name: fields[name] for name in cls.model_fields if name in fields})

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return {"choice": self.choice, "reason": self.reason, "refused": list(self.refused)}

    def as_to(self, answered: Question, asked: Question) -> Reply:
        """Return what it says of the calls of a question, of which it answered at least these."""
        if any(not 1 <= number <= len(answered.calls) for number in self.refused):
            return Reply(reason=self.reason)
        no = {answered.calls[number - 1].key for number in self.refused}
        refused = [number for number, each in enumerate(asked.calls, 1) if each.key in no]
        return self.changed(refused=tuple(refused))


NO = Reply()


def _texts(call: AskedCall) -> list[object]:
    return [[None if each.identifying else [each.value, *each.others], each.computed] for each in call.arguments]


def _with_texts(call: AskedCall, texts: Sequence[object]) -> AskedCall:
    arguments: list[AskedArgument] = []
    for each, pair in zip(call.arguments, texts, strict=True):
        values, computed = cast("tuple[list[object] | None, str | None]", pair)
        changed: dict[str, object] = {} if values is None else {"value": values[0], "others": tuple(values[1:])}
        arguments.append(each.changed(**changed, computed=computed))
    return call.changed(arguments=tuple(arguments))


def reply_of(*, approves: bool, choice: str = "", reason: str = "", refused: str = "") -> Reply:
    """Return what a form says. `refused` are numbers of calls; where they cannot be read it is a no to all."""
    reason = reason[:REASON_CHARS_MAX]
    if not approves:
        return Reply(reason=reason)
    if not _NUMBERS.fullmatch(refused):
        return Reply(reason=reason or f"The user said no to some calls, and not clearly to which: {quoted(refused)}.")
    return Reply(choice=choice, reason=reason, refused=tuple(map(int, re.findall("[0-9]+", refused))))


def fitting(calls: Sequence[AskedCall]) -> int:
    """Return how many of the calls, from the first on, fit into one question."""
    chars = 0
    for number, each in enumerate(calls[:CALLS_MAX]):
        chars += len(str(each)) + len(each.where) + sum(map(len, each.clauses))
        if number and chars > CHARS_MAX:
            return number
    return min(len(calls), CALLS_MAX)


def named(name: str) -> str:
    """Return the name of a tool as a question has it: a server may call its tools whatever it likes."""
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name, _NAME_CHARS_MAX)


def quoted(value: object, chars_max: int = _VALUE_CHARS_MAX) -> str:
    """Return a value as JSON on one line; of a long one its beginning, and how long it is."""
    text = shown(value, chars_max)
    size = f" ({len(value)} characters in all)" if text.endswith("…") and isinstance(value, str) else ""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text) + size


def rule_text(tool: str, arguments: Mapping[str, object], limits: Mapping[str, object]) -> str:
    """Return a rule that allows calls without a question, as it is shown."""
    said = [f"{_name(name)} is {quoted(value, NAMING_CHARS_MAX)}" for name, value in sorted(arguments.items())]
    said += [f"{_name(name)} is at most {quoted(value)}" for name, value in sorted(limits.items())]
    return f"{named(tool)} where {', '.join(said)}" if said else f"{named(tool)} where nothing names a party or a sum"


def _argument(argument: AskedArgument) -> str:
    name = _name(argument.name)
    if argument.name == REST:
        return f"others computed from {quoted(argument.computed)}" if argument.computed else "…"
    if argument.computed is not None:
        return f"{name}=computed from {quoted(argument.computed)}"
    if argument.identifying:
        return f"{name}={quoted(argument.value, NAMING_CHARS_MAX)}"
    if argument.others:
        values = [quoted(each, _NAME_CHARS_MAX) for each in (argument.value, *argument.others)]
        return f"{name}=one of {', '.join(values[:SAMPLES])}{', …' if len(values) > SAMPLES else ''}"
    return f"{name}={quoted(argument.value)}"


def _name(name: str) -> str:
    return name if name.isidentifier() and len(name) <= _NAME_CHARS_MAX else quoted(name, _NAME_CHARS_MAX)
