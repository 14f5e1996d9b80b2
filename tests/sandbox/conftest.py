"""A pool of real workers, and what tests need to look at their processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest

from sealab.sandbox.host import pool as host_pool
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.worker import WorkerHandle
from sealab.sandbox.host.zygote_launcher import ZygoteLauncher
from sealab.sandbox.job import Failure, Job, Json, Limits, Outcome, Waits

from ..waiting import until
from ..zygotes import Launch, lent_zygotes

__all__ = ["lent_zygotes"]


async def no_calls(name: str, arguments: Mapping[str, Json]) -> Json:
    if name == "judge_calls":  # asked before a program that calls tools starts
        return None
    raise AssertionError(f"the code called {name} with {arguments}")


async def run(
    pool: Pool, code: str, host_calls=no_calls, *, session: str | None = None, waits: Waits | None = None, **limits
) -> Outcome:
    """Run code with small limits, unless others are given."""
    allowed = Limits(**{"timeout_seconds": 50.0, "memory_mb": 100, **limits})
    job = Job(code, limits=allowed, session=session, waits=waits or Waits())
    return await pool.run(job, host_calls)


def failure(outcome: Outcome) -> Failure:
    """Return the error that a run must have ended with."""
    assert outcome.error is not None, outcome
    return outcome.error


async def spare(pool: Pool) -> WorkerHandle:
    """Return the worker that takes the next run, once there is one."""
    await until(lambda: pool._idle and not pool._making)
    return pool._idle[-1]


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def own_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pools start zygotes of their own, also in a process in which tests of the server share some."""
    monkeypatch.setattr(host_pool, "ZygoteLauncher", ZygoteLauncher)


@pytest.fixture
def own_children() -> Iterator[None]:
    from ..processes import children_from_here  # needs psutil, which the tests of the language do without

    with children_from_here():
        yield


@asynccontextmanager
async def ready_pool(launch: Launch | None = None) -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(spares=1), launch) as pool:
        await pool.ready()
        yield pool


@pytest.fixture(scope="module")
async def pool(lent_zygotes: Launch) -> AsyncIterator[Pool]:
    """One for all tests of a module: whatever a run does, it does to a worker of its own."""
    async with ready_pool(lent_zygotes) as pool:
        yield pool


@pytest.fixture
async def own_pool() -> AsyncIterator[Pool]:
    """One for a test that looks at its processes, or ends it or its zygote."""
    async with ready_pool() as pool:
        yield pool
