"""A large answer of an upstream tool reaches the code whole, and holds up nobody else.

That no event loop is held is asserted of each test here by `no_loop_is_held`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client

from sealab.sandbox.job import Json
from sealab.sandbox.wire.bounded_json import STEP_CHARS
from sealab.server.base import host_work
from sealab.server.base.host_work import THREADS, Kind, in_thread
from sealab.server.use_cases.upstream_tools import discovery
from sealab.server.use_cases.upstream_tools.large_json import with_checkpoints
from sealab.server.use_cases.upstream_tools.registry import Registry
from sealab.tools_registry.errors import AnswerRefused

from ...tools_registry.upstream_servers import listening, wire
from ..conftest import Caller, stdio

ROWS = "rows = (await tools.wire.rows(count={count}))['rows']\nresult = [len(rows), rows[-1]['n']]"
TEXT = "result = len(await tools.wire.flood(bytes={count}))"


async def while_others_call(caller: Caller, code: str) -> dict[str, Any]:
    """Run the code while another run is asked for again and again; return its report."""
    large = asyncio.create_task(caller.run(code, timeout_seconds=60, memory_mb=1500))
    while not large.done():
        assert (await caller.run("1 + 1"))["result"] == 2
        await asyncio.sleep(0.02)
    return await large


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
        caller = Caller(client, tmp_path)
        assert (await caller.run(TEXT.format(count=10)))["result"] == 10  # the connection is another run's
        report = await while_others_call(caller, code)
    assert report.get("error") is None
    assert report["result"] == result


@pytest.mark.parametrize("rows", [10, 100_000])
async def test_what_is_told_of_tools_is_counted_as_json_and_much_of_it_off_the_loop(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: dict[str, Json] = {"tools": [{"name": "é\n", "score": 0.5}] * rows}
    written: list[int] = []
    dumps = json.dumps

    def counted(*given: Any) -> str:
        text = dumps(*given)
        written.append(len(text))
        return text

    class Counting:
        sent = 0

        def count_sent(self, chars: int) -> None:
            self.sent += chars

    monkeypatch.setattr(json, "dumps", counted)
    registry = Counting()
    assert await discovery._sent(cast("Registry", registry), answer, [], "scope") is answer
    assert registry.sent == len(dumps(answer))
    assert all(each < STEP_CHARS for each in written)


async def test_large_definitions_are_told_of_and_hold_up_nobody(tmp_path: Path) -> None:
    count = 30_000
    (tmp_path / "tools").mkdir()
    tools: list[dict[str, Any]] = [
        {"name": "words", "description": "e.g. many words " * count, "inputSchema": {"type": "object"}},
        {"name": "choice", "inputSchema": {"properties": {"a": {"enum": [f"v{each}" for each in range(4 * count)]}}}},
        {"name": "many", "inputSchema": {"properties": {f"p{each}": {"type": "string"} for each in range(count)}}},
    ]
    (tmp_path / "tools" / "up.json").write_text(json.dumps({"tools": tools}))
    async with Client(stdio(tmp_path), read_timeout_seconds=100) as client:
        for level in ("summary", "full"):
            for tool in ("words", "choice", "many"):
                told = await client.call_tool("get_tool_definition", {"tool_name": f"up.{tool}", "detail_level": level})
                assert told.structured_content is not None
                assert told.structured_content["name"] == tool
            found = await client.call_tool("search_tools", {"query": "", "category": "up", "detail_level": level})
            assert found.structured_content is not None
            assert found.structured_content["count"] == 3


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_large_answer_over_http_holds_up_nobody(tmp_path: Path, kind: str) -> None:
    with listening(kind, tmp_path) as (url, _):
        entry = {"url": url, "approve": "never"}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"full": entry}}))
        async with Client(stdio(tmp_path, SEALAB_MAX_TIMEOUT_SECONDS="120"), read_timeout_seconds=100) as client:
            report = await while_others_call(
                Caller(client, tmp_path), "result = len(await tools.full.big(megabytes=20))"
            )
    assert report.get("error") is None
    assert report["result"] == 10_000_000


async def test_a_run_whose_time_is_up_waits_for_no_large_answer(tmp_path: Path) -> None:
    entry = wire(tmp_path / "starts", approve="never")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"wire": entry}}))
    async with Client(stdio(tmp_path), read_timeout_seconds=200) as client:
        caller = Caller(client, tmp_path)
        assert (await caller.run(TEXT.format(count=10)))["result"] == 10  # the server has started
        call = "await tools.wire.flood(bytes=60_000_000)"
        endless = f"while True:\n    try:\n        {call}\n    except (ToolError, ValueError):\n        pass"
        report = await caller.run(endless, timeout_seconds=3)
        assert report["status"] == "timeout"
        assert (await caller.run("1 + 1"))["result"] == 2
        assert (await caller.run(TEXT.format(count=10)))["result"] == 10


async def test_an_answer_that_no_thread_is_free_for_is_not_said_to_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_work, "QUEUE_SECONDS", 0.05)
    free = threading.Event()
    busy = [asyncio.create_task(in_thread(Kind.ANSWERS, free.wait)) for _ in range(THREADS[Kind.ANSWERS])]
    await asyncio.sleep(0)
    try:
        with pytest.raises(AnswerRefused, match="It may have done its work: look before calling it again"):
            await with_checkpoints(lambda _checkpoint: 1)
    finally:
        free.set()
        await asyncio.gather(*busy)
