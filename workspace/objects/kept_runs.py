"""What is kept of runs, in an object store: below `.runs/`, with copies of those that are read beside the cache."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..archive import BYTES_MAX, RunArchive
from ..errors import ChangedMeanwhile, NameRefused, WorkspaceError
from ..names import RUNS, Name, run_in, shown
from ..paths import Folder, Root, refusing, write_all
from .bucket import Bucket, Object

if TYPE_CHECKING:
    from .stored_workspace import StoredWorkspace

COPIES_MAX = 32
_LOOK_AGAIN = 32
_LOG = logging.getLogger(__name__)


class KeptRuns:
    """The objects of kept runs, by the folders that `names.run_folder` gives."""

    def __init__(self, bucket: Bucket, beside: Root) -> None:
        self._bucket = bucket
        self._beside = beside
        self._copies: OrderedDict[str, dict[str, str]] = OrderedDict()

    def bring(self, folder: str) -> None:
        """Have the folder beside hold what is kept of a run, as it is now; call it for one run at a time."""
        there = {each.key.rpartition("/")[2]: each for each in self._bucket.walk(f"{RUNS}/{folder}")}
        had = self._copies.pop(folder, {})
        with refusing(Name((RUNS, run_in(folder) or folder))), self._beside.open_folder(()) as top:
            if not there:
                _drop(top, folder)
                return
            if top.status(folder) is None:
                had = {}
                top.make(folder)
            with top.enter(folder) as inside:
                for leaf, found in there.items():
                    if had.get(leaf) != found.etag or inside.status(leaf) is None:
                        self._fetch(inside, leaf, found)
                for leaf in inside.names():
                    if leaf not in there:
                        inside.unlink(leaf)
            self._copies[folder] = {leaf: found.etag for leaf, found in there.items()}
            while len(self._copies) > COPIES_MAX:
                _drop(top, self._copies.popitem(last=False)[0])

    def _fetch(self, inside: Folder, leaf: str, found: Object) -> None:
        part = f".part-{leaf}"
        with contextlib.suppress(OSError):
            inside.unlink(part)
        handle = inside.create(part)
        try:
            for piece in self._bucket.pieces(found):
                write_all(handle, piece)
            os.utime(handle, ns=(found.modified_ns, found.modified_ns))
        finally:
            os.close(handle)
        inside.rename(part, leaf)

    def put(self, folder: str, files: dict[str, bytes]) -> None:
        """Keep a run. The program comes last: a run of which the server died has none. Raises `NameRefused`."""
        if self._bucket.some_below(f"{RUNS}/{folder}", 1):
            raise NameRefused(f"The run {shown(run_in(folder) or folder)} is kept already. Give each run its own id.")
        for leaf in sorted(files, key=lambda leaf: leaf == "code.py"):
            self._bucket.put(f"{RUNS}/{folder}/{leaf}", files[leaf], None)

    def drop(self, folder: str) -> None:
        """Drop a run; one that another server dropped is no error."""
        self._bucket.delete_all([each.key for each in self._bucket.walk(f"{RUNS}/{folder}")])

    def listed(self) -> list[tuple[str, int]]:
        """Return the folders of all kept runs with their bytes, in the order in which they were kept."""
        ages: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for each in self._bucket.walk(RUNS):
            folder = each.key.split("/")[1]
            if run_in(folder) is not None:
                ages[folder] = max(ages.get(folder, 0), each.modified_ns)
                sizes[folder] = sizes.get(folder, 0) + each.size
        return [(folder, sizes[folder]) for folder in sorted(ages, key=lambda it: (ages[it], it))]

    def rewrite(self, changed: Callable[[bytes], bytes], *, changes: bool) -> Iterator[str]:
        """Give the names of kept files that `changed` makes differ, and replace them where it `changes`."""
        for each in list(self._bucket.walk(RUNS)):
            _, folder, *rest = each.key.split("/")
            run_id = run_in(folder)
            if run_id is None:
                continue
            with contextlib.suppress(ChangedMeanwhile):
                before = b"".join(self._bucket.pieces(each))
                after = changed(before)
                if after != before:
                    if changes:
                        self._bucket.put(each.key, after, each.etag)
                    yield "/".join((RUNS, run_id, *rest))


class StoredRunArchive(RunArchive):
    """`RunArchive` in the object store: the last `kept` runs of all servers together, and a few more for a while."""

    def __init__(self, workspace: StoredWorkspace, kept: int = 200, *, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(workspace, kept, bytes_max=bytes_max)
        self._stored = workspace.kept

    def _keep(self, name: str, files: dict[str, bytes]) -> None:
        size = sum(map(len, files.values()))
        self._stored.put(name, files)
        self._runs.append((name, size))
        self._bytes += size
        if self._until_look == 0:
            self._runs = deque(self._stored.listed())
            self._bytes = sum(each for _, each in self._runs)
            self._until_look = _LOOK_AGAIN
        self._until_look -= 1
        while len(self._runs) > 1 and (len(self._runs) > self.kept or self._bytes > self.bytes_max):
            oldest, freed = self._runs.popleft()
            self._bytes -= freed
            try:
                self._stored.drop(oldest)
            except WorkspaceError as error:
                _LOG.warning("The run %s could not be dropped: %s", run_in(oldest), error)


def _drop(top: Folder, folder: str) -> None:
    with contextlib.suppress(OSError):
        with top.enter(folder) as inside:
            for leaf in inside.names():
                inside.unlink(leaf)
        top.remove(folder)
