"""What holds the event loop is measured, told and counted; what the machine does to it is not."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sealab.server.base.stats import watchdog
from sealab.server.base.stats.watchdog import LoopStats, WatchedLoop, watching

from ...processes import alive
from ...waiting import wait_until
from ..conftest import Caller

COUNTS_WAITS = Path("/proc/self/schedstat").exists()


def burn(cpu_seconds: float) -> None:
    end = time.thread_time() + cpu_seconds
    while time.thread_time() < end:
        pass


def stats_of(*held) -> LoopStats:
    """Watch a loop that does this, one after the other."""
    stats = LoopStats()

    async def do() -> None:
        with watching(stats):
            for each in held:
                each()
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(do())
    return stats


def test_what_computes_in_the_loop_is_counted_and_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    stats = stats_of(lambda: burn(0.4))
    assert stats.held == 1
    assert stats.held_ms_max >= 400
    (line,) = caplog.messages
    assert "The event loop was held for" in line
    assert f"{__name__.rpartition('.')[2]}:" in line
    assert " burn " in line


@pytest.mark.skipif(not COUNTS_WAITS, reason="this kernel does not say how long a thread waited for a processor")
def test_a_call_that_blocks_the_loop_is_counted() -> None:
    assert stats_of(lambda: time.sleep(2)).held == 1


def test_a_loop_that_waits_or_does_many_small_things_is_not_held() -> None:
    stats = LoopStats()

    async def do() -> None:
        with watching(stats):
            await asyncio.sleep(0.3)
            for _ in range(100):
                burn(0.004)
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(do())
    assert stats.held == 0


def test_what_is_not_logged_is_counted_and_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_LOG_EVERY_SECONDS", 3600.0)
    stats = stats_of(*[lambda: burn(0.15)] * 4)
    assert stats.held == 4
    assert len(caplog.messages) == 2
    assert re.fullmatch(r"The event loop was held 3 more times, for \d+ ms at most\.", caplog.messages[1])
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_what_holds_longer_than_asked_is_reported_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "held"
    monkeypatch.setenv("SEALABTEST_HELD", f"300:{file}")
    stats_of(lambda: burn(0.15), lambda: burn(0.4))
    (line,) = file.read_text().splitlines()
    assert line.startswith(f"{os.getpid()}: The event loop was held for ")


ON_ONE_PROCESSOR = """
    import asyncio, json, os, sys, time
    from sealab.server.base.stats import watchdog
    from sealab.server.base.stats.watchdog import LoopStats, WatchedLoop, watching

    stats, longest = LoopStats(), 0.0

    async def do():
        global longest
        with watching(stats):
            print("begun", flush=True)
            for _ in range(int(sys.argv[1])):
                began, end = time.monotonic(), time.thread_time() + 0.03
                while time.thread_time() < end:
                    pass
                longest = max(longest, time.monotonic() - began)
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(do())
    print(json.dumps([stats.held, longest]), flush=True)
"""


@pytest.mark.skipif(not COUNTS_WAITS, reason="this kernel does not say how long a thread waited for a processor")
def test_waiting_for_a_processor_is_not_the_loops_own_doing() -> None:
    one = min(os.sched_getaffinity(0))
    pinned = f"import os\nos.sched_setaffinity(0, {{{one}}})\n"
    hog = pinned + "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"
    hogs = [subprocess.Popen([sys.executable, "-c", hog]) for _ in range(8)]
    try:
        code = pinned + textwrap.dedent(ON_ONE_PROCESSOR)
        done = subprocess.run([sys.executable, "-P", "-c", code, "15"], stdout=subprocess.PIPE, timeout=50, check=True)
    finally:
        for each in hogs:
            each.kill()
            each.wait()
    held, longest = json.loads(done.stdout.splitlines()[1])
    assert longest > 0.1, "the machine was not busy enough to show it"
    assert held == 0


def test_a_process_that_was_stopped_did_not_hold_its_loop() -> None:
    code = textwrap.dedent(ON_ONE_PROCESSOR)
    with subprocess.Popen([sys.executable, "-P", "-c", code, "60"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        time.sleep(1)
        assert alive(process.pid)
        process.send_signal(signal.SIGCONT)
        held, longest = json.loads(process.stdout.readline())
    assert longest > 1
    assert held == 0


async def test_a_server_counts_what_held_its_loop(in_process_caller: Caller) -> None:
    told = await in_process_caller.told("get_execution_stats")
    assert set(told["event_loop"]) == {"held", "held_ms_total", "held_ms_max"}
