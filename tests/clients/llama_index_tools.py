"""llama-index: its tool objects, whose client makes a connection of each call."""

from __future__ import annotations

import pytest
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from .conftest import ASKS, FAILS, IMAGE


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_called_and_give_images_and_the_reports_of_failures(transport: str, url: str) -> None:
    client = BasicMCPClient("sealab" if transport == "stdio" else url, timeout=50)
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client).to_tool_list_async()}
    run = tools["execute_code"]
    answer = (await run.acall(code="1 + 1")).raw_output
    assert answer.structured_content["result"] == 2
    shown = (await run.acall(code=IMAGE)).raw_output
    assert [each.mime_type for each in shown.content if each.type == "image"] == ["image/png"]
    failed = (await run.acall(code=FAILS)).raw_output
    assert failed.is_error
    assert "ZeroDivisionError (line 2)" in failed.content[0].text
    assert "this client cannot ask one" in (await run.acall(code=ASKS)).raw_output.content[0].text


async def test_the_schema_that_a_model_gets_has_a_type_for_each_parameter(url: str) -> None:
    for tool in await McpToolSpec(BasicMCPClient(url)).to_tool_list_async():
        schema = tool.metadata.to_openai_tool()["function"]["parameters"]
        for parameter, told in schema["properties"].items():
            assert "type" in told or "anyOf" in told or "enum" in told, (tool.metadata.name, parameter, told)


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert "result:" in of_the_page("llama-index")
