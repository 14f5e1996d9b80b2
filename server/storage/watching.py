"""Asks the object store now and then whether it answers, for `/readyz`, and what definitions of tools it has."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ...workspace.errors import WorkspaceError
from ...workspace.store import Workspace
from ..errors import HostWorkRefused
from ..host_work import Kind, in_thread

if TYPE_CHECKING:
    from .stored_definitions import StoredDefinitions

LOOK_SECONDS = 5.0
DEFINITIONS_SECONDS = 10.0
"""How soon definitions that were changed in the store are seen by all servers."""
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


async def watch_definitions(definitions: StoredDefinitions) -> None:
    """Fetch definitions that were changed in the store, again and again; the registry notices the files."""
    while True:
        await asyncio.sleep(DEFINITIONS_SECONDS)
        try:
            await in_thread(Kind.FILES, definitions.bring_if_answered, charged=False)
        except HostWorkRefused as error:
            _LOG.debug("The definitions of tools were not looked at: %s", error)
