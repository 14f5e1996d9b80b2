"""A large answer of an upstream tool reaches the code whole, and holds up nobody else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from ..tools_registry.upstream_servers import wire
from .conftest import HELD_MS_MAX, Caller, stdio

ROWS = "rows = (await tools.wire.rows(count={count}))['rows']\nresult = [len(rows), rows[-1]['n']]"
TEXT = "result = len(await tools.wire.flood(bytes={count}))"


async def while_others_call(caller: Caller, code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the code while another run is asked for again and again; return its report and what held the loop."""
    large = asyncio.create_task(caller.run(code, timeout_seconds=60, memory_mb=1500))
    while not large.done():
        assert (await caller.run("1 + 1"))["result"] == 2
        await asyncio.sleep(0.02)
    told = (await caller.call("get_execution_stats")).structured_content
    assert told is not None
    return await large, told["event_loop"]


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (ROWS.format(count=400_000), [400_000, 399_999]),
        (TEXT.format(count=30_000_000), 30_000_000),
    ],
    ids=["many values", "one text"],
)
async def test_a_large_answer_over_stdio_holds_up_nobody(tmp_path: Path, code: str, result: object) -> None:
    entry = wire(tmp_path / "starts", approve="never")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"wire": entry}}))
    async with Client(stdio(tmp_path, SEALAB_MAX_TIMEOUT_SECONDS="120"), read_timeout_seconds=100) as client:
        report, loop = await while_others_call(Caller(client, tmp_path), code)
    assert report.get("error") is None
    assert report["result"] == result
    assert loop["held_ms_max"] < HELD_MS_MAX
