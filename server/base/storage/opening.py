"""Opens the workspace of a home, wherever WORKSPACE_URL says that its files are, and watches an object store."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ....workspace.archive import RunArchive
from ....workspace.errors import Unavailable, WorkspaceError
from ....workspace.names import TENANTS
from ....workspace.store import Workspace
from ..errors import HostWorkRefused, SettingsError
from ..home import Home
from ..host_work import Kind, in_thread, use_threads
from ..identity import DEFAULT_TENANT
from ..settings import Settings

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....workspace.objects.bucket import Bucket
    from ....workspace.objects.store_url import StoreUrl
    from .stored_definitions import StoredDefinitions

LOOK_SECONDS = 5.0
DEFINITIONS_SECONDS = 10.0
"""How soon definitions that were changed in the store are seen by all servers."""
_LOG = logging.getLogger(__name__)
STORE_THREADS = 16
"""How many files are asked for at a time where each waits for the network."""


def open_workspace(settings: Settings, home: Home, database: Callable[[], Database]) -> Workspace:
    """Open the workspace of a home. Blocks. Raises `SettingsError` or `WorkspaceError`.

    `database` opens that of the home, which has the names of what an object store holds.
    """
    quota_bytes = settings.workspace_quota_mb * 1_000_000
    bucket = bucket_of(settings, home)
    if bucket is None:
        return Workspace(shown_folder(settings, home), quota_bytes=quota_bytes)
    from ....skills_db.workspace_files import WorkspaceFiles
    from ....workspace.objects.stored_workspace import StoredWorkspace

    use_threads(Kind.FILES, STORE_THREADS)
    use_threads(Kind.LANDING, STORE_THREADS)
    return StoredWorkspace(
        shown_folder(settings, home),
        bucket,
        WorkspaceFiles(database, Unavailable),
        quota_bytes=quota_bytes,
        cache_bytes=settings.workspace_cache_mb * 1_000_000,
    )


def archive_of(workspace: Workspace, *, kept: int) -> RunArchive:
    """Return the archive of runs that lies where the workspace does."""
    if not workspace.is_stored:
        return RunArchive(workspace, kept=kept)
    from ....workspace.objects.stored_archive import StoredRunArchive
    from ....workspace.objects.stored_workspace import StoredWorkspace

    assert isinstance(workspace, StoredWorkspace)
    return StoredRunArchive(workspace, kept=kept)


def definitions_of(settings: Settings, home: Home) -> StoredDefinitions | None:
    """Return the definitions of tools that the object store has for the operator; None where there is no store.

    Those that an earlier store left are removed. Tenants have the operator's. Raises `SettingsError`.
    """
    if home.tenant != DEFAULT_TENANT:
        return None
    bucket = bucket_of(settings, home)
    if bucket is None and not home.tools.is_dir():
        return None
    from ....tools_registry.definitions import FETCHED

    if bucket is None:
        shutil.rmtree(home.tools / FETCHED, ignore_errors=True)
        return None
    from .stored_definitions import StoredDefinitions

    return StoredDefinitions(bucket, home.tools / FETCHED)


def shown_folder(settings: Settings, home: Home) -> Path:
    """Return the folder that full Python sees: the workspace itself, or this process's copy of it."""
    place = _place(settings)
    if place is None:
        return home.workspace
    if isinstance(place, Path):
        return place if home.tenant == DEFAULT_TENANT else place.with_name(f"{place.name}.tenants") / home.tenant
    from ....workspace.objects.cache_place import cache_folder

    return cache_folder(home.root.absolute())


def bucket_of(settings: Settings, home: Home) -> Bucket | None:
    """Return the objects of a home; None where its files are in a folder.

    Raises `SettingsError` where the client is not installed, or cannot be made with this environment.
    """
    place = _place(settings)
    if place is None or isinstance(place, Path):
        return None
    from ....workspace.objects.bucket import Bucket

    try:
        return Bucket(place if home.tenant == DEFAULT_TENANT else place.below(f"{TENANTS}/{home.tenant}"))
    except Unavailable as error:
        raise SettingsError(str(error)) from None


def _place(settings: Settings) -> StoreUrl | Path | None:
    if settings.workspace_url is None:
        return None
    from ....workspace.objects.store_url import parse_url

    return parse_url(settings.workspace_url)


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
