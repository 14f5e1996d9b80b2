"""What callers of one server share, they share fairly: over HTTP, told apart by their credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from ..conftest import server_over_http

url = server_over_http(SEALAB_SESSIONS_MAX="2", SEALAB_WORKERS_MAX="1")


COMPUTES = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.4:\n    pass"


@asynccontextmanager
async def connected(url: str, credentials: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": credentials}, timeout=50) as http,
        Client(streamable_http_client(url, http_client=http), read_timeout_seconds=200) as client,
    ):
        yield client


async def run(client: Client, code: str, **arguments: Any) -> Any:
    result = await client.call_tool("execute_code", {"code": code, **arguments})
    return result.structured_content and result.structured_content["result"]


async def test_a_single_job_is_not_behind_all_that_another_caller_has_waiting(url: str) -> None:
    ended: list[str] = []
    async with connected(url, "Bearer greedy") as greedy, connected(url, "Bearer modest") as modest:

        async def loop() -> None:
            await run(greedy, COMPUTES)
            ended.append("greedy")

        loops = [asyncio.create_task(loop()) for _ in range(8)]
        await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)  # all of them have arrived by then
        before = len(ended)
        assert await run(modest, "6 * 7") == 42
        # The one that ran, and one more that may have begun before the request arrived.
        assert len(ended) - before <= 2
        await asyncio.wait(loops)


async def test_one_caller_cannot_take_all_sessions(url: str) -> None:
    async with connected(url, "Bearer greedy") as greedy, connected(url, "Bearer modest") as modest:
        assert await run(greedy, "1", session="a") == 1
        assert await run(modest, "x = 2", session="a") is None
        assert await run(greedy, "1", session="b") == 1
        assert await run(greedy, "1", session="c") == 1
        assert await run(modest, "x", session="a") == 2
