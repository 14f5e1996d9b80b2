"""Runs and their questions as an MCP App: named to hosts that show such, and read by whoever may see the run."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import ClientExtension
from mcp.shared.exceptions import MCPError

from sealab.server.interfaces.console.app_views import PAGE

from ..conftest import in_this_process
from ..runs.background.test_parked_runs import ENV, parked, served


class Apps(ClientExtension):
    """What a host declares that shows pages of servers."""

    identifier = "io.modelcontextprotocol/ui"

    def settings(self) -> dict[str, Any]:
        return {"mimeTypes": ["text/html;profile=mcp-app"]}


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert (content.uri, content.mime_type) == (uri, "text/html;profile=mcp-app")
    return str(content.text)  # type: ignore[union-attr]  # it is a text


async def test_hosts_that_show_pages_are_named_that_of_a_run_and_read_runs_and_questions_by_it(tmp_path: Path) -> None:
    served(tmp_path)
    async with in_this_process(tmp_path, ENV, extensions=[Apps()]) as caller:
        tools = {tool.name: tool.meta or {} for tool in (await caller.client.list_tools()).tools}
        named = {name for name, meta in tools.items() if meta.get("ui") == {"resourceUri": PAGE}}
        assert named == {"execute_code", "run_skill", "get_run"}
        page = await read(caller.client, PAGE)
        assert "ui/initialize" in page
        assert "--ground:" in page
        report = await caller.run("print('<img src=x>')\nresult = [{'a': 1}]")
        shown = await read(caller.client, f"ui://sealab/runs/{report['run_id']}")
        assert "&lt;img src=x&gt;" in shown
        assert "<img" not in shown
        assert "<td>1</td>" in shown
        assert "data-goes-on" not in shown
        run_id, approval = await parked(caller)
        waits = await read(caller.client, f"ui://sealab/runs/{run_id}")
        assert "data-goes-on" in waits
        assert approval in waits
        assert "notes.send" in html.unescape(waits)
        assert "<form" not in waits
        for uri in ("ui://sealab/runs/no-such", "ui://sealab/other"):
            with pytest.raises(MCPError):
                await caller.client.read_resource(uri)


async def test_other_clients_are_told_of_no_page(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ENV) as caller:
        assert not any("ui" in (tool.meta or {}) for tool in (await caller.client.list_tools()).tools)
