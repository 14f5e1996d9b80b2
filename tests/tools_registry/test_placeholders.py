"""What stands for the answers of calls that were not made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.describing.learned import observed
from sealab.tools_registry.describing.placeholders import placeholder
from sealab.tools_registry.describing.signatures import LearnedShape
from sealab.tools_registry.models import Tool


def made(schema: Any) -> Any:
    return placeholder(Tool("do", "s", "s", output_schema=schema), {"a": 1})


def test_where_nothing_is_known_it_says_which_call_it_stands_for() -> None:
    nothing = {"dry_run": True, "tool": "s.do", "arguments": {"a": 1}}
    assert placeholder(Tool("do", "s", "s"), {"a": 1}) == nothing
    assert made(True) == made({}) == nothing


def test_it_has_the_shape_of_the_output_schema_with_what_may_be_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
            "state": {"enum": ["open", "shut"]},
            "size": {"type": "integer", "minimum": 5},
            "rows": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/Row"}},
            "next": {"anyOf": [{"type": "null"}, {"type": "number"}]},
            "by": {"allOf": [{"$ref": "#/$defs/Row"}, {"properties": {"more": {"type": "boolean"}}}]},
        },
        "required": ["id"],
        "$defs": {"Row": {"type": "object", "properties": {"name": {"type": ["null", "string"]}}}},
    }
    answer = made(schema)
    assert datetime.fromisoformat(answer.pop("at")).year > 2000
    assert answer == {
        "dry_run": True,
        "id": "dry run",
        "state": "open",
        "size": 5,
        "rows": [{"name": "dry run"}] * 2,
        "next": 1,
        "by": {"name": "dry run", "more": False},
    }


def test_it_has_the_shape_that_was_learned_where_no_schema_says_it() -> None:
    seen = {"name": "Ada", "rows": [{"n": 1.5, "on": True, "at": None}], "by": {"2024-01-01": 1}}
    learned = LearnedShape(observed(seen), 1)
    assert placeholder(Tool("do", "s", "s"), {}, learned) == {
        "dry_run": True, "name": "dry run", "rows": [{"n": 1.0, "on": False, "at": None}], "by": {},
    }  # fmt: skip


def test_a_value_that_a_schema_wraps_is_given_itself() -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    assert made({**schema, "x-fastmcp-wrap-result": True}) == 1


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}]
)
def test_a_schema_without_an_end_has_one(schema: Any) -> None:
    assert len(str(made(schema))) < 100_000


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_no_schema_fails(schema: Any) -> None:
    placeholder(Tool("do", "s", "s", output_schema={"type": "object", "properties": schema, "items": schema}), {})
    placeholder(Tool("do", "s", "s", output_schema={"anyOf": schema, "enum": schema}), {})
