"""The names of a workspace in an object store, as rows: what a file system's rules say, for servers that act at once."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealab.skills_db.engine import Database
from sealab.skills_db.workspace_files import WorkspaceFiles
from sealab.workspace.errors import ChangedMeanwhile, NotAFile, NotFound, QuotaFull, Unavailable, WorkspaceError
from sealab.workspace.objects.stored_names import Row, StoredNames


def names_of(database: Database, *, quota_bytes: int = 1000, files_max: int = 100) -> StoredNames:
    return StoredNames(WorkspaceFiles(lambda: database, Unavailable), quota_bytes=quota_bytes, files_max=files_max)


def file(path: str, size: int = 1, blob: str = "") -> Row:
    return Row(path, size, 0, blob or f"content of {path}")


def paths(rows: list[Row]) -> list[str]:
    return [row.path for row in rows]


def test_what_lies_below_a_folder_is_found_whatever_its_letters_and_those_of_its_neighbours(database: Database) -> None:
    names = names_of(database)
    for path in ("d", "d0", "d.txt", "D/upper", "é/ü", "e\u0301/x", "z%/_"):
        names.put(file(path if path != "d" else "d/a/b"))
    names.put(file("d/c"))
    assert paths(names.below("d")) == ["d/a", "d/a/b", "d/c"]
    assert paths(names.below("d", direct=True)) == ["d/a", "d/c"]
    assert paths(names.below("é")) == ["é/ü"]
    assert paths(names.below("z%")) == ["z%/_"]
    assert paths(names.below(direct=True)) == sorted(["d", "d0", "d.txt", "D", "é", "e\u0301", "z%"])
    names.rename("d", "D/é", "d", "D/é")
    assert paths(names.below("D")) == ["D/upper", "D/é", "D/é/a", "D/é/a/b", "D/é/c"]
    assert paths(names.look(("d0",))) == ["d0"]


def test_servers_that_write_at_once_never_get_more_room_than_there_is(database: Database) -> None:
    def write(server: int) -> int:
        had = 0
        for number in range(10):
            try:
                names_of(database).put(file(f"{server}-{number}", 100))
                had += 1
            except QuotaFull:
                continue
        return had

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(write, range(4))) == 10
    assert names_of(database).used() == (1000, 10)
    with pytest.raises(QuotaFull):
        names_of(database, files_max=10).make_folder("d", "d")


def test_of_servers_that_change_remove_or_rename_one_file_at_once_one_does_and_it_is_counted_once(
    database: Database,
) -> None:
    names = names_of(database)

    def done(act: object, number: int) -> int:
        try:
            if act == "change":
                names.put(file("f", 200, f"{number}"), seen=before)
            elif act == "rename":
                names.rename("f", f"to-{number}", "f", f"to-{number}")
            else:
                names.remove("f", "f")
        except (ChangedMeanwhile, NotFound):
            return 0
        return 1

    for act, left in (("change", (200, 1)), ("rename", (100, 1)), ("remove", (0, 0))):
        before = file("f", 100)
        names.put(before)
        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(done, [act] * 4, range(4))) == 1
        assert names.used() == left
        for row in names.below():
            names.remove(row.path, row.path)
        assert names.used() == (0, 0)


def test_names_keep_the_rules_of_a_file_system(database: Database) -> None:
    names = names_of(database)
    names.put(file("a/b/f"))
    names.put(file("g", 10))
    names.make_folder("empty", "empty")
    refused = {
        errno.EEXIST: lambda: names.make_folder("a", "a"),
        errno.ENOENT: lambda: names.make_folder("none/x", "none/x"),
        errno.ENOTDIR: lambda: names.rename("a", "g", "a", "g"),
        errno.EISDIR: lambda: names.rename("g", "empty", "g", "empty"),
        errno.ENOTEMPTY: lambda: names.rename("empty", "a", "empty", "a"),
        errno.EINVAL: lambda: names.rename("a", "a/b/c", "a", "a/b/c"),
    }
    before = names.below(), names.used()
    for number, act in refused.items():
        with pytest.raises(WorkspaceError) as caught:
            act()
        assert caught.value.number == number
    for path in ("g/x", "a/b/f/x", "a"):
        with pytest.raises(NotAFile):
            names.put(file(path), whole=True)
    assert (names.below(), names.used()) == before == (before[0], (11, 5))
    assert names.rename("a/b/f", "g", "a/b/f", "g") == (file("g", 1, "content of a/b/f"), file("g", 10))
    names.rename("a", "empty", "a", "empty")
    assert paths(names.below()) == ["empty", "empty/b", "g"]
    names.put(file("empty/b/h"))
    names.remove("empty/b/h", "h", prunes=True)
    assert (paths(names.below()), names.used()) == (["g"], (1, 1))


def test_one_server_takes_on_a_work_at_a_time(database: Database) -> None:
    table = WorkspaceFiles(lambda: database, Unavailable)
    assert [table.takes_on("sweeping", 60) for _ in range(2)] == [True, False]
    assert table.takes_on("taking_in", 60), "another work"
    assert table.takes_on("sweeping", 0)
    assert table.takes_on("sweeping", 60)
    assert table.store() == table.store() != ""
