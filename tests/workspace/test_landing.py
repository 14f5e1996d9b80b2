"""What hostile code wrote to the upper layer of an overlay, read back by the host: made here by hand, as bad as it gets."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from sealab.workspace import changes as changes_module
from sealab.workspace import landing, quota
from sealab.workspace.changes import DIGEST_BYTES, ChangedFolder, TooManyChanges, digest
from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import QuotaFull
from sealab.workspace.landing import KeptFiles, Landed, land, read_kept
from sealab.workspace.paths import Folder
from sealab.workspace.store import Workspace

from .conftest import whole

QUOTA_BYTES = 1_000_000
LONG_AGO_NS = 1_600_000_000 * 10**9


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    folder = tmp_path / "upper"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path: Path):
    with Workspace(tmp_path / "workspace", quota_bytes=QUOTA_BYTES, files_max=100) as workspace:
        yield workspace


def landed(
    workspace: Workspace,
    upper: Path,
    known: dict[bytes, bytes] | None = None,
    mapped: frozenset[int] = frozenset(),
) -> Landed:
    with ChangedFolder(str(upper), {} if known is None else known, mapped) as changed:
        return whole(land(workspace, changed, whole(changed.read()), begun_ns=time.time_ns() - 10**9))


def kept(workspace: Workspace, upper: Path, bytes_max: int, files_max: int = 100) -> KeptFiles:
    with ChangedFolder(str(upper), {}) as changed:
        read = whole(changed.read())
        begun_ns = time.time_ns()
        return whole(read_kept(workspace, changed, read, begun_ns=begun_ns, bytes_max=bytes_max, files_max=files_max))


def content(workspace: Workspace) -> dict[str, str]:
    return {file.name: workspace.read(file.name).content for file in workspace.list().files}


def whiteout(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
    except PermissionError:
        pytest.skip("this user may not make the marks of deleted files by hand")


def opaque(path: Path) -> None:
    try:
        os.setxattr(path, "user.overlay.opaque", b"y")
    except OSError:
        pytest.skip("this file system has no extended attributes")


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as own, contextlib.chdir(path.parent):
        own.bind(path.name)


def no_link_left(folder: Path) -> bool:
    return all(path.is_dir() or stat.S_ISREG(path.lstat().st_mode) for path in folder.rglob("*"))


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_more_files_than_a_workspace_may_hold_are_refused_before_one_is_copied(
    workspace: Workspace, upper: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for number in range(101):
        path = upper / str(number)
        path.touch() if kind == "files" else path.mkdir()
    (upper / "one more").touch()
    monkeypatch.setattr(landing, "_copy", lambda *_given, **_named: pytest.fail("a file was copied"))
    with pytest.raises(QuotaFull, match="100 are allowed"):
        landed(workspace, upper)
    assert content(workspace) == {}


def test_new_and_changed_files_take_their_places_and_are_told_apart(workspace: Workspace, upper: Path) -> None:
    workspace.write("a.csv", "old")
    (upper / "a.csv").write_text("newer")
    (upper / "out" / "deep").mkdir(parents=True)
    (upper / "out" / "deep" / "x.bin").write_bytes(b"\0" * 1000)
    (upper / "empty").mkdir()
    told = landed(workspace, upper)
    assert (told.new, told.changed, told.deleted, told.not_kept) == ({"out/deep/x.bin": 1000}, {"a.csv": 5}, [], {})
    assert content(workspace) == {"a.csv": "newer", "out/deep/x.bin": "\0" * 1000}
    assert files_of_run(workspace).status("/workspace/empty").is_folder
    assert workspace.usage().used_bytes == 1005


def test_deleted_files_and_folders_go_and_what_replaced_them_stays(workspace: Workspace, upper: Path) -> None:
    for name in ("gone", "folder/a", "folder/b", "other/c", "was_folder/x", "was_file", "stays"):
        workspace.write(name, name)
    whiteout(upper / "gone")
    whiteout(upper / "other")
    (upper / "folder").mkdir()
    opaque(upper / "folder")
    (upper / "folder" / "b").write_text("again")
    (upper / "was_folder").write_text("a file")
    (upper / "was_file").mkdir()
    (upper / "was_file" / "y").write_text("y")
    told = landed(workspace, upper)
    assert sorted(told.deleted) == ["folder/a", "gone", "other/c", "was_file", "was_folder/x"]
    assert content(workspace) == {"folder/b": "again", "was_folder": "a file", "was_file/y": "y", "stays": "stays"}
    before = workspace.usage()
    workspace.ledger.recount()
    assert workspace.usage() == before


def test_a_file_that_was_only_opened_for_writing_is_neither_told_nor_touched(workspace: Workspace, upper: Path) -> None:
    workspace.write("db", "same")
    (upper / "db").write_text("same")
    before = files_of_run(workspace).status("/workspace/db").identity
    assert landed(workspace, upper) == Landed()
    assert files_of_run(workspace).status("/workspace/db").identity == before


def test_what_another_run_wrote_meanwhile_is_not_undone_by_one_that_only_opened_it(
    workspace: Workspace, upper: Path
) -> None:
    (upper / "db").write_text("as it was")
    try:
        os.setxattr(upper / "db", "user.overlay.origin", b"\0")  # the kernel copied it
    except OSError:
        pytest.skip("this file system has no extended attributes")
    os.utime(upper / "db", ns=(LONG_AGO_NS, LONG_AGO_NS))
    workspace.write("db", "newer")
    told = landed(workspace, upper)
    assert (told.new, told.changed, list(told.not_kept)) == ({}, {}, ["db"])
    assert content(workspace) == {"db": "newer"}


def test_a_file_that_was_copied_with_an_old_time_over_another_comes_home(workspace: Workspace, upper: Path) -> None:
    workspace.write("b", "before")
    (upper / "b").write_text("copied")  # as shutil.copy2 does, which writes in place and sets the time
    with contextlib.suppress(OSError):
        os.setxattr(upper / "b", "user.overlay.origin", b"\0")
    os.utime(upper / "b", ns=(LONG_AGO_NS, LONG_AGO_NS))
    with ChangedFolder(str(upper), {}) as changed:
        told = whole(land(workspace, changed, whole(changed.read()), begun_ns=time.time_ns() + 10**9))
    assert told.changed == {"b": 6}
    assert content(workspace) == {"b": "copied"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
        (lambda path: path.symlink_to("."), "symbolic link"),
        (os.mkfifo, "pipe"),
        (bound_socket, "socket"),
        (lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5)), "device"),
        (lambda path: os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(7, 0)), "device"),
    ],
    ids=["link", "link to a folder", "fifo", "socket", "device", "disk"],
)
def test_links_pipes_sockets_and_devices_stay_behind_and_the_report_says_so(
    workspace: Workspace, upper: Path, make: Callable[[Path], None], why: str
) -> None:
    (upper / "good").write_text("good")
    try:
        make(upper / "bad")
    except PermissionError:
        pytest.skip("this user may not make one by hand")
    told = landed(workspace, upper)
    assert why in told.not_kept["bad"]
    assert told.new == {"good": 4}
    assert content(workspace) == {"good": "good"}
    assert no_link_left(workspace_folder(upper))


def workspace_folder(upper: Path) -> Path:
    return upper.parent / "workspace"


def test_a_link_in_the_place_of_a_folder_that_was_read_is_not_followed(workspace: Workspace, upper: Path) -> None:
    outside = upper.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (upper / "folder").mkdir()
    (upper / "folder" / "secret").write_text("public")
    with ChangedFolder(str(upper), {}) as changed:
        read = whole(changed.read())
        (upper / "folder").rename(upper.parent / "away")
        (upper / "folder").symlink_to(outside)
        told = whole(land(workspace, changed, read, begun_ns=0))
    assert "folder/secret" in told.not_kept
    assert content(workspace) == {}


def test_a_file_that_is_another_when_it_is_opened_stays_behind(workspace: Workspace, upper: Path) -> None:
    (upper / "a").write_text("aaa")
    (upper / "fifo").write_text("fff")
    with ChangedFolder(str(upper), {}) as changed:
        read = whole(changed.read())
        (upper / "b").write_text("bbb")
        (upper / "b").rename(upper / "a")
        (upper / "fifo").unlink()
        os.mkfifo(upper / "fifo")  # opening it must not wait for a writer
        told = whole(land(workspace, changed, read, begun_ns=0))
    assert set(told.not_kept) == {"a", "fifo"}
    assert content(workspace) == {}


def test_rights_owners_second_names_and_attributes_do_not_come_home(workspace: Workspace, upper: Path) -> None:
    (upper / "run").write_text("#!/bin/sh\n")
    (upper / "run").chmod(0o6777)
    os.link(upper / "run", upper / "second")
    (upper / "closed").mkdir()
    (upper / "closed" / "f").write_text("f")
    (upper / "closed" / "f").chmod(0)
    (upper / "closed").chmod(0)
    with contextlib.suppress(OSError):
        os.setxattr(upper / "run", "user.note", b"x")
    told = landed(workspace, upper)
    assert set(told.new) == {"run", "second", "closed/f"}
    for name in told.new:
        path = workspace_folder(upper) / name
        status = path.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_nlink) == (0o600, 1)
        assert os.listxattr(path) == []
    assert stat.S_IMODE((workspace_folder(upper) / "closed").stat().st_mode) == 0o700


def test_a_file_whose_content_lies_elsewhere_stays_behind(workspace: Workspace, upper: Path) -> None:
    (upper / "meta").write_bytes(b"\0" * 10)
    try:
        os.setxattr(upper / "meta", "user.overlay.metacopy", b"")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert "elsewhere" in landed(workspace, upper).not_kept["meta"]


def test_a_sparse_file_counts_as_long_as_it_says(workspace: Workspace, upper: Path) -> None:
    with open(upper / "sparse", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(QuotaFull):
        landed(workspace, upper)
    assert content(workspace) == {}
    assert sorted(path.name for path in (upper.parent / "workspace.runs").iterdir()) == [".ledger"]


def test_more_than_the_quota_takes_nothing_home_not_even_what_was_deleted(workspace: Workspace, upper: Path) -> None:
    workspace.write("old", "x" * 900_000)
    workspace.write("gone", "g")
    whiteout(upper / "gone")
    (upper / "small").write_text("s")
    (upper / "large").write_text("l" * 200_000)
    with pytest.raises(QuotaFull):
        landed(workspace, upper)
    assert set(content(workspace)) == {"old", "gone"}
    (upper / "old").write_text("o")  # now there is room
    landed(workspace, upper)
    assert set(content(workspace)) == {"old", "small", "large"}
    assert workspace.usage().used_bytes == 200_002


def test_a_folder_with_too_many_entries_is_not_read(upper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "ENTRIES_MAX", 20)
    for number in range(21):
        (upper / str(number)).touch()
    with ChangedFolder(str(upper), {}) as changed, pytest.raises(TooManyChanges):
        whole(changed.read())


def test_runs_that_land_at_once_share_the_quota_and_none_lands_in_part(workspace: Workspace, tmp_path: Path) -> None:
    uppers = []
    for number in range(8):
        folder = tmp_path / f"upper{number}"
        folder.mkdir()
        for part in ("a", "b"):
            (folder / f"{number}{part}").write_text("x" * 150_000)
        uppers.append(folder)
    refused: list[int] = []

    def land_one(number: int) -> None:
        try:
            landed(workspace, uppers[number])
        except QuotaFull:
            refused.append(number)

    threads = [threading.Thread(target=land_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = sorted(content(workspace))
    assert len(names) == 6
    assert {name[:-1] for name in names} == {str(each) for each in range(8)} - {str(each) for each in refused}
    assert workspace.usage().used_bytes == 900_000


@pytest.mark.parametrize(
    "name",
    [b"a\nb", b"\xff\xfe", b"back\\slash", b".RUNS", b".sealab-part-1", b".Sealab-temp-x", b"\xe2\x80\xa8", b"C:"],
)
def test_names_that_no_caller_can_spell_stay_behind(workspace: Workspace, upper: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(upper) + b"/" + name)).write_text("x")
    (upper / "good").write_text("good")
    told = landed(workspace, upper)
    assert len(told.not_kept) == 1
    assert all(reason.isprintable() for pair in told.not_kept.items() for reason in pair)
    assert content(workspace) == {"good": "good"}


def test_names_that_differ_in_case_or_normalisation_alone_are_different_files(
    workspace: Workspace, upper: Path
) -> None:
    names = ["Report", "report", unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")]
    for name in names:
        (upper / name).write_text(name)
    if len(list(upper.iterdir())) < len(names):
        pytest.skip("this file system takes them for one")
    landed(workspace, upper)
    assert content(workspace) == {name: name for name in names}


def test_what_is_too_deep_stays_behind(workspace: Workspace, upper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(upper)
    for _ in range(200):
        os.mkdir("d")
        os.chdir("d")
    Path("f").write_text("f")
    os.chdir(upper)
    told = landed(workspace, upper)
    assert any("deep" in why for why in told.not_kept.values())
    assert content(workspace) == {}


def test_what_is_no_plain_file_in_the_workspace_is_neither_replaced_nor_deleted(
    workspace: Workspace, upper: Path
) -> None:
    outside = upper.parent / "outside"
    outside.write_text("outside")
    folder = workspace_folder(upper)
    (folder / "link").symlink_to(outside)
    (folder / "hard").hardlink_to(outside)
    (upper / "link").write_text("new")
    (upper / "hard").write_text("new")
    (upper / "good").write_text("good")
    told = landed(workspace, upper)
    assert set(told.not_kept) == {"link", "hard"}
    assert outside.read_text() == "outside"
    assert set(told.new) == {"good"}


def test_a_session_takes_home_once_what_it_wrote(workspace: Workspace, upper: Path) -> None:
    known: dict[bytes, bytes] = {}
    workspace.write("gone", "g")
    (upper / "a").write_text("one")
    whiteout(upper / "gone")
    assert landed(workspace, upper, known).new == {"a": 3}
    workspace.write("a", "by another")
    workspace.write("gone", "again")
    assert landed(workspace, upper, known) == Landed()
    assert content(workspace) == {"a": "by another", "gone": "again"}
    (upper / "a").write_text("two")
    assert landed(workspace, upper, known).changed == {"a": 3}


def test_a_session_remembers_no_more_than_stands_in_its_folder_and_of_long_names_no_more_than_of_short_ones(
    workspace: Workspace, upper: Path
) -> None:
    known: dict[bytes, bytes] = {}
    for call in range(3):
        made = [upper / f"{call}{number}{'x' * 200}" for number in range(50)]
        for each in made:
            each.write_text("dry")
        with ChangedFolder(str(upper), known) as changed:  # as a dry run does: no quota counts what it wrote
            changed.remember(whole(changed.read()))
        assert len(known) == 50
        for each in made[1:]:
            each.unlink()
        assert landed(workspace, upper, known) == Landed()
        made[0].unlink()
    assert {len(each) for each in (*known, *known.values())} == {16}
    assert landed(workspace, upper, known) == Landed()
    assert not known


def test_what_a_session_wrote_to_a_file_in_its_memory_comes_home_though_no_time_of_it_changed(
    workspace: Workspace, upper: Path
) -> None:
    known: dict[bytes, bytes] = {}
    (upper / "f").write_text("one")
    mapped = frozenset({(upper / "f").stat().st_ino})

    def write_in_memory(text: str) -> None:
        before = (upper / "f").stat()
        (upper / "f").write_text(text)
        os.utime(upper / "f", ns=(before.st_atime_ns, before.st_mtime_ns))
        now = (upper / "f").stat()
        mark = digest(repr((now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)))
        known[digest("f")] = mark + known[digest("f")][DIGEST_BYTES:]  # as if no time had changed

    assert landed(workspace, upper, known, mapped).new == {"f": 3}
    write_in_memory("two")
    assert landed(workspace, upper, known, mapped).changed == {"f": 3}
    workspace.write("f", "by another")
    assert landed(workspace, upper, known, mapped) == Landed()  # it has not written since
    assert content(workspace) == {"f": "by another"}
    write_in_memory("six")
    assert landed(workspace, upper, known).changed == {"f": 3}  # before it ended to have it mapped
    assert content(workspace) == {"f": "six"}
    assert landed(workspace, upper, known) == Landed()
    assert landed(workspace, upper, known, mapped) == Landed()
    write_in_memory("ten")
    assert landed(workspace, upper, known).changed == {"f": 3}


def test_while_a_run_lands_others_write_and_its_room_stays_its_own(
    workspace: Workspace, upper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "_STEP_SECONDS", 0.0)
    monkeypatch.setattr(quota, "RECOUNT_FULL_SECONDS", 0.0)
    for number in range(20):
        (upper / f"{number}").write_bytes(bytes(QUOTA_BYTES // 25))
    between = 0
    with ChangedFolder(str(upper), {}) as changed:
        for _ in land(workspace, changed, whole(changed.read()), begun_ns=0):
            if 0 < len(os.listdir(workspace_folder(upper))) < 20:
                workspace.write("small", f"{between}")
                with pytest.raises(QuotaFull):
                    workspace.write("large", "x" * (QUOTA_BYTES // 4))
                between += 1
    assert between >= 10
    assert len(workspace.list().files) == 21
    before = workspace.usage()
    workspace.ledger.recount()
    assert workspace.usage() == before


def test_what_a_database_spilled_to_disk_is_no_file_of_the_run(workspace: Workspace, upper: Path) -> None:
    for folder in (".tmp", "my.db.tmp"):
        (upper / folder).mkdir()
        (upper / folder / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("x")
        (upper / folder / "duckdb_temp_block-7.block").write_text("x")
        (upper / folder / "duckdb_temp_19663_0_storage_S32K-0.tmp").write_text("x")
        (upper / folder / "duckdb_temp_19663_0_owner").write_text("x")
    (upper / "own" / ".tmp").mkdir(parents=True)
    (upper / "own" / ".tmp" / "a").write_text("a")
    (upper / "own" / ".tmp" / "duckdb_temp_report.csv").write_text("a,b")
    assert landed(workspace, upper).new == {"own/.tmp/a": 1, "own/.tmp/duckdb_temp_report.csv": 3}
    assert not (workspace_folder(upper) / ".tmp").exists()


def test_files_of_ones_own_that_are_named_as_spilled_ones_come_home(workspace: Workspace, upper: Path) -> None:
    for folder in ("x.tmp", "spilled.tmp"):
        (upper / folder).mkdir()
        for name in ("duckdb_temp_mine", "duckdb_temp_mine.tmp"):
            (upper / folder / name).write_text("x")
    (upper / "x.tmp" / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("no database made this folder")
    (upper / "spilled.tmp" / "duckdb_temp_1_0_owner").touch()
    assert sorted(landed(workspace, upper).new) == [
        *("spilled.tmp/duckdb_temp_mine", "spilled.tmp/duckdb_temp_mine.tmp"),
        *("x.tmp/duckdb_temp_mine", "x.tmp/duckdb_temp_mine.tmp", "x.tmp/duckdb_temp_storage_DEFAULT-0.tmp"),
    ]


def test_a_reader_sees_the_old_content_or_the_new_one_whole(workspace: Workspace, upper: Path) -> None:
    old, new = "o" * 400_000, "n" * 300_000
    workspace.write("f", old)
    (upper / "f").write_text(new)
    seen: set[str] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.add(workspace.read("f").content)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        landed(workspace, upper)
    finally:
        ended.set()
        reading.join()
    assert seen <= {old, new}
    assert workspace.read("f").content == new


def test_of_a_failed_run_the_smallest_files_are_kept_first(workspace: Workspace, upper: Path) -> None:
    workspace.write("same", "same")
    for name, size in (("large", 500), ("small", 10), ("middle", 60)):
        (upper / name).write_text("x" * size)
    (upper / "same").write_text("same")
    found = kept(workspace, upper, 100)
    assert (set(found.files), list(found.left_out)) == ({"small", "middle"}, ["large"])
    few = kept(workspace, upper, 1000, files_max=2)
    assert (set(few.files), list(few.left_out)) == ({"small", "middle"}, ["large"])


@pytest.mark.parametrize("in_the_way", ["link", "second name"])
def test_what_lies_below_something_that_is_no_plain_file_stays_behind_and_the_rest_comes_home(
    workspace: Workspace, upper: Path, tmp_path: Path, in_the_way: str
) -> None:
    workspace.write("b", "old")
    (tmp_path / "outside").write_text("outside")
    place = tmp_path / "workspace" / "a"
    place.symlink_to("b") if in_the_way == "link" else os.link(tmp_path / "outside", place)
    (upper / "a" / "deep").mkdir(parents=True)
    (upper / "a" / "deep" / "x").write_text("x")
    (upper / "b").write_text("new")
    told = landed(workspace, upper)
    assert (told.new, told.changed, told.deleted) == ({}, {"b": 3}, [])
    assert set(told.not_kept) == {"a", "a/deep/x"}
    assert content(workspace)["b"] == "new"
    assert (tmp_path / "outside").read_text() == "outside"
    before = workspace.usage()
    workspace.ledger.recount()
    assert workspace.usage() == before


def test_where_the_disk_refuses_in_the_middle_what_was_done_and_what_was_not_is_told(
    workspace: Workspace, upper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write("gone", "gone")
    whiteout(upper / "gone")
    for name in ("a", "b", "c"):
        (upper / name).write_text(name)
    rename = Folder.rename

    def refused(self: Folder, leaf: str, to: str, into: Folder | None = None) -> None:
        if to == second:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(self, leaf, to, into=into)

    with ChangedFolder(str(upper), {}) as changed:
        names = ["/".join(file.parts) for file in whole(changed.read()).files]
    second = names[1]
    monkeypatch.setattr(Folder, "rename", refused)
    known: dict[bytes, bytes] = {}
    told = landed(workspace, upper, known)
    assert (told.new, told.deleted, set(told.not_kept)) == ({names[0]: 1}, ["gone"], set(names[1:]))
    assert content(workspace) == {names[0]: names[0]}
    monkeypatch.undo()
    assert set(landed(workspace, upper, known).new) == set(names[1:])
    before = workspace.usage()
    workspace.ledger.recount()
    assert workspace.usage() == before
