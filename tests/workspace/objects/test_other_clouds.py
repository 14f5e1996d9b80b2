"""A workspace at az:// and gs://: the same rules as at s3://, beside Azurite and a stand-in for Google's store.

Nothing here was tried at a cloud itself: see docs/object-store.md.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sealab.skills_db.engine import open_database
from sealab.skills_db.workspace_counts import WorkspaceCounts
from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import ChangedMeanwhile, NotFound
from sealab.workspace.objects.bucket import ABSENT, Bucket
from sealab.workspace.objects.store_url import StoreUrl
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from tests import other_clouds
from tests.other_clouds import Cloud

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def azure() -> Iterator[Cloud]:
    if not other_clouds.has_azurite():
        missing = "Azurite is not installed: make azure"
        pytest.fail(missing) if os.environ.get("TEST_UPSTREAMS_REQUIRED") else pytest.skip(missing)
    with other_clouds.azurite() as cloud:
        yield cloud


@pytest.fixture(scope="module")
def google() -> Iterator[Cloud]:
    with other_clouds.google() as cloud:
        yield cloud


@pytest.fixture(params=["azure", "google"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreUrl:
    """Return a prefix of its own, whose store the variables of the process lead to."""
    cloud: Cloud = request.getfixturevalue(request.param)
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)
    return StoreUrl(cloud.scheme, cloud.bucket, f"team/{next(_NUMBERS)}")


@pytest.fixture
def pair(url: StoreUrl, tmp_path: Path) -> Iterator[tuple[StoredWorkspace, StoredWorkspace]]:
    with ExitStack() as stack:
        counts = WorkspaceCounts(lambda: database)
        database = stack.enter_context(open_database(None, tmp_path))
        one, two = (
            stack.enter_context(StoredWorkspace(tmp_path / name, Bucket(url), counts, quota_bytes=1_000_000))
            for name in ("one", "two")
        )
        yield one, two


def test_conditions_are_kept(url: StoreUrl) -> None:
    bucket = Bucket(url)
    assert bucket.keeps_conditions()
    bucket.put("a b é.txt", b"first", ABSENT)
    with pytest.raises(ChangedMeanwhile):
        bucket.put("a b é.txt", b"other", ABSENT)
    (listed,) = bucket.walk()
    looked_at = bucket.head("a b é.txt")
    assert looked_at is not None
    assert looked_at.etag == listed.etag
    bucket.put("a b é.txt", b"second", listed.etag)
    with pytest.raises(ChangedMeanwhile):
        bucket.put("a b é.txt", b"third", listed.etag)
    with pytest.raises(ChangedMeanwhile):
        b"".join(bucket.pieces(listed))
    (found,) = bucket.walk()
    assert b"".join(bucket.pieces(found)) == b"second"
    with pytest.raises(ChangedMeanwhile):
        bucket.copy(found, "a b é.txt", ABSENT)
    assert bucket.take_out(found.key, found.etag) is not None
    with pytest.raises(ChangedMeanwhile):
        bucket.put("a b é.txt", b"gone", found.etag)


def test_what_one_server_writes_lists_renames_or_deletes_the_other_finds(
    pair: tuple[StoredWorkspace, StoredWorkspace],
) -> None:
    one, two = pair
    one.write("d/é f.txt", "first")
    assert [file.name for file in two.list().files] == ["d/é f.txt"]
    assert two.read("d/é f.txt").content == "first"
    two.write("d/é f.txt", "second, longer")
    one.write("d/é f.txt", "\nthird", append=True)
    assert two.read("d/é f.txt").content == "second, longer\nthird"
    files = files_of_run(one, "home")
    files.rename("/workspace/d/é f.txt", "/workspace/g.txt")
    files.close()
    assert two.read("g.txt").content == "second, longer\nthird"
    two.delete("g.txt")
    with pytest.raises(NotFound):
        one.read("g.txt")
    assert two.usage().used_bytes == 0


def test_servers_that_append_to_one_file_lose_no_line(pair: tuple[StoredWorkspace, StoredWorkspace]) -> None:
    def append(server: int) -> None:
        for number in range(5):
            pair[server].write("log", f"{server}-{number}\n", append=True)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(append, range(2)))
    lines = pair[0].read("log").content.split()
    assert sorted(lines) == sorted(f"{server}-{number}" for server in range(2) for number in range(5))


def test_a_file_larger_than_is_copied_here_is_renamed_by_the_store(
    pair: tuple[StoredWorkspace, StoredWorkspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.workspace.objects.bucket.COPIED_HERE_BYTES_MAX", 10)
    one, two = pair
    one.write("large", "x" * 100)
    two.write("there", "y")
    files = files_of_run(one, "home")
    files.rename("/workspace/large", "/workspace/there")
    files.close()
    assert two.read("there").content == "x" * 100
    assert [file.name for file in two.list().files] == ["there"]
