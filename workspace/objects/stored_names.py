"""The names of a workspace in an object store: rows of a database, by the rules that a file system has.

Each file's row names the key of its content. A content is written once, under a key of its own, before a row names it,
and is deleted after none does: so who reads finds all of it. Each change here is one transaction that sees what was
changed last, and takes what it needs of the quota.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ..errors import ChangedMeanwhile, NameRefused, NotAFile, NotFound, QuotaFull
from ..names import DEPTH_MAX, RUNS, shown

Parts: TypeAlias = tuple[str, ...]
_JUDGED_BYTES = 256 * 1024


class Row(NamedTuple):
    """A file, or a folder, which has no `blob`: its path, bytes, and last change in nanoseconds since 1970."""

    path: str
    size: int
    modified_ns: int
    blob: str | None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.blob is None

    @property
    def parts(self) -> Parts:
        """The components of its path."""
        return tuple(self.path.split("/"))


_Columns: TypeAlias = tuple[str, int, int, str | None]


class Rows(Protocol):
    """The rows in a transaction, sorted by path. The folder "" is the workspace itself."""

    def used(self) -> tuple[int, int]:
        """Return bytes and the number of files and folders."""

    def count(self, more_bytes: int, more_entries: int) -> None:
        """Count what was added, or removed."""

    def named(self, paths: Sequence[str]) -> list[_Columns]:
        """Return what has one of these paths."""

    def below(self, folder: str, *, direct: bool = False) -> list[_Columns]:
        """Return all that lies below a folder, or directly in it."""

    def has_any(self, folder: str) -> bool:
        """Return whether anything lies below a folder."""

    def add(self, rows: Sequence[_Columns]) -> None:
        """Add rows, whose paths nothing has."""

    def replace(self, row: _Columns) -> None:
        """Replace the row that has its path."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove rows."""

    def move(self, path: str, goal: str) -> None:
        """Give a row, and all below it, another path."""

    def unnamed(self, keys: Iterable[str]) -> list[str]:
        """Return those keys that no row names."""


class NameTable(Protocol):
    """The rows of one workspace, for all its servers. Every method blocks, and may be called from any thread."""

    def read(self) -> AbstractContextManager[Rows]:
        """Give the rows of one moment."""

    def change(self, *, durable: bool = True) -> AbstractContextManager[Rows]:
        """Give the rows to change them, all or nothing, one server at a time."""

    def now(self) -> float:
        """Return the time in seconds since 1970, by the clock of the database."""

    def store(self) -> str:
        """Return what the keys of this database's contents begin with."""

    def takes_on(self, work: Literal["taking_in", "sweeping"], seconds: float) -> bool:
        """Return whether a work is this server's for so long; with 0 it is free again."""


class StoredNames:
    """What has a name in the workspace. `path` of each method has no `/` at either end; it was judged by `names`.

    `called` is how a message names it. Raises `Unavailable` where the database does not answer.
    """

    def __init__(self, table: NameTable, *, quota_bytes: int, files_max: int) -> None:
        self.table = table
        self._quota_bytes = quota_bytes
        self._files_max = files_max

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970, which is the same for all servers."""
        return int(self.table.now() * 1e9)

    def used(self) -> tuple[int, int]:
        """Return bytes and the number of files and folders together."""
        with self.table.read() as rows:
            return rows.used()

    def look(self, parts: Parts) -> list[Row]:
        """Return what is there on the way to a name, from the top, and at its end what has the name."""
        with self.table.read() as rows:
            return list(_on_the_way(rows, "/".join(parts)).values())

    def below(self, folder: str = "", *, direct: bool = False) -> list[Row]:
        """Return all that lies below a folder, or directly in it, sorted by path; of the top without kept runs."""
        with self.table.read() as rows:
            found = map(Row._make, rows.below(folder, direct=direct))
            return [row for row in found if folder or not row.path.startswith(f"{RUNS}/")]

    def put(self, row: Row, *, seen: Row | None = None, whole: bool = False) -> Row | None:
        """Put a file, and the folders that it lies in; return the row that it replaces.

        Raises `ChangedMeanwhile` where what has the name is not what was `seen` (None: nothing), unless the `whole` of
        whatever is there is replaced; `NotAFile` where that is a folder, or lies in a file; `QuotaFull`.
        """
        with self.table.change() as rows:
            there = _on_the_way(rows, row.path)
            current = there.pop(row.path, None)
            if current is not None and current.is_folder:
                raise _is_folder(row.path)
            if not whole and (current and current.blob) != (seen and seen.blob):
                raise ChangedMeanwhile(
                    f"{shown(row.path)} was changed by another program or server meanwhile. Nothing was overwritten; "
                    "read it again and repeat the change."
                )
            for above in there.values():
                _judge_folder(above, above.path)
            missing = [Row(path, 0, row.modified_ns, None) for path in _paths(row.path)[:-1] if path not in there]
            before = current.size if current is not None else 0
            self._take_room(rows, row.size - before, len(missing) + (current is None))
            if current is None:
                rows.add([*missing, row])
            else:
                rows.replace(row)
            return current

    def judge_room(self, row: Row) -> None:
        """Raise `QuotaFull` where there is no room for a file, before it is sent; for a small one nothing is asked."""
        if row.size > _JUDGED_BYTES:
            with self.table.read() as rows:
                self._judge_room(rows, row.size - sum(each[1] for each in rows.named([row.path])), 0)

    def make_folder(self, path: str, called: str) -> None:
        """Make a folder in one that is there."""
        with self.table.change() as rows:
            there = _on_the_way(rows, path)
            if path in there:
                raise NotAFile(f"There is a {shown(called)} already. Choose another name.", errno.EEXIST)
            _judge_inside(there, path, called)
            self._take_room(rows, 0, 1)
            rows.add([Row(path, 0, self.now_ns(), None)])

    def remove(self, path: str, called: str, *, prunes: bool = False) -> Row:
        """Remove a file, where it `prunes` with the folders that it leaves empty; return it."""
        with self.table.change() as rows:
            there = _on_the_way(rows, path)
            found = there.pop(path, None)
            if found is None:
                raise _missing(called)
            if found.is_folder:
                raise _is_folder(called)
            gone = [path]
            rows.remove(gone)
            for above in reversed(there) if prunes else ():
                if rows.has_any(above):
                    break
                rows.remove([above])
                gone.append(above)
            rows.count(-found.size, -len(gone))
            return found

    def remove_folder(self, path: str, called: str) -> None:
        """Remove an empty folder."""
        with self.table.change() as rows:
            found = _on_the_way(rows, path).get(path)
            if found is None:
                raise _missing(called)
            _judge_folder(found, called)
            _judge_empty(rows, path, called)
            rows.remove([path])
            rows.count(0, -1)

    def rename(self, path: str, goal: str, called: str, called_goal: str) -> tuple[Row, Row | None]:
        """Give a file or folder another name, in place of a file or an empty folder; return it and what it replaced."""
        with self.table.change() as rows:
            found = _on_the_way(rows, path).get(path)
            if found is None:
                raise _missing(called)
            there = _on_the_way(rows, goal)
            present = there.pop(goal, None)
            _judge_inside(there, goal, called_goal)
            if path == goal:
                return found, None
            if found.is_folder:
                if goal.startswith(f"{path}/"):
                    raise NotAFile(f"{shown(called_goal)} is within {shown(called)}.", errno.EINVAL)
                deepest = max((each[0].count("/") for each in rows.below(path)), default=path.count("/"))
                if deepest - path.count("/") + goal.count("/") >= DEPTH_MAX:
                    raise NameRefused("The folder would be too deep there. Move it further up.", errno.ENAMETOOLONG)
            if present is not None:
                if present.is_folder and not found.is_folder:
                    raise _is_folder(called_goal)
                if found.is_folder:
                    _judge_folder(present, called_goal)
                    _judge_empty(rows, goal, called_goal)
                rows.remove([goal])
                rows.count(-present.size, -1)
            rows.move(path, goal)
            return found._replace(path=goal), present

    def _take_room(self, rows: Rows, more_bytes: int, more_entries: int) -> None:
        self._judge_room(rows, more_bytes, more_entries)
        rows.count(more_bytes, more_entries)

    def _judge_room(self, rows: Rows, more_bytes: int, more_entries: int) -> None:
        used_bytes, entries = rows.used()
        if (more_bytes > 0 and used_bytes + more_bytes > self._quota_bytes) or (
            more_entries > 0 and entries + more_entries > self._files_max
        ):
            free = max(0, self._quota_bytes - used_bytes)
            raise QuotaFull(
                f"The workspace is full: {more_bytes} more bytes were needed, {free} of {self._quota_bytes} are free, "
                f"and {entries} of {self._files_max} files and folders are there. Nothing was written. Delete files "
                "that are no longer needed, or write less."
            )


def _paths(path: str) -> list[str]:
    """Return the paths of the folders that a name lies in, from the top, and its own."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _on_the_way(rows: Rows, path: str) -> dict[str, Row]:
    found = {each[0]: Row._make(each) for each in rows.named(_paths(path))}
    return {each: found[each] for each in _paths(path) if each in found}


def _judge_inside(there: dict[str, Row], path: str, called: str) -> None:
    """Raise `NotFound` or `NotAFile` unless a name lies in a folder that is there."""
    above = path.rpartition("/")[0]
    if above and above not in there:
        for each in there.values():
            _judge_folder(each, each.path)
        raise _missing(called)
    if above:
        _judge_folder(there[above], above)


def _judge_folder(row: Row, called: str) -> None:
    if not row.is_folder:
        raise NotAFile(f"{shown(called)} is not a folder.", errno.ENOTDIR)


def _judge_empty(rows: Rows, path: str, called: str) -> None:
    if rows.has_any(path):
        raise NotAFile(f"{shown(called)} is not empty. Remove what is in it first.", errno.ENOTEMPTY)


def _missing(called: str) -> NotFound:
    return NotFound(f"There is no {shown(called)} in the workspace. List the files to see what there is.")


def _is_folder(called: str) -> NotAFile:
    return NotAFile(f"{shown(called)} is a folder. Name a file in it.", errno.EISDIR)
