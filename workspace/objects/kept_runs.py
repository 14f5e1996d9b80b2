"""What is kept of runs, in an object store: below `.runs/`, with copies of those that are read beside the cache."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ChangedMeanwhile, NameRefused
from ..names import RUNS, Name, run_in, shown
from ..paths import Folder, Root, refusing, write_all
from .bucket import ABSENT, Bucket, Object

COPIES_MAX = 32


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A kept run: the name of its folder, its bytes, and the names of its files."""

    folder: str
    size: int
    leaves: tuple[str, ...]


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

    def put(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Keep a run, by one request for each file. The program comes last: a run of which the server died has none.

        Raises `NameRefused` where another run has the id. One that is there with the same content is this one: the
        answer to an earlier request was lost.
        """
        for leaf in sorted(files, key=lambda leaf: leaf == "code.py"):
            key = f"{RUNS}/{folder}/{leaf}"
            if not self._is_new(key, files[leaf]) and not self._holds(key, files[leaf]):
                raise NameRefused(
                    f"The run {shown(run_in(folder) or folder)} is kept already. Give each run an id of its own."
                )

    def _is_new(self, key: str, data: bytes) -> bool:
        """Write an object that is not there yet; return whether it was not."""
        if not self._bucket.keeps_conditions():
            if self._bucket.head(key) is not None:
                return False
            self._bucket.put(key, data, None)
            return True
        try:
            self._bucket.put(key, data, ABSENT)
        except ChangedMeanwhile:
            return False
        return True

    def _holds(self, key: str, data: bytes) -> bool:
        found = self._bucket.head(key)
        return found is not None and found.size == len(data) and b"".join(self._bucket.pieces(found)) == data

    def drop(self, runs: Sequence[KeptRun]) -> None:
        """Drop runs, many by one request; those that another server dropped are no error."""
        self._bucket.delete_all([f"{RUNS}/{each.folder}/{leaf}" for each in runs for leaf in each.leaves])

    def listed(self) -> list[KeptRun]:
        """Return all kept runs, in the order in which they were kept."""
        ages: dict[str, int] = {}
        files: dict[str, list[Object]] = {}
        for each in self._bucket.walk(RUNS):
            folder = each.key.split("/")[1]
            if run_in(folder) is not None:
                ages[folder] = max(ages.get(folder, 0), each.modified_ns)
                files.setdefault(folder, []).append(each)
        return [
            KeptRun(
                folder,
                sum(each.size for each in files[folder]),
                tuple(each.key.split("/", 2)[2] for each in files[folder]),
            )
            for folder in sorted(ages, key=lambda it: (ages[it], it))
        ]

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


def _drop(top: Folder, folder: str) -> None:
    with contextlib.suppress(OSError):
        with top.enter(folder) as inside:
            for leaf in inside.names():
                inside.unlink(leaf)
        top.remove(folder)
