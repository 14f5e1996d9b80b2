"""What is compiled ahead: once, by a child of the zygote, for workers that were there before too."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import mmap
import os
import sys
from pathlib import Path

import pytest

from sealab.sandbox.confine.system_calls.allow_list import policy_for
from sealab.sandbox.host import zygote_launcher
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Json
from sealab.sandbox.worker import compiled_ahead as module
from sealab.sandbox.worker.compiled_ahead import LEAST_PRIORITY, CompiledAhead

from ...waiting import until

COMPILES_ANOTHER = (
    "import marshal;from sealab.sandbox.dialect import guest_modules;"
    "guest_modules.compile_all=lambda:{'argparse':marshal.dumps(compile('ahead = True',str(),'exec'))};"
)


async def no_calls(name: str, arguments: object) -> Json:
    raise AssertionError(name)


def compiled_ahead(modules: dict[str, bytes]) -> CompiledAhead:
    made = CompiledAhead(lambda: modules)
    assert made.find("one") is None
    assert not made.has_ended()
    made.start()
    made.start()
    assert made.has_ended(wait=True)
    return made


def test_bytes_that_a_child_made_are_found_by_name() -> None:
    made = compiled_ahead({"one": b"first", "two": b"", "three": b"x" * 100_000})
    assert bytes(made.find("one") or b"") == b"first"
    assert bytes(made.find("three") or b"") == b"x" * 100_000
    assert made.find("four") is None


def test_what_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BYTES_MAX", 4096)
    made = compiled_ahead({"large": bytes(5000), "one": b"first"})
    assert made.find("large") is None
    assert bytes(made.find("one") or b"") == b"first"


def test_of_a_child_that_fails_nothing_is_found() -> None:
    def fails() -> dict[str, bytes]:
        raise MemoryError

    made = CompiledAhead(fails)
    made.start()
    assert made.has_ended(wait=True)
    assert made.find("one") is None


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are filtered on Linux")
def test_the_child_is_told_from_workers_by_its_priority_which_no_worker_can_change() -> None:
    """The runner of the attack cases does not count it among what an attack left."""

    def tells() -> dict[str, bytes]:
        return {"priority": str(os.getpriority(os.PRIO_PROCESS, 0)).encode()}

    made = CompiledAhead(tells)
    made.start()
    assert made.has_ended(wait=True)
    assert bytes(made.find("priority") or b"") == str(LEAST_PRIORITY).encode()
    for isolation in (Isolation.RESTRICTED, Isolation.PROCESS):
        allowed = policy_for(isolation).allowed
        assert not {"setpriority", "nice", "sched_setscheduler", "sched_setattr", "sched_setparam"} & set(allowed)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a descriptor be opened anew for reading alone")
def test_no_worker_can_make_the_memory_writable() -> None:
    made = compiled_ahead({"one": b"first"})
    (place,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:compiled" in line][-1:]
    libc = ctypes.CDLL(None, use_errno=True)
    begin = ctypes.c_void_p(int(place.partition("-")[0], 16))
    assert libc.mprotect(begin, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE) == -1
    assert ctypes.get_errno() == errno.EACCES
    assert bytes(made.find("one") or b"") == b"first"


async def test_workers_that_were_there_before_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "from sealab.sandbox.worker.zygote"
    monkeypatch.setattr(zygote_launcher, "_BOOT", zygote_launcher._BOOT.replace(start, COMPILES_ANOTHER + start))
    asked = "import argparse\nhasattr(argparse, 'ahead')"
    async with Pool(PoolSettings(spares=1)) as pool:
        await pool.ready()
        await pool.run(Job("0", session="before"), no_calls)

        async def is_there() -> bool:
            await asyncio.sleep(0.3)  # a zygote that is asked for workers is not idle
            return (await pool.run(Job(asked), no_calls)).result is True

        await until(is_there)
        assert (await pool.run(Job(asked, session="before"), no_calls)).result is True
