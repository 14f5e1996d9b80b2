"""What code says of its own progress reaches the client and holds nothing after it; sessions are listed and closed."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from sealab.sandbox.host.run_clock import Clock
from sealab.server.use_cases.runs import progress
from sealab.server.use_cases.runs.progress import ProgressReporter

from ...waiting import until
from ..conftest import Caller

Seen = list[tuple[float, float | None, str | None]]


async def run_and_hear(caller: Caller, code: str) -> tuple[dict[str, object], Seen]:
    seen: Seen = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    answer = await caller.client.call_tool("execute_code", {"code": code}, progress_callback=hear)
    assert answer.structured_content is not None
    return answer.structured_content, seen


async def test_progress_that_comes_too_often_is_left_out_but_for_its_end_and_costs_no_calls(
    in_process_caller: Caller,
) -> None:
    report, seen = await run_and_hear(
        in_process_caller, "for n in range(20_001):\n    progress(n / 20_000)\nresult = 'ended'"
    )
    assert report["result"] == "ended"
    await until(lambda: bool(seen) and seen[-1][0] == 1)
    assert len(seen) < 100
    assert seen == sorted(seen, key=lambda each: each[0])


async def test_progress_never_goes_back(in_process_caller: Caller) -> None:
    code = (
        "await asyncio.sleep(1.2)\nfor share in (0.1, 0.5, 0.3, 1):\n    progress(share)\n    await asyncio.sleep(0.2)"
    )
    _, seen = await run_and_hear(in_process_caller, code)
    await until(lambda: bool(seen) and seen[-1][0] == seen[-1][1])
    values = [value for value, _, _ in seen]
    assert values == sorted(values)
    assert seen[0][1] == 30  # seconds, until the code says more
    assert [round(value / (total or 1), 2) for value, total, _ in seen[-3:]] == [0.1, 0.5, 1]


WRONG = [
    ("progress(50)", "ValueError", "a number from 0 to 1, not 50"),
    ("progress(-0.1)", "ValueError", "a number from 0 to 1"),
    ("progress(float('nan'))", "ValueError", "a number from 0 to 1"),
    ("progress('half')", "TypeError", "a number from 0 to 1, not str"),
    ("progress(True)", "TypeError", "not bool"),
    ("progress(0.5, 3)", "TypeError", "a message as text, not int"),
    ("close_session(3)", "TypeError", "for name"),
    ("close_session('a/b')", "ValueError", "1 to 64 letters, digits, dots"),
    ("close_session('')", "ValueError", "1 to 64 letters, digits, dots"),
]


async def test_wrong_arguments_say_what_to_give(in_process_caller: Caller) -> None:
    for call, error, said in WRONG:
        failure = (await in_process_caller.run(call))["error"]
        assert (call, failure["type"]) == (call, error)
        assert said in failure["message"], call


async def test_sessions_are_listed_and_closed_from_code(in_process_caller: Caller) -> None:
    await in_process_caller.run("x = 1", session="listed-1")
    await in_process_caller.run("x = 2", session="listed-2")
    listed = {each["name"]: each for each in (await in_process_caller.run("list_sessions()"))["result"]}
    assert {"listed-1", "listed-2"} <= listed.keys()
    assert listed["listed-1"]["isolation"] == "restricted"
    assert listed["listed-1"]["calls"] == 1
    own = (await in_process_caller.run("list_sessions()", session="listed-1"))["result"]
    assert {each["name"]: each for each in own}["listed-1"]["idle_seconds"] is None
    dry = await in_process_caller.run(
        "ended = close_session('listed-1'), close_session('listed-1'), close_session('none')\n"
        "[ended, 'listed-1' in [each['name'] for each in list_sessions()]]",
        dry_run=True,
    )
    assert dry["result"] == [[True, False, False], False]
    assert dry["dry_run"] == [{"tool": "close_session", "arguments": {"name": "listed-1"}}]
    assert (await in_process_caller.run("close_session('listed-1'), close_session('none')"))["result"] == [True, False]
    assert (await in_process_caller.run("close_session('listed-2')", session="listed-2"))["result"] is True
    report = await in_process_caller.run("x", session="listed-1")
    assert report["error"]["type"] == "NameError"
    assert "lost its variables: it was ended on request" in report["error"]["hint"]
    await in_process_caller.run("close_session('listed-1')")
    left = {each["name"] for each in (await in_process_caller.run("list_sessions()"))["result"]}
    assert not left & {"listed-1", "listed-2"}


class Request:
    """What a request has that a client is told by."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def tell(self, _value: float, _total: float | None, message: str | None) -> None:
        self.sent.append(message or "")


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def is_gone(kept: weakref.ref[object]) -> None:
    async def gone() -> bool:
        return kept() is None

    await until(gone)


@pytest.mark.usefixtures("no_collection")
async def test_a_request_that_was_told_of_its_progress_is_freed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)

    async def served() -> weakref.ref[object]:
        request = Request()
        reporter = ProgressReporter(request.tell, 30)
        reporter.begin()
        reporter.report_progress(0.5, "half")
        await reporter.flush()

        async def told() -> bool:
            return bool(request.sent)

        await until(told)
        reporter.end()
        return weakref.ref(request)

    await is_gone(await served())

    async def silent() -> weakref.ref[object]:
        request = Request()
        reporter = ProgressReporter(request.tell, 30)
        reporter.begin()

        async def told() -> bool:
            return len(request.sent) > 1

        await until(told)
        reporter.end()
        return weakref.ref(request)

    await is_gone(await silent())


@pytest.mark.usefixtures("no_collection")
async def test_a_clock_that_was_stopped_holds_nothing_that_it_would_have_ended() -> None:
    class Worker:
        def __init__(self) -> None:
            self.clock = Clock(60, self.kill, self.kill, waits=self.waits, break_off=self.kill)

        def kill(self) -> None: ...

        def waits(self) -> bool:
            return False

    async def served() -> weakref.ref[object]:
        worker = Worker()
        worker.clock.stop()
        return weakref.ref(worker)

    await is_gone(await served())
    await asyncio.sleep(0)
