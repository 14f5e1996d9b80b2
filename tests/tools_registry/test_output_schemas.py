"""Answers are checked against their tool's own schema: in a thread, in bounded time, and never by the SDK."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jsonschema import Draft202012Validator
from mcp import ClientSession

from sealab.tools_registry import schema_checks
from sealab.tools_registry.errors import ToolFailed
from sealab.tools_registry.judged_schema import judged_schema
from sealab.tools_registry.schema_checks import best_error
from sealab.tools_registry.short_values import short
from sealab.tools_registry.threads import InThread, in_default_thread
from sealab.tools_registry.upstream import results
from sealab.tools_registry.upstream.results import value_of
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured, wire

T = TypeVar("T")
Schema = dict[str, Any]

BRANCHES: Schema = {
    "properties": {"a": {"$ref": "#/$defs/d0"}},
    "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(24)} | {"d24": {"type": "string"}},
}


async def broken(schema: Schema, value: object, in_thread: InThread = in_default_thread) -> str:
    """Return what of a structured answer breaks its schema; the answer is given all the same."""
    result = await value_of("t", {"content": [], "structuredContent": value}, schema, None, in_thread=in_thread)
    assert result.value == value
    return result.broken


async def test_the_sdk_judges_no_answer_and_what_does_is_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    judge = schema_checks.bounded_validator

    def spied(schema: object) -> Any:
        threads.append(threading.get_ident())
        return judge(schema)

    def judged_by_the_sdk(*_arguments: object) -> None:
        raise AssertionError("the SDK judges in the event loop")

    monkeypatch.setattr(schema_checks, "bounded_validator", spied)
    monkeypatch.setattr(ClientSession, "validate_tool_result", judged_by_the_sdk)
    monkeypatch.setattr(Draft202012Validator, "check_schema", judged_by_the_sdk)
    async with Upstreams(configured(tmp_path, {"wire": wire(tmp_path / "starts")})) as running:
        assert (await running.call("wire", "rows", {"count": 2})).value == {"rows": [{"n": 0}, {"n": 1}]}
        wrong = await running.call("wire", "rows", {"count": 2, "wrong": True})
        assert "is not of type" in wrong.broken
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
        ({"unevaluatedProperties": False, "anyOf": [{"patternProperties": {"^(a+)+$": {}}}]}, {"a" * 60 + "!": 1}),
        (BRANCHES, {"a": 5}),
        (BRANCHES, {"a": 5, "more": [0] * 6000}),
        ({"properties": {f"p{n}": {"type": "string"} for n in range(60_000)}}, {"p1": 5}),
        ({"properties": {"a": {"items": {"anyOf": [{"const": n} for n in range(2000)]}}}}, {"a": ["x"] * 5000}),
    ],
    ids=["pattern", "patternProperties", "unevaluated", "branches", "branches, large", "many properties", "all wrong"],
)
async def test_a_schema_that_would_take_for_ever_refuses_nothing(
    schema: Schema, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "CHECK_SECONDS", 0.2)
    assert not await broken(schema, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"}, {"$ref": "http://127.0.0.1:9/schema"}, {"$ref": "#/$defs/none"}, {"$ref": "#"},
        {"properties": 5},
    ],
)  # fmt: skip
async def test_a_broken_schema_refuses_nothing(schema: Schema) -> None:
    assert not await broken(schema, {"a": 1})


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"n": "1"}, "at n: '1' is not of type 'integer'"),
        ({"required": ["n"]}, {}, "'n' is a required property"),
        (
            {"properties": {}, "additionalProperties": False},
            {str(n): n for n in range(100_000)},
            "Additional properties are not allowed ('0' was unexpected)",
        ),
        (
            {"properties": {"n": {}}, "additionalProperties": {"type": "string"}},
            {"n": 1, "m": 1},
            "at m: 1 is not of type 'string'",
        ),
        ({"properties": {"rows": {"type": "string"}}}, {"rows": [1] * 10_000}, "at rows: a list of 10000 items is not"),
        ({"properties": {"rows": {"maxLength": 5}}}, {"rows": "x" * 10**6}, "x'… is too long"),
        (
            {"properties": {"rows": {"items": False}}},
            {"rows": [{}] * 9999},
            "at rows: a list of 9999 items is too long",
        ),
    ],
)
async def test_what_breaks_its_schema_is_given_with_a_short_reason(schema: Schema, value: object, said: str) -> None:
    reason = await broken(schema, value)
    assert said in reason
    assert len(reason) < 700


async def test_an_answer_that_its_schema_promises_is_missed_and_what_came_is_given() -> None:
    words = {"content": [{"type": "text", "text": "plain words"}]}
    found = await value_of("t", words, {"type": "object"}, None)
    assert (found.value, found.broken) == ("plain words", "it has no structured content")
    with pytest.raises(ToolFailed):
        await value_of("t", {**words, "isError": True}, {"type": "object"}, None)


class Over(Exception):
    """The run is over."""


async def test_a_check_ends_with_the_run_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "CHECK_SECONDS", 1000.0)
    checkpoints = 0

    def over_at_the_third() -> None:
        nonlocal checkpoints
        checkpoints += 1
        if checkpoints >= 3:
            raise Over

    async def in_thread(work: Callable[[Callable[[], None]], T], /) -> T:
        return await asyncio.to_thread(work, over_at_the_third)

    with pytest.raises(Over):
        await broken(BRANCHES, {"a": 5}, in_thread)


def test_long_values_are_shown_in_short() -> None:
    value = short({"a": [1, {"b": "x" * 1000}], "c": "short"}, lambda: None)
    assert value == {"a": [1, {"b": "x" * 1000}], "c": "short"}
    assert repr(value) == "an object of 2 keys"
    assert repr(short([1, {"b": [True]}], lambda: None)) == "[1, {'b': [True]}]"


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
BACKTRACKS = {"pattern": "^(a+)+$"}
MARKS = "\u0301\u0316" * 40_000


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$schema": DRAFT_7, **BACKTRACKS}}},
        {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#"}}, **BACKTRACKS},
        {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"type": [{"$schema": DRAFT_7, **BACKTRACKS}]}}},
        {"properties": {"a": {"$ref": "#/$defs/a/const"}}, "$defs": {"a": {"const": {"$schema": DRAFT_7, **BACKTRACKS}}}},
        {"properties": {"a": {"$ref": "#/$defs/a%2Fconst"}}, "$defs": {"a": {"const": {"$schema": DRAFT_7, **BACKTRACKS}}}},
        {"properties": {"a": {"$ref": "#/dependencies/b/0"}}, "dependencies": {"b": [{"$schema": DRAFT_7, **BACKTRACKS}]}},
        {"properties": {"a": {"$ref": "#/x"}}, "x": {"$schema": DRAFT_7, **BACKTRACKS}},
        {"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}},
    ],
)  # fmt: skip
async def test_no_way_through_a_schema_leads_to_a_keyword_that_is_not_judged(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_arguments: object, **_named: object) -> None:
        raise AssertionError("a pattern was run")

    monkeypatch.setattr(re, "search", run)
    assert judged_schema(schema, lambda: None) is not None
    # The check works while nothing can be searched.
    assert await broken({"properties": {"a": {"type": "integer"}}}, {"a": "a" * 60 + "!"})
    assert not await broken(schema, {"a": "a" * 60 + "!"})


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"$ref": f"//a{MARKS}#x", "minimum": 1}, {"minimum": 1}),
        ({"$id": f"//a{MARKS}", "properties": {"a": {"$ref": "b"}}}, {"properties": {"a": {}}}),
        ({"$ref": "#" + "/" * 10**4}, {}),
        ({"items": {f"x{n}": 0 for n in range(19_000)}}, {"items": {}}),
        ({"const": "x" * 10**7}, None),
        ({"x" * 10**7: 1}, None),
        ({"items": [0] * 20_001}, None),
    ],
)
def test_what_no_step_could_be_short_with_is_left_out(schema: Schema, part: Schema | None) -> None:
    assert judged_schema(schema, lambda: None) == part


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {}}, [0] * 10_000),
        ({"items": True}, [0] * 10_000),
        ({"contains": {}, "minContains": 10**7}, [0] * 10_000),
        ({"propertyNames": {}}, {str(n): n for n in range(10_000)}),
        ({"additionalProperties": {}}, {str(n): n for n in range(10_000)}),
        ({"allOf": [{}] * 10_000}, 1),
    ],
)
def test_a_check_can_be_ended_between_any_two_items(schema: Schema, value: object) -> None:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    best_error(schema, value, check)
    assert checks >= 10_000


def test_messages_show_texts_and_lists_of_a_schema_in_short() -> None:
    long = "x" * 10_000
    for schema in (
        {"const": long},
        {"required": [long]},
        {"enum": [long, *range(2, 40)]},
        {"not": {"enum": [1, long]}},
    ):
        error = best_error(schema, {} if "required" in schema else 1, lambda: None)
        assert error is not None
        assert len(error.message) < 600


def test_lists_of_very_many_values_are_not_compared_with_one_another() -> None:
    assert best_error({"uniqueItems": True}, [[0] * 8000] * 500, lambda: None) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"not": {"pattern": "^b"}}, "a"),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "a"),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, "a"),
        ({"if": {"pattern": "^b"}, "then": False}, "a"),
        ({"contains": {"pattern": "^a"}, "maxContains": 1}, ["a", "b"]),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"a": 1}),
        ({"properties": {"a": {"not": {"$ref": "http://127.0.0.1:9/x"}}}}, {"a": 1}),
    ],
)
async def test_what_is_left_out_of_a_schema_refuses_nothing(schema: Schema, value: object) -> None:
    assert not await broken({"properties": {"v": schema}}, {"v": value})


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"not": {"type": "string"}}, "a", "should not be valid under {'type': 'string'}"),
        ({"oneOf": [{"type": "integer"}, {"minLength": 2}]}, "a", "is not valid under any of the given schemas"),
        ({"if": {"type": "string"}, "then": {"maxLength": 1}}, "ab", "'ab' is too long"),
        ({"$ref": "#/$defs/list/items/anyOf/0", "$defs": {"list": {"items": {"anyOf": [{"const": 1}]}}}}, 2, "1 was"),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}], "has non-unique elements"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "at most 1 items"),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "$schema": DRAFT_7}, {"c": 1}, "'d' is a required"),
    ],
)
async def test_what_is_kept_of_a_schema_is_judged_as_ever(schema: Schema, value: object, said: str) -> None:
    assert said in await broken(schema, value)


async def test_what_differs_in_kind_is_unique() -> None:
    assert not await broken({"uniqueItems": True}, [1, True, "1", [1], {"1": 1}, {"1": True}])
