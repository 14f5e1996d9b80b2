"""Background runs go on though the database goes away under them: PostgreSQL is killed while they run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from ....skills_db.conftest import cluster_of_tests
from ....skills_db.postgres import Cluster
from ....waiting import until as comes_about
from ...conftest import Caller, in_this_process
from ...journal.test_journaled_runs import CLAIMED, served_notes
from .test_background import ONE_SPARE, begun, ended, until

BETWEEN_CALLS = """
import asyncio, random
number = random.random()
sent = []
for n in range(3):
    sent.append(await tools.notes.send(text=f'{n} {number}'))
    progress((n + 1) / 10)
    while not any(each['name'] == f'go{n}.txt' for each in list_files()):
        await asyncio.sleep(0.05)
result = sent
"""
AWAY = "journals of runs under way wait to be written"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server that a test may kill."""
    with cluster_of_tests(durable=True) as running:
        yield running


@pytest.fixture
async def caller(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Caller]:
    env = ONE_SPARE | CLAIMED | {"SEALAB_DATABASE_URL": cluster.create("background")}
    served_notes(tmp_path)
    async with in_this_process(tmp_path, env) as caller:
        yield caller


async def lets_go(caller: Caller, number: int) -> None:
    await caller.call("write_workspace_file", filename=f"go{number}.txt", content="")


def reached(caller: Caller, number: int) -> bool:
    """Whether the run has sent so many."""
    sent = caller.home / "sent.txt"
    return sent.exists() and len(sent.read_text().splitlines()) >= number


async def ends_well(caller: Caller, run_id: str) -> None:
    report = await ended(caller, run_id)
    assert report["status"] == "ok", report
    lines = (caller.home / "sent.txt").read_text().splitlines()
    assert report["result"] == [f"sent {line}" for line in lines]
    assert len({line.split()[1] for line in lines}) == 1
    assert len(lines) == 3


async def test_a_write_waits_while_the_database_is_away_and_is_then_sent(
    caller: Caller, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = await begun(caller, BETWEEN_CALLS)
    await until(caller, run_id, lambda state: "progress" in state)
    cluster.stop(signal.SIGKILL)
    await lets_go(caller, 0)
    await comes_about(lambda: AWAY in caplog.text)  # the run is at its next write, which must not be sent
    assert not reached(caller, 2)
    await asyncio.to_thread(cluster.start)
    await comes_about(lambda: reached(caller, 2))
    for number in (1, 2):
        await lets_go(caller, number)
    await ends_well(caller, run_id)


async def test_a_run_whose_worker_is_lost_while_the_database_is_away_goes_on(
    caller: Caller, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    spares = set(psutil.Process().children(recursive=True))
    run_id = await begun(caller, BETWEEN_CALLS)
    await until(caller, run_id, lambda state: "progress" in state)
    cluster.stop(signal.SIGKILL)
    for each in set(psutil.Process().children(recursive=True)) - spares:
        if each.is_running() and not any("notes.py" in part for part in each.cmdline()):
            each.kill()
    for number in range(3):
        await lets_go(caller, number)
    await comes_about(lambda: AWAY in caplog.text)  # what takes it up finds no database
    await asyncio.to_thread(cluster.start)
    await ends_well(caller, run_id)


async def test_the_report_of_a_run_that_ends_while_the_database_is_away_is_stored_later(
    caller: Caller, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = await begun(caller, BETWEEN_CALLS)
    await until(caller, run_id, lambda state: "progress" in state)
    for number in (0, 1):
        await lets_go(caller, number)
    await comes_about(lambda: reached(caller, 3))
    cluster.stop(signal.SIGKILL)
    await lets_go(caller, 2)
    await comes_about(lambda: AWAY in caplog.text)  # it ends, and its report cannot be stored
    await asyncio.to_thread(cluster.start)
    await ends_well(caller, run_id)
