"""Servers send what MCP does not know: what is plain is mended, the rest is left out by name, and nothing else is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, JSONRPCResponse, ListToolsResult

from sealab.tools_registry.errors import CallRefused, ToolFailed
from sealab.tools_registry.json_lines import read_in_thread
from sealab.tools_registry.threads import in_default_thread
from sealab.tools_registry.upstream.lenient import LeftOut, call_result, mended_schema, tool
from sealab.tools_registry.upstream.reading import Answers, dropped, whole
from sealab.tools_registry.upstream.resources import read_contents
from sealab.tools_registry.upstream.results import value_of
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured

OBJECT = {"type": "object"}
SERVER = """
import json, sys
odd = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    given = odd.get(asked["method"])
    if given == "EXIT":
        sys.exit(1)
    if asked["method"] == "initialize":
        given = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}}}
    elif given is None:
        given = {"result": {"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]}}
    print(given.replace("ID", str(asked["id"])) if isinstance(given, str) else json.dumps({"jsonrpc": "2.0", "id": asked["id"], **given}), flush=True)
"""


def odd_server(**answers: Any) -> dict[str, Any]:
    """Return the entry of a server that answers a method as given: members of a message, or a line as it stands."""
    named = {key.replace("_", "/"): value for key, value in answers.items()}
    return {"command": sys.executable, "args": ["-c", SERVER, json.dumps(named)], "call_timeout_seconds": 20}


@pytest.mark.parametrize(
    ("given", "input_schema"),
    [
        ({}, OBJECT),
        ({"inputSchema": None}, OBJECT),
        ({"inputSchema": True}, OBJECT),
        ({"inputSchema": '{"type": "object", "properties": {"n": {"type": "INT"}}}'}, {**OBJECT, "properties": {"n": {"type": "integer"}}}),
        ({"parameters": {"properties": {"n": {}}}}, {**OBJECT, "properties": {"n": {}}}),
        ({"inputSchema": ""}, OBJECT),
        (
            {"inputSchema": {"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "required": ["a"]}}}},
            {**OBJECT, "required": ["a"], "$defs": {"In": {"type": "object", "required": ["a"]}}},
        ),
    ],
    ids=["missing", "null", "boolean", "text", "another key", "empty text", "reference"],
)  # fmt: skip
def test_an_input_schema_that_is_plain_is_taken(given: dict[str, Any], input_schema: dict[str, Any]) -> None:
    assert tool({"name": "t", **given}) == {"name": "t", "description": "", "input_schema": input_schema}


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
        ({"type": "any", "description": ["a", "b"]}, {"description": "a\nb"}),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"items": [{"type": "str"}, 4]}, {"prefixItems": [{"type": "string"}, {}]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "integer", "nullable": "true", "enum": ["1", 2], "default": "1"}, {"type": ["integer", "null"], "enum": [1, 2, None], "default": 1}),
        ({"type": "string", "enum": ["a", None, 1]}, {"type": ["string", "null"], "enum": ["a", None, "1"]}),
        ({"properties": {"a": {"required": True}, "b": None}}, {"properties": {"a": {}, "b": {}}, "required": ["a"]}),
        ({"anyOf": [], "enum": None, "required": "all", "minLength": "3"}, {"minLength": 3}),
        ({"$schema": "my own", "$ref": "https://example.com/x", "additionalProperties": "False"}, {"additionalProperties": False}),
        ({"properties": {"a": {"$ref": "#/$defs/Gone"}}, "$defs": {"A": {}}}, {"properties": {"a": {}}, "$defs": {"A": {}}}),
        ({"const": {"type": "ANY"}, "default": {"items": []}, "x-own": 1}, {"const": {"type": "ANY"}, "default": {"items": []}, "x-own": 1}),
    ],
)  # fmt: skip
def test_keywords_of_other_dialects_are_read_and_what_says_nothing_goes(
    given: dict[str, Any], mended: dict[str, Any]
) -> None:
    before = json.dumps(given)
    assert mended_schema(given) == mended
    assert json.dumps(given) == before


def test_a_schema_that_nests_very_deep_is_read() -> None:
    deep: dict[str, Any] = {"type": "STRING"}
    for _ in range(50_000):
        deep = {"items": deep}
    mended_schema(deep)


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        (None, LeftOut("null", "it is not an object")),
        ({"name": 4}, LeftOut("4", "it has no name that is a text")),
        ({"name": "t", "inputSchema": [1]}, LeftOut("t", "its input schema is a list, and not an object")),
        ({"name": "t", "inputSchema": "none"}, LeftOut("t", "its input schema is a text, and not an object")),
    ],
)
def test_what_is_no_tool_is_left_out_by_name_and_reason(given: object, left_out: LeftOut) -> None:
    assert tool(given) == left_out


def test_what_is_said_beside_the_schema_is_taken_as_far_as_it_is_right() -> None:
    given = {
        "name": "t",
        "title": 5,
        "description": {"en": "Does it."},
        "annotations": {"readOnlyHint": "true", "destructiveHint": None, "idempotentHint": 1, "x": 2},
        "icons": "x.png",
        "execution": {"taskSupport": "maybe"},
        "outputSchema": "nothing",
    }
    assert tool(given) == {
        "name": "t", "title": "5", "description": "Does it.", "input_schema": OBJECT, "annotations": {"readOnlyHint": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"content": "said", "isError": "false"}, "said"),
        ({"content": {"text": 5}}, 5),
        ({"content": [None, 7, {"type": "poem", "lines": 2}]}, [7, {"type": "poem", "lines": 2}]),
        ({"content": [{"type": "text", "text": {"a": 1}, "annotations": [], "_meta": None}]}, {"a": 1}),
        ({"structuredContent": [1, 2]}, [1, 2]),
        ({"structured_content": {"a": float("nan")}, "content": None}, {"a": None}),
        ({"toolResult": "old"}, "old"),
        ({"rows": [1]}, {"rows": [1]}),
        ({"content": [], "rows": [1]}, {"rows": [1]}),
        ({"content": [{"type": "TEXT", "text": "said"}], "structuredContent": {}}, "said"),
        ({"content": '\ufeff{"a": 1}'}, {"a": 1}),
        ({}, None),
        ({"content": [{"type": "resource", "resource": {"uri": None, "text": "in it"}}]}, {"type": "resource", "uri": "", "mime_type": "text/plain", "text": "in it"}),
        ({"content": [{"type": "resource_link", "uri": "x://a/b.txt", "icons": 1}]}, {"type": "resource_link", "uri": "x://a/b.txt", "name": "b.txt"}),
        ({"content": [{"type": "json", "json": {"a": 1}}]}, {"a": 1}),
        ({"content": [{"type": "resource", "resource": {"uri": "x", "blob": "data:image/gif;base64,R0lGOD"}}]}, {"type": "resource", "uri": "x", "mime_type": "image/gif", "size": 4, "data": "R0lGOD"}),
        ({"content": [{"type": "image", "data": "data:image/gif;base64,R0lG\nOD"}]}, {"type": "image", "mime_type": "image/gif", "size": 4, "data": "R0lG\nOD"}),
    ],
)  # fmt: skip
async def test_an_odd_result_loses_nothing_that_could_be_read(result: dict[str, Any], value: object) -> None:
    assert (await value_of("t", result, None, None)).value == value


async def test_a_failure_has_what_came_with_it() -> None:
    result = {"content": ["first", {"type": "text", "text": "then"}], "isError": 1, "structuredContent": {"line": 12}}
    with pytest.raises(ToolFailed, match="first\nthen") as failed:
        await value_of("t", result, None, None)
    assert failed.value.structured == {"line": 12}
    assert failed.value.content == ("first", "then")
    with pytest.raises(ToolFailed, match="quota"):
        await value_of("t", {"isError": True, "structuredContent": {"reason": "quota"}}, None, None)
    for beside in (
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "quota"}}]},
        {"error": "quota"},
    ):
        with pytest.raises(ToolFailed, match="quota"):
            await value_of("t", {"isError": True, **beside}, None, None)


def test_an_error_that_is_null_is_none() -> None:
    assert not call_result({"content": [], "isError": None}).is_error


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"code": "E_QUOTA", "message": "used up"}}, "used up (E_QUOTA)"),
        ({"error": {"code": -32000, "data": {"why": "quota"}}}, '{"why": "quota"}'),
        ({"error": "not today"}, "not today"),
        ({"error": {"code": 1, "message": None}, "result": None}, "it gave no reason"),
        ({"error": {"code": 1, "message": {"detail": "quota"}}}, '{"detail": "quota"}'),
        ({"error": {"code": -32602, "message": "Invalid params", "data": {"n": "too large"}}}, 'Invalid params: {"n": "too large"}. '),
        ({"error": {"code": 1, "message": "no.", "details": "used up"}}, 'no: {"details": "used up"}. '),
        ({"error": {"code": -32700, "message": "Failed to parse n"}}, "refused the tool 'odd': Failed to parse n. "),
        ({"error": {"code": -32e3, "message": "busy"}}, "refused the tool 'odd': busy. "),
        ({"error": {"code": -32097, "message": "used up", "data": {"sealab.fault": {"fault": "not_sent"}}}}, "used up"),
    ],
)  # fmt: skip
async def test_an_odd_refusal_is_a_refusal(tmp_path: Path, answer: dict[str, Any], said: str) -> None:
    async with Upstreams(configured(tmp_path, {"o": odd_server(tools_call=answer)})) as running:
        with pytest.raises(CallRefused) as refused:
            await running.call("o", "odd", {})
        assert said in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        '[{"jsonrpc": "2.0", "id": ID, "result": {"content": "said"}}]',
        '[{"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "2.0", "id": ID, "result": {"content": "said"}}]',
        '{"id": ID.0, "error": false, "method": null, "result": {"content": "said"}}',
        '\x1b]0;ready\x07\x1b[0m{"jsonrpc": "2.0", "id": ID, "result": {"content": "said"}}\x1b[0m',
    ],
    ids=["batch", "batch of two", "number and nulls", "title of a terminal"],
)
async def test_an_odd_message_is_the_answer_that_it_is_meant_to_be(tmp_path: Path, line: str) -> None:
    async with Upstreams(configured(tmp_path, {"o": odd_server(tools_call=line)})) as running:
        assert (await running.call("o", "odd", {})).value == "said"


async def test_odd_tools_are_left_out_by_name_and_the_others_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tools = ["x", {"name": "odd", "inputSchema": {}}, {"name": "worse", "inputSchema": 3}]
    listed = {"result": {"tools": tools, "nextCursor": None, "_meta": 4}}
    answer = (
        '{"jsonrpc": "2.0", "id": ID, "result": {"content": [], "structuredContent": {"t": "a \\ud83d b", "n": 1e999}}}'
    )
    async with Upstreams(configured(tmp_path, {"o": odd_server(tools_list=listed, tools_call=answer)})) as running:
        found = await running.list_tools("o")
        assert [each["name"] for each in found.tools] == ["odd"]
        assert [each.tool for each in found.left_out] == ["x", "worse"]
        assert running.status("o").left_out == found.left_out
        assert (await running.inspect("o")).left_out == found.left_out
        result = await running.call("o", "odd", {})
    assert result.value == {"t": "a � b", "n": None}
    assert result.has_nulls
    assert "the tool worse is left out: its input schema is a number" in caplog.text


async def test_a_resource_in_json_that_json_does_not_have_stays_its_text() -> None:
    text = '{"mean": NaN}'
    held = {"contents": [{"uri": "x://a", "mimeType": "application/json", "text": text}]}
    assert await read_contents("x://a", held, None, read_in_thread, in_default_thread) == text


def test_of_tools_with_arguments_for_headers_those_are_left_out_that_the_sdk_drops() -> None:
    answers = Answers(read_in_thread)
    answers.asked(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")))
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    tools = [{"name": name, "inputSchema": schema} for name in ("right", "wrong")] + [{"name": "plain"}]
    item = answers.taken(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": tools})))
    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCResponse)
    page = ListToolsResult.model_validate(item.message.result, by_name=False)
    assert [each.name for each in page.tools] == ["right", "wrong"]
    page.tools = page.tools[:1]  # as the SDK does with what MCP forbids
    assert dropped(page) == {"wrong"}
    assert whole(page) == {"tools": tools}
