"""What other programs put into the bucket under the names of files, which becomes files of the workspace.

An object is copied to a content of its own, named by a row, and deleted, by one server at a time. An object that is
older than the file of its name stays: it may have been taken in by a server that died before it deleted it.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..errors import ChangedMeanwhile, Unavailable, WorkspaceError
from ..names import BLOBS, DEFINITIONS, RUNS, TENANTS, shown
from ..store import changeable
from .blobs import Blobs
from .bucket import BYTES_A_SECOND, REQUEST_SECONDS, Bucket, Object
from .stored_names import NameTable, Row, StoredNames

AT_ONCE = 8
OBJECTS_A_TURN = 64
"""How many objects a server takes in before another may go on."""
LEFT_SECONDS = 60.0
"""How long all are left where one of them cannot be a file."""
_CLOCKS_NS = 2_000_000_000
"""How much the clocks of store and database may differ; a store may also say whole seconds."""
_LOG = logging.getLogger(__name__)


class Inbox:
    """The objects of other programs. `done` is called for each that became a file, with what it replaced."""

    def __init__(
        self, bucket: Bucket, table: NameTable, names: StoredNames, blobs: Blobs, done: Callable[[Row | None], None]
    ) -> None:
        self._bucket = bucket
        self._table = table
        self._names = names
        self._blobs = blobs
        self._done = done
        self._warned: list[tuple[str, str]] = []
        self._looks_at = 0.0

    def take_in(self) -> None:
        """Ask the store what is there, and make files of it. Raises `Unavailable`."""
        try:
            found, folders = self._bucket.top()
            if time.monotonic() < self._looks_at:
                return
            for name in set(folders) - {BLOBS, RUNS, TENANTS, DEFINITIONS}:
                found += self._bucket.walk(name)
            found = _nameable(found)
        except Unavailable as error:
            if self._bucket.trouble is not None:
                raise
            self._leave("Objects of other programs cannot be files", error)  # one has a key that cannot be listed
            return
        for start in range(0, len(found), OBJECTS_A_TURN):
            some = found[start : start + OBJECTS_A_TURN]
            seconds = REQUEST_SECONDS * len(some) / AT_ONCE + sum(each.size for each in some) / BYTES_A_SECOND
            if not self._table.takes_on("taking_in", 3 * seconds):
                return
            try:
                with ThreadPoolExecutor(AT_ONCE, "workspace take in") as taking:
                    list(taking.map(self._take_in_one, some))
            finally:
                self._table.takes_on("taking_in", 0)

    def _take_in_one(self, listed: Object) -> None:
        try:
            found = self._bucket.head(listed.key)
            if found is None or found.etag != listed.etag:
                return  # another server did so, or it was replaced, which the next look finds
            row = Row(listed.key, listed.size, listed.modified_ns, None)
            if not self._was_taken_in(row):
                self._names.judge_room(row)
                with self._blobs.stored(row, found) as made:
                    replaced = self._names.put(made, whole=True)
                self._done(replaced)
            self._bucket.delete_all([listed.key])
        except WorkspaceError as error:
            self._leave(f"The object {shown(listed.key)} of another program cannot be a file", error)

    def _was_taken_in(self, row: Row) -> bool:
        """Return whether the file of an object is this object. Raises `ChangedMeanwhile` where that is newer."""
        there = self._names.look(row.parts)[-1:]
        if not there or there[0].path != row.path or there[0].is_folder:
            return False
        if there[0].modified_ns > row.modified_ns + _CLOCKS_NS:
            raise ChangedMeanwhile("the file of that name is newer. Remove the object, or put it there again.")
        return there[0]._replace(blob=None) == row

    def _leave(self, what: str, why: WorkspaceError) -> None:
        """Log once what an operator has to mend, and leave what is there for a while."""
        self._looks_at = time.monotonic() + LEFT_SECONDS
        if (what, why.code) not in self._warned:
            self._warned = [(what, why.code), *self._warned[:99]]
            _LOG.warning("%s: %s", what, why)


def _nameable(found: Sequence[Object]) -> list[Object]:
    """Leave out what no caller can name, and what has the name of a folder of others."""
    folders: set[str] = set()
    for each in found:
        above = each.key.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return [each for each in found if each.key not in folders and _is_nameable(each.key)]


def _is_nameable(key: str) -> bool:
    with contextlib.suppress(WorkspaceError):
        return str(changeable(key)) == key
    return False
