"""Arguments judged by schemas that hostile servers publish."""

from __future__ import annotations

import difflib
import re
import socket
from functools import partial
from typing import Any

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.server.base import arguments
from sealab.server.base.errors import ArgumentsRefused, HostWorkRefused
from sealab.server.base.host_work import Account, Kind, charged_to, in_thread
from sealab.server.use_cases.skills.skill_arguments import judge_arguments
from sealab.server.use_cases.upstream_tools.tool_arguments import (
    MISFITS_NAMED_MAX,
    checked,
    misfits_as_written,
    why_refused_by_format,
)
from sealab.tools_registry.definitions import tools_of
from sealab.tools_registry.models import Tool
from sealab.tools_registry.schema_checks import bounded_validator

BACKTRACKS = "^(a+)+$"
BACKTRACKED = "a" * 40 + "!"
FORKS: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}


def tool(schema: dict[str, Any]) -> Tool:
    [made], problems = tools_of([{"name": "run", "inputSchema": {"type": "object", **schema}}], "up", "1")
    assert not problems
    return made


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {BACKTRACKED: {"type": "string", "pattern": BACKTRACKS}}},
        {"patternProperties": {BACKTRACKS: {}}, "additionalProperties": False},
        {"patternProperties": {BACKTRACKS: {}}, "unevaluatedProperties": False},
        {"allOf": [{"patternProperties": {BACKTRACKS: {}}}], "unevaluatedProperties": {"type": "integer"}},
        {"propertyNames": {"pattern": BACKTRACKS}},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "patternProperties": {BACKTRACKS: {}},
         "unevaluatedProperties": False},
        {"$schema": "http://json-schema.org/draft-03/schema#", "patternProperties": {BACKTRACKS: {}},
         "additionalProperties": False},
    ],
)  # fmt: skip
def test_no_pattern_of_a_schema_is_ever_run(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = re.search

    def searched(pattern: Any, *more: Any, **named: Any) -> Any:
        assert pattern != BACKTRACKS, "a pattern that came from a server was run"
        return real(pattern, *more, **named)

    monkeypatch.setattr(re, "search", searched)
    given = {BACKTRACKED: BACKTRACKED}
    assert checked(tool(schema), given) == given


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"$defs": FORKS | {"d40": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}, 2),
        (
            {"$dynamicAnchor": "n", "properties": {"a": {"anyOf": [{"$dynamicRef": "#n"}] * 3}}},
            {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}}}},
        ),
        ({"properties": {"a": {"items": {"anyOf": [{"const": each} for each in range(2000)]}}}}, ["x"] * 2000),
        ({"properties": {"a": {"uniqueItems": True}}}, [{"x": [each]} for each in range(20_000)]),
    ],
)
def test_a_schema_that_would_take_for_ever_is_left_to_its_server(
    schema: dict[str, Any], given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "JUDGING_SECONDS", 0.2)
    assert checked(tool(schema), {"a": given}) == {"a": given}


def test_nothing_that_a_schema_refers_to_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_arguments: Any) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "socket", connected)
    url = "http://127.0.0.1:9/schema"
    schema = {"$schema": url, "properties": {"a": {"$ref": url}, "b": {"$ref": f"{url}#/$defs/x"}}}
    assert checked(tool(schema), {"a": 1, "b": 2}) == {"a": 1, "b": 2}


def test_a_wrong_name_is_compared_with_names_of_a_likely_length_only() -> None:
    schema = {"properties": {"right": {}, **{"x" * 3000 + str(each): {} for each in range(500)}}}
    with pytest.raises(HostCallError, match="Did you mean right"):
        checked(tool(schema), {"rihgt": 1})
    with pytest.raises(HostCallError, match="takes no argument"):
        checked(tool(schema), {"y" * 100_000: 1})


def test_what_is_judged_in_time_is_judged_as_ever() -> None:
    asked = tool({"properties": {"a": {"type": "integer"}, "b": {"uniqueItems": True}}, "required": ["a"]})
    for given, said in (
        ({"a": "1"}, "Give an integer"),
        ({"b": [1]}, "needs the argument a"),
        ({"a": 1, "b": [1, 1]}, "it has non-unique elements"),
    ):
        with pytest.raises(HostCallError, match=said):
            checked(asked, given)


def test_the_schema_of_a_skill_is_trusted_no_more_than_that_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_arguments: Any) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "socket", connected)
    monkeypatch.setattr(arguments, "JUDGING_SECONDS", 0.2)
    for schema in (
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}},
        {"$defs": FORKS | {"d40": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/d0"}}},
        {"properties": {"a": {"pattern": BACKTRACKS}}},
    ):
        judge_arguments("skill", schema, {"a": BACKTRACKED})


@pytest.mark.parametrize(
    ("schema", "given", "sent"),
    [
        ({"type": "integer"}, 5.0, 5),
        ({"type": ["integer", "null"]}, -5.0, -5),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/count"}]}, 7.0, 7),
        ({"enum": [1, 2]}, 2.0, 2),
        ({"type": "array", "items": {"type": "integer"}}, [1.0, 2], [1, 2]),
        ({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}, {"n": 1.0, "x": 1.0}, {"n": 1, "x": 1.0}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"any": 3.0}, {"any": 3}),
        ({"items": {"properties": {"at": {"items": {"type": "integer"}}}}}, [{"at": [4.0]}], [{"at": [4]}]),
        ({"type": "number"}, 5.0, 5.0),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 5.0, 5.0),
        ({}, 5.0, 5.0),
        ({"pattern": r"^\p{L}+(?<year>\d{4})$"}, "été 26", "été 26"),
        ({"format": "date-time"}, "2026-01-02 10:00", "2026-01-02 10:00"),
        ({"multipleOf": 0.01}, 19.99, 19.99),
    ],
)
def test_what_the_service_would_take_is_sent_and_integers_as_integers(
    schema: dict[str, Any], given: Any, sent: Any
) -> None:
    asked = tool({"properties": {"a": schema}, "$defs": {"count": {"type": "integer"}}})
    assert repr(checked(asked, {"a": given})) == repr({"a": sent})


@pytest.mark.parametrize(
    ("schema", "given", "said"),
    [
        ({"type": "integer"}, "5", "Give an integer. Did you mean 5?"),
        ({"type": "integer"}, "5.0", "Did you mean 5?"),
        ({"type": "integer"}, "many", 'cannot be "many". Give an integer.'),
        ({"type": "boolean"}, "True", "Give true or false. Did you mean true?"),
        ({"type": "string"}, 7, 'Give a string. Did you mean "7"?'),
        ({"type": "array", "items": {"type": "string"}}, "a", 'Give a list. Did you mean ["a"]?'),
        ({"multipleOf": 0.01}, 0.075, 'Its schema is {"multipleOf": 0.01}.'),
        ({"type": "array"}, 1, "Give a list. Did you mean [1]?"),
        ({"type": "object"}, '{"n": 4}', 'Give an object. Did you mean {"n": 4}?'),
        ({"enum": ["open", "shut"]}, "OPEN", 'Give one of "open", "shut". Did you mean "open"?'),
        ({"enum": [1, 2]}, "2", "Give one of 1, 2. Did you mean 2?"),
    ],
)  # fmt: skip
def test_what_is_refused_says_the_nearest_right_form(schema: dict[str, Any], given: Any, said: str) -> None:
    with pytest.raises(HostCallError) as refused:
        checked(tool({"properties": {"a": schema}}), {"a": given})
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("date-time", "2026-01-02 10:00", 'it is not a date-time. Did you mean "2026-01-02T10:00:00Z"?'),
        ("date-time", "2026-01-02", 'Did you mean "2026-01-02T00:00:00Z"?'),
        ("date-time", "tomorrow", "it is not a date-time. Give one such as 2026-01-31T10:00:00Z."),
        ("date", "2026/01/02", 'Did you mean "2026-01-02"?'),
        ("time", "10:30", 'Did you mean "10:30:00Z"?'),
        ("uuid", "123e4567e89b12d3a456426614174000", 'Did you mean "123e4567-e89b-12d3-a456-426614174000"?'),
        ("date-time", "2026-01-02T10:00:00.5+02:00", ""),
        ("email", "who", ""),
    ],
)
def test_a_refusal_of_a_service_names_an_argument_that_has_not_its_format(name: str, given: str, said: str) -> None:
    asked = tool({"properties": {"a": {"type": "string", "format": name}}})
    assert why_refused_by_format(asked, {"a": given}).endswith(said)
    assert bool(why_refused_by_format(asked, {"a": given})) is bool(said)


NESTED: dict[str, Any] = {"type": "object", "properties": {"c": {}}, "additionalProperties": False, "required": ["c"]}


@pytest.mark.parametrize(
    ("schema", "given", "said"),
    [
        ({"type": ["integer", "null"]}, "x", 'argument a of {} cannot be "x". Give an integer or null.'),
        ({"type": "boolean"}, 1, "argument a of {} cannot be 1. Give true or false."),
        ({"items": {"type": "string"}}, ["x", 2], "argument a[1] of {} cannot be 2. Give a string."),
        ({"enum": ["x", "y"]}, "z", 'argument a of {} cannot be "z". Give one of "x", "y".'),
        ({"const": "x"}, "z", 'argument a of {} cannot be "z". Give "x".'),
        ({"minimum": 3}, 1, 'argument a of {} cannot be 1: it is less than the minimum of 3. Its schema is {{"minimum": 3}}.'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", 'it is not valid under any of the given schemas. Its schema is {{"anyOf"'),
        ({"maxItems": 9}, list(range(90)), "…: it is too long. Its schema is"),
        (NESTED, {}, "{} needs the argument a.c. It takes a"),
        (NESTED, {"c": 1, "d": 2}, 'argument a of {} cannot be {{"c": 1, "d": 2}}: it takes no key "d". Give only "c".'),
        ({"type": "integer"}, "\x1b[2J" + "x" * 1000, 'cannot be "\\u001b[2Jxx'),
        ({"type": "integer"}, {"x": [[[[]]]] * 99_999}, "cannot be {{"),
    ],
)  # fmt: skip
def test_tools_and_skills_say_alike_what_is_wrong_with_an_argument(
    schema: dict[str, Any], given: Any, said: str
) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    with pytest.raises(HostCallError) as of_tool:
        checked(tool(whole), {"a": given})
    with pytest.raises(ArgumentsRefused) as of_skill:
        judge_arguments("up.run", whole, {"a": given})
    messages = [str(of_tool.value), str(of_skill.value)]
    assert messages[0] == messages[1]
    assert said.format("up.run") in messages[0]
    assert len(messages[0]) < 700


def test_tools_and_skills_say_alike_which_arguments_there_are() -> None:
    schema = {"type": "object", "properties": {"left": {}}, "required": ["left"], "additionalProperties": False}
    for given, said in (
        ({}, "up.run needs the argument left. It takes left."),
        ({"lefd": 1}, 'up.run takes no argument "lefd". Did you mean left?'),
        ({"left": 1, "zz": 1}, 'up.run takes no argument "zz". It takes left.'),
    ):
        with pytest.raises(HostCallError, match=f"^{re.escape(said)}$"):
            checked(tool(schema), given)
        with pytest.raises(ArgumentsRefused, match=f"^{re.escape(said)}$"):
            judge_arguments("up.run", schema, given)


def test_a_property_that_draft_3_requires_is_asked_for() -> None:
    schema = {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}}
    with pytest.raises(HostCallError, match=r"up\.run needs the argument a\. It takes "):
        checked(tool(schema), {})


def test_of_a_list_of_wrong_items_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    items = [1] * 200_000
    kinds = bounded_validator({}).TYPE_CHECKER

    def counted(checker: object, instance: object, kind: str) -> bool:
        nonlocal judged
        judged += 1
        return bool(original(checker, instance, kind))

    original = type(kinds).is_type
    monkeypatch.setattr(type(kinds), "is_type", counted)
    with pytest.raises(HostCallError, match=r"argument paths\[\d+\] of up\.run cannot be 1\. Give a string"):
        checked(tool({"properties": {"paths": {"type": "array", "items": {"type": "string"}}}}), {"paths": items})
    assert judged < 1000


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"properties": {"left": {}}}, {f"a{at}": 1 for at in range(500)}),
        ({"properties": {"left": {}}, "required": [f"a{at}" for at in range(500)]}, {}),
        ({"properties": {f"a{at}": {"type": "string"} for at in range(500)}}, {f"a{at}": 1 for at in range(500)}),
    ],
    ids=["unknown", "missing", "wrong"],
)
def test_of_a_call_with_much_that_is_wrong_the_first_is_told(schema: dict[str, Any], given: dict[str, Any]) -> None:
    assert len(misfits_as_written(tool(schema), given, (), more=False)) == MISFITS_NAMED_MAX


def test_of_many_arguments_a_message_names_few() -> None:
    properties = {f"{'a' * 200}{at}": {} for at in range(500)}
    [wrong] = misfits_as_written(tool({"properties": properties}), {"zz": 1}, (), more=False)
    assert wrong.endswith("a, … 450 more.")
    assert len(wrong) < 6_000


async def test_judging_what_is_written_ends_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    with charged_to(Account(1000)) as account:

        def ending(*_given: Any, **_named: Any) -> list[str]:
            nonlocal looked
            looked += 1
            account.end()
            return []

        monkeypatch.setattr(difflib, "get_close_matches", ending)
        given = {f"a{at}": 1 for at in range(500)}
        work = partial(misfits_as_written, tool({"properties": {"left": {}}}), given, (), more=False)
        with pytest.raises(HostWorkRefused, match="has ended"):
            await in_thread(Kind.SEARCH, work)
    assert looked == 1


async def test_judging_by_a_schema_ends_with_its_run() -> None:
    schema = {"$defs": FORKS | {"d40": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}
    with charged_to(Account(1000)) as account:

        def work() -> None:
            account.end()
            checked(tool(schema), {"a": 2})

        with pytest.raises(HostWorkRefused, match="has ended"):
            await in_thread(Kind.SEARCH, work)
