"""No background run that was acknowledged is lost by a full disk, a wrong key or a journal of a newer version.

One whose own journal is damaged ends, and says so.
"""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from pathlib import Path
from typing import Any

import psutil

from ...conftest import HttpServer, http_process
from ...journal.test_journaled_runs import CLAIMED, served_notes
from .test_background import ONE_SPARE, begun, ended, until
from .test_background_restarts import SHORT_LEASES, WAITS, lines_of, over_http

ENV = ONE_SPARE | CLAIMED


async def cut(home: Path) -> tuple[str, str, Path]:
    """Kill a server at work on a run while another run waits behind it; return both and what was sent."""
    sent = served_notes(home)
    with http_process(home, launched_by=SHORT_LEASES, SEALAB_BACKGROUND_RUNS_MAX="1", **ENV) as server:
        async with over_http(server.url, "auto") as caller:
            first = await begun(caller, WAITS)
            await until(caller, first, lambda state: "progress" in state)
            second = await begun(caller, "result = 'second'")
        server.process.kill()
    return first, second, sent


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


async def told_by_the_next(home: Path, *run_ids: str, env: dict[str, str] = ENV) -> list[dict[str, Any]]:
    with http_process(home, launched_by=SHORT_LEASES, **env) as server:
        async with over_http(server.url, "auto") as caller:
            await caller.call("write_workspace_file", filename="go.txt", content="")
            return [await caller.told("get_run", run_id=each, wait_seconds=40) for each in run_ids]


async def test_a_run_whose_journal_is_cut_in_a_record_ends_and_says_so_and_others_go_on(tmp_path: Path) -> None:
    first, second, sent = await cut(tmp_path)
    changed(
        tmp_path,
        "UPDATE sealab_journal_piece SET sealed = substr(sealed, 1, length(sealed) - 7) "
        "WHERE run_id = ? AND number = (SELECT max(number) FROM sealab_journal_piece WHERE run_id = ?)",
        first,
        first,
    )
    before = sent.read_text()
    damaged, other = await told_by_the_next(tmp_path, first, second)
    assert damaged["status"] == "crashed"
    assert "was changed or is damaged" in damaged["error"]["message"]
    assert "What it had done by then stands." in damaged["error"]["message"]
    assert other["result"] == "second"
    assert sent.read_text() == before


async def test_a_run_whose_journal_is_of_a_newer_version_waits_for_that(tmp_path: Path) -> None:
    first, second, sent = await cut(tmp_path)
    changed(tmp_path, "UPDATE sealab_journal_run SET format = format + 1 WHERE run_id = ?", first)
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ENV) as server:
        async with over_http(server.url, "auto") as caller:
            assert (await caller.told("get_run", run_id=second, wait_seconds=40))["result"] == "second"
            said = await says(server, f"The background run {first} is left to a newer version")
            assert "Use that version or a later one." in said
            assert (await caller.told("get_run", run_id=first))["status"] == "running"
    changed(tmp_path, "UPDATE sealab_journal_run SET format = format - 1 WHERE run_id = ?", first)
    (report,) = await told_by_the_next(tmp_path, first)
    assert report["status"] == "ok", report
    assert lines_of(sent) == [f"first {report['result']}", f"second {report['result']}"]


async def test_with_a_wrong_key_no_run_is_taken_and_with_the_right_one_all_go_on(tmp_path: Path) -> None:
    first, second, sent = await cut(tmp_path)
    changed(tmp_path, "UPDATE sealab_background_run SET changed = changed")
    wrong = ENV | {"SEALAB_VAULT_KEY": "00" * 32}
    with http_process(tmp_path, launched_by=SHORT_LEASES, **wrong) as server:
        async with over_http(server.url, "auto") as caller:
            answer = await caller.call("get_run", run_id=first)
            assert answer.is_error
            assert "another key" in str(answer.content)
            answer = await caller.call("execute_code", code="1", background=True)
            assert answer.is_error
            assert "another key" in str(answer.content)
    reports = await told_by_the_next(tmp_path, first, second)
    assert [each["status"] for each in reports] == ["ok", "ok"]
    assert len(lines_of(sent)) == 2


async def test_on_a_full_disk_a_run_waits_past_its_lease_and_goes_on_once_there_is_room(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the same writes of the journal fail."""
    sent = served_notes(tmp_path)
    with http_process(tmp_path, launched_by=SHORT_LEASES, **ENV) as server:
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
            await says(server, "journals of runs under way wait to be written")
            await says(server, f"The background run {run_id} is left to another process")
            assert len(lines_of(sent)) == 1
            process.rlimit(resource.RLIMIT_FSIZE, unlimited)
            report = await ended(caller, run_id)
            assert report["status"] == "ok", report
            assert lines_of(sent) == [f"first {report['result']}", f"second {report['result']}"]
