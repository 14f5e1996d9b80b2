"""Native code in full Python against the layers that are left: each case is harmless where it succeeds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sealab.sandbox.host import pool as pool_module
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Limits, Outcome, Status

from ..conftest import no_calls

pytestmark = pytest.mark.adversarial

RAW = "import ctypes, errno, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(spares=1, isolation=Isolation.PROCESS)) as pool:
        yield pool


async def run(pool: Pool, code: str, **limits: float) -> Outcome:
    allowed = Limits(**{"timeout_seconds": 10.0, "memory_mb": 200, "pids_max": 16, **limits})  # type: ignore[arg-type]
    return await pool.run(Job(code, isolation=Isolation.PROCESS, limits=allowed), no_calls)


async def test_as_many_threads_as_allowed_and_no_more(pool: Pool) -> None:
    code = """
import threading
held = threading.Event()
count = 0
try:
    while count < 1000:
        threading.Thread(target=held.wait, daemon=True).start()
        count += 1
except RuntimeError:
    pass
held.set()
count
"""
    outcome = await run(pool, code, memory_mb=500)
    assert outcome.status is Status.OK, outcome
    assert 8 <= int(str(outcome.result)) <= 16


async def test_the_files_of_the_scratch_directory_are_bounded_in_number(pool: Pool) -> None:
    code = """
import os
made = 0
try:
    while made < 70_000:
        os.close(os.open(f"/tmp/{made:0>200}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    result = [10_000 < made <= 64 * 1024 * 1024 // 4096, error.errno]
"""
    assert (await run(pool, code, timeout_seconds=30.0)).result == [True, 28]


async def test_a_worker_cannot_forge_the_layers_or_survive_its_time(pool: Pool) -> None:
    code = """
import gc, signal, threading
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
gc.disable()
while True: pass
"""
    outcome = await run(pool, code, timeout_seconds=1.0)
    assert outcome.status is Status.TIMEOUT
    assert (await run(pool, "1")).status is Status.OK


RAISE_AND_TAKE = """
import ctypes, resource
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
taken, size, most = 0, 1 << 20, (memory_mb << 20) * 2
while size >= 4096 and taken < most:
    at = libc.mmap(None, ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0))
    if at == ctypes.c_void_p(-1).value:
        size //= 2
    else:
        ctypes.memset(at, 1, size)
        taken += size
print(taken / (memory_mb << 20))
"""


@pytest.mark.parametrize("session", [None, "a"], ids=["fresh", "session"])
@pytest.mark.parametrize("memory_mb", [16, 64, 200])
async def test_code_that_raises_its_memory_limit_gets_no_more_than_is_promised(
    pool: Pool, memory_mb: int, session: str | None
) -> None:
    given = {"memory_mb": memory_mb}
    limits = Limits(timeout_seconds=10.0, memory_mb=memory_mb)
    job = Job(RAISE_AND_TAKE, given, limits, isolation=Isolation.PROCESS, session=session)
    outcome = await pool.run(job, no_calls)
    assert 0.9 < float(outcome.output) <= 1.11, outcome


async def test_what_the_process_has_mapped_of_its_output_is_no_memory_to_gain(pool: Pool) -> None:
    code = """
import gc, mmap
maps = [each for each in gc.get_objects() if isinstance(each, mmap.mmap)]
gc.unfreeze()
maps += [each for each in gc.get_objects() if isinstance(each, mmap.mmap)]
sum({id(each): len(each) for each in maps}.values())
"""
    outcome = await run(pool, code)
    assert int(str(outcome.result)) <= 1 << 16, outcome


async def test_a_shared_library_from_the_scratch_directory_is_not_loaded(pool: Pool) -> None:
    code = """
import ctypes, shutil, sys, sysconfig, glob, os
library = next(path for path in glob.glob(os.path.join(sysconfig.get_path("stdlib"), "lib-dynload", "_json*.so")))
shutil.copy(library, "/tmp/copied.so")
try:
    ctypes.CDLL("/tmp/copied.so")
except OSError as error:
    result = "refused"
"""
    assert (await run(pool, code)).result == "refused"


@pytest.mark.parametrize(
    ("memory_mb", "pids_max", "threads"), [(16, 64, 1), (500, 64, 10), (500, 8, 2), (8000, 512, 96)]
)
async def test_pools_of_libraries_leave_memory_and_threads_to_the_code_however_many_processors_there_are(
    monkeypatch: pytest.MonkeyPatch, memory_mb: int, pids_max: int, threads: int
) -> None:
    monkeypatch.setattr(pool_module, "_processors", lambda: 96)
    most = Limits(memory_mb=8000, pids_max=512)
    async with Pool(PoolSettings(spares=0, isolation=Isolation.PROCESS, workers_max=1, maximum=most)) as own:
        outcome = await run(own, "import os\nos.environ['OMP_NUM_THREADS']", memory_mb=memory_mb, pids_max=pids_max)
    assert outcome.result == str(threads), outcome
