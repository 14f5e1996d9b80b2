"""The Python SDK 2.x, in both eras."""

from __future__ import annotations

import json

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

from .conftest import ASKS, FAILS, IMAGE, IN_TEXT, PAYS, check_questions

WAYS = ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"]


def connected(way: str, url: str, **options) -> Client:
    transport, _, era = way.partition("-")
    server = StdioServerParameters(command="sealab") if transport == "stdio" else url
    return Client(server, mode="legacy" if era == "legacy" else "2026-07-28", read_timeout_seconds=200, **options)


@pytest.mark.parametrize("way", WAYS)
async def test_tools_are_listed_and_code_runs_with_images_failures_and_a_question(way: str, url: str) -> None:
    asked = []

    async def yes(_context, question):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": True})

    async with connected(way, url, elicitation_callback=yes) as client:
        assert (client.protocol_version == "2026-07-28") is way.endswith("modern")
        assert "execute_code" in {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("execute_code", {"code": "1 + 1", "session": None})
        assert (answer.is_error, answer.structured_content["result"]) == (False, 2)
        shown = await client.call_tool("execute_code", {"code": IMAGE})
        assert [each.mime_type for each in shown.content if each.type == "image"] == ["image/png"]
        failed = await client.call_tool("execute_code", {"code": FAILS})
        assert (failed.is_error, failed.structured_content["error"]["line"]) == (True, 2)
        assert (await client.call_tool("execute_code", {"code": ASKS})).structured_content["result"] == "pip stays"
    assert len(asked) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_question_shows_values_and_where_they_stand_and_a_yes_covers_no_more(way: str, url: str, paid) -> None:
    asked = []

    async def answers(_context, question):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": IN_TEXT not in question.message})

    async with connected(way, url, elicitation_callback=answers) as client:
        answer = await client.call_tool("execute_code", {"code": PAYS})
    check_questions(asked, paid, answer.structured_content["output"])


async def test_a_small_answer_takes_few_characters(url: str) -> None:
    async with connected("stdio-modern", url) as client:
        await client.call_tool("execute_code", {"code": "1 + 1"})
        answer = await client.call_tool("execute_code", {"code": "1 + 1"})
    assert set(answer.structured_content) == {"run_id", "success", "status", "result", "execution_time_ms"}
    assert len(json.dumps(answer.structured_content)) < 130
    assert len(answer.content[0].text) < 60


async def test_null_for_an_optional_argument_is_its_default(url: str) -> None:
    async with connected("http-modern", url) as client:
        [tool] = [tool for tool in (await client.list_tools()).tools if tool.name == "execute_code"]
        nulls = dict.fromkeys(tool.input_schema["properties"].keys() - {"code"})
        assert (await client.call_tool("execute_code", {"code": "1", **nulls})).structured_content["result"] == 1


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("Python SDK 2") == "2026-07-28\n{'a': 2, 'b': 1}\n"
