"""Background runs outlive their server: it is killed, and the next one goes on, over both transports and in both eras."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from ...conftest import Caller, http_process, stdio
from ...journal.test_journaled_runs import CLAIMED, served_notes
from .test_background import begun, ended, until

ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_BACKGROUND_RUNS_MAX": "2"} | CLAIMED
SHORT_LEASES = [
    sys.executable,
    "-P",
    "-c",
    """
import runpy, sys
from sealab.server.use_cases.runs.background import background_work
background_work.LEASE_SECONDS, background_work.RENEW_SECONDS, background_work.LOOK_SECONDS = 1.0, 0.2, 0.2
background_work._FIRST_LOOK_SECONDS = 0.05
sys.argv = sys.argv[4:]
runpy.run_module("sealab.server", run_name="__main__", alter_sys=True)
""",
]
"""Runs the server as its arguments, with leases that end a second after it is killed."""
WAITS = """
import asyncio, random
number = random.random()
await tools.notes.send(text=f'first {number}')
progress(0.5, 'sent one')
while not any(each['name'] == 'go.txt' for each in list_files()):
    await asyncio.sleep(0.1)
await tools.notes.send(text=f'second {number}')
result = number
"""


@asynccontextmanager
async def over_http(url: str, mode: str, **options: Any) -> AsyncIterator[Caller]:
    """Connect as a caller that is known by its credentials, and so the same at the next server."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": "Bearer alice"}, timeout=55) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=200, **options) as client,
    ):
        yield Caller(client, Path())


def over_stdio(home: Path) -> StdioServerParameters:
    """How a client starts such a server."""
    server = stdio(home, **ENV)
    command, *arguments = [*SHORT_LEASES, server.command, *server.args]
    return server.model_copy(update={"command": command, "args": arguments})


def server_of(home: Path) -> psutil.Process:
    """Return the server over stdio that this test started with a home."""
    return next(each for each in psutil.Process().children() if str(home) in each.cmdline())


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines()


async def begin_all(caller: Caller) -> list[str]:
    """Begin a run that has sent something and waits for a file, and others behind it."""
    run_ids = [await begun(caller, WAITS), *[await begun(caller, f"result = {number}") for number in range(3)]]
    await until(caller, run_ids[0], lambda state: "progress" in state)
    return run_ids


async def ends_well(caller: Caller, run_ids: list[str], sent: Path) -> None:
    """Check that all end, and that nothing was sent twice."""
    await caller.call("write_workspace_file", filename="go.txt", content="")
    first, *others = [await ended(caller, each) for each in run_ids]
    assert first["status"] == "ok", first
    assert [each["result"] for each in others] == [0, 1, 2]
    assert lines_of(sent) == [f"first {first['result']}", f"second {first['result']}"]


async def test_what_a_killed_server_was_at_goes_on_in_the_next_and_sends_nothing_twice(tmp_path: Path) -> None:
    sent = served_notes(tmp_path)
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ENV) as server:
        async with over_http(server.url, "auto") as caller:
            run_ids = await begin_all(caller)
        server.process.kill()
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ENV) as server:
        async with Client(server.url, read_timeout_seconds=200) as another:
            for asked in ({}, {"cancel": True}):
                answer = await Caller(another, tmp_path).call("get_run", run_id=run_ids[0], **asked)
                assert answer.is_error
                assert answer.structured_content is None
        async with over_http(server.url, "legacy") as caller:
            await ends_well(caller, run_ids, sent)


@pytest.mark.parametrize(("mode", "is_killed"), [("legacy", True), ("auto", False)])
async def test_so_it_does_where_the_client_starts_the_server_and_kills_or_stops_it(
    tmp_path: Path, mode: str, *, is_killed: bool
) -> None:
    sent = served_notes(tmp_path)
    async with Client(over_stdio(tmp_path), mode=mode, read_timeout_seconds=200) as client:
        run_ids = await begin_all(Caller(client, tmp_path))
        if is_killed:
            server_of(tmp_path).kill()
    async with Client(over_stdio(tmp_path), mode=mode, read_timeout_seconds=200) as client:
        await ends_well(Caller(client, tmp_path), run_ids, sent)
