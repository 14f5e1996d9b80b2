"""The kept schemas of the tools are those that their functions have."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from mcp.types import CallToolResult

from sealab.server.interfaces.protocol.strict_tool import SCHEMAS_FILE, generated_schemas, in_place

from ..write_schemas import schemas_of_all_tools


@pytest.mark.anyio
async def test_the_generated_schemas_are_those_of_the_functions(tmp_path: Path) -> None:
    derived = await schemas_of_all_tools(tmp_path)
    assert json.loads(SCHEMAS_FILE.read_bytes()) == derived, "Run `make schemas`."


def test_defaults_that_the_operator_set_are_published() -> None:
    @dataclass
    class Operator:
        memory_mb: int

    operator = Operator(700)

    async def run_skill(name: str, memory_mb: int = operator.memory_mb) -> CallToolResult:
        raise NotImplementedError(name, memory_mb)

    schemas = generated_schemas(run_skill)
    assert schemas is not None
    properties = schemas.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["memory_mb"] == {"default": 700, "type": "integer"}
    assert "default" not in properties["name"]


NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "string"}, NULL]}, {"type": ["string", "null"]}),
        ({"anyOf": [NULL, {"type": "integer", "minimum": 1}]}, {"type": ["integer", "null"], "minimum": 1}),
        ({"$defs": {"A": {"type": "object"}}, "items": {"$ref": "#/$defs/A"}}, {"items": {"type": "object"}}),
        (
            {
                "$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"type": "number"}},
                "$ref": "#/$defs/A",
            },
            {"properties": {"b": {"type": "number"}}},
        ),
        (
            {"$defs": {"A": {"type": "object"}}, "items": {"$ref": "#/$defs/A", "minProperties": 1}},
            {"items": {"minProperties": 1, "allOf": [{"type": "object"}]}},
        ),
        (
            {"anyOf": [{"type": "string"}, NULL], "default": "x"},
            {"anyOf": [{"type": "string"}, NULL], "default": "x"},
        ),
        ({"properties": {"anyOf": {"type": "string"}}}, {"properties": {"anyOf": {"type": "string"}}}),
        *(
            ({"anyOf": each}, {"anyOf": each})
            for each in (
                [{"type": "string", "enum": ["a"]}, NULL],
                [{"type": ["string", "integer"]}, NULL],
                [{"type": "string"}, {"type": "integer"}],
                [{"type": "string"}, {"type": "integer"}, NULL],
                [{}, NULL],
            )
        ),
    ],
)
def test_a_schema_says_everything_in_its_place(schema: dict[str, object], expected: dict[str, object]) -> None:
    definitions = schema.get("$defs", {})
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    assert in_place({"$defs": definitions, "properties": {"it": inner}}) == {"properties": {"it": expected}}


def test_a_schema_in_place_takes_what_it_took_before() -> None:
    schema = {
        "$defs": {"A": {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}},
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}, NULL]}, "c": {"items": {"$ref": "#/$defs/A"}}},
    }
    before, after = Draft202012Validator(schema), Draft202012Validator(in_place(schema))
    for name, value in itertools.product(("a", "c"), (None, {}, {"b": 1}, {"b": "1"}, "x", 3, ["a"], [None])):
        assert before.is_valid({name: value}) == after.is_valid({name: value}), (name, value)


def test_a_tool_that_is_not_kept_has_none() -> None:
    async def unheard_of() -> CallToolResult:
        raise NotImplementedError

    assert generated_schemas(unheard_of) is None
