"""Schemas that hostile servers list: whatever they hold, to describe their tools takes bounded work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from typing_extensions import override

from sealab.tools_registry.describing.examples import example_call
from sealab.tools_registry.describing.placeholders import placeholder
from sealab.tools_registry.describing.schemas import (
    STEPS_TOGETHER_MAX,
    SchemaReader,
    parameter_texts,
    parameters_of,
    shape_of,
)
from sealab.tools_registry.describing.shapes import ANY, STR
from sealab.tools_registry.describing.signatures import returns, signature
from sealab.tools_registry.models import Tool

LOOKS_MAX = 10 * STEPS_TOGETHER_MAX


class Looks:
    """Counts what is looked at, and ends what goes on without a bound."""

    def __init__(self) -> None:
        self.count = 0

    def at(self, value: Any) -> Any:
        self.count += 1
        assert self.count <= LOOKS_MAX, "reading a schema has no bound"
        return value

    def watched(self, schema: Any) -> Any:
        if isinstance(schema, dict):
            return Watched(self, {key: self.watched(each) for key, each in schema.items()})
        return WatchedList(self, map(self.watched, schema)) if isinstance(schema, list) else schema


class Watched(Mapping[str, Any]):
    def __init__(self, looks: Looks, content: dict[str, Any]) -> None:
        self._looks, self._content = looks, content

    @override
    def __getitem__(self, key: str) -> Any:
        return self._looks.at(self._content[key])

    @override
    def __iter__(self) -> Iterator[str]:
        return map(self._looks.at, self._content)

    @override
    def __len__(self) -> int:
        return len(self._content)


class WatchedList(list[Any]):
    def __init__(self, looks: Looks, items: Iterator[Any]) -> None:
        super().__init__(items)
        self._looks = looks

    @override
    def __iter__(self) -> Iterator[Any]:
        return map(self._looks.at, super().__iter__())


def chain(links: int, keys: int) -> dict[str, Any]:
    more = [{f"k{at}_{key}": 0 for key in range(keys)} for at in range(links)]
    return {
        **{f"d{at}": {"$ref": f"#/$defs/d{at + 1}", **more[at]} for at in range(links)},
        f"d{links}": {"type": "string"},
    }


def parameters(count: int, schema: Any) -> dict[str, Any]:
    return {f"p{at}": schema for at in range(count)}


WIDE = {f"k{at}": 0 for at in range(2_000)}
RECORD = {"type": "object", "properties": {f"k{at}": {} for at in range(2_000)}}
TO_D = {"$ref": "#/$defs/d"}
HOSTILE: dict[str, dict[str, Any]] = {
    "a long chain": {"properties": parameters(1, {"$ref": "#/$defs/d0"}), "$defs": chain(2_000, 5)},
    "a chain for each": {"properties": parameters(2_000, {"$ref": "#/$defs/d0"}), "$defs": chain(1_000, 0)},
    "anchors that are nowhere": {
        "properties": parameters(2_000, {"$ref": "#no"}),
        "$defs": parameters(2_000, {"a": 0}),
    },
    "paths of many steps": {"properties": parameters(3_000, {"$ref": "#/$defs" + "/d" * 490}), "$defs": chain(1, 0)},
    "a wide definition": {"properties": parameters(2_000, TO_D), "$defs": {"d": WIDE}},
    "a wide record": {"properties": parameters(2_000, TO_D), "$defs": {"d": RECORD}},
    "parts of a root": {"allOf": [TO_D] * 2_000, "properties": {"a": {}}, "$defs": {"d": RECORD}},
    "parts of a parameter": {"properties": {"a": {"allOf": [TO_D] * 2_000}}, "$defs": {"d": RECORD}},
    "values": {"properties": {"a": {"properties": parameters(2_000, TO_D)}}, "$defs": {"d": {"enum": [*range(2_000)]}}},
    "what is required": {
        "properties": {"a": {"properties": parameters(2_000, TO_D)}},
        "$defs": {"d": {"properties": {"a": {}}, "required": ["a"] * 2_000}},
    },
    "alternatives": {
        "properties": {"a": {"properties": parameters(2_000, TO_D)}},
        "$defs": {"d": {"anyOf": [{"required": []}] * 2_000}},
    },
    "types": {
        "properties": {"a": {"properties": parameters(2_000, TO_D)}},
        "$defs": {"d": {"type": ["string"] * 2_000}},
    },
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_to_describe_a_tool_takes_bounded_work(hostile: str) -> None:
    schema = {"type": "object", "required": [f"p{at}" for at in range(2_000)], **HOSTILE[hostile]}
    read = (
        parameters_of, lambda tool: parameter_texts(tool, 200, STEPS_TOGETHER_MAX),
        lambda tool: signature(tool, "tools.up.run"), lambda tool: example_call(tool, "tools.up.run"),
        lambda tool: placeholder(tool, {}), returns,
    )  # fmt: skip
    for each in read:
        watched = Looks().watched(schema)
        each(Tool("run", "up", "up", input_schema=watched, output_schema=watched))


def test_merging_records_counts_their_fields() -> None:
    wide = {f"k{at}": {} for at in range(2_000)}
    reader = SchemaReader(True)
    reader.shape_apart({"properties": wide, "allOf": [{"properties": {"a": {}}}] * 2_000}, 0)
    assert reader.steps == 10_000


@pytest.mark.parametrize(("chars", "found"), [(332, STR), (333, ANY)])
def test_a_long_reference_is_not_followed(chars: int, found: object) -> None:
    assert shape_of({"$ref": "#/" + "%41" * chars, "A" * chars: {"type": "string"}}) == found


def test_a_broken_anchor_is_no_error() -> None:
    schema = {"$ref": "#here", "$defs": {"a": {"$anchor": []}, "b": {}, "c": {"$anchor": "here", "type": "string"}}}
    assert shape_of(schema) == STR
    assert shape_of({**schema, "$ref": "#None"}) == ANY


@pytest.mark.parametrize(
    "part",
    [
        {"properties": {"k" * 100_000: {}}},
        {"const": {"k" * 100_000: 1}},
        {"enum": ["v" * 100_000, 1]},
        {"default": ["v" * 100_000]},
        {"minItems": 5, "items": {"minItems": 5, "items": {"minItems": 5, "items": {"default": "v" * 1_000}}}},
    ],
)
def test_a_text_that_many_parameters_share_is_not_written_for_each(part: dict[str, Any]) -> None:
    properties = parameters(500, {"$ref": "#/$defs/d"})
    schema = {"properties": properties, "required": [*itertools.islice(properties, 250)], "$defs": {"d": part}}
    tool = Tool("run", "up", "up", input_schema=schema)
    assert len(signature(tool, "tools.up.run")) < 50_000
    assert len(example_call(tool, "tools.up.run")) < 300_000


def test_what_stands_for_an_answer_holds_few_copies_of_a_value() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(8):
        schema = {"type": "array", "minItems": 5, "items": schema}
    written = str(placeholder(Tool("run", "up", "up", output_schema=schema), {}))
    assert 25 <= written.count("1") <= 100
    large = Tool("run", "up", "up", output_schema={"properties": {"a": {"const": "v" * 100_000}}})
    assert placeholder(large, {}) == {"dry_run": True, "a": None}


def test_a_tool_is_read_once_for_several_questions() -> None:
    tool = Tool("run", "up", "up", input_schema={"properties": {"a": {}}})
    assert parameters_of(tool) is parameters_of(tool)
    assert parameters_of(Tool("run", "up", "up", input_schema={"properties": {"b": {}}}))[0].name == "b"


@pytest.mark.parametrize("step", [5e-324, 1e-300, 1e-9, 1e300])
@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("least", [2**52, 1e-320, -1])
def test_a_number_in_steps_of_any_size_is_a_number(step: float, kind: str, least: float) -> None:
    number = {"type": kind, "minimum": least, "multipleOf": step}
    schema: Any = {"type": "object", "properties": {"size": number}, "required": ["size"]}
    made = placeholder(Tool("do", "up", "up", "", {"type": "object"}, output_schema=schema), {})
    assert isinstance(made, dict)
    assert isinstance(made["size"], int | float)
    assert example_call(Tool("do", "up", "up", "", schema), "up.do").startswith("await up.do(size=")
