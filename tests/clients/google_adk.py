"""google-adk: its conversion of schemas for Gemini, and its tools."""

from __future__ import annotations

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools._gemini_schema_util import _to_gemini_schema
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Type
from mcp import StdioServerParameters
from mcp.types import ElicitResult

from .conftest import ASKS, FAILS, IMAGE


def connection(transport: str, url: str):
    if transport == "stdio":
        return StdioConnectionParams(server_params=StdioServerParameters(command="sealab"), timeout=50)
    return StreamableHTTPConnectionParams(url=url, timeout=50)


async def context_of_an_agent() -> ToolContext:
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="tests", user_id="user")
    agent = LlmAgent(name="agent", model="none")
    return ToolContext(
        InvocationContext(session_service=sessions, invocation_id="1", agent=agent, session=session),
        function_call_id="1",
    )


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_called_and_give_images_failures_and_a_question(transport: str, url: str) -> None:
    asked = []

    async def yes(_context, question):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": True})

    toolset = McpToolset(connection_params=connection(transport, url), elicitation_callback=yes)
    try:
        tools = {tool.name: tool for tool in await toolset.get_tools()}
        context = await context_of_an_agent()

        async def run(code: str):
            return await tools["execute_code"].run_async(args={"code": code}, tool_context=context)

        assert (await run("1 + 1"))["structuredContent"]["result"] == 2
        assert "image/png" in [each.get("mimeType") for each in (await run(IMAGE))["content"]]
        failed = await run(FAILS)
        assert failed["isError"]
        assert failed["structuredContent"]["error"]["line"] == 2
        assert (await run(ASKS))["structuredContent"]["result"] == "pip stays"
    finally:
        await toolset.close()
    assert len(asked) == 1


async def test_every_tool_passes_the_conversion_for_gemini(url: str) -> None:
    toolset = McpToolset(connection_params=connection("http", url))
    try:
        for tool in await toolset.get_tools():
            assert tool._get_declaration().name == tool.name
            for name, told in (_to_gemini_schema(tool.raw_mcp_tool.input_schema).properties or {}).items():
                assert told.type not in {None, Type.TYPE_UNSPECIFIED}, (tool.name, name)
                assert told.description, (tool.name, name)
    finally:
        await toolset.close()


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("google-adk") == "21 tools for analyst\n"
