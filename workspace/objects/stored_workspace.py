"""The workspace whose contents are objects: the same names, errors and quota, for every server that has the bucket.

**What is true.** The rows of the database that all servers share (`stored_names`): each file's has the key of its
content, which is in the bucket before the row is. The folder is a cache of this process (`mirror`), made anew when it
starts and removed when it ends. Before a file is read, written or listed the rows are asked, so what another server did
is seen by the next call. Nothing counts as written before the store and the database have said so.

**Conflicts.** `write` replaces what is there. `append` adds to what this server read, and is done again where another
came between: of two servers that append to one file both lines are in it.

**Other programs** may put objects into the bucket under the names of files: `check` makes files of them.

**Time.** All methods block for one or two requests; see `bucket` for their bounds.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import ChangedMeanwhile, NotAFile, NotFound, QuotaFull, WorkspaceError
from ..names import RUNS, Name, is_run_of, run_in, shown
from ..paths import WalkedEntry
from ..quota import Ledger
from ..store import (
    Deleted,
    Encoding,
    File,
    Listing,
    Usage,
    Workspace,
    WriteResult,
    changeable,
    encoded,
)
from .blobs import Blobs
from .bucket import Bucket
from .cache_place import CachePlace
from .inbox import Inbox
from .kept_runs import KeptRuns
from .mirror import Mirror
from .stored_ledger import StoredLedger
from .stored_names import NameTable, Parts, Row, StoredNames

ATTEMPTS = 20
"""How often an append is done again that others come between."""
FETCHES_AT_ONCE = 8


class StoredWorkspace(Workspace):
    """`Workspace` of the contents in `bucket`, cached below `folder`, a place of this process (see `cache_folder`).

    `table` has the names, for all servers; `cache_bytes` bounds the copies. Raises `Unavailable` where the store does
    not answer.
    """

    is_stored = True

    def __init__(
        self,
        folder: Path,
        bucket: Bucket,
        table: NameTable,
        *,
        quota_bytes: int,
        files_max: int = 200_000,
        cache_bytes: int = 2_000_000_000,
    ) -> None:
        self.bucket = bucket
        self.blobs = Blobs(bucket, table)
        self._names = StoredNames(table, quota_bytes=quota_bytes, files_max=files_max)
        self._inbox = Inbox(bucket, table, self._names, self.blobs, self.changed)
        self._has_looked = False
        self._place = CachePlace(folder)
        super().__init__(folder, quota_bytes=quota_bytes, files_max=files_max)
        self.mirror = Mirror(
            self.root,
            self.beside,
            self.blobs.pieces,
            self._row,
            self.stored.held,
            bytes_max=cache_bytes,
            is_open=self._is_open,
        )
        self.kept = KeptRuns(self.blobs, self._names, self.beside)

    def _ledger(self, quota_bytes: int, files_max: int) -> Ledger:
        return StoredLedger(
            self.root,
            self.beside,
            self._names.used,
            quota_bytes=quota_bytes,
            files_max=files_max,
            removed_bytes=self._removed_bytes,
        )

    def _begin(self) -> None:
        """Ask for nothing: a server may start while its store does not answer."""

    def trouble(self) -> str | None:
        """Return what the last request failed with; None where it did not."""
        return self.bucket.trouble

    @property
    def names(self) -> StoredNames:
        """The names, once what other programs put into the bucket before this server came is among them."""
        if not self._has_looked:
            self._has_looked = True
            with contextlib.suppress(WorkspaceError):
                self._inbox.take_in()
        return self._names

    @property
    def stored(self) -> StoredLedger:
        """The ledger, as what it is."""
        assert isinstance(self.ledger, StoredLedger)
        return self.ledger

    def _is_open(self, inode: int) -> bool:
        return any(each.holds(inode) for each in list(self.live))

    def close(self) -> None:
        """Close and remove the cache. May be called twice."""
        super().close()
        self._place.close()

    def check(self) -> None:
        """Ask the store, and take in what other programs put there. Raises `Unavailable`."""
        self._inbox.take_in()
        self.blobs.sweep()

    # Names.

    def changed(self, gone: Row | None) -> None:
        """End a change of the names: the content that has none now is deleted, and the count is asked for anew."""
        self.stored.ask_again()
        self.blobs.drop([gone])

    def _row(self, parts: Parts) -> Row | None:
        found = self.names.look(parts)
        return found[-1] if found and found[-1].parts == parts else None

    def bring(self, parts: Parts, *, content: bool = False) -> None:
        """Show what has a name in the cache. What is written here and not stored yet stays as it is."""
        if not parts or self._is_changed(parts):
            return
        found = self.names.look(parts)
        for row in found:
            self.mirror.show(row)
        if not found or found[-1].parts != parts:
            self.mirror.forget(parts[: len(found) + 1])
        elif content and not found[-1].is_folder:
            self.mirror.fetch(parts)

    def _is_changed(self, parts: Parts) -> bool:
        return any(each[: len(parts)] == parts for each in list(self.mirror.changed))

    def bring_folder(self, parts: Parts) -> None:
        """Show in the cache what lies directly below a name."""
        row = self._row(parts) if parts else None
        if parts and (row is None or not row.is_folder):
            self.bring(parts)
        else:
            self.mirror.show_level(parts, self.names.below("/".join(parts), direct=True))

    @contextlib.contextmanager
    def brought_whole(self) -> Iterator[None]:
        """Bring every file into the cache, and none that is not in the store, while code reads it by itself.

        Native code opens files by itself, also such as no hook of Python sees, so they are fetched before it starts:
        those that changed since the last time, several at once.
        """
        self.mirror.pin(1)
        try:
            self.settle(())
            found = self.names.below()
            there = {row.path for row in found}
            for entry in list(self.root.walk()):
                if "/".join(entry.parts) not in there:
                    self.mirror.forget(entry.parts)
            for row in found:
                self.mirror.show(row)
            with ThreadPoolExecutor(FETCHES_AT_ONCE, "workspace fetch") as fetching:
                for done in [fetching.submit(self.mirror.fetch, row.parts) for row in found if not row.is_folder]:
                    with contextlib.suppress(NotFound):
                        done.result()
            yield
        finally:
            self.mirror.pin(-1)

    def write(
        self, filename: str, content: str | bytes, *, encoding: Encoding = "utf-8", append: bool = False
    ) -> WriteResult:
        """Write a file, as `Workspace.write` does, and have it in the store. Raises `ChangedMeanwhile` too."""
        name = changeable(filename)
        data = content if isinstance(content, bytes) else encoded(content, encoding)
        with self.mirror.locks.held(name.parts):
            self.settle(name.parts)
            for attempt in range(ATTEMPTS):
                try:
                    return self._write(name, data, append=append)
                except ChangedMeanwhile:
                    if attempt == ATTEMPTS - 1:
                        raise
                    time.sleep(0.002 * attempt)
        raise AssertionError

    def _write(self, name: Name, data: bytes, *, append: bool) -> WriteResult:
        seen = None
        if append:
            self.bring(name.parts, content=True)
            seen = self.mirror.known(name.parts)  # first: with what is read it may be older, never newer
            with contextlib.suppress(NotFound), open(self.root.open_file(name)[0], "rb") as file:
                data = file.read() + data
        row = Row(str(name), len(data), self.names.now_ns(), None)
        self.names.judge_room(row)
        with self.blobs.stored(row, data) as made:
            replaced = self.names.put(made, seen=seen, whole=not append)
        self.mirror.take(made, data)
        self.changed(replaced)
        return WriteResult(str(name), len(data))

    def delete(self, filename: str) -> Deleted:
        """Delete a file, as `Workspace.delete` does."""
        name = changeable(filename)
        with self.mirror.locks.held(name.parts):
            self.remove_file(name.parts, filename, prunes=True)
        return Deleted(str(name), deleted=True)

    def remove_file(self, parts: Parts, called: str, *, prunes: bool = False) -> None:
        """Remove a file, with what is written to it here and not stored, and the folders it leaves empty or not."""
        change = self.mirror.changed.get(parts)
        self.drop_name(parts)
        try:
            gone = self.names.remove("/".join(parts), called, prunes=prunes)
        except NotFound:
            if change is None or change.base is not None:
                raise
            gone = None  # it was here alone
        self.mirror.forget(parts)
        self.changed(gone)

    def list(self, subpath: str = ".", *, limit: int | None = None, owner: str | None = None) -> Listing:
        """List files, as `Workspace.list` does, by their rows."""
        name = Name.parse_folder(subpath)
        if name.reserved:
            files = list(self._kept_files(name, owner))
        else:
            self.settle(())
            rows = self.names.below("/".join(name.parts))
            if name.parts and not rows:
                self.bring(name.parts)
                with self.root.open_folder(name.parts, shown_as=name):
                    pass
            files = [
                WalkedEntry(row.parts, row.size, row.modified_ns, False, True) for row in rows if not row.is_folder
            ]
        usage = self.usage()
        files.sort(key=lambda entry: "/".join(entry.parts))
        return Listing(
            path=str(name),
            files=tuple(map(File.of, files[:limit])),
            count=len(files),
            used_bytes=usage.used_bytes,
            quota_bytes=usage.quota_bytes,
        )

    def _kept_files(self, name: Name, owner: str | None) -> Iterator[WalkedEntry]:
        at = self.settled_at(name, owner)
        found = [row for row in self.names.below("/".join((RUNS, *at))) if is_run_of(owner, row.parts[1])]
        if len(name.parts) > 1 and not found:
            raise NotFound(f"There is no {shown(str(name))} in the workspace. List the files to see what there is.")
        for row in found:
            _, folder, *rest = row.parts
            yield WalkedEntry((RUNS, run_in(folder) or folder, *rest), row.size, row.modified_ns, False, True)

    def bring_kept(self, parts: Parts) -> None:
        """Bring into the folder beside what the store has of a kept run."""
        if parts:
            with self.mirror.locks.held((RUNS, parts[0])):
                self.kept.bring(parts[0])

    def usage(self) -> Usage:
        """How full the workspace is, by the count that all servers share."""
        self.stored.ask_again()
        return super().usage()

    # What is written here and not stored yet.

    def settle(self, parts: Parts) -> None:
        """Store what is written at a name here, or below it, and was not closed yet."""
        for each in list(self.mirror.changed):
            if each[: len(parts)] == parts:
                self.store_change(each)

    def drop_name(self, parts: Parts) -> None:
        """Give up what is written at a name here and not stored."""
        if (change := self.mirror.changed.get(parts)) is not None:
            self._count_settled(change.base, self.mirror.size(parts))
            self.mirror.drop_change(parts)

    def _count_settled(self, base: Row | None, size: int) -> None:
        """Count no more in the cache alone what was written to a file, which has this size now."""
        self.stored.count_local((base.size if base else 0) - size, 0 if base else -1)

    def store_change(self, parts: Parts) -> None:
        """Store a file that was changed here. Raises `ChangedMeanwhile` where others changed it too.

        Then, and where there is no room, what was written here is given up, and the others' is what is seen.
        """
        mirror = self.mirror
        with mirror.locks.held(parts):
            if (change := mirror.changed.get(parts)) is None:
                return
            base = change.base
            handle, status = self.root.open_file(Name(parts))
            try:
                row = Row("/".join(parts), status.st_size, status.st_mtime_ns, None)
                self.names.judge_room(row)
                with self.blobs.stored(row, handle) as made:
                    replaced = self.names.put(made, seen=base, whole=change.whole)
            except (QuotaFull, ChangedMeanwhile, NotAFile):
                self.drop_name(parts)
                raise
            finally:
                os.close(handle)
            self._count_settled(base, row.size)
            mirror.note(parts, made)
            self.changed(replaced)
