"""Background runs outlive their server, a full disk, a wrong key and a journal of a newer version."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
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

from ...conftest import Caller, HttpServer, http_process, stdio
from ...journal.test_journaled_runs import CLAIMED, served_notes
from .test_background import ONE_SPARE, begun, ended, until

ONE_AT_A_TIME = ONE_SPARE | CLAIMED


async def cut(home: Path) -> tuple[list[str], Path]:
    """Have a server be killed that is at work on two runs, and another wait behind them; return all and what was sent."""
    sent = served_notes(home)
    with http_process(home, launched_by=SHORT_LEASES, SEALAB_BACKGROUND_RUNS_MAX="2", **ONE_AT_A_TIME) as server:
        async with over_http(server.url, "auto") as caller:
            at_work = [await begun(caller, WAITS) for _ in range(2)]
            for run_id in at_work:
                await until(caller, run_id, lambda state: "progress" in state)
            waiting = await begun(caller, "result = 'waited'")
        server.process.kill()
    return [*at_work, waiting], sent


def changed(home: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(home / "sealab.db") as database:
        assert database.execute(statement, values).rowcount > 0
        database.execute("UPDATE sealab_background_run SET leased_until = 0 WHERE status = 'running'")
    database.close()


async def says(server: HttpServer, text: str) -> str:
    """Wait for a line of the server's log with this text, and return it."""
    for line in server.said:
        if text in line:
            return line
    assert server.process.stderr is not None
    while line := await asyncio.to_thread(server.process.stderr.readline):
        if text in line:
            return line
    raise AssertionError(f"the server never said: {text}")


async def test_runs_outlive_a_wrong_key_and_a_newer_version_and_one_with_a_damaged_journal_says_so(
    tmp_path: Path,
) -> None:
    (damaged, newer, waiting), sent = await cut(tmp_path)
    changed(tmp_path, "UPDATE sealab_background_run SET changed = changed")
    wrong = ONE_AT_A_TIME | {"SEALAB_VAULT_KEY": "00" * 32}
    with http_process(tmp_path, launched_by=SHORT_LEASES, **wrong) as server:
        async with over_http(server.url, "auto") as caller:
            for refused in (
                await caller.call("get_run", run_id=damaged),
                await caller.call("execute_code", code="1", background=True),
            ):
                assert refused.is_error
                assert "another key" in str(refused.content)
    changed(
        tmp_path,
        "UPDATE sealab_journal_piece SET sealed = substr(sealed, 1, length(sealed) - 7) "
        "WHERE run_id = ? AND number = (SELECT max(number) FROM sealab_journal_piece WHERE run_id = ?)",
        damaged,
        damaged,
    )
    changed(tmp_path, "UPDATE sealab_journal_run SET format = format + 1 WHERE run_id = ?", newer)
    before = sent.read_text()
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ONE_AT_A_TIME) as server:
        async with over_http(server.url, "auto") as caller:
            await caller.call("write_workspace_file", filename="go.txt", content="")
            assert (await ended(caller, waiting))["result"] == "waited"
            crashed = await ended(caller, damaged)
            assert crashed["status"] == "crashed"
            assert "was changed or is damaged" in crashed["error"]["message"]
            assert "What it had done by then stands." in crashed["error"]["message"]
            said = await says(server, f"The background run {newer} is left to a newer version")
            assert "Use that version or a later one." in said
            assert (await caller.told("get_run", run_id=newer))["status"] == "running"
            assert sent.read_text() == before
    changed(tmp_path, "UPDATE sealab_journal_run SET format = format - 1 WHERE run_id = ?", newer)
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ONE_AT_A_TIME) as server:
        async with over_http(server.url, "auto") as caller:
            report = await ended(caller, newer)
    assert report["status"] == "ok", report
    assert [line for line in lines_of(sent) if str(report["result"]) in line] == [
        f"first {report['result']}",
        f"second {report['result']}",
    ]


async def test_on_a_full_disk_a_run_waits_past_its_lease_and_goes_on_once_there_is_room(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the same writes of the journal fail."""
    sent = served_notes(tmp_path)
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ONE_AT_A_TIME) as server:
        async with over_http(server.url, "auto") as caller:
            run_id = await begun(caller, WAITS)
            await until(caller, run_id, lambda state: "progress" in state)
            (tmp_path / "workspace" / "go.txt").write_text("")
            process = psutil.Process(server.process.pid)
            unlimited = process.rlimit(resource.RLIMIT_FSIZE)
            process.rlimit(resource.RLIMIT_FSIZE, (4096, unlimited[1]))
            answer = await caller.call("execute_code", code="1", background=True)
            assert answer.is_error
            assert "disk" in str(answer.content), answer.content
            await says(server, "The journals of the runs under way wait to be written")
            await says(server, f"The background run {run_id} is left to another process")
            assert len(lines_of(sent)) == 1
            process.rlimit(resource.RLIMIT_FSIZE, unlimited)
            report = await ended(caller, run_id)
            assert report["status"] == "ok", report
            assert lines_of(sent) == [f"first {report['result']}", f"second {report['result']}"]


ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_BACKGROUND_RUNS_MAX": "2"} | CLAIMED
SHORT_LEASES = [
    sys.executable,
    "-P",
    "-c",
    """
import runpy, sys
from sealab.server.runs.background import background_work
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
