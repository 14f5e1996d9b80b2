"""What a run is given is learned while it goes on: in the order in which it comes, and never much behind.

A security boundary. A run that reads faster than its host can learn waits, so that what has to be learned when it ends
is little, and its memory too. Where learning fails, the run is given nothing more.
"""

from __future__ import annotations

import asyncio
import time

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ...errors import PrivacyFailed
from ...host_work import Account, charged_to
from ..privacy import Privacy
from ..tokens.run_tokens import RunTokens

BEHIND_CHARS_MAX = 4_000_000
"""Characters that may wait to be learned; one answer more than that at most."""
_ANSWER_CHARS = 1_000
"""What an answer counts that is no text."""


class Learning:
    """What one run has been given and has yet to be learned.

    It is charged to the account of the filter, since the last of it is learned when the run has ended.
    """

    def __init__(self, privacy: Privacy, scope: str, account: Account, tokens: RunTokens) -> None:
        self._privacy = privacy
        self._scope = scope
        self._account = account
        self._tokens = tokens
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._behind = 0
        self._failed: BaseException | None = None
        self._busy = 0
        self._since = 0.0
        self._seconds = 0.0
        self.given: dict[str, set[str]] = {}
        """The values that tools gave, by the names of the tools."""

    @property
    def seconds(self) -> float:
        """For how long something was being learned, or waited to be."""
        return self._seconds + (time.monotonic() - self._since if self._busy else 0.0)

    async def add(self, told: Json, tool: str = "") -> None:
        """Have something learned, which a `tool` gave, once that is not much behind.

        Raises `HostCallError` where learning has failed.
        """
        chars = len(told) if isinstance(told, str) else _ANSWER_CHARS
        task = asyncio.create_task(self._learn(told, tool))
        self._tasks[task] = chars
        self._behind += chars
        task.add_done_callback(self._done)
        if self._behind > BEHIND_CHARS_MAX:
            await asyncio.wait([task])
        if isinstance(self._failed, PrivacyFailed):
            raise HostCallError(str(self._failed))

    async def all(self) -> None:
        """Wait until everything is learned. Raises `PrivacyFailed`."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        if self._failed is not None:
            raise self._failed

    def drop(self) -> None:
        """Leave off: nothing of the run will be shown."""
        for task in self._tasks:
            task.cancel()

    async def _learn(self, told: Json, tool: str) -> None:
        if not self._busy:
            self._since = time.monotonic()
        self._busy += 1
        try:
            with charged_to(self._account, ends=False):
                values = await self._privacy.learn(self._scope, told, self._tokens)
            if tool:
                self.given.setdefault(tool, set()).update(values)
        finally:
            self._busy -= 1
            if not self._busy:
                self._seconds += time.monotonic() - self._since

    def _done(self, task: asyncio.Task[None]) -> None:
        self._behind -= self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if self._failed is None:
            self._failed = error
