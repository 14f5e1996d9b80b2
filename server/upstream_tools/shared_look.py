"""Looks, in turn and not too often, whether others have changed what servers share of upstream servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ...tools_registry.errors import StateUnavailable
from ..errors import HostWorkBusy
from ..host_work import Kind, in_thread
from .registry_state import TRUSTED_SECONDS, SharedTexts

WAIT_SECONDS = 2.0
"""How long a caller waits for a look; what was known before counts where the database has not answered by then."""
_LOG = logging.getLogger(__name__)


class SharedLook:
    """What changed in some databases since the last look. Belongs to one event loop; costs nothing without any."""

    def __init__(self, texts: Sequence[SharedTexts]) -> None:
        self._texts = tuple(texts)
        self._seen: tuple[int, ...] | None = None
        self._at: float | None = None
        self._look: asyncio.Task[tuple[int, ...]] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether there is anything that others may change."""
        return bool(self._texts)

    def expire(self) -> None:
        """Have the next caller look, however short ago the last look was."""
        self._at = None
        for texts in self._texts:
            texts.expire()

    async def has_changed(self) -> bool:
        """Return whether something has changed since this last returned so; the first look finds nothing changed."""
        loop = asyncio.get_running_loop()
        if not self._texts or (self._at is not None and loop.time() - self._at < TRUSTED_SECONDS):
            return False
        if self._look is not None and not self._look.done():
            return False  # the database is slow, and somebody has waited for it
        began = loop.time()
        self._look = asyncio.create_task(in_thread(Kind.DATABASE, self._revisions, charged=False))
        await asyncio.wait({self._look}, timeout=WAIT_SECONDS)
        if not self._look.done():
            self._look.add_done_callback(_taken)
            return False
        self._at = began
        try:
            revisions = self._look.result()
        except (StateUnavailable, HostWorkBusy) as error:
            _LOG.warning("Whether other servers changed what is known of upstream servers is not known: %s", error)
            return False
        before, self._seen = self._seen, revisions
        return before is not None and before != revisions

    def _revisions(self) -> tuple[int, ...]:
        return tuple(texts.looked() for texts in self._texts)


def _taken(look: asyncio.Task[tuple[int, ...]]) -> None:
    """Take the failure of a look that nobody waits for, so that asyncio does not report it."""
    if not look.cancelled():
        look.exception()
