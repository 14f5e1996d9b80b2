"""What callers of a real server share is shared fairly; past their share they are told whose limit it is, and when to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sealab.sandbox.errors import Busy
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.scheduler import RunBounds
from sealab.sandbox.job import Job, Owner

from ...sandbox.conftest import no_calls
from ...waiting import until
from ..conftest import in_this_process, server_over_http

ONE_SPARE = {"SEALAB_WORKERS_SPARE": "1"}
BURN = "sum(each * each for each in range(2_000_000))"


async def is_idle(caller: Any) -> bool:
    return not (await shares(caller))["caller"]["runs"]


async def shares(caller: Any) -> dict[str, Any]:
    return dict((await caller.call("get_execution_stats")).structured_content["shares"])


async def test_runs_a_minute_are_bounded_for_the_foreground_and_the_background_together(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE | {"SEALAB_CALLER_RUNS_PER_MINUTE": "2"}) as caller:
        assert (await caller.run("1 + 1"))["result"] == 2
        queued = await caller.run("1 + 1", background=True)
        ended = await caller.call("get_run", run_id=queued["run_id"], wait_seconds=30)
        refused = await caller.run("1 + 1")
        background = await caller.call("execute_code", code="1", background=True)
        used = await shares(caller)
    assert ended.structured_content["result"] == 2
    assert (refused["status"], refused["success"]) == ("busy", False)
    message = refused["error"]["message"]
    assert message.startswith(
        "This caller has begun 2 runs within a minute, as many as one may (CALLER_RUNS_PER_MINUTE). Nothing of this "
        "one ran. Call again in about "
    )
    assert background.is_error
    assert "CALLER_RUNS_PER_MINUTE" in background.content[0].text
    assert (used["caller"]["runs_last_minute"], used["limits"]["caller_runs_per_minute"]) == (2, 2)


async def test_cpu_seconds_of_a_day_outlive_a_restart(tmp_path: Path) -> None:
    env = ONE_SPARE | {"SEALAB_CALLER_CPU_SECONDS_PER_DAY": "0.01"}
    async with in_this_process(tmp_path, env) as caller:
        assert (await caller.run(BURN))["success"]
        used = await shares(caller)
    async with in_this_process(tmp_path, env) as caller:
        refused = await caller.run("1")
        after = await shares(caller)
    assert used["caller"]["cpu_seconds_today"] > 0.01
    assert after["caller"]["cpu_seconds_today"] == used["caller"]["cpu_seconds_today"]
    assert refused["status"] == "busy"
    assert "This caller has used its 0.01 CPU seconds of " in refused["error"]["message"]
    assert "(CALLER_CPU_SECONDS_PER_DAY)" in refused["error"]["message"]


async def test_the_tests_of_a_skill_are_a_run_and_charged(tmp_path: Path) -> None:
    env = ONE_SPARE | {"SEALAB_CALLER_CPU_SECONDS_PER_DAY": "0.05", "SEALAB_CALLER_RUNS_PER_MINUTE": "9"}
    async with in_this_process(tmp_path, env) as caller:
        saved = await caller.call("save_skill", name="burn", code=f"def burn():\n    return {BURN}", tests="burn()")
        used = await shares(caller)
        refused = await caller.call("save_skill", name="more", code="def more():\n    return 1", tests="more()")
    assert not saved.is_error
    assert used["caller"]["cpu_seconds_today"] > 0.05
    assert used["caller"]["runs_last_minute"] == 1
    assert refused.is_error
    assert "CALLER_CPU_SECONDS_PER_DAY" in refused.content[0].text


async def test_a_cancelled_run_is_charged_too(tmp_path: Path) -> None:
    env = ONE_SPARE | {"SEALAB_TENANT_CPU_SECONDS_PER_DAY": "0.02"}
    code = f"{BURN}\nwrite_file('burnt', 'x')\nimport asyncio\nawait asyncio.sleep(600)"
    async with in_this_process(tmp_path, env) as caller:
        first = asyncio.create_task(caller.run(code))
        await until((tmp_path / "workspace" / "burnt").exists)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await until(partial(is_idle, caller))
        used = await shares(caller)
        refused = await caller.run("1")
    assert used["tenant"]["cpu_seconds_today"] > 0.02
    assert "This tenant has used its 0.02 CPU seconds" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("bounds", "whose"),
    [
        (RunBounds(caller_max=1), "this caller has 1 runs.*CALLER_RUNS_MAX"),
        (RunBounds(0, 1), "this tenant.*TENANT_RUNS"),
    ],
)
async def test_runs_at_once_wait_and_are_then_told_whose_bound_it_was(bounds: RunBounds, whose: str) -> None:
    sleeps = "import asyncio\nawait asyncio.sleep(600)"
    async with Pool(PoolSettings(spares=1, queue_seconds=0.2, bounds=bounds)) as pool:
        first = asyncio.create_task(pool.run(Job(sleeps, caller="a", tenant="T"), no_calls))
        await until(lambda: bounds.runs_of(Owner("T", "a")))
        with pytest.raises(Busy, match=whose):
            await pool.run(Job("1", caller="a", tenant="T"), no_calls)
        other = Job("6 * 7", caller="a", tenant="U")
        assert (await pool.run(other, no_calls)).result == 42
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert (await pool.run(Job("6 * 7", caller="a", tenant="T"), no_calls)).result == 42


async def test_sessions_of_a_tenant_are_bounded_and_its_idlest_one_ends() -> None:
    settings = PoolSettings(spares=1, sessions_max=8, caller_sessions_max=2, tenant_sessions_max=3)
    async with Pool(settings) as pool:
        for name, caller in (("1", "a"), ("2", "a"), ("3", "a"), ("4", "b"), ("5", "c"), ("6", "d")):
            await pool.run(Job("x = 1", session=name, caller=caller, tenant="T"), no_calls)
        await pool.run(Job("x = 1", session="7", caller="a", tenant="U"), no_calls)
        assert [name for name in "1234567" if pool.has_session(name)] == ["4", "5", "6", "7"]


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
