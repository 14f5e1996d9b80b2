"""Two servers on one bucket: what one does the other sees, and none undoes what the other did."""

from __future__ import annotations

import concurrent.futures
import errno
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import obstore
import pytest

from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import ChangedMeanwhile, NotAFile, NotFound, QuotaFull, WorkspaceError
from sealab.workspace.objects.bucket import Bucket, Object
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


def test_objects_of_other_programs_are_files_and_those_without_a_name_harm_nothing(
    s3: S3Server, bucket: str, opens: Opens
) -> None:
    other = s3.client(bucket, "team/files")
    obstore.put(other, "data/table.csv", b"a,b\n")
    obstore.put(other, "Case", b"1")
    obstore.put(other, "case", b"22")
    obstore.put(other, "e\u0301", b"decomposed")
    obstore.put(other, "é", b"composed")
    obstore.put(other, "back\\slash", b"x")
    obstore.put(other, "d", b"")
    obstore.put(other, "d/inside", b"x")
    workspace = opens(s3, bucket)
    assert names(workspace) == sorted(["Case", "case", "d/inside", "data/table.csv", "e\u0301", "é"])
    assert [workspace.read(name).content for name in ("Case", "case", "e\u0301", "é")] == [
        "1", "22", "decomposed", "composed",
    ]  # fmt: skip
    workspace.write("data/table.csv", "c,d\n", append=True)
    assert workspace.read("data/table.csv").content == "a,b\nc,d\n"
    assert [entry.name for entry in files_of_run(workspace, "home").list("/workspace/d")] == ["inside"]


def test_no_prefix_leads_into_another(s3: S3Server, bucket: str, opens: Opens) -> None:
    one, other = opens(s3, bucket, "a"), opens(s3, bucket, "ab")
    one.write("f", "mine")
    assert names(other) == []
    for name in ("../a/f", "/a/f", "..", "x/../../a/f"):
        with pytest.raises(WorkspaceError):
            other.read(name)


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
    with pytest.raises(WorkspaceError, match="Write it in several files"):
        put(two, "/workspace/large", b"end", "a")
    put(two, "/workspace/large", data[1:])
    assert one.list().files[0].size == len(data) - 1


def test_a_large_file_that_replaces_another_counts_what_it_replaced(opens: Opens, moto_server: S3Server) -> None:
    bucket = moto_server.bucket()
    one, two = (opens(moto_server, bucket, quota_bytes=100_000_000) for _ in range(2))
    files = files_of_run(one, "home")
    opened = files.open("/workspace/large", "w")
    size = 64 * 1024 * 1024
    files.write("/workspace/large", opened.identity, 0, bytes(size))
    two.write("large", "x" * 1000)
    files.sync(opened.identity)
    files.close()
    assert (one.usage().used_bytes, one.usage().entries) == (size, 1)
    assert one.list().used_bytes == size


def test_files_are_read_while_the_bucket_is_counted_for_the_first_time(
    opens: Opens, moto_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    listed = StoredWorkspace._totals

    def slow(self: StoredWorkspace) -> tuple[int, int]:
        begun.set()
        assert released.wait(30)
        return listed(self)

    monkeypatch.setattr(StoredWorkspace, "_totals", slow)
    bucket = moto_server.bucket()
    obstore.put(moto_server.client(bucket, "team/files"), "f", b"of another program")
    workspace = opens(moto_server, bucket)
    with ThreadPoolExecutor(2) as threads:
        counted = threads.submit(workspace.usage)
        try:
            assert begun.wait(30)
            assert threads.submit(lambda: workspace.read("f").content).result(10) == "of another program"
        finally:
            released.set()
        assert counted.result(30).used_bytes == 18


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


def test_a_rename_counts_what_came_to_its_goal_at_the_last_moment(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    one.write("from", "x" * 300)
    copy = StoredWorkspace.copy

    def late(self: StoredWorkspace, *arguments: Any) -> Object:
        if not two.bucket.head("to"):
            two.write("to", "y" * 500)
        return copy(self, *arguments)

    monkeypatch.setattr(StoredWorkspace, "copy", late)
    files = files_of_run(one, "home")
    files.rename("/workspace/from", "/workspace/to")
    files.close()
    assert two.read("to").content == "x" * 300
    assert (one.usage().used_bytes, one.usage().entries) == (300, 1)


def test_a_rename_notices_what_came_to_its_goal_after_it_looked(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    one.write("from", "x" * 300)
    judge, put = Bucket._judge, Bucket._put
    came = threading.Event()

    def come(key: str) -> None:
        if key == "to" and not came.is_set():
            came.set()
            two.write("to", "y" * 500)

    def judged_then_late(self: Bucket, key: str, condition: str | None) -> None:
        judge(self, key, condition)
        come(key)

    def late(self: Bucket, key: str, content: bytes, condition: str | None) -> str:
        if condition is not None:
            come(key)
        return put(self, key, content, condition)

    monkeypatch.setattr(Bucket, "_put", late)
    if one.bucket.keeps_conditions():
        monkeypatch.setattr(Bucket, "_judge", judged_then_late)
    files = files_of_run(one, "home")
    files.rename("/workspace/from", "/workspace/to")
    files.close()
    assert two.read("to").content == "x" * 300
    assert (one.usage().used_bytes, one.usage().entries) == (300, 1), "what was replaced is counted"


def test_a_folder_that_is_renamed_replaces_no_file_that_came_to_its_goal(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.write("a/x", "moved")
    copy = StoredWorkspace.copy

    def late(self: StoredWorkspace, *arguments: Any) -> Object:
        two.write("b/x", "new")
        return copy(self, *arguments)

    monkeypatch.setattr(StoredWorkspace, "copy", late)
    files = files_of_run(one, "home")
    with pytest.raises(ChangedMeanwhile):
        files.rename("/workspace/a", "/workspace/b")
    files.close()
    assert (two.read("a/x").content, two.read("b/x").content) == ("moved", "new")


def test_what_is_written_to_the_source_of_a_rename_where_a_store_keeps_no_conditions_is_not_lost(
    opens: Opens, s3rver_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3rver_server.bucket()
    one, two = opens(s3rver_server, bucket), opens(s3rver_server, bucket)
    one.write("from", "old")
    delete = Bucket.delete
    with ThreadPoolExecutor(1) as threads:

        def late(self: Bucket, key: str) -> None:
            if key == "from":
                monkeypatch.setattr(Bucket, "delete", delete)
                begun = threading.Event()

                def write() -> None:
                    begun.set()
                    two.write("from", "new")

                writes.append(threads.submit(write))
                assert begun.wait(30)
                concurrent.futures.wait(writes, 0.5)
            delete(self, key)

        writes: list[Future[None]] = []
        monkeypatch.setattr(Bucket, "delete", late)
        files = files_of_run(one, "home")
        files.rename("/workspace/from", "/workspace/to")
        files.close()
        writes[0].result(30)
    assert {file.name for file in one.list().files} == {"from", "to"}
    assert [one.read(name).content for name in ("from", "to")] == ["new", "old"]
