"""Keeps each run: at once where its report refers to what is kept, else after its reply, many at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import cast

from ....sandbox.job import Json
from ....workspace.archive import RunArchive
from ....workspace.errors import WorkspaceError
from ...base.errors import HostWorkRefused
from ...base.host_work import Kind, ended_within, in_thread
from ...privacy.gates.run_gate import EndedRun
from .truncation import SHOWN_CHARS, Fitted, fit, fits

_AFTER_SECONDS = 0.5
_MANY = 32
"""So many that wait are kept before that; whoever reads one has all kept first."""
_AGAIN_SECONDS = 1.0
"""How long what could not be kept waits until it is tried again."""
_CLOSING_SECONDS = 10.0
_KEPT = frozenset({"output.txt", "result.json"})
"""What the archive takes by name."""
_LOG = logging.getLogger(__name__)


class RunKeeper:
    """The archive of runs as the server's event loop uses it: one thread at most keeps those that wait."""

    def __init__(self, archive: RunArchive) -> None:
        self.archive = archive
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    def soon(self, run_id: str, *, owner: str, code: str) -> bool:
        """Archive a run of `owner` a moment from now; False where the archive has to be asked to keep it at once."""
        if self._closed or not self.archive.keep_soon(run_id, owner=owner, code=code):
            return False
        if self.archive.waiting >= _MANY and self._timer is not None:
            self._timer.cancel()
            self._begin()
        self._flush_in(_AFTER_SECONDS)
        return True

    async def kept(self, run_id: str, *, owner: str, run: EndedRun, output_max_chars: int) -> Fitted:
        """Keep a run with the whole of what is too long for a model, and return what is not.

        A small one is kept after its reply, if the report holds all of it.
        """
        outcome = run.outcome
        max_chars = min(output_max_chars, SHOWN_CHARS)
        if (
            run.attached
            or run.dry_calls
            or outcome.displayed
            or not fits(outcome.result, outcome.output, outcome.stderr, max_chars=max_chars)
            or not self.soon(run_id, owner=owner, code=run.code)
        ):
            return await in_thread(Kind.FILES, partial(_kept_whole, self.archive, run_id, owner, run, output_max_chars))
        return fit(outcome.result, outcome.output, stderr=outcome.stderr, notes=outcome.notes, max_chars=max_chars)

    async def aclose(self) -> None:
        """Keep what waits, and let nothing more wait. What cannot be kept in time is logged."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await ended_within(_CLOSING_SECONDS, self.archive.flush)
        if left := self.archive.waiting:
            _LOG.warning(
                "Of the runs that ended %d were not kept: there was no time left, or no place took them.", left
            )

    def _flush_in(self, seconds: float) -> None:
        if self._timer is None and self._flushing is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        before = self.archive.waiting
        try:
            await in_thread(Kind.FILES, self.archive.flush, charged=False)
        except HostWorkRefused as error:
            _LOG.debug("Runs that ended go on waiting to be kept: %s", error)
        finally:
            self._flushing = None
            left = self.archive.waiting
            if left and not self._closed:
                self._flush_in(_AFTER_SECONDS if left < before else _AGAIN_SECONDS)


def _kept_whole(archive: RunArchive, run_id: str, owner: str, run: EndedRun, output_max_chars: int) -> Fitted:
    outcome = run.outcome
    cut = partial(
        fit,
        outcome.result,
        outcome.output,
        stderr=outcome.stderr,
        dry_run=run.dry_calls or (),
        displayed=cast("Sequence[Json]", outcome.displayed or ()),
        max_chars=output_max_chars,
    )
    fitted = cut(run_id=run_id, notes=outcome.notes)
    beside: dict[str, bytes] = {
        name: each.encode(errors="backslashreplace") for name, each in fitted.whole.items() if name not in _KEPT
    }
    try:
        archive.keep(
            run_id,
            owner=owner,
            code=run.code,
            output=fitted.whole.get("output.txt"),
            result_json=fitted.whole.get("result.json"),
            attached={**run.attached, **beside},
        )
    except WorkspaceError as error:
        _LOG.warning("Run %s could not be kept: %s", run_id, error)
        return cut(run_id=None, notes={**outcome.notes, "run": f"not kept: {error}"})
    return fitted
