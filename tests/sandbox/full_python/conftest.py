"""Pools of full Python, on this interpreter and on one with numpy, pandas and matplotlib, and what tests ask of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Json, Limits, Outcome, Status

from ..conftest import no_calls
from ..science import science_python

SETTINGS = PoolSettings(spares=1, isolation=Isolation.PROCESS)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (folder / "tables").mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
async def pool(workspace: Path) -> AsyncIterator[Pool]:
    async with Pool(replace(SETTINGS, workspace=str(workspace))) as pool:
        yield pool


@pytest.fixture(scope="module")
async def science(workspace: Path) -> AsyncIterator[Pool]:
    async with Pool(replace(SETTINGS, workspace=str(workspace), python=science_python())) as pool:
        yield pool


async def run(pool: Pool, code: str, host_calls=no_calls, *, session: str | None = None, **limits) -> Outcome:
    allowed = Limits(**{"timeout_seconds": 120.0, "memory_mb": 500, **limits})
    return await pool.run(Job(code, isolation=Isolation.PROCESS, limits=allowed, session=session), host_calls)


async def value(pool: Pool, code: str, host_calls=no_calls, **limits) -> Json:
    outcome = await run(pool, code, host_calls, **limits)
    assert outcome.status is Status.OK, outcome
    return outcome.result


async def needs(pool: Pool, *libraries: str) -> None:
    """Skip the test where the interpreter lacks one of the libraries."""
    code = f"import importlib.util\n[each for each in {libraries!r} if importlib.util.find_spec(each) is None]"
    missing = await value(pool, code)
    if missing:
        pytest.skip(f"the interpreter has no {missing}")


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
