"""Two servers on one bucket: what one does the other sees, and none undoes what the other did."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pytest

from sealab.skills_db.engine import open_database
from sealab.skills_db.workspace_files import WorkspaceFiles
from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import ChangedMeanwhile, NotAFile, NotFound, QuotaFull, Unavailable, WorkspaceError
from sealab.workspace.names import BLOBS
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.stored_names import StoredNames
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from tests.object_stores import S3Server
from tests.workspace.conftest import Opens

Pair = tuple[StoredWorkspace, StoredWorkspace]


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


@pytest.fixture
def pair(opens: Opens, s3: S3Server, bucket: str) -> Pair:
    return opens(s3, bucket), opens(s3, bucket)


def names(workspace: StoredWorkspace) -> list[str]:
    return [file.name for file in workspace.list().files]


def blobs(workspace: StoredWorkspace) -> set[str]:
    return {found.key for found in workspace.bucket.walk()}


def named_blobs(workspace: StoredWorkspace) -> set[str | None]:
    return {row.blob for row in workspace.names.below() if not row.is_folder}


def put(workspace: StoredWorkspace, path: str, data: bytes, mode: str = "w") -> None:
    files = files_of_run(workspace, "home")
    opened = files.open(path, mode)  # type: ignore[arg-type]  # a mode
    files.write(path, opened.identity, None if mode == "a" else 0, data)
    files.sync(opened.identity)
    files.close()


def test_what_one_server_writes_replaces_or_deletes_the_other_finds(pair: Pair) -> None:
    one, two = pair
    one.write("d/é f.txt", "first")
    assert two.read("d/é f.txt").content == "first"
    two.write("d/é f.txt", "second, longer")
    assert one.read("d/é f.txt").content == "second, longer"
    assert names(one) == names(two) == ["d/é f.txt"]
    one.delete("d/é f.txt")
    with pytest.raises(NotFound):
        two.read("d/é f.txt")
    assert names(two) == []
    assert two.usage().used_bytes == 0


def test_servers_that_append_to_one_file_lose_no_line(pair: Pair) -> None:
    def append(server: int) -> None:
        for number in range(10):
            pair[server].write("log", f"{server}-{number}\n", append=True)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(append, range(2)))
    lines = pair[0].read("log").content.split()
    assert sorted(lines) == sorted(f"{server}-{number}" for server in range(2) for number in range(10))


def test_servers_that_write_at_once_never_pass_the_quota(opens: Opens, s3: S3Server, bucket: str) -> None:
    pair = [opens(s3, bucket, quota_bytes=10_000) for _ in range(2)]
    refused = []

    def write(server: int) -> None:
        for number in range(10):
            try:
                pair[server].write(f"{server}-{number}", "x" * 900)
            except QuotaFull:
                refused.append((server, number))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, range(2)))
    listing = pair[0].list()
    assert sum(file.size for file in listing.files) == listing.used_bytes <= 10_000
    assert len(listing.files) == 11
    assert len(refused) == 9
    assert pair[1].usage() == pair[0].usage()


def test_room_that_one_server_gives_back_the_other_has(opens: Opens, s3: S3Server, bucket: str) -> None:
    one, two = (opens(s3, bucket, quota_bytes=1000) for _ in range(2))
    one.write("f", "x" * 1000)
    with pytest.raises(QuotaFull):
        two.write("g", "x")
    one.delete("f")
    two.write("g", "x" * 1000)
    assert one.usage().used_bytes == 1000


def test_code_that_edits_a_file_which_another_server_changed_is_told_and_overwrites_nothing(pair: Pair) -> None:
    one, two = pair
    one.write("f", "0123456789")
    files = files_of_run(one, "home")
    opened = files.open("/workspace/f", "r+")
    files.write("/workspace/f", opened.identity, 0, b"MINE")
    two.write("f", "of the other")
    with pytest.raises(ChangedMeanwhile) as caught:
        files.sync(opened.identity)
    assert caught.value.number == errno.ESTALE
    files.close()
    assert one.read("f").content == two.read("f").content == "of the other"
    assert one.usage().used_bytes == len("of the other")


def test_code_that_replaces_a_file_wins_over_what_came_between(pair: Pair) -> None:
    one, two = pair
    one.write("f", "0123456789")
    files = files_of_run(one, "home")
    opened = files.open("/workspace/f", "w")
    files.write("/workspace/f", opened.identity, 0, b"mine")
    two.write("f", "of the other")
    files.sync(opened.identity)
    files.close()
    assert two.read("f").content == "mine"
    assert one.list().used_bytes == one.usage().used_bytes == two.usage().used_bytes == 4


def test_nothing_is_stored_before_it_is_closed_and_all_of_it_when_the_run_ends(pair: Pair) -> None:
    one, two = pair
    files = files_of_run(one, "home")
    opened = files.open("/workspace/f", "w")
    files.write("/workspace/f", opened.identity, 0, b"part")
    with pytest.raises(NotFound):
        two.read("f")
    assert one.read("f").content == "part", "the same server stores it first"
    files.write("/workspace/f", opened.identity, 4, b" and more")
    files.settle()
    assert two.read("f").content == "part and more"
    files.close()


def test_a_file_is_made_by_one_server_alone(pair: Pair) -> None:
    made = []
    barrier = threading.Barrier(2)

    def make(server: int) -> None:
        files = files_of_run(pair[server], "home")
        barrier.wait()
        try:
            files.open("/workspace/lock", "x")
            made.append(0)
        except NotAFile as error:
            made.append(error.number)
        files.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(make, range(2)))
    assert sorted(made) == [0, errno.EEXIST]


def test_folders_and_renames_are_the_same_on_both(pair: Pair) -> None:
    one, two = (files_of_run(each, "home") for each in pair)
    one.make_folder("/workspace/a")
    with pytest.raises(NotAFile) as caught:
        two.make_folder("/workspace/a")
    assert caught.value.number == errno.EEXIST
    put(pair[0], "/workspace/a/f", b"content")
    one.make_folder("/workspace/a/inner")
    two.rename("/workspace/a", "/workspace/b")
    assert [entry.name for entry in one.list("/workspace")] == ["b"]
    assert [entry.name for entry in one.list("/workspace/b")] == ["f", "inner"]
    assert pair[0].read("b/f").content == "content"
    with pytest.raises(NotAFile) as caught:
        one.remove_folder("/workspace/b")
    assert caught.value.number == errno.ENOTEMPTY
    one.remove("/workspace/b/f")
    two.remove_folder("/workspace/b/inner")
    assert two.list("/workspace/b") == [], "a folder outlives its last file"
    one.remove_folder("/workspace/b")
    assert two.list("/workspace") == []
    assert pair[0].list().used_bytes == 0
    assert pair[0].usage().entries == pair[1].usage().entries == 0
    one.close()
    two.close()


def test_a_rename_over_a_file_gives_its_room_back(pair: Pair) -> None:
    one, two = pair
    one.write("from", "x" * 300)
    one.write("to", "y" * 500)
    files = files_of_run(two, "home")
    files.rename("/workspace/from", "/workspace/to")
    files.close()
    assert one.read("to").content == "x" * 300
    assert one.usage().used_bytes == one.list().used_bytes == 300
    assert names(one) == ["to"]


def test_a_whole_folder_is_fetched_for_code_that_reads_it_by_itself(pair: Pair) -> None:
    one, two = pair
    for number in range(12):
        one.write(f"d/{number}", str(number) * 100)
    two.write("gone", "soon")
    folder = two.mirror._root
    with two.brought_whole():
        assert {found.parts[-1]: found.size for found in folder.walk() if not found.is_folder} == {
            **{str(number): len(str(number)) * 100 for number in range(12)},
            "gone": 4,
        }
    one.delete("gone")
    one.write("d/3", "changed")
    with two.brought_whole():
        with folder.open_folder(("d",)) as inside:
            assert inside.read("3") == b"changed"
            assert inside.read("11") == b"11" * 100
        assert [found.parts for found in folder.walk() if not found.is_folder and found.parts[0] == "gone"] == []


def test_a_file_whose_content_is_not_here_cannot_be_read_as_zeros(pair: Pair) -> None:
    one, two = pair
    one.write("f", "secret")
    files = files_of_run(two, "home")
    assert files.status("/workspace/f").size == 6
    with two.root.open_folder(()) as top:
        status = top.status("f")
    assert status is not None
    assert status.st_mode & 0o777 == 0
    files.close()


def test_kept_runs_are_read_on_every_server_and_the_oldest_dropped_by_any(pair: Pair) -> None:
    from tests.workspace.conftest import archive_in

    one, two = pair
    archives = [archive_in(one, 3), archive_in(two, 3)]
    for number in range(8):
        archives[number % 2].keep(f"r{number}", owner="home", code=f"print({number})", output="o" * number)
    assert two.read(".runs/r7/code.py", owner="home").content == "print(7)"
    assert one.read(".runs/r6/output.txt", owner="home").content == "oooooo"
    with pytest.raises(NotFound):
        one.read(".runs/r7/code.py", owner="somebody")
    with pytest.raises(NotFound):
        one.read(".runs/r0/code.py", owner="home")
    assert [file.name for file in one.list(".runs/r7", owner="home").files] == [
        ".runs/r7/code.py",
        ".runs/r7/output.txt",
    ]
    assert one.usage().used_bytes == 0


def test_a_large_file_goes_in_parts_and_comes_back_whole(
    opens: Opens, s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.workspace.objects.bucket.SINGLE_BYTES_MAX", 6 * 1024 * 1024)
    one, two = (opens(s3, bucket, quota_bytes=100_000_000) for _ in range(2))
    data = bytes(range(256)) * 40_000
    put(one, "/workspace/large", data)
    files = files_of_run(two, "home")
    opened = files.open("/workspace/large", "r")
    content = bytearray()
    while piece := files.read("/workspace/large", opened.identity, len(content), 4_000_000):
        content += piece
    assert content == data
    files.close()
    put(two, "/workspace/large", b"end", "a")
    assert one.list().files[0].size == len(data) + 3


def test_copies_are_dropped_to_make_room_and_fetched_again(opens: Opens, s3: S3Server, bucket: str) -> None:
    one, two = opens(s3, bucket), opens(s3, bucket, cache_bytes=2500)
    for number in range(5):
        one.write(f"f{number}", str(number) * 1000)
    for number in (0, 1, 2, 3, 4, 0):
        assert two.read(f"f{number}").content == str(number) * 1000
    assert two.mirror._held_bytes <= 2500
    one.write("large", "x" * 3000)
    with pytest.raises(WorkspaceError, match="WORKSPACE_CACHE_MB"):
        two.read("large")


def test_a_rename_takes_what_both_names_have_at_the_last_moment(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    one.write("from", "x" * 300)
    one.write("a/x", "stays")
    rename = StoredNames.rename

    def late(self: StoredNames, path: str, goal: str, *called: str) -> Any:
        two.write("from", "new")
        two.write("to", "y" * 500)
        two.write("b/x", "stays too")
        return rename(self, path, goal, *called)

    monkeypatch.setattr(StoredNames, "rename", late)
    files = files_of_run(one, "home")
    files.rename("/workspace/from", "/workspace/to")
    with pytest.raises(NotAFile) as caught:
        files.rename("/workspace/a", "/workspace/b")
    assert caught.value.number == errno.ENOTEMPTY
    files.close()
    assert {name: two.read(name).content for name in names(one)} == {
        "a/x": "stays", "b/x": "stays too", "from": "new", "to": "y" * 500,
    }  # fmt: skip


def test_a_content_is_in_the_bucket_exactly_as_long_as_a_name_has_it(opens: Opens, s3: S3Server, bucket: str) -> None:
    one, two = (opens(s3, bucket, quota_bytes=1000) for _ in range(2))
    for number in range(3):
        one.write("d/f", f"{number}")
        two.write("d/f", "more", append=True)
    one.write("gone", "x")
    two.delete("gone")
    one.write("replaced", "x")
    one.write("renamed", "y")
    files = files_of_run(two, "home")
    files.rename("/workspace/renamed", "/workspace/replaced")
    files.close()
    with pytest.raises(QuotaFull):
        one.write("large", "x" * 1000)
    with pytest.raises(NotAFile):
        one.write("d", "a folder")
    assert names(two) == ["d/f", "replaced"]
    assert blobs(one) == named_blobs(two)
    assert len(blobs(one)) == 2


def test_a_file_is_read_whole_however_often_it_is_replaced(pair: Pair) -> None:
    one, two = pair
    one.write("f", "0" * 100_000)
    ended = threading.Event()

    def replace() -> None:
        try:
            for number in range(1, 20):
                one.write("f", str(number % 10) * 100_000)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as threads:
        replaced = threads.submit(replace)
        while not ended.is_set():
            content = two.read("f").content
            assert content == content[0] * 100_000
        replaced.result()


def test_a_sweep_deletes_what_a_dead_server_left_and_nothing_of_another_database(
    opens: Opens, moto_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = moto_server.bucket()
    one = opens(moto_server, bucket)
    one.write("f", "content")
    one.kept.put("r1", {"code.py": b"1"})
    (prefix,) = {key.rpartition("/")[0] for key in blobs(one)}
    one.bucket.put(f"{prefix}/left", b"by a server that died")
    (tmp_path / "other").mkdir()
    with (
        open_database(None, tmp_path / "other") as database,
        StoredWorkspace(
            tmp_path / "caches" / "other",
            moto_server.opened(bucket, "team/files", monkeypatch),
            WorkspaceFiles(lambda: database, Unavailable),
            quota_bytes=1000,
        ) as other,
    ):
        other.write("f", "of the other")
        one.check()
        assert f"{prefix}/left" in blobs(one), "it may be an upload"
        for each in (one, other):
            monkeypatch.setattr("sealab.workspace.objects.blobs.SWEEP_SECONDS", -60.0)
            monkeypatch.setattr(each.blobs, "_looks_at", 0.0)
            each.blobs._table.takes_on("sweeping", 0)
            each.check()
        assert f"{prefix}/left" not in blobs(one)
        assert (one.read("f").content, other.read("f").content) == ("content", "of the other")
        assert one.read(".runs/r1/code.py", owner="home").content == "1"
        assert len(blobs(one)) == 3


def test_objects_of_other_programs_become_files_once_and_those_without_a_name_harm_nothing(
    s3: S3Server, bucket: str, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.workspace.objects.inbox.LEFT_SECONDS", 0.0)
    other = s3.client(bucket, "team/files")
    for key, content in {
        "data/table.csv": b"a,b\n", "Case": b"1", "case": b"22", "e\u0301": b"decomposed", "\u00e9": b"composed",
        "back\\slash": b"x", "d": b"", "d/inside": b"x", ".runs/r/code.py": b"x", ".RUNS/x": b"x", "large": b"x" * 2_000_000,
    }.items():  # fmt: skip
        obstore.put(other, key, content)
    one, two = opens(s3, bucket), opens(s3, bucket)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(names, (one, two)))
    expected = ["Case", "case", "d/inside", "data/table.csv", "e\u0301", "\u00e9"]
    one.check()
    assert names(one) == names(two) == sorted(expected)
    assert [one.read(name).content for name in ("Case", "case", "e\u0301", "\u00e9")] == [
        "1", "22", "decomposed", "composed",
    ]  # fmt: skip
    assert one.usage().used_bytes == sum(file.size for file in one.list().files)
    one.write("data/table.csv", "c,d\n", append=True)
    two.check()
    assert two.read("data/table.csv").content == "a,b\nc,d\n"
    obstore.put(other, "data/table.csv", b"anew")
    two.check()
    assert one.read("data/table.csv").content == "anew"
    assert {key for key in blobs(one) if not key.startswith(f"{BLOBS}/")} == {
        "back\\slash", "d", ".runs/r/code.py", ".RUNS/x", "large",
    }  # fmt: skip
    assert [entry.name for entry in files_of_run(one, "home").list("/workspace/d")] == ["inside"]


def test_an_object_replaces_no_file_that_is_newer_also_where_it_was_taken_in_and_could_not_be_deleted(
    moto_server: S3Server, opens: Opens, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = moto_server.bucket()
    workspace = opens(moto_server, bucket)
    names(workspace)
    monkeypatch.setattr("sealab.workspace.objects.inbox.LEFT_SECONDS", 0.0)
    for key in ("same", "newer"):
        obstore.put(moto_server.client(bucket, "team/files"), key, b"of another program")

    def fail(_self: Bucket, _keys: list[str]) -> None:
        raise Unavailable("The store is away.")

    with monkeypatch.context() as away:
        away.setattr(Bucket, "delete_all", fail)
        with pytest.raises(Unavailable):
            workspace.check()
    assert {"same", "newer"} < blobs(workspace)
    later = workspace.names.now_ns() + 60 * 10**9
    monkeypatch.setattr(StoredNames, "now_ns", lambda _self: later)
    workspace.write("newer", "of a user")
    workspace.check()
    assert [workspace.read(name).content for name in ("newer", "same")] == ["of a user", "of another program"]
    assert {key for key in blobs(workspace) if not key.startswith(f"{BLOBS}/")} == {"newer"}
    assert "'newer' of another program cannot be a file: the file of that name is newer" in caplog.text
    assert len(blobs(workspace)) == 3


def test_an_object_whose_key_is_no_path_is_named_and_harms_no_file(
    moto_server: S3Server, opens: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    import boto3  # type: ignore[import-untyped]  # it comes with moto

    bucket = moto_server.bucket()
    given = {"aws_access_key_id": "S3RVER", "aws_secret_access_key": "S3RVER", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=moto_server.address, **given)
    for key in ("a//b", "../outside", "d/../../e", "bell\x07", "//"):
        client.put_object(Bucket=bucket, Key=f"team/files/d/{key}", Body=b"hostile")
    workspace = opens(moto_server, bucket)
    workspace.write("d/f", "content")
    workspace.check()
    assert "Rename or remove it" in caplog.text
    assert names(workspace) == ["d/f"]
    assert [entry.name for entry in files_of_run(workspace, "home").list("/workspace/d")] == ["f"]
    with workspace.brought_whole():
        assert ["/".join(found.parts) for found in workspace.root.walk() if not found.is_folder] == ["d/f"]
