"""Host work is bounded by kind, charged to its run, and ends with it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Owner
from sealab.server.base import host_work
from sealab.server.base.errors import HostWorkBusy, HostWorkRefused, PrivacyFailed
from sealab.server.base.host_work import (
    OWNER,
    THREADS,
    Account,
    Kind,
    charged_to,
    checked,
    checkpoint,
    in_thread,
    in_turns,
    waiting,
)
from sealab.server.base.settings import PrivacyMode, Settings
from sealab.server.governance.caller import Caller
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.tokens.parts import CHARS_MAX, Text, Tree, is_longer, is_small
from sealab.server.use_cases.host_functions.broker import TEXT_CHARS_MAX, Handler

from .conftest import stdio


def busy(seconds: float) -> None:
    """Use the processor of this thread for so long, with checkpoints."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        checkpoint()


async def test_work_ends_at_its_next_checkpoint_when_its_run_ends() -> None:
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        try:
            while True:
                checkpoint()
        finally:
            ended.set()

    with charged_to(Account(1000)) as account:
        task = asyncio.create_task(in_thread(Kind.SEARCH, work))
        await asyncio.to_thread(began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended.is_set()
    assert await asyncio.to_thread(ended.wait, 20)
    with pytest.raises(HostWorkRefused, match="has ended"):
        account.check()


async def test_a_run_may_have_no_more_computed_than_its_budget() -> None:
    with charged_to(Account(0.05)) as account:
        with pytest.raises(HostWorkRefused, match="Do less"):
            await in_thread(Kind.PRIVACY, lambda: busy(1000))
        assert account.spent_seconds < 10
        with pytest.raises(HostWorkRefused):
            await in_thread(Kind.FILES, pytest.fail)


async def test_work_in_steps_lets_others_in_between_and_is_charged_and_not_ended_with_its_run() -> None:
    stopped, closed = threading.Event(), threading.Event()

    def steps() -> Generator[None, None, str]:
        try:
            while not stopped.is_set():
                yield time.sleep(0.001)
            return "all of it"
        finally:
            closed.set()

    def fails() -> Generator[None, None, None]:
        yield
        raise ValueError("a step failed")

    with charged_to(Account(0)) as account:
        long = [asyncio.create_task(in_turns(Kind.LANDING, steps())) for _ in range(2 * THREADS[Kind.LANDING])]
        await asyncio.sleep(0.05)
    OWNER.set(Owner(caller="another"))
    assert await in_turns(Kind.LANDING, one()) == "one"
    assert not any(each.done() for each in long)
    with pytest.raises(ValueError, match="a step failed"):
        await in_turns(Kind.LANDING, fails())
    stopped.set()
    assert await asyncio.gather(*long) == ["all of it"] * len(long)
    assert account.spent_seconds > 0
    assert closed.is_set()


def one() -> Generator[None, None, str]:
    yield
    return "one"


async def test_loops_over_many_items_are_interrupted_too() -> None:
    taken = 0

    def work() -> None:
        nonlocal taken
        for _ in checked(range(10**12)):
            taken += 1

    with charged_to(Account(0.02)), pytest.raises(HostWorkRefused):
        await in_thread(Kind.PRIVACY, work)
    assert taken


async def test_a_kind_that_is_stuck_stops_no_other_and_takes_no_more_threads() -> None:
    release = threading.Event()
    stuck = [asyncio.create_task(in_thread(Kind.DATABASE, release.wait)) for _ in range(3 * THREADS[Kind.DATABASE])]
    try:
        for kind in set(Kind) - {Kind.DATABASE}:
            assert await in_thread(kind, lambda: 42) == 42
        names = [each.name for each in threading.enumerate() if each.name.startswith("sealab database")]
        assert len(names) <= THREADS[Kind.DATABASE]
        never = asyncio.create_task(in_thread(Kind.DATABASE, pytest.fail))
        await asyncio.sleep(0)
        never.cancel()
    finally:
        release.set()
    assert all(await asyncio.gather(*stuck))


@pytest.mark.parametrize("kind", Kind)
async def test_a_run_that_asks_for_much_work_of_a_kind_waits_for_itself_alone(kind: Kind) -> None:
    order: list[str] = []
    first_begins, go_on = threading.Event(), threading.Event()

    def work(name: str) -> None:
        order.append(name)
        first_begins.set()
        go_on.wait(20)

    async def asked(name: str, times: int) -> None:
        with charged_to(Account(1000)):
            await asyncio.gather(*(in_thread(kind, lambda: work(name)) for _ in range(times)))

    much = asyncio.create_task(asked("much", 50))
    await asyncio.to_thread(first_begins.wait, 20)
    little = asyncio.create_task(asked("little", 1))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(much, little)
    assert "little" in order[: THREADS[kind] + 1]


async def test_no_more_work_of_a_kind_waits_than_may_and_none_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    # No server of this process searches now, where one may write to its database at any time.
    monkeypatch.setattr(host_work, "_EXECUTORS", {})
    monkeypatch.setattr(host_work, "QUEUE_MAX", 2)
    monkeypatch.setattr(host_work, "QUEUE_SECONDS", 0.1)
    release, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        begun.release()
        return release.wait()

    stuck = [asyncio.create_task(in_thread(Kind.SEARCH, hang)) for _ in range(THREADS[Kind.SEARCH])]
    for _ in stuck:
        await asyncio.to_thread(begun.acquire)
    try:
        waiting = [asyncio.create_task(in_thread(Kind.SEARCH, pytest.fail)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HostWorkBusy, match=r"2 calls wait for the server's search, as many as may\. Try again"):
            await in_thread(Kind.SEARCH, pytest.fail)
        for each in waiting:
            with pytest.raises(HostWorkBusy, match=r"busy with other calls for 0\.1 seconds, so nothing was done"):
                await each
        assert not await host_work.settled(0.05)
        monkeypatch.setattr(host_work, "QUEUE_SECONDS", 60)
        cancelled = asyncio.create_task(in_thread(Kind.SEARCH, pytest.fail))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        monkeypatch.setattr(host_work, "QUEUE_SECONDS", 0.1)
        with pytest.raises(HostWorkBusy, match="so nothing was done"):
            await asyncio.create_task(_cancelled_before(partial(in_thread, Kind.SEARCH, pytest.fail)))
    finally:
        release.set()
    assert all(await asyncio.gather(*stuck))
    assert await host_work.settled(20)


async def _cancelled_before(work: Callable[[], Awaitable[object]]) -> object:
    """Do work in a task that has survived a cancellation, which `Task.cancelling` still counts."""
    if (task := asyncio.current_task()) is not None:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    return await work()


def test_a_thread_that_hangs_does_not_keep_the_process_from_ending() -> None:
    program = """
import asyncio, threading
from sealab.server.base.host_work import Kind, in_thread, ended_within
async def main():
    for kind in Kind:
        asyncio.create_task(in_thread(kind, threading.Event().wait))
    await asyncio.sleep(0.1)
    assert not await ended_within(0.1, threading.Event().wait)
asyncio.run(main())
print("ended")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "ended\n"


async def test_long_texts_of_several_runs_are_looked_through_in_turns() -> None:
    order: list[str] = []

    def work(name: str) -> None:
        for _ in range(5):
            order.append(name)
            busy(2 * host_work._SLICE_SECONDS)

    async def run(name: str) -> None:
        with charged_to(Account(1000)):
            await in_thread(Kind.LONG_PRIVACY, lambda: work(name))

    await asyncio.gather(run("a"), run("b"))
    assert order.index("b") < 5
    assert order.index("a") < 5


async def test_a_long_text_that_waits_for_a_reader_stops_no_other_long_text() -> None:
    begun, release = threading.Event(), threading.Event()

    def wait() -> bool:
        with waiting():
            begun.set()
            return release.wait(20)

    first = asyncio.create_task(in_thread(Kind.LONG_PRIVACY, wait))
    try:
        await asyncio.to_thread(begun.wait, 20)
        async with asyncio.timeout(10):
            assert await in_thread(Kind.LONG_PRIVACY, lambda: 42) == 42
    finally:
        release.set()
    assert await first


async def test_old_objects_are_left_alone_while_a_long_text_is_looked_through() -> None:
    full: list[bool] = []

    def noted(phase: str, told: dict[str, int]) -> None:
        if phase == "start" and told["generation"] == 2:  # the oldest
            full.append(True)

    def work() -> int:
        return len([[number] for number in checked(range(400_000))])

    gc.callbacks.append(noted)
    try:
        assert await in_thread(Kind.LONG_PRIVACY, work) == 400_000
        assert not full
    finally:
        gc.callbacks.remove(noted)
    assert gc.isenabled()


async def test_one_run_has_one_text_looked_through_at_a_time() -> None:
    at_once: list[int] = []
    running = 0

    def work() -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        busy(0.02)
        running -= 1

    with charged_to(Account(1000)):
        await asyncio.gather(*(in_thread(Kind.PRIVACY, work) for _ in range(6)))
    assert at_once == [1] * 6


@pytest.mark.parametrize(("parts", "size"), [([Text("x" * 90)], 90), ([Tree({"ab": ["x" * 60, "y" * 28]})], 90)])
def test_sizes_count_texts_and_keys(parts: list[Any], size: int) -> None:
    assert not is_longer(parts, size + 20)
    assert is_longer(parts, size - 1)
    assert is_longer([*parts, *parts], size + 20)


@pytest.mark.parametrize("item", ["", 0, {}, {"": ""}])
def test_very_many_short_values_are_not_small(item: Any) -> None:
    assert is_small([Tree([item] * 500)])
    looked = 0

    class Counted(list[Any]):
        def __iter__(self) -> Any:
            nonlocal looked
            for each in list.__iter__(self):
                looked += 1
                yield each

    assert not is_small([Tree([item, Counted([item] * 90_000)]) for _ in range(3)])
    assert looked <= 90_000


async def test_too_much_is_refused_and_shows_nothing(tmp_path: Path) -> None:
    privacy = Privacy(Settings(privacy_mode=PrivacyMode.FAST), tmp_path, pytest.fail)
    privacy._loaded = True
    for text in ("x" * (CHARS_MAX + 1), ["[EMAIL_0123456789]" * 1000] * (CHARS_MAX // 18_000 + 1)):
        with pytest.raises(PrivacyFailed, match="in pieces"):
            await privacy.hide_value("home", text)
        with pytest.raises(PrivacyFailed, match="in pieces"):
            await privacy.restored(
                Caller("home"), "[EMAIL_0123456789]" * CHARS_MAX if isinstance(text, str) else text, destination="x"
            )


def test_a_text_longer_than_a_function_takes_is_refused_with_how_long_it_may_be() -> None:
    async def answer(_calls: Any, *, name: str = "", content: str = "") -> None: ...

    handler = Handler.of(answer, longest={"content": 100_000})
    handler.check("f", {"name": "x" * TEXT_CHARS_MAX, "content": "x" * 100_000})
    for arguments in ({"name": "x" * (TEXT_CHARS_MAX + 1)}, {"content": "x" * 100_001}):
        with pytest.raises(HostCallError, match="Give at most") as raised:
            handler.check("f", arguments)
        assert raised.value.type == "ValueError"


async def test_the_server_computes_no_more_for_a_run_that_has_ended(tmp_path: Path) -> None:
    text = "'Call Ana Sorli at +1 415 555 0134 or mail ana@corp.example in Paris. ' * 30_000"
    limit = 1.0
    async with Client(stdio(tmp_path, SEALAB_PRIVACY="auto"), read_timeout_seconds=110) as client:
        await client.call_tool("sanitize_pii", {"text": "mail ana@corp.example"})
        server = next(each for each in psutil.Process().children() if str(tmp_path) in " ".join(each.cmdline()))
        before = cpu_seconds(server)
        report = await client.call_tool("execute_code", {"code": f"sanitize_pii({text})", "timeout_seconds": limit})
        assert report.structured_content is not None
        assert report.structured_content["status"] == "timeout"
        printed = await client.call_tool("execute_code", {"code": f"result = {text}", "timeout_seconds": limit})
        assert printed.structured_content is not None
        assert printed.structured_content["error"]["type"] == "PrivacyFailed"
        assert "ana@" not in printed.model_dump_json()
        spent = cpu_seconds(server)
        while spent < (now := await later(server)):
            spent = now
        assert spent - before < 8 * limit  # the text takes more than twenty seconds
        answer = await client.call_tool("execute_code", {"code": "6 * 7"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == 42


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


async def later(process: psutil.Process) -> float:
    """Return the process's CPU time half a second later, unless it is idle by then."""
    before = cpu_seconds(process)
    await asyncio.sleep(0.5)
    now = cpu_seconds(process)
    return now if now - before > 0.1 else before
