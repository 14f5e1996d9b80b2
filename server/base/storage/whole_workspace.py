"""Has the folder that full Python sees hold every file before its code starts, where the files are in an object store.

Code in `process` and `container` opens files by itself: native readers and child processes do so below any hook of
Python. So files are fetched before a run, those that changed since the last one, not when they are opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Self

from ....sandbox.host.pools import Forwards, JobRunner
from ....sandbox.job import Failure, HostCalls, Isolation, Job, Outcome, Rebuild, Status, TraceRecorder
from ....workspace.errors import WorkspaceError
from ....workspace.store import Workspace
from ..errors import HostWorkBusy
from ..host_work import Kind, in_thread

_LOG = logging.getLogger(__name__)

Makers = Mapping[Isolation, Callable[[], JobRunner]]


def with_whole_workspace(makers: Makers, workspace: Workspace) -> Makers:
    """Return the pools of a home whose full Python sees `workspace`; they are the same where it is a folder."""
    if not workspace.is_stored:
        return makers
    return {
        isolation: maker if isolation is Isolation.RESTRICTED else partial(_wrapped, maker, workspace)
        for isolation, maker in makers.items()
    }


def _wrapped(maker: Callable[[], JobRunner], workspace: Workspace) -> JobRunner:
    return WholeWorkspace(maker(), workspace)


class WholeWorkspace(Forwards):
    """Runs jobs in a pool once the workspace's folder is whole. A job whose files cannot be had does not start."""

    def __init__(self, runner: JobRunner, workspace: Workspace) -> None:
        self._runner = runner
        self._workspace = workspace

    async def __aenter__(self) -> Self:
        await self._there.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._there.__aexit__(None, None, None)

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Fetch what changed, and run one job, as `Pool.run`."""
        whole = self._workspace.brought_whole()
        try:
            await self._entered(whole)
        except WorkspaceError as error:
            return Outcome(
                Status.ERROR,
                error=Failure("OSError", f"The files of the workspace could not be fetched. {error}"),
                isolation=job.isolation,
            )
        try:
            return await self._there.run(job, host_calls, recorder, rebuild)
        finally:
            await self._leave(whole)

    @staticmethod
    async def _leave(whole: AbstractContextManager[None]) -> None:
        """Let the copies go that the run kept, be the threads as busy as they may: its outcome does not hang on it."""
        leaving = partial(whole.__exit__, None, None, None)
        try:
            await asyncio.shield(in_thread(Kind.FILES, leaving, charged=False))
        except HostWorkBusy:
            leaving()  # which makes no request

    @staticmethod
    async def _entered(whole: AbstractContextManager[None]) -> None:
        entering = asyncio.ensure_future(in_thread(Kind.FILES, whole.__enter__, charged=False))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            entering.add_done_callback(partial(_left, whole))
            raise


def _left(whole: AbstractContextManager[None], entered: asyncio.Future[None]) -> None:
    """Leave what was entered for a run that is cancelled; no request is made for that."""
    if not entered.cancelled() and entered.exception() is None:
        whole.__exit__(None, None, None)
