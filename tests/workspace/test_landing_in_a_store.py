"""What full Python wrote comes home into an object store as it does into a folder."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.workspace.changes import ChangedFolder
from sealab.workspace.errors import QuotaFull
from sealab.workspace.landing import Landed, land
from sealab.workspace.store import Workspace

from .conftest import QUOTA_BYTES, whole


@pytest.fixture
def upper() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def landed(workspace: Workspace, upper: Path) -> Landed:
    with workspace.brought_whole(), ChangedFolder(str(upper), {}) as changed:
        return whole(land(workspace, changed, whole(changed.read()), begun_ns=time.time_ns() - 10**9))


def test_new_changed_and_deleted_files_come_home(workspace: Workspace, upper: Path) -> None:
    for name in ("changed", "gone", "same", "stays"):
        workspace.write(name, name)
    (upper / "changed").write_text("it is")
    (upper / "same").write_text("same")
    (upper / "out").mkdir()
    (upper / "out" / "new").write_text("new")
    (upper / "link").symlink_to("/etc/passwd")
    try:
        os.mknod(upper / "gone", stat.S_IFCHR, os.makedev(0, 0))
    except PermissionError:
        pytest.skip("this user may not make the marks of deleted files by hand")
    told = landed(workspace, upper)
    assert (told.new, told.changed, told.deleted) == ({"out/new": 3}, {"changed": 5}, ["gone"])
    assert list(told.not_kept) == ["link"]
    found = {file.name: workspace.read(file.name).content for file in workspace.list().files}
    assert found == {"changed": "it is", "same": "same", "stays": "stays", "out/new": "new"}


def test_more_than_the_quota_stays_behind(workspace: Workspace, upper: Path) -> None:
    (upper / "large").write_bytes(bytes(QUOTA_BYTES + 1))
    with pytest.raises(QuotaFull):
        landed(workspace, upper)
    assert workspace.list().files == ()
