"""FastMCP's client, in both eras."""

from __future__ import annotations

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from .conftest import ASKS, FAILS, IMAGE

WAYS = ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"]


@pytest.mark.parametrize("way", WAYS)
async def test_tools_are_listed_and_code_runs_with_images_failures_and_a_question(way: str, url: str) -> None:
    asked = []

    async def yes(message, response_type, _params, _context):
        asked.append(message)
        return response_type(approve=True)

    transport, _, era = way.partition("-")
    server = StdioTransport("sealab", [], keep_alive=False) if transport == "stdio" else url
    mode = "legacy" if era == "legacy" else "2026-07-28"
    async with Client(server, mode=mode, elicitation_handler=yes, timeout=50, init_timeout=50) as client:
        assert "execute_code" in {tool.name for tool in await client.list_tools()}
        answer = await client.call_tool("execute_code", {"code": "1 + 1"})
        assert answer.structured_content["result"] == 2
        shown = await client.call_tool("execute_code", {"code": IMAGE})
        assert [each.mime_type for each in shown.content if each.type == "image"] == ["image/png"]
        with pytest.raises(ToolError, match="ZeroDivisionError"):
            await client.call_tool("execute_code", {"code": FAILS})
        failed = await client.call_tool("execute_code", {"code": FAILS}, raise_on_error=False)
        assert failed.structured_content["error"]["line"] == 2
        assert (await client.call_tool("execute_code", {"code": ASKS})).structured_content["result"] == "pip stays"
    assert len(asked) == 1


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("FastMCP") == "{'a': 2, 'b': 1}\n"
