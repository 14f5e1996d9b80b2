"""The folder of full Python is whole for as long as its code runs, and what comes of the run does not hang on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sealab.sandbox.job import Isolation, Job, Outcome, Status
from sealab.server.errors import HostWorkBusy
from sealab.server.host_work import in_thread
from sealab.server.storage import whole_workspace
from sealab.server.storage.whole_workspace import WholeWorkspace


class Copies:
    """A workspace that counts who needs its copies."""

    needed = 0

    @contextmanager
    def brought_whole(self) -> Iterator[None]:
        self.needed += 1
        try:
            yield
        finally:
            self.needed -= 1


async def test_a_run_that_has_ended_is_reported_though_the_threads_for_files_are_all_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies, has_run = Copies(), False

    class Runner:
        async def run(self, *_given: object) -> Outcome:
            nonlocal has_run
            has_run = True
            assert copies.needed == 1
            return Outcome(Status.OK, isolation=Isolation.PROCESS)

    async def busy(kind: object, work: Callable[[], object], *, charged: bool = True) -> object:
        if has_run:
            raise HostWorkBusy("Too much waits.")
        return await in_thread(kind, work, charged=charged)  # type: ignore[arg-type]

    monkeypatch.setattr(whole_workspace, "in_thread", busy)
    outcome = await WholeWorkspace(Runner(), copies).run(Job("1"), None)  # type: ignore[arg-type]
    assert outcome.status is Status.OK
    assert copies.needed == 0
