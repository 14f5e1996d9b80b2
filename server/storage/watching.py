"""Asks the object store now and then whether it answers, for `/readyz`."""

from __future__ import annotations

import asyncio
import logging

from ...workspace.errors import WorkspaceError
from ...workspace.store import Workspace
from ..host_work import Kind, in_thread

LOOK_SECONDS = 5.0
_LOG = logging.getLogger(__name__)


async def watch_store(workspace: Workspace) -> None:
    """Ask again and again. What is wrong is what `Workspace.trouble` says; it is logged once."""
    known: str | None = None
    while workspace.is_stored:
        try:
            await in_thread(Kind.FILES, workspace.check, charged=False)
        except WorkspaceError:
            pass
        except Exception as error:  # noqa: BLE001 - as when the threads have too much to do; it is asked again
            _LOG.debug("The object store was not asked: %s", error)
        found = workspace.trouble()
        if found != known:
            _LOG.warning("%s", found or "The object store answers again.")
            known = found
        await asyncio.sleep(LOOK_SECONDS)
