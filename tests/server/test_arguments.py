"""Arguments judged by schemas that hostile servers publish."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.server import arguments
from sealab.server.bridge.arguments import checked
from sealab.tools_registry.definitions import tools_of
from sealab.tools_registry.models import Tool

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
    for given, said in (({"a": "1"}, "no integer"), ({"b": [1]}, "needs a"), ({"a": 1, "b": [1, 1]}, "non-unique")):
        with pytest.raises(HostCallError, match=said):
            checked(asked, given)
