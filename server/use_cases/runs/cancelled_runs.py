"""What cancelled runs of full Python had written: it is kept after their callers, who are let go at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from .report import FileChanges

_REMEMBERED = 64
_CLOSING_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """What became of the files of a cancelled run: as a report names them, and how many are `kept`."""

    changes: FileChanges = field(default_factory=FileChanges)
    kept: int = 0
    note: str | None = None


class CancelledRuns:
    """Those of one home; for its event loop."""

    def __init__(self) -> None:
        self._keeping: dict[str, asyncio.Task[LeftFiles | None]] = {}

    def begin(
        self,
        run_id: str,
        running: asyncio.Task[Any],
        keep: Callable[[], Awaitable[LeftFiles | None]] | None,
        end: Callable[[], None],
    ) -> None:
        """Call `keep` once a cancelled run has ended, unless it goes on elsewhere, and then `end`."""
        ended = [each for each, task in self._keeping.items() if task.done()]
        for each in ended[: max(len(self._keeping) - _REMEMBERED, 0)]:
            del self._keeping[each]
        self._keeping[run_id] = asyncio.create_task(_kept(run_id, running, keep, end))

    async def left_by(self, run_id: str) -> LeftFiles | None:
        """Return what became of the files of a run, once that is known; None where it had written none."""
        keeping = self._keeping.get(run_id)
        return None if keeping is None else await asyncio.shield(keeping)

    async def aclose(self) -> None:
        """Wait until all is kept, but not for long."""
        waiting = {task: run_id for run_id, task in self._keeping.items() if not task.done()}
        if waiting:
            _done, late = await asyncio.wait(waiting, timeout=_CLOSING_SECONDS)
            for task in late:
                _LOG.warning("The files of the cancelled run %s are lost: the server ended first.", waiting[task])
                task.cancel()


async def _kept(
    run_id: str,
    running: asyncio.Task[Any],
    keep: Callable[[], Awaitable[LeftFiles | None]] | None,
    end: Callable[[], None],
) -> LeftFiles | None:
    try:
        await asyncio.wait([running])
        return None if keep is None else await keep()
    except Exception:  # noqa: BLE001 - nobody waits for it who could get the error
        _LOG.exception("The files of the cancelled run %s could not be kept.", run_id)
        return LeftFiles(note="What the code wrote could not be kept; the log of the server says why.")
    finally:
        end()
