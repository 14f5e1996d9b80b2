"""pydantic-ai: its agents and their tools, with a scripted model in the place of a language model."""

from __future__ import annotations

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from .conftest import ASKS, FAILS, IMAGE


def says(code: str) -> FunctionModel:
    """Give a model that runs code and then ends."""

    def reply(messages, _info) -> ModelResponse:
        first = len(messages) == 1
        return ModelResponse([ToolCallPart("execute_code", {"code": code})] if first else [TextPart("done")])

    return FunctionModel(reply)


async def returned(toolset: MCPToolset, code: str) -> list[object]:
    """Run an agent whose model runs that code; return what its messages say of the outcome."""
    run = await Agent(says(code), toolsets=[toolset]).run("go")
    return [part for message in run.all_messages() for part in message.parts]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_an_agent_runs_code_with_images_failures_and_a_question(transport: str, url: str) -> None:
    asked = []

    async def yes(message, response_type, _params, _context):
        asked.append(message)
        return response_type(approve=True)

    server = StdioTransport("sealab", []) if transport == "stdio" else url
    async with MCPToolset(
        server, init_timeout=50, elicitation_handler=yes, tool_error_behavior="failed", include_instructions=True
    ) as toolset:
        assert toolset.client.session.protocol_version == "2026-07-28"
        assert "execute_code" in {tool.name for tool in await toolset.list_tools()}
        [answer] = [part for part in await returned(toolset, "1 + 1") if isinstance(part, ToolReturnPart)]
        assert answer.content["result"] == 2
        shown = [part for part in await returned(toolset, IMAGE) if isinstance(part, ToolReturnPart)]
        assert any(
            isinstance(each, BinaryContent) and each.media_type == "image/png" for each in flat(shown[0].content)
        ), shown
        failed = str(await returned(toolset, FAILS))
        assert "ZeroDivisionError" in failed
        assert "before" in failed
        [answer] = [part for part in await returned(toolset, ASKS) if isinstance(part, ToolReturnPart)]
        assert answer.content["result"] == "pip stays"
    assert len(asked) == 1


def flat(content) -> list[object]:
    return list(content) if isinstance(content, list) else [content]


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert "'result': {'a': 2, 'b': 1}" in of_the_page("pydantic-ai")
