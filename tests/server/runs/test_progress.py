"""What a run reports of its progress, and that nothing of it outlives the request."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from sealab.sandbox.host.run_clock import Clock
from sealab.server.runs import progress
from sealab.server.runs.progress import ProgressReporter

from ...waiting import until


class Request:
    """What a request has that a client is told by."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def tell(self, _value: float, _total: float | None, message: str | None) -> None:
        self.sent.append(message or "")


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def is_gone(kept: weakref.ref[object]) -> None:
    async def gone() -> bool:
        return kept() is None

    await until(gone)


async def test_a_request_that_was_told_of_its_progress_is_freed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)

    async def served() -> weakref.ref[object]:
        request = Request()
        reporter = ProgressReporter(request.tell, 30)
        with reporter:
            reporter.report_progress(0.5, "half")
            await reporter.flush()

            async def told() -> bool:
                return bool(request.sent)

            await until(told)
        return weakref.ref(request)

    await is_gone(await served())

    async def silent() -> weakref.ref[object]:
        request = Request()
        with ProgressReporter(request.tell, 30):

            async def told() -> bool:
                return len(request.sent) > 1

            await until(told)
        return weakref.ref(request)

    await is_gone(await silent())


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
