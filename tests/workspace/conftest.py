"""A workspace to work with, once for each way of resolving names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.workspace import paths
from sealab.workspace.store import Workspace

QUOTA_BYTES = 1_000_000
FILES_MAX = 50
OWNER = "home"


def kept_in(folder: Path) -> Path:
    """Return where the runs and the ledger of a workspace lie."""
    return folder.with_name(f"{folder.name}.runs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the workspace lies; beside it there is room for what must not be reached."""
    return tmp_path / "home" / "workspace"


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with Workspace(folder, quota_bytes=QUOTA_BYTES, files_max=FILES_MAX) as opened:
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
