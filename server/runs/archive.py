"""Keeps each run: at once where its report refers to what is kept, else after its reply, many at once."""

from __future__ import annotations

import asyncio

from ...workspace.archive import RunArchive
from ..host_work import Kind, ended_within, in_thread

_AFTER_SECONDS = 0.05
_CLOSING_SECONDS = 10.0


class RunKeeper:
    """The archive of runs as the server's event loop uses it."""

    def __init__(self, archive: RunArchive) -> None:
        self.archive = archive
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    def soon(self, run_id: str, *, owner: str, code: str) -> bool:
        """Have a run of `owner` kept a moment from now; False where the archive has to be asked to keep it at once."""
        if self._closed or not self.archive.keep_soon(run_id, owner=owner, code=code):
            return False
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_AFTER_SECONDS, self._flush)
        return True

    async def aclose(self) -> None:
        """Keep what waits, and let nothing more wait."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await ended_within(_CLOSING_SECONDS, self.archive.flush)

    def _flush(self) -> None:
        self._timer = None
        self._flushing = asyncio.create_task(in_thread(Kind.FILES, self.archive.flush, charged=False))
