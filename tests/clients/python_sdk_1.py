"""The Python SDK 1.x, whose eras are those with a handshake."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from .conftest import ASKS, FAILS, IMAGE, IN_TEXT, PAYS, check_questions

TRANSPORTS = ["stdio", "http"]


@asynccontextmanager
async def connected(transport: str, url: str, **options):
    streams = (
        stdio_client(StdioServerParameters(command="sealab")) if transport == "stdio" else streamable_http_client(url)
    )
    ended = False
    try:
        async with streams as (read, write, *_), ClientSession(read, write, **options) as session:
            await session.initialize()
            yield session
            ended = True
    except* anyio.BrokenResourceError:
        # Its stdio client fails when a notification comes while it closes: here that the list of tools changed.
        if not ended:
            raise


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_tools_are_listed_and_code_runs_with_images_and_failures(transport: str, url: str) -> None:
    async with connected(transport, url) as session:
        assert "execute_code" in {tool.name for tool in (await session.list_tools()).tools}
        answer = await session.call_tool("execute_code", {"code": "1 + 1", "session": None})
        assert (answer.isError, answer.structuredContent["result"]) == (False, 2)
        shown = await session.call_tool("execute_code", {"code": IMAGE})
        assert [each.mimeType for each in shown.content if each.type == "image"] == ["image/png"]
        failed = await session.call_tool("execute_code", {"code": FAILS})
        assert failed.isError
        assert failed.structuredContent["error"]["line"] == 2
        assert failed.structuredContent["run_id"] in failed.content[0].text


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_user_is_asked_before_a_tool_writes(transport: str, url: str) -> None:
    asked = []

    async def yes(_context, question):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": True})

    async with connected(transport, url, elicitation_callback=yes) as session:
        answer = await session.call_tool("execute_code", {"code": ASKS})
    assert answer.structuredContent["result"] == "pip stays"
    assert len(asked) == 1
    assert "uninstall_package" in asked[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_question_shows_values_and_where_they_stand_and_a_yes_covers_no_more(
    transport: str, url: str, paid
) -> None:
    asked = []

    async def answers(_context, question):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": IN_TEXT not in question.message})

    async with connected(transport, url, elicitation_callback=answers) as session:
        answer = await session.call_tool("execute_code", {"code": PAYS})
    check_questions(asked, paid, answer.structuredContent["output"])


async def test_prompts_and_resources_are_those_that_are_advertised(url: str) -> None:
    async with connected("http", url) as session:
        assert [prompt.name for prompt in (await session.list_prompts()).prompts] == ["program", "skill"]
        [resource] = (await session.list_resources()).resources
        told = await session.read_resource(resource.uri)
    assert "search_tools" in told.contents[0].text


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("Python SDK 1") == "21 tools\n{'a': 2, 'b': 1}\n"
