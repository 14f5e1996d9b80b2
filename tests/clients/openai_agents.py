"""openai-agents: its conversion of schemas, also to strict ones, and its tools."""

from __future__ import annotations

import copy
import json

import pytest
from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.strict_schema import ensure_strict_json_schema
from agents.tool_context import ToolContext

from .conftest import ASKS, FAILS, IMAGE

OPEN = {"add_schedule", "execute_code", "run_skill"}
"""Tools with an argument that is an object of any keys."""


def connected(transport: str, url: str):
    if transport == "stdio":
        return MCPServerStdio({"command": "sealab"}, client_session_timeout_seconds=50)
    return MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=50)


async def tools_of(server, *, strict: bool) -> dict[str, object]:
    agent = Agent("a")
    tools = await MCPUtil.get_function_tools(server, strict, RunContextWrapper(None), agent)
    return {tool.name: tool for tool in tools}


async def called(tools: dict[str, object], name: str, /, **arguments):
    text = json.dumps(arguments)
    context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
    return await tools[name].on_invoke_tool(context, text)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_called_and_give_images_and_the_reports_of_failures(transport: str, url: str) -> None:
    async with connected(transport, url) as server:
        assert server.session.protocol_version == "2026-07-28"
        tools = await tools_of(server, strict=False)
        assert "result: 2" in str(await called(tools, "execute_code", code="1 + 1"))
        assert "data:image/png;base64," in str(await called(tools, "execute_code", code=IMAGE))
        failed = str(await called(tools, "execute_code", code=FAILS))
        for said in ("ZeroDivisionError (line 2)", "before", "(run "):
            assert said in failed
        refused = str(await called(tools, "execute_code", code=ASKS))
        assert "this client cannot ask one" in refused
        found = str(await called(tools, "search_tools", query="packages"))
        assert "packages.package_requirements(name)" in found
        assert "unreachable: gone" in found


async def test_every_tool_passes_the_strict_conversion_with_a_type_and_a_description_for_each_parameter(
    url: str,
) -> None:
    async with connected("http", url) as server:
        for tool in await server.list_tools():
            schema = ensure_strict_json_schema(copy.deepcopy(tool.input_schema))  # which raises where it cannot
            assert schema["required"] == list(schema["properties"])
            for parameter, told in schema["properties"].items():
                assert told["type"], (tool.name, parameter)
                assert told["description"], (tool.name, parameter)


async def test_tools_that_take_open_objects_are_left_as_they_are_where_strict_ones_are_asked_for(url: str) -> None:
    async with connected("http", url) as server:
        tools = await tools_of(server, strict=True)
        assert {name for name, tool in tools.items() if not tool.strict_json_schema} == OPEN
        code = "def double(n: int) -> int:\n    return n * 2"
        everything = dict.fromkeys(tools["save_skill"].params_json_schema["required"])
        saved = await called(tools, "save_skill", **{**everything, "name": "double", "code": code})
        assert "saved double(n: int)" in str(saved)
        assert "result: 8" in str(await called(tools, "run_skill", name="double", arguments={"n": 4}))
        assert "result: 3" in str(await called(tools, "execute_code", code="n + 1", context_vars={"n": 2}))


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("openai-agents") == "21 tools for analyst\n{'a': 2, 'b': 1}\n"
