"""A real server whose runs wait for users, sleep, nest or use much memory goes on serving others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult

from sealab.sandbox.confine import cgroups

from ...waiting import until
from ..conftest import HttpServer, http_process, http_server, in_this_process
from ..upstream_tools.test_registry import configure, upstream

FEW = {"SEALAB_WORKERS_MAX": "2", "SEALAB_WORKERS_SPARE": "1"}
WRITES = "await tools.up.append(path='{}', line='x')"


async def run(client: Client, code: str, **arguments: Any) -> dict[str, Any]:
    report = (await client.call_tool("execute_code", {"code": code, **arguments})).structured_content
    assert report is not None
    return report


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_questions_that_nobody_answers_hold_up_no_other_client(mode: str, tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    asked = 0
    all_asked, answer = asyncio.Event(), asyncio.Event()

    async def user(_context: object, _question: object) -> ElicitResult:
        nonlocal asked
        asked += 1
        if asked == 6:
            all_asked.set()
        await answer.wait()
        return ElicitResult(action="decline")

    with http_server(tmp_path, **FEW) as url:
        async with (
            Client(url, mode=mode, read_timeout_seconds=200, elicitation_callback=user) as asking,
            Client(url, mode=mode, read_timeout_seconds=200) as other,
        ):
            runs = [asyncio.create_task(run(asking, WRITES.format(tmp_path / "f"))) for _ in range(6)]
            await all_asked.wait()
            assert (await run(other, "1 + 1"))["result"] == 2
            answer.set()
            assert {(await each)["error"]["type"] for each in runs} == {"ToolError"}


async def test_a_run_that_waits_for_another_gives_it_its_turn(tmp_path: Path) -> None:
    save = "save_skill('twice', 'def twice(x: int = 1): return 2 * x', tests='assert twice(2) == 4')['version']"
    async with in_this_process(tmp_path, {"SEALAB_WORKERS_MAX": "1"}) as caller:
        reports = await asyncio.gather(*(caller.run(f"{save}\nskills.twice(x={n})") for n in range(4)))
        assert [report["result"] for report in reports] == [0, 2, 4, 6]


async def test_a_run_for_which_there_is_no_room_is_told_to_come_back(tmp_path: Path) -> None:
    settings = {"SEALAB_WORKERS_MAX": "1", "SEALAB_QUEUE_MAX": "2", "SEALAB_QUEUE_SECONDS": "1"}
    async with in_this_process(tmp_path, settings) as caller:

        async def runs() -> bool:
            told = (await caller.call("get_execution_stats")).structured_content
            assert told is not None
            return bool(told["pool"]["running"] == 1)

        endless = asyncio.create_task(caller.run("while True: pass", timeout_seconds=100))
        await until(runs)
        answers = await asyncio.gather(*(caller.call("execute_code", code="1 + 1") for _ in range(6)))
        reports = [answer.structured_content for answer in answers]
        assert {report["status"] for report in reports if report} == {"busy"}
        assert all(answer.is_error for answer in answers)
        for report in reports:
            assert report is not None
            assert "Nothing of this one ran. Call again in about" in report["error"]["message"]
        endless.cancel()
        await asyncio.gather(endless, return_exceptions=True)
        waited = asyncio.create_task(caller.run("import time\nwhile time.process_time() < 0.5: pass"))
        later = await caller.run("1 + 1")
        assert (later["result"], (await waited)["success"]) == (2, True)
        assert later.get("queued_ms", 0) >= 0
        statistics = (await caller.call("get_execution_stats")).structured_content
        assert statistics is not None
        assert statistics["runs"]["by_status"]["busy"] == 6
        assert (statistics["pool"]["running"], statistics["pool"]["waiting"]) == (0, 0)


@contextmanager
def control_group(megabytes: int) -> Iterator[str]:
    """A control group with so much memory, and the command that joins it; ends with its processes."""
    folder = next(
        (each for each in cgroups.memory_folders() if os.access(each, os.W_OK) and _bounds(each) is not None), None
    )
    if folder is None:
        pytest.skip("needs a control group for memory that can be written: run the tests as root, or delegate one")
    group = Path(folder) / f"sealab-test-{os.getpid()}"
    limit = _bounds(folder)
    assert limit is not None
    group.mkdir()
    try:
        (group / limit).write_text(str(megabytes << 20))
        yield str(group / "cgroup.procs")
    finally:
        for child in [*group.glob("*/"), group]:
            for _try in range(50):
                with suppress(OSError):
                    child.rmdir()
                    break
                subprocess.run(["sleep", "0.1"], check=True)


@contextmanager
def server_within(megabytes: int, home: Path) -> Iterator[HttpServer]:
    """A server over HTTP in a control group of its own."""
    with control_group(megabytes) as members:
        joining = f"import os,sys; open({members!r}, 'w').write(str(os.getpid())); os.execv(sys.argv[1], sys.argv[1:])"
        with http_process(home, launched_by=[sys.executable, "-c", joining]) as server:
            yield server


def _bounds(folder: str) -> str | None:
    return next((name for name in ("memory.limit_in_bytes", "memory.max") if os.path.exists(f"{folder}/{name}")), None)


async def test_where_memory_runs_out_runs_end_and_the_server_does_not(tmp_path: Path) -> None:
    """Each run may have 500 MB and takes 300, twelve at once, in 900 MB: they wait for each other, or end."""
    takes = "import time\nx = bytearray(300_000_000)\nfor i in range(0, len(x), 4096):\n    x[i] = 1\ntime.sleep(0.5)\nlen(x)"
    with server_within(900, tmp_path) as server:
        async with Client(server.url, read_timeout_seconds=200) as client:
            reports = await asyncio.gather(*(run(client, takes) for _ in range(12)))
            assert {report["status"] for report in reports} <= {"ok", "memory", "crashed", "busy"}
            assert sum(report["status"] == "ok" for report in reports) >= 1
            assert (await run(client, "6 * 7"))["result"] == 42
        assert server.process.poll() is None
