"""A workspace to work with, once for each way of resolving names, in a folder and in an object store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from sealab.skills_db.engine import open_database
from sealab.skills_db.workspace_files import WorkspaceFiles
from sealab.workspace import paths
from sealab.workspace.archive import BYTES_MAX, RunArchive
from sealab.workspace.changes import Steps
from sealab.workspace.errors import Unavailable
from sealab.workspace.objects.stored_archive import StoredRunArchive
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from sealab.workspace.store import Workspace
from tests.object_stores import S3RVER, S3Server, moto, s3rver

QUOTA_BYTES = 1_000_000
FILES_MAX = 50
OWNER = "home"
_T = TypeVar("_T")


def whole(steps: Steps[_T]) -> _T:
    """Do all steps of some work, and return what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return cast("_T", ended.value)


def kept_in(folder: Path) -> Path:
    """Return where the runs and the ledger of a workspace lie."""
    return folder.with_name(f"{folder.name}.runs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the workspace lies; beside it there is room for what must not be reached."""
    return tmp_path / "home" / "workspace"


def archive_in(workspace: Workspace, kept: int = 200, *, bytes_max: int = BYTES_MAX) -> RunArchive:
    """Return the archive of runs that lies where the workspace does."""
    if isinstance(workspace, StoredWorkspace):
        return StoredRunArchive(workspace, kept, bytes_max=bytes_max)
    return RunArchive(workspace, kept, bytes_max=bytes_max)


_OF_FOLDERS = frozenset({"test_the_time_of_a_file_can_be_set"})
"""What an object store cannot do: see docs/object-store.md."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what looks at the workspace alone, and at no folder, in an object store too."""
    of_folders = {"folder", "tmp_path", "monkeypatch", "either_way"}
    is_of_folders = metafunc.function.__name__ in _OF_FOLDERS or of_folders & set(_arguments(metafunc))
    if "workspace" in metafunc.fixturenames and not is_of_folders:
        metafunc.parametrize("workspace", ["folder", "objects"], indirect=True)


def _arguments(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    code = metafunc.function.__code__
    return code.co_varnames[: code.co_argcount]


@pytest.fixture(scope="session")
def moto_server() -> Iterator[S3Server]:
    with moto() as server:
        yield server


@pytest.fixture(scope="session")
def s3rver_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    if not S3RVER.exists():
        pytest.skip("s3rver is not installed: `make upstreams` installs it")
    with s3rver(tmp_path_factory.mktemp("s3rver")) as server:
        yield server


@pytest.fixture(params=["moto", "s3rver"])
def s3(request: pytest.FixtureRequest) -> S3Server:
    """Return an object store, once for each kind."""
    server: S3Server = request.getfixturevalue(f"{request.param}_server")
    return server


Opens = Callable[..., StoredWorkspace]


@pytest.fixture
def opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opens]:
    """Open workspaces on one database, as servers do that share one: each on a bucket, with a cache of its own."""
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(open_database(None, tmp_path))
        table = WorkspaceFiles(lambda: database, Unavailable)

        def opened(server: S3Server, bucket: str, prefix: str = "team/files", **limits: int) -> StoredWorkspace:
            place = tmp_path / "caches" / f"cache-{len(list((tmp_path / 'caches').glob('*.lock')))}"
            place.parent.mkdir(exist_ok=True)
            limits = {"quota_bytes": QUOTA_BYTES, "files_max": FILES_MAX} | limits
            workspace = StoredWorkspace(place, server.opened(bucket, prefix, monkeypatch), table, **limits)
            return stack.enter_context(workspace)

        yield opened


@pytest.fixture
def workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    if getattr(request, "param", "folder") == "objects":
        server: S3Server = request.getfixturevalue("moto_server")
        yield request.getfixturevalue("opens")(server, server.bucket())
        return
    with Workspace(request.getfixturevalue("folder"), quota_bytes=QUOTA_BYTES, files_max=FILES_MAX) as opened:
        yield opened


@pytest.fixture(params=["by the kernel", "by steps"])
def either_way(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The workspace with openat2, and as where there is no openat2."""
    if request.param == "by steps":
        monkeypatch.setattr(paths, "_way_of_opening", lambda _: paths._open_by_steps)
    with Workspace(folder, quota_bytes=QUOTA_BYTES, files_max=FILES_MAX) as opened:
        if request.param == "by the kernel" and not opened.root.resolves_by_kernel:
            pytest.skip("this kernel has no openat2")
        assert opened.root.resolves_by_kernel == (request.param == "by the kernel")
        yield opened
