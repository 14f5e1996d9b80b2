"""Answers that are Python literals, and answers that were wrapped without a schema that says so."""

from __future__ import annotations

import ast
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.upstream import results
from sealab.tools_registry.upstream.python_literals import DEPTH_MAX, read_literal
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner).map(tuple)
)

SERVER = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

ANSWERS = {
    "rows": ("[{'id': 1, 'name': \\"O'Brien\\", 'note': None, 'paid': True}, {'id': 2, 'at': (1, 2.5)}]", None),
    "many_rows": (str([{"id": n, "name": "x" * 20} for n in range(20_000)]), None),
    "blob": ("[{'data': b'x'}]", None),
    "prose": ("[see the manual, page 3]", None),
    "quoted": ('"[1, \\'a\\']"', None),
    "deep": ("[" * 100_000 + "]" * 100_000, None),
    "wrapped_text": ("plain", {"result": "plain"}),
    "wrapped_list": ('{"result": [1, 2]}', {"result": [1, 2]}),
    "wrapped_object": ('{"a": 1}', {"result": {"a": 1}}),
    "own_object": ('{"result": {"a": 1}}', {"result": {"a": 1}}),
    "two_keys": ("{}", {"result": 1, "more": 2}),
}


async def listed(_ctx, _params):
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in ANSWERS])


async def called(_ctx, params):
    text, structured = ANSWERS[params.name]
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


async def main():
    server = Server("answers", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
"""


def as_json(value: Any) -> Any:
    match value:
        case list() | tuple():
            return [as_json(each) for each in value]
        case dict():
            return {key: as_json(each) for key, each in value.items()}
        case _:
            return value


@given(VALUES.filter(lambda value: isinstance(value, list | tuple | dict)))
def test_what_python_writes_is_read_as_json_has_it(value: Any) -> None:
    assert read_literal(repr(value)) == as_json(value)


@given(st.text(alphabet="[](){}'\"\\,:1.eTrue -_abn", max_size=40))
def test_what_is_read_is_what_python_reads_and_all_else_is_refused(text: str) -> None:
    try:
        read = read_literal(text)
    except ValueError:
        return
    assert read == as_json(ast.literal_eval(text))


@pytest.mark.parametrize(
    "text",
    [
        "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
        "[__import__('os')]",
        "[1] + [2]",
        "{'a': 1}['a']",
        "{1: 2}",
        "{1, 2}",
        "('a')",
        "[b'x']",
        "['a' 'b']",
        "[1e999]",
        "[" + "9" * 5000 + "]",
        "[lambda: 1]",
        r"['\x']",
    ],
)
def test_what_is_no_list_tuple_or_dict_of_json_values_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text stays a text, whatever was wrong
        read_literal(text)


@pytest.mark.timeout(60)  # at this length only what is linear ends in it
@pytest.mark.parametrize("part", ["'a', ", "(", "'\\'", "1 ", "' ", "[], "])
def test_a_text_is_read_in_a_time_linear_in_its_length(part: str) -> None:
    with suppress(ValueError):
        read_literal(f"[{part * 200_000}]")


@pytest.fixture(scope="module")
async def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("answers")
    (folder / "server.py").write_text(SERVER)
    server = {"command": sys.executable, "args": [str(folder / "server.py")]}
    async with Upstreams(configured(folder, {"up": server})) as running:
        yield running


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("rows", [{"id": 1, "name": "O'Brien", "note": None, "paid": True}, {"id": 2, "at": [1, 2.5]}]),
        ("blob", "[{'data': b'x'}]"),
        ("prose", "[see the manual, page 3]"),
        ("quoted", "[1, 'a']"),
        ("deep", "[" * 100_000 + "]" * 100_000),
        ("wrapped_text", "plain"),
        ("wrapped_list", [1, 2]),
        ("wrapped_object", {"a": 1}),
        ("own_object", {"result": {"a": 1}}),
        ("two_keys", {"result": 1, "more": 2}),
    ],
)
async def test_code_gets_the_plain_answer_of_a_server_without_schemas(
    answers: Upstreams, tool: str, value: Any
) -> None:
    assert (await answers.call("up", tool, {})).value == value


async def test_a_long_literal_is_read_in_another_thread(answers: Upstreams, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def watched(text: str) -> Any:
        threads.append(threading.get_ident())
        return read_literal(text)

    monkeypatch.setattr(results, "read_literal", watched)
    value = (await answers.call("up", "many_rows", {})).value
    assert isinstance(value, list)
    assert (len(value), value[-1]) == (20_000, {"id": 19_999, "name": "x" * 20})
    assert threads
    assert threading.get_ident() not in threads
