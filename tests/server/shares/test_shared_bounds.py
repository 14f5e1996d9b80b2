"""Bounds over several servers on one PostgreSQL database: never more, nothing kept from others, freed at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from sealab.sandbox.errors import Busy
from sealab.server.app import running
from sealab.server.base.database import database_of
from sealab.server.base.home import Home
from sealab.server.base.host_work import Account
from sealab.server.base.settings import Settings
from sealab.server.governance.shares import shares as of_shares
from sealab.server.governance.shares.cpu_days import CpuDays
from sealab.server.governance.shares.shared_bounds import PartLacking, Parts
from sealab.server.governance.shares.shares import Shares
from sealab.skills_db.errors import SkillsDbError

from ...skills_db.conftest import Place
from ...waiting import until
from ..conftest import LEAST, two_servers

WAIT_SECONDS = 40


@asynccontextmanager
async def servers(place: Place, count: int) -> AsyncIterator[list[Parts]]:
    """So many servers, each with connections of its own."""
    async with AsyncExitStack() as stack:
        made = []
        for number in range(count):
            database = database_of(place.url, Home(place.home / str(number)))
            stack.callback(database.close)
            parts = Parts(database)
            stack.push_async_callback(parts.close)
            made.append(parts)
        yield made


async def test_at_no_time_more_is_taken_than_the_bound_and_all_are_served(postgres_place: Place) -> None:
    taken, highest = 0, 0

    async def work(parts: Parts, caller: str) -> None:
        nonlocal taken, highest
        await parts.take("runs", 5, caller=caller, wait_seconds=WAIT_SECONDS)
        taken += 1
        highest = max(highest, taken)
        await asyncio.sleep(random.uniform(0.0, 0.05))
        taken -= 1
        parts.give_back("runs")

    async with servers(postgres_place, 3) as made:
        every = (work(random.choice(made), f"c{number % 4}") for number in range(120))
        await asyncio.gather(*every)
    assert taken == 0
    assert 3 <= highest <= 5


async def test_a_server_with_one_busy_caller_gets_the_whole_bound_from_those_that_are_idle(
    postgres_place: Place,
) -> None:
    async with servers(postgres_place, 2) as (first, second):
        await first.take("runs", 8, wait_seconds=WAIT_SECONDS)
        for _ in range(7):
            await second.take("runs", 8, wait_seconds=WAIT_SECONDS)
        assert (first.used("runs"), second.used("runs")) == (1, 7)
        with pytest.raises(PartLacking):
            await second.take("runs", 8, wait_seconds=0.5)
        waits = asyncio.create_task(second.take("runs", 8, wait_seconds=WAIT_SECONDS))
        first.give_back("runs")
        await waits
        assert second.used("runs") == 8


async def test_the_part_of_a_server_that_is_gone_is_free_once_its_time_is_up(postgres_place: Place) -> None:
    async with servers(postgres_place, 2) as (first, second):
        for _ in range(4):
            await first.take("runs", 4, wait_seconds=WAIT_SECONDS, held_seconds=4)
        assert first._serving is not None
        first._serving.cancel()  # as where it was killed: nothing is given back, and nothing renewed
        with pytest.raises(PartLacking):
            await second.take("runs", 4, wait_seconds=0.5)
        await second.take("runs", 4, wait_seconds=WAIT_SECONDS)


async def test_a_waiting_take_that_is_cancelled_leaves_nothing_behind(postgres_place: Place) -> None:
    async with servers(postgres_place, 1) as (parts,):
        await parts.take("runs", 1, wait_seconds=WAIT_SECONDS)
        waits = asyncio.create_task(parts.take("runs", 1, wait_seconds=WAIT_SECONDS))
        await asyncio.sleep(0)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        parts.give_back("runs")
        assert parts.used("runs") == 0
        await parts.take("runs", 1, wait_seconds=WAIT_SECONDS)
        parts.give_back("runs")
        await until(lambda: not parts._parts)  # what is not used is given back


async def test_without_the_database_nothing_is_taken() -> None:
    database = database_of("postgresql://nobody@127.0.0.1:1/none", Home(Path("/nowhere")))
    parts = Parts(database)
    with pytest.raises(SkillsDbError):
        await parts.take("runs", 1, wait_seconds=WAIT_SECONDS)
    await parts.close()


async def test_runs_a_minute_and_at_once_hold_over_servers(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_shares, "_SPARED_SECONDS", 3.0)
    settings = Settings(tenant_runs_per_minute=6, caller_runs_max=2, queue_seconds=0.5)
    begun, refused = 0, []
    async with servers(postgres_place, 2) as made:
        both = [Shares(settings, CpuDays(lambda: None), "acme", parts=parts) for parts in made]  # type: ignore[arg-type,return-value]

        async def run(number: int) -> None:
            nonlocal begun
            try:
                async with both[number % 2].run(f"caller {number}", Account(60.0)):
                    begun += 1
            except Busy as error:
                refused.append(error)

        await asyncio.gather(*(run(number) for number in range(10)))
        assert begun == 6
        assert {error.limit for error in refused} == {"TENANT_RUNS_PER_MINUTE"}
        assert all("on all servers together" in str(error) or "within a minute" in str(error) for error in refused)

        unbounded = Settings(caller_runs_max=2, queue_seconds=0.5)
        both = [Shares(unbounded, CpuDays(lambda: None), "acme", parts=parts) for parts in made]  # type: ignore[arg-type,return-value]
        async with both[0].run("me", Account(60.0)), both[1].run("me", Account(60.0)):
            with pytest.raises(Busy, match=r"2 runs are at work on all servers together.*CALLER_RUNS_MAX"):
                async with both[1].run("me", Account(60.0)):
                    pass
        async with both[1].run("me", Account(60.0)):
            pass


async def test_where_nothing_is_shared_a_bound_is_this_servers_whole() -> None:
    parts = Parts(None)
    for _ in range(2):
        await parts.take("up", 2, wait_seconds=WAIT_SECONDS)
    with pytest.raises(PartLacking):
        await parts.take("up", 2, wait_seconds=0.01)
    waits = asyncio.create_task(parts.take("up", 2, wait_seconds=WAIT_SECONDS))
    await asyncio.sleep(0)
    parts.give_back("up")
    await waits
    for _ in range(2):
        parts.give_back("up")
    assert not parts._parts


async def test_who_waits_for_a_part_as_its_server_ends_is_refused_and_so_is_who_comes_later(
    postgres_place: Place,
) -> None:
    async with servers(postgres_place, 1) as (parts,):
        await parts.take("runs", 1, wait_seconds=WAIT_SECONDS)
        waiting = asyncio.create_task(parts.take("runs", 1, wait_seconds=WAIT_SECONDS))
        later = asyncio.create_task(parts.take("other", 1, wait_seconds=WAIT_SECONDS))
        await later
        await parts.close()
        async with asyncio.timeout(WAIT_SECONDS / 2):
            with pytest.raises(PartLacking):
                await waiting
            with pytest.raises(PartLacking):
                await parts.take("third", 1, wait_seconds=WAIT_SECONDS)


async def test_sessions_of_a_tenant_are_counted_over_two_servers_and_freed_when_they_end(
    postgres_place: Place, tmp_path: Path
) -> None:
    async with two_servers(postgres_place, tmp_path, {}, SEALAB_TENANT_SESSIONS_MAX="2") as (first, second):
        for name in ("a", "b"):
            assert (await first.run("n = 1", session=name))["status"] == "ok"
        refused = await second.call("execute_code", code="n = 1", session="c")
        assert "2 sessions are alive on all servers together" in str(refused)
        assert "TENANT_SESSIONS_MAX" in str(refused)
        assert (await first.run("n + 1", session="a"))["result"] == 2, "what was there goes on"
        assert (await first.run("n = 3", session="d"))["status"] == "ok", "an idle one of its own ends for it"
        for name in ("a", "b", "d"):
            await first.run(f"close_session({name!r})")
        assert (await second.run("n = 5", session="c"))["status"] == "ok"


async def test_who_waits_for_a_part_waits_on_until_background_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LEAST.items():
        monkeypatch.setenv(name, value)
    waited: list[bool] = []
    async with running(Settings(), Home(tmp_path)) as app:
        parts, close = app.executor.shares.parts, app.background.work.aclose
        await parts.take("bound", 1, wait_seconds=0)
        waiting = asyncio.create_task(parts.take("bound", 1, wait_seconds=600))

        async def ended() -> None:
            await close()
            waited.append(not waiting.done())

        monkeypatch.setattr(app.background.work, "aclose", ended)
    assert waited == [True]
    with pytest.raises(PartLacking):
        await waiting
