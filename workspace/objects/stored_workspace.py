"""The workspace whose files are objects: the same names, errors and quota, for every server that has the bucket.

**What is true.** The store alone. The folder is a cache of this process (`mirror`), made anew when it starts and
removed when it ends. Before a file is read, written or listed the store is asked, so what another server did is seen by
the next call. Nothing counts as written before the store has said so.

**Conflicts.** `write` and `append` go with a condition: nobody changed the object since this server looked. Where
somebody did, the operation is done again from what is there now. So of two servers that append to one file both lines
are in it, and of two that write it whole one content is there, complete.

**Folders** are what names with `/` make of them. An empty one is an object of its own, `names.FOLDER_MARK`. Where an
object has the name of a folder of other objects, the folder is what is seen.

**Time.** All methods block for one or two requests; see `bucket` for their bounds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import ChangedMeanwhile, NotAFile, NotFound, QuotaFull, WorkspaceError
from ..names import DEFINITIONS, FOLDER_MARK, PART_PREFIX, RUNS, TENANTS, Name, is_run_of, run_in, shown, speakable
from ..paths import Found, judge, refusing
from ..quota import Ledger
from ..store import (
    Deleted,
    Encoding,
    File,
    Listing,
    Usage,
    Workspace,
    Written,
    changeable,
    encoded,
)
from .bucket import ABSENT, Bucket, Condition, Object
from .cache_place import CachePlace
from .counts import Counts
from .kept_runs import KeptRuns
from .mirror import Mirror, Parts
from .stored_ledger import StoredLedger

ATTEMPTS = 20
"""How often an operation is done again that others come between."""
FETCHES_AT_ONCE = 8
WATCHED_SECONDS = 4.0
"""For how long an answer of the store says that it answers."""


class StoredWorkspace(Workspace):
    """`Workspace` of the objects of `bucket`, cached below `folder`, a place of this process (see `cache_folder`).

    `counts` counts for all servers; `cache_bytes` bounds the copies. Raises `Unavailable` where the store does not
    answer.
    """

    is_stored = True

    def __init__(
        self,
        folder: Path,
        bucket: Bucket,
        counts: Counts,
        *,
        quota_bytes: int,
        files_max: int = 200_000,
        cache_bytes: int = 2_000_000_000,
    ) -> None:
        self.bucket = bucket
        self._counts = counts
        bucket.guard = counts.named
        self._place = CachePlace(folder)
        super().__init__(folder, quota_bytes=quota_bytes, files_max=files_max)
        self.mirror = Mirror(
            self.root, self.beside, bucket, self.stored.held, bytes_max=cache_bytes, is_open=self._is_open
        )
        self.kept = KeptRuns(bucket, self.beside)

    def _ledger(self, quota_bytes: int, files_max: int) -> Ledger:
        return StoredLedger(
            self.root,
            self.beside,
            self._counts,
            self._totals,
            quota_bytes=quota_bytes,
            files_max=files_max,
            removed_bytes=self._removed_bytes,
        )

    def _begin(self) -> None:
        """Ask for nothing: a server may start while its store does not answer."""

    def trouble(self) -> str | None:
        """Say what the last request failed with; None where it did not."""
        return self.bucket.trouble

    def check(self) -> None:
        """Ask the store for one page, unless it answered just now. Raises `Unavailable`."""
        self.bucket.check(answered_within=WATCHED_SECONDS)

    @property
    def stored(self) -> StoredLedger:
        """The ledger, as what it is."""
        assert isinstance(self.ledger, StoredLedger)
        return self.ledger

    def _is_open(self, inode: int) -> bool:
        return any(each.holds(inode) for each in list(self.live))

    def _totals(self) -> tuple[int, int]:
        used_bytes = entries = 0
        for found in self.bucket.walk():
            if is_of_files(found.key):
                used_bytes += found.size
                entries += 1
        return used_bytes, entries

    def close(self) -> None:
        """Close and remove the cache. May be called twice."""
        super().close()
        self._place.close()

    def bring(self, parts: Parts, *, content: bool = False) -> None:
        """Have the cache show what the store has at a name. What is written here and not stored yet stays as it is."""
        if not parts or self._is_changed(parts):
            return
        key = "/".join(parts)
        found = self.bucket.head(key)
        if found is not None and found.size == 0 and self.bucket.some_below(key, 1):
            found = None
        elif found is None and not self.bucket.some_below(key, 1):
            self.mirror.forget(parts)
            if not self.mirror.has_folder(parts[:-1]):
                self._bring_above(parts[:-1])
            return
        if found is None:
            self.mirror.show_folder(parts)
            return
        self.mirror.show_file(found)
        if content:
            self.mirror.fetch(parts)

    def _is_changed(self, parts: Parts) -> bool:
        return any(each == parts or each[: len(parts)] == parts for each in list(self.mirror.changed))

    def _bring_above(self, parts: Parts) -> None:
        """Have the cache show what the folders are in which nothing has a name."""
        for depth in range(len(parts), 0, -1):
            above = parts[:depth]
            key = "/".join(above)
            if self._is_changed(above):
                return
            if self.bucket.some_below(key, 1):
                self.mirror.show_folder(above)
                return
            found = self.bucket.head(key)
            if found is not None:
                self.mirror.show_file(found)
                return
            self.mirror.forget(above)

    def bring_folder(self, parts: Parts) -> None:
        """Have the cache show what the store has directly below a name."""
        level = self.bucket.level("/".join(parts))
        folders = {name for name in level.folders if self._is_shown((*parts, name))}
        objects: dict[str, Object] = {}
        for found in level.objects:
            leaf = found.key.rpartition("/")[2]
            if leaf not in folders and self._is_shown((*parts, leaf)):
                objects[leaf] = found
        if parts and not level.objects and not level.folders and not self._is_changed(parts):
            self.bring(parts)
            return
        self.mirror.show_level(parts, objects, folders)

    @staticmethod
    def _is_shown(parts: Parts) -> bool:
        return is_of_files("/".join(parts)) and speakable("/".join(parts))

    @contextlib.contextmanager
    def brought_whole(self) -> Iterator[None]:
        """Have the cache hold every file, and none that is not in the store, while code reads it by itself.

        Native code opens files by itself, also such as no hook of Python sees, so they are fetched before it starts:
        those that changed since the last time, several at once.
        """
        self.mirror.pin(1)
        try:
            self.settle_all()
            found = _nameable(self._objects(""))
            self._show_all(found)
            with ThreadPoolExecutor(FETCHES_AT_ONCE, "workspace fetch") as fetching:
                for done in [fetching.submit(self.mirror.fetch, tuple(each.key.split("/"))) for each in found]:
                    with contextlib.suppress(NotFound):
                        done.result()
            yield
        finally:
            self.mirror.pin(-1)

    def _show_all(self, found: Sequence[Object]) -> None:
        there = {each.key for each in found}
        for entry in list(self.root.walk()):
            if not entry.is_folder and "/".join(entry.parts) not in there:
                self.mirror.forget(entry.parts)
        for each in found:
            self.mirror.show_file(each)

    def _objects(self, prefix: str) -> Sequence[Object]:
        return [each for each in self.bucket.walk(prefix) if is_of_files(each.key)]

    def write(
        self, filename: str, content: str | bytes, *, encoding: Encoding = "utf-8", append: bool = False
    ) -> Written:
        """Write a file, as `Workspace.write` does, and have it in the store. Raises `ChangedMeanwhile` too."""
        name = changeable(filename)
        data = content if isinstance(content, bytes) else encoded(content, encoding)
        with self.mirror.names.held(name.parts):
            self.settle_name(name.parts)
            return self._repeated(lambda: self._write(name, data, append=append))

    def _write(self, name: Name, data: bytes, *, append: bool) -> Written:
        self.bring(name.parts, content=append)
        current = self._judged(name)
        if append and current is not None:
            handle, _ = self.root.open_file(name)
            with open(handle, "rb") as file:
                data = file.read() + data
        self._put(name.parts, data, current)
        return Written(str(name), len(data))

    def _judged(self, name: Name) -> Object | None:
        """Return the object that is to be replaced. Raises `NotAFile`, also where a file has the name of a folder."""
        with refusing(name), contextlib.ExitStack() as stack:
            folder, missing = self.root.nearest_folder(name.folder)
            stack.enter_context(folder)
            status = None if missing else folder.status(name.leaf)
            if status is not None:
                judge(status, name)
        return None if status is None else self.mirror.known(name.parts)

    def _put(self, parts: Parts, data: bytes, current: Object | None) -> Object:
        key = "/".join(parts)
        before = current.size if current is not None else 0
        condition: Condition = current.etag if current is not None else ABSENT
        with self.stored.claimed(len(data) - before, 0 if current is not None else 1):
            etag = self.bucket.put(key, data, condition, shrinks=len(data) < before)
        found = Object(key, len(data), etag, time.time_ns())
        self.mirror.take(parts, data, found)
        return found

    @staticmethod
    def _repeated(operation: Callable[[], Written]) -> Written:
        for attempt in range(ATTEMPTS):
            try:
                return operation()
            except ChangedMeanwhile:
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.002 * attempt)
        raise AssertionError

    def make_folder(self, parts: Parts) -> None:
        """Have the store say that there is a folder. Raises `NotAFile` where there is one."""
        with self.stored.claimed(0, 1):
            try:
                self.bucket.put("/".join((*parts, FOLDER_MARK)), b"", ABSENT)
            except ChangedMeanwhile:
                raise NotAFile(f"There is a {shown('/'.join(parts))} already.", errno.EEXIST) from None
        self.mirror.show_folder(parts)

    def remove_file(self, parts: Parts, found: Object, *, keeps_folder: bool) -> None:
        """Delete an object; the folder that it leaves empty goes with it, or stays."""
        if keeps_folder:
            self.keep_folder(parts[:-1], without=found.key)
        self.take_out(found.key)
        self.mirror.forget(parts)

    def take_out(self, key: str, etag: str | None = None) -> None:
        """Delete an object, and count what this gave back: nothing where another server did it.

        Raises `ChangedMeanwhile` where it has not this etag.
        """
        if (gone := self.bucket.take_out(key, etag)) is not None:
            self.stored.count_stored(-gone.size, -1)

    def keep_folder(self, parts: Parts, *, without: str) -> None:
        """Have a folder stay that loses its last object, which is `without`, or is below it where that ends in `/`."""
        if not parts:
            return
        below = without.endswith("/")
        for each in self.bucket.walk("/".join(parts)):
            if each.key != without and not (below and each.key.startswith(without)):
                return
        with contextlib.suppress(NotAFile):
            self.make_folder(parts)

    def copy(self, found: Object, key: str, condition: Condition = None, replaced: Object | None = None) -> Object:
        """Copy an object that is about to be deleted, in place of what has the key, and return the copy.

        It is counted at once: whatever becomes of the rest, it is there. Raises `ChangedMeanwhile` where the condition
        does not hold for what has the key.
        """
        self.bucket.copy(found, key, condition)
        self.stored.count_stored(found.size - (replaced.size if replaced else 0), 1 - bool(replaced))
        made = self.bucket.head(key)
        if made is None:
            raise ChangedMeanwhile(f"{shown(key)} was deleted while it was made. Try again.")
        return made

    def delete_copied(self, found: Object) -> None:
        """Delete what was copied. Raises `ChangedMeanwhile` where it is another since: then both are there."""
        try:
            self.take_out(found.key, found.etag)
        except ChangedMeanwhile:
            raise ChangedMeanwhile(
                f"{shown(found.key)} was changed while it was renamed, so it is there beside its copy. Compare the two "
                "and delete one."
            ) from None

    def delete(self, filename: str) -> Deleted:
        """Delete a file, as `Workspace.delete` does."""
        name = changeable(filename)
        with self.mirror.names.held(name.parts):
            self.drop_name(name.parts)
            self.bring(name.parts)
            with refusing(name), self.root.open_folder(name.folder) as folder:
                status = folder.status(name.leaf)
                known = self.mirror.known(name.parts)
                if status is not None:
                    judge(status, name)
                if status is None or known is None:
                    raise NotFound(f"There is no {shown(filename)} to delete. List the files to see what there is.")
            self.remove_file(name.parts, known, keeps_folder=False)
            self._prune_marks(name.folder)
        return Deleted(str(name), deleted=True)

    def _prune_marks(self, parts: Parts) -> None:
        """Remove the folders that are empty now, the deepest first."""
        for depth in range(len(parts), 0, -1):
            above = parts[:depth]
            left = self.bucket.some_below("/".join(above), 2)
            if len(left) > 1 or (left and not left[0].key.endswith(f"/{FOLDER_MARK}")):
                return
            if left:
                self.take_out(left[0].key)
            self.mirror.forget(above)

    def list(self, subpath: str = ".", *, limit: int | None = None, owner: str | None = None) -> Listing:
        """List files, as `Workspace.list` does, out of the store."""
        name = Name.parse_folder(subpath)
        if name.reserved:
            files = list(self._kept_files(name, owner))
        else:
            self.settle_all()
            version = self.stored.version()
            listed = self._objects("/".join(name.parts))
            found = _nameable(listed)
            if not name.parts:
                self.stored.recount_objects((sum(each.size for each in listed), len(listed)), version)
            elif not found:
                self.bring(name.parts)
                with self.root.open_folder(name.parts, shown_as=name):
                    pass
            files = [Found(tuple(each.key.split("/")), each.size, each.modified_ns, False, True) for each in found]
        usage = self.usage()
        files.sort(key=lambda entry: "/".join(entry.parts))
        return Listing(
            path=str(name),
            files=tuple(map(File.of, files[:limit])),
            count=len(files),
            used_bytes=usage.used_bytes,
            quota_bytes=usage.quota_bytes,
        )

    def _kept_files(self, name: Name, owner: str | None) -> Sequence[Found]:
        at = self.settled_at(name, owner)
        found = []
        for each in self.bucket.walk("/".join((RUNS, *at))):
            parts = tuple(each.key.split("/"))
            run_id = run_in(parts[1])
            if run_id is not None and is_run_of(owner, parts[1]):
                found.append(Found((RUNS, run_id, *parts[2:]), each.size, each.modified_ns, False, True))
        if len(name.parts) > 1 and not found:
            raise NotFound(f"There is no {shown(str(name))} in the workspace. List the files to see what there is.")
        return found

    def bring_kept(self, parts: Parts) -> None:
        """Have the folder beside hold what the store has of a kept run."""
        if not parts:
            return
        with self.mirror.names.held((RUNS, parts[0])):
            self.kept.bring(parts[0])

    def usage(self) -> Usage:
        """How full the workspace is, by the count that all servers share; `entries` counts objects."""
        self.stored.ask_again()
        return super().usage()

    def settle_name(self, parts: Parts) -> None:
        """Have the store hold what is written at a name here and was not closed yet."""
        for each in list(self.mirror.changed):
            if each[: len(parts)] == parts:
                self.store_change(each)

    def settle_all(self) -> None:
        """Have the store hold everything that is written here."""
        for parts in list(self.mirror.changed):
            self.store_change(parts)

    def drop_name(self, parts: Parts) -> None:
        """Give up what is written at a name here and not stored, since the name is about to go."""
        if parts in self.mirror.changed:
            base, inode_size = self.mirror.changed[parts], self._size(parts)
            self.stored.count_local((base.size if base else 0) - inode_size, 0 if base else -1)
            self.mirror.drop_change(parts)

    def _size(self, parts: Parts) -> int:
        try:
            with self.root.open_folder(parts[:-1]) as folder:
                status = folder.status(parts[-1])
        except WorkspaceError:
            return 0
        return 0 if status is None else status.st_size

    def store_change(self, parts: Parts) -> None:
        """Write a file that was changed here to the store. Raises `ChangedMeanwhile` where others changed it too.

        Then, and where there is no room, what was written here is given up, and the store's is what is seen.
        """
        mirror = self.mirror
        with mirror.names.held(parts):
            if parts not in mirror.changed:
                return None
            base, whole = mirror.changed[parts], parts in mirror.whole
            handle, status = self.root.open_file(Name(parts))
            try:
                for attempt in range(ATTEMPTS):
                    try:
                        return self._store(parts, handle, status.st_size, base, whole=whole)
                    except QuotaFull:
                        self.drop_name(parts)
                        raise
                    except ChangedMeanwhile:
                        if not whole or attempt == ATTEMPTS - 1:
                            self.drop_name(parts)
                            raise
                        before, base = base, self.bucket.head("/".join(parts))
                        mirror.changed[parts] = base
                        self.stored.count_local(
                            (before.size if before else 0) - (base.size if base else 0), bool(before) - bool(base)
                        )
            finally:
                os.close(handle)

    def _store(self, parts: Parts, handle: int, size: int, base: Object | None, *, whole: bool) -> None:
        key = "/".join(parts)
        condition: Condition = base.etag if base is not None else ABSENT
        more = size - (base.size if base is not None else 0)
        with self.stored.claimed(more, 0 if base is not None else 1, of_cache=True):
            etag = self.bucket.put_file(key, handle, size, condition, whole=whole, shrinks=more < 0)
        self.mirror.note(parts, Object(key, size, etag, os.fstat(handle).st_mtime_ns))


def _nameable(found: Sequence[Object]) -> list[Object]:
    """Leave out what is no file that a caller can name: marks of folders, and what has the name of a folder."""
    folders: set[str] = set()
    for each in found:
        above = each.key.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return [each for each in found if each.key not in folders and speakable(each.key)]


def is_of_files(key: str) -> bool:
    """Return whether a key is one of the workspace's files or folders, rather than what sealab keeps beside them."""
    return key.partition("/")[0] not in {RUNS, TENANTS, DEFINITIONS} and not key.startswith(PART_PREFIX)
