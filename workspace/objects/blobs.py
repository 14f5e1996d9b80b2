"""The contents of files in the bucket: each is written once, under a random key, and never changed.

A content is stored before a row names it, and deleted once none does. What a server leaves that dies between the two is
found by a sweep, among the contents of its own database: others may be in the same bucket.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence

from ..errors import Unavailable, WorkspaceError
from ..names import BLOBS
from .bucket import Bucket, Object
from .stored_names import NameTable, Row

SWEEP_SECONDS = 24 * 3600.0
"""How often a sweep is made, and how old a content has to be for it: no upload takes so long."""
_LOOK_SECONDS = 3600.0


class Blobs:
    """The contents that the rows of `table` name. Raises `Unavailable` where the store does not answer."""

    def __init__(self, bucket: Bucket, table: NameTable) -> None:
        self._bucket = bucket
        self._table = table
        self._below: str | None = None
        self._looks_at = 0.0

    def _prefix(self) -> str:
        if self._below is None:
            self._below = f"{BLOBS}/{self._table.store()}"
        return self._below

    @contextlib.contextmanager
    def stored(self, row: Row, content: bytes | int | Object) -> Iterator[Row]:
        """Store bytes, an open file or a copy of an object, and give the row that names it.

        Where the block refuses it, the content is deleted again. Where the database does not answer, it may have the
        row, and the content stays.
        """
        key = f"{self._prefix()}/{secrets.token_hex(16)}"
        if isinstance(content, bytes):
            self._bucket.put(key, content)
        elif isinstance(content, int):
            self._bucket.put_file(key, content, row.size)
        else:
            self._bucket.copy(content, key)
        made = row._replace(blob=key)
        try:
            yield made
        except WorkspaceError as error:
            if not isinstance(error, Unavailable):
                self.drop([made])
            raise

    def pieces(self, row: Row) -> Iterator[bytes]:
        """Give the content of a row piece by piece. Raises `ChangedMeanwhile` where it is gone."""
        return self._bucket.pieces(Object(row.blob or "", row.size, "", row.modified_ns))

    def drop(self, rows: Sequence[Row | None]) -> None:
        """Delete contents that no row names any more, also those of no row; those that stay a sweep finds."""
        keys = [row.blob for row in rows if row is not None and row.blob is not None]
        if keys:
            with contextlib.suppress(WorkspaceError):
                self._bucket.delete_all(keys)

    def sweep(self) -> None:
        """Delete contents that no row names and that are older than any upload, once a day by one server."""
        if time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + _LOOK_SECONDS
        if not self._table.takes_on("sweeping", SWEEP_SECONDS):
            return
        before_ns = time.time_ns() - int(SWEEP_SECONDS * 1e9)
        old = [each.key for each in self._bucket.walk(self._prefix()) if each.modified_ns < before_ns]
        with self._table.read() as rows:
            unnamed = rows.unnamed(old)
        self._bucket.delete_all(unnamed)
