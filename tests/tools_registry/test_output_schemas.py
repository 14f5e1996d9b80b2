"""Answers are checked against their tool's own schema: in a thread, in bounded time, and never by the SDK."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jsonschema import Draft202012Validator
from mcp import ClientSession
from mcp.types import CallToolResult

from sealab.tools_registry import schema_checks
from sealab.tools_registry.errors import AnswerRefused
from sealab.tools_registry.threads import in_default_thread
from sealab.tools_registry.upstream import output_schema
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured, wire

T = TypeVar("T")
Schema = dict[str, Any]

BRANCHES: Schema = {
    "properties": {"a": {"$ref": "#/$defs/d0"}},
    "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(24)} | {"d24": {"type": "string"}},
}


async def checked(schema: Schema, value: object) -> None:
    await output_schema.check("t", schema, answer(value), in_default_thread)


def answer(value: object) -> CallToolResult:
    return CallToolResult.model_validate({"content": [], "structuredContent": value})


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
        with pytest.raises(AnswerRefused, match="breaks its own output schema"):
            await running.call("wire", "rows", {"count": 2, "wrong": True})
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
    monkeypatch.setattr(output_schema, "CHECK_SECONDS", 0.2)
    await checked(schema, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"properties": 5},
    ],
)
async def test_a_broken_schema_refuses_nothing(schema: Schema) -> None:
    await checked(schema, {"a": 1})


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
        ({"properties": {"rows": {"items": False}}}, {"rows": [{}] * 9999}, "an object of 0 keys]"),
    ],
)
async def test_what_breaks_its_schema_is_refused_with_a_short_reason(schema: Schema, value: object, said: str) -> None:
    with pytest.raises(AnswerRefused) as refused:
        await checked(schema, value)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 700


async def test_an_answer_that_its_schema_promises_is_missed() -> None:
    result = CallToolResult.model_validate({"content": []})
    with pytest.raises(AnswerRefused, match="gave no structured content"):
        await output_schema.check("t", {"type": "object"}, result, in_default_thread)
    failed = CallToolResult.model_validate({"content": [], "isError": True})
    await output_schema.check("t", {"type": "object"}, failed, in_default_thread)


class Over(Exception):
    """The run is over."""


async def test_a_check_ends_with_the_run_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_schema, "CHECK_SECONDS", 1000.0)
    checkpoints = 0

    def over_at_the_third() -> None:
        nonlocal checkpoints
        checkpoints += 1
        if checkpoints >= 3:
            raise Over

    async def in_thread(work: Callable[[Callable[[], None]], T], /) -> T:
        return await asyncio.to_thread(work, over_at_the_third)

    with pytest.raises(Over):
        await output_schema.check("t", BRANCHES, answer({"a": 5}), in_thread)


def test_long_values_are_shown_in_short() -> None:
    with schema_checks.judging(lambda: None):
        value = schema_checks.short({"a": [1, {"b": "x" * 1000}], "c": "short"})
    assert value == {"a": [1, {"b": "x" * 1000}], "c": "short"}
    assert repr(value) == "an object of 2 keys"
