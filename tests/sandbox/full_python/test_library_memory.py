"""What libraries with allocators of their own hold within the memory of a run: real workers with the real libraries."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Limits, Outcome

from ..conftest import no_calls
from ..science import science_python

MEMORY_MB = 400
TRIES = 200


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "workspace"
        folder.mkdir(mode=0o700)
        settings = PoolSettings(
            spares=1,
            cpus=2,
            isolation=Isolation.PROCESS,
            python=science_python(),
            workspace=str(folder),
            run_folders=str(Path(place) / "scratch"),
            run_folder_bytes=2_000_000_000,
            maximum=Limits(timeout_seconds=120.0, memory_mb=MEMORY_MB, file_size_mb=2000),
        )
        async with Pool(settings) as pool:
            await pool.ready()
            if (await run(pool, "import os\nos.getcwd()")).result != "/workspace":
                pytest.skip("this machine has no overlays for users, or not on this file system")
            yield pool


async def run(pool: Pool, code: str) -> Outcome:
    limits = Limits(timeout_seconds=100.0, memory_mb=MEMORY_MB, file_size_mb=2000)
    return await pool.run(Job(code, isolation=Isolation.PROCESS, limits=limits), no_calls)


async def with_polars_ahead(pool: Pool) -> None:
    """Wait until the zygote has imported polars, which it does once code has."""
    await run(pool, "import polars")
    for _ in range(TRIES):
        if (await run(pool, "import sys\n'polars' in sys.modules")).result:
            return
    raise AssertionError("no zygote has imported polars")


async def test_duckdb_is_told_the_memory_of_the_run(pool: Pool) -> None:
    code = "import duckdb\nduckdb.sql(\"select current_setting('memory_limit')\").fetchall()[0][0]"
    told = (await run(pool, code)).result
    assert isinstance(told, str)
    assert told.endswith(" MiB")
    assert float(told.split()[0]) < MEMORY_MB * 0.8


async def test_duckdb_moves_to_disk_what_the_memory_of_a_run_cannot_hold(pool: Pool) -> None:
    code = """
import duckdb
rows = "select range as a, hash(range) as b, hash(range + 7) as c from range(18000000)"
duckdb.sql(f"copy ({rows} order by b) to 'sorted.parquet'")
duckdb.sql("select count(*), sum(a)::bigint from 'sorted.parquet'").fetchall()
"""
    outcome = await run(pool, code)
    assert outcome.result == [[18_000_000, 18_000_000 * 17_999_999 // 2]], outcome.error


async def test_polars_gives_back_the_address_space_of_what_it_dropped(pool: Pool) -> None:
    code = """
import numpy as np, polars as pl
made = np.random.default_rng(1)
count = 1_450_000
frame = pl.DataFrame({"text": made.integers(0, 1000, count).astype(str)})
frame = frame.with_columns(key=made.integers(0, count // 3, count), value=made.random(count))
for each in range(3):
    frame.group_by("key").agg(pl.col("value").sum())
    frame.sort("value")
    frame.join(frame.head(count // 4), on="key").height
frame.height
"""
    await with_polars_ahead(pool)
    outcome = await run(pool, code)
    assert outcome.result == 1_450_000, outcome.error


async def test_polars_that_a_zygote_imported_has_the_threads_of_the_run_and_its_scratch_folder(pool: Pool) -> None:
    await with_polars_ahead(pool)
    code = """
import polars as pl
rows = pl.LazyFrame({"key": range(3_000_000)}).with_columns(value=pl.col("key").hash())
rows.sort("value").sink_parquet("sorted.parquet")
[pl.thread_pool_size(), pl.scan_parquet("sorted.parquet").select(pl.col("value").is_sorted()).collect().item()]
"""
    outcome = await run(pool, code)
    assert (outcome.result, outcome.output, outcome.stderr) == ([min(2, os.cpu_count() or 1), True], "", ""), (
        outcome.error
    )
