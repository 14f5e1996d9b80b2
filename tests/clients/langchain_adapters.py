"""langchain-mcp-adapters: tools of LangChain, and their conversion for models."""

from __future__ import annotations

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.types import ElicitResult

from .conftest import ASKS, FAILS, IMAGE


def client_of(transport: str, url: str, **options) -> MultiServerMCPClient:
    stdio = {"transport": "stdio", "command": "sealab", "args": []}
    return MultiServerMCPClient(
        {"sealab": stdio if transport == "stdio" else {"transport": "http", "url": url}}, **options
    )


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_called_and_give_images_failures_and_a_question(transport: str, url: str) -> None:
    asked = []

    async def yes(_context, question, _callback):
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": True})

    client = client_of(transport, url, callbacks=Callbacks(on_elicitation=yes))
    async with client.session("sealab") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session, callbacks=client.callbacks)}

        async def run(code: str):
            call = {"type": "tool_call", "id": "1", "name": "execute_code", "args": {"code": code}}
            return await tools["execute_code"].ainvoke(call)

        answer = await run("1 + 1")
        assert answer.artifact["structured_content"]["result"] == 2
        assert "image" in {each["type"] for each in (await run(IMAGE)).content}
        failed = await run(FAILS)
        assert failed.status == "error"
        assert "ZeroDivisionError (line 2)" in str(failed.content)
        assert "(run " in str(failed.content)
        assert (await run(ASKS)).artifact["structured_content"]["result"] == "pip stays"
    assert len(asked) == 1


async def test_every_tool_is_converted_for_models_that_want_strict_schemas(url: str) -> None:
    for tool in await client_of("http", url).get_tools():
        told = convert_to_openai_tool(tool, strict=True)["function"]
        for name, parameter in told["parameters"]["properties"].items():
            assert parameter["type"], (tool.name, name)
            assert parameter["description"], (tool.name, name)


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("langchain-mcp-adapters") == 'result: {"a": 2, "b": 1}\n'
