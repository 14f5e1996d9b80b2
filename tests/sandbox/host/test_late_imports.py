"""What code has used once, later workers have imported: real zygotes on an interpreter with modules of the tests' own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from sealab.sandbox.host import pool as pool_module
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.zygotes import LateImports
from sealab.sandbox.job import Isolation, Job, Json, Limits, Status

from ..conftest import no_calls
from ..science import science_python

SETTINGS = PoolSettings(spares=1, isolation=Isolation.PROCESS)
TRIES = 200


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with a `duckdb`, a `polars` and an `openpyxl` that leave threads, and a fatal `seaborn`."""
    folder = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next((folder / "lib").glob("python3.*")) / "site-packages"
    (packages / "duckdb.py").write_text("answer = 42\n")
    leaves_a_thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    for name in ("polars", "openpyxl"):
        (packages / f"{name}.py").write_text(f"{leaves_a_thread}answer = 42\n")
    (packages / "seaborn.py").write_text("import os\nif os.getppid() != 1:\n    os._exit(9)\n")
    return str(folder / "bin" / "python")


async def value(pool: Pool, code: str, *, memory_mb: int = 480) -> Json:
    outcome = await pool.run(
        Job(code, isolation=Isolation.PROCESS, limits=Limits(timeout_seconds=60, memory_mb=memory_mb)), no_calls
    )
    assert outcome.status is Status.OK, outcome
    return outcome.result


async def becomes_true(pool: Pool, code: str) -> bool:
    for _try in range(TRIES):
        if await value(pool, code):
            return True
        await asyncio.sleep(0.02)  # a spare imports while it has nothing to do
    return False


@pytest.mark.parametrize("module", ["duckdb", "polars"])
async def test_a_library_that_was_used_once_is_there_in_later_workers_before_their_code(
    python: str, module: str
) -> None:
    async with Pool(replace(SETTINGS, python=python)) as pool:
        loaded = f"import sys\n{module[:3]!r} + {module[3:]!r} in sys.modules"
        assert not await value(pool, loaded)
        assert await value(pool, f"import {module}\n{module}.answer") == 42
        assert await becomes_true(pool, loaded)
        assert await value(pool, f"import {module}\n{module}.answer") == 42


async def test_two_libraries_that_leave_threads_are_both_imported_by_spares(python: str) -> None:
    async with Pool(replace(SETTINGS, python=python)) as pool:
        await value(pool, "'polars, openpyxl'")
        assert await becomes_true(pool, "import sys\n{'po' + 'lars', 'open' + 'pyxl'} <= set(sys.modules)")


async def test_a_library_that_ends_the_zygote_is_left_to_the_code_that_imports_it(python: str) -> None:
    async with Pool(replace(SETTINGS, python=python)) as pool:
        await value(pool, "'seaborn'")
        for _try in range(20):
            assert await value(pool, "6 * 7") == 42
        assert pool._ahead.modules == ()


def test_only_what_is_named_for_the_first_time_is_new() -> None:
    seen = LateImports()
    assert seen.add("import polars, matplotlib")
    assert seen.modules == ("matplotlib.pyplot", "polars")
    assert not seen.add("polars")
    assert seen.add("frame.to_parquet('x')")
    seen.drop_newest()
    assert seen.modules == ("matplotlib.pyplot", "polars")
    assert not seen.add("frame.to_parquet('x')")


POOLS = ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT", "SLURM_CPUS_ON_NODE")
TOLD = f"import os\n[os.environ[name] for name in {POOLS}]"


async def test_a_run_alone_may_use_all_processors_for_the_pools_of_libraries_and_cpus_bounds_them(python: str) -> None:
    processors = min(len(os.sched_getaffinity(0)), 480 // pool_module.MB_OF_A_THREAD)
    async with Pool(replace(SETTINGS, python=python)) as pool:
        assert await value(pool, TOLD) == [str(processors)] * len(POOLS)
    async with Pool(replace(SETTINGS, python=python, cpus=1)) as pool:
        assert await value(pool, TOLD) == ["1"] * len(POOLS)


async def test_eight_runs_at_once_have_no_more_threads_together_than_there_are_processors(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_processors", lambda: 8)
    async with Pool(replace(SETTINGS, python=python)) as pool:
        assert await value(pool, TOLD) == ["8"] * len(POOLS)
        assert await asyncio.gather(*(value(pool, TOLD) for _ in range(8))) == [["1"] * len(POOLS)] * 8


async def test_what_waits_is_counted_with_what_runs(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_processors", lambda: 8)
    async with Pool(replace(SETTINGS, python=python, workers_max=2)) as pool:
        told = await asyncio.gather(*(value(pool, TOLD) for _ in range(4)))
        assert told[:2] == [["2"] * len(POOLS)] * 2


async def test_duckdb_takes_as_many_threads() -> None:
    code = """
import duckdb
query = "SELECT current_setting('threads')"
[each.sql(query).fetchall()[0][0] for each in (duckdb, duckdb.connect(), duckdb.connect('/tmp/a.db'))]
"""
    for cpus, threads in ((None, len(os.sched_getaffinity(0))), (1, 1)):
        async with Pool(replace(SETTINGS, python=science_python(), cpus=cpus)) as pool:
            if not await value(pool, "import importlib.util\nimportlib.util.find_spec('duckdb') is not None"):
                pytest.skip("the interpreter has no duckdb")
            assert await value(pool, code, memory_mb=2000) == [threads] * 3
