"""What is kept of runs, in an object store: rows below `.runs/`, and beside the cache copies of those that are read."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..archive import drop_folder, write_inside
from ..errors import ChangedMeanwhile, NameRefused
from ..names import RUNS, Name, run_in, shown
from ..paths import Root, refusing
from .blobs import Blobs
from .stored_names import Row, StoredNames

COPIES_MAX = 32


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A kept run: the name of its folder, and the rows of its files."""

    folder: str
    files: tuple[Row, ...]

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(row.size for row in self.files)


class KeptRuns:
    """The files of kept runs, by the folders that `names.run_folder` gives."""

    def __init__(self, blobs: Blobs, names: StoredNames, beside: Root) -> None:
        self._blobs = blobs
        self._names = names
        self._beside = beside
        self._copies: OrderedDict[str, dict[str, Row]] = OrderedDict()

    def bring(self, folder: str) -> None:
        """Bring into the folder beside what is kept of a run, as it is now; call it for one run at a time."""
        there = {row.path.split("/", 2)[2]: row for row in self._names.below(f"{RUNS}/{folder}")}
        with refusing(Name((RUNS, run_in(folder) or folder))), self._beside.open_folder(()) as top:
            had = self._copies.pop(folder, None) if top.status(folder) is not None else None
            if had != there:
                drop_folder(top, folder)
                if not there:
                    return
                top.make(folder)
                with top.enter(folder) as inside:
                    for path, row in there.items():
                        write_inside(inside, path, b"".join(self._blobs.pieces(row)))
            self._copies[folder] = there
            while len(self._copies) > COPIES_MAX:
                drop_folder(top, self._copies.popitem(last=False)[0])

    def put(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Keep a run, by one request for each file and one change of the rows.

        Raises `NameRefused` where another run has the id. One that is there with the same content is this one: the
        answer to an earlier request was lost.
        """
        now_ns = self._names.now_ns()
        with contextlib.ExitStack() as stack:
            rows = [
                stack.enter_context(self._blobs.stored(Row(f"{RUNS}/{folder}/{leaf}", len(data), now_ns, None), data))
                for leaf, data in files.items()
            ]
            with self._names.table.change(durable=False) as kept:
                if not kept.named([row.path for row in rows]):
                    kept.add(rows)
                    return
            there = self._names.below(f"{RUNS}/{folder}")
            is_same = {row.path for row in rows} == {row.path for row in there}
            if not is_same or not all(self._holds(row, files) for row in there):
                raise NameRefused(
                    f"The run {shown(run_in(folder) or folder)} is kept already. Give each run an id of its own."
                )
        self._blobs.drop(rows)

    def _holds(self, row: Row, files: Mapping[str, bytes]) -> bool:
        data = files.get(row.path.split("/", 2)[2])
        return data is not None and len(data) == row.size and b"".join(self._blobs.pieces(row)) == data

    def drop(self, runs: Sequence[KeptRun]) -> None:
        """Drop runs, many at once; those that another server dropped are no error."""
        rows = [row for run in runs for row in run.files]
        with self._names.table.change(durable=False) as kept:
            kept.remove([row.path for row in rows])
        self._blobs.drop(rows)

    def listed(self) -> list[KeptRun]:
        """Return all kept runs, in the order in which they were kept."""
        files: dict[str, list[Row]] = {}
        for row in self._names.below(RUNS):
            files.setdefault(row.parts[1], []).append(row)
        runs = [KeptRun(folder, tuple(rows)) for folder, rows in files.items()]
        return sorted(runs, key=lambda run: (run.files[0].modified_ns, run.folder))

    def rewrite(self, changed: Callable[[bytes], bytes], *, changes: bool) -> Iterator[str]:
        """Give the names of kept files that `changed` makes differ, and replace them where it `changes`."""
        for row in self._names.below(RUNS):
            _, folder, *rest = row.parts
            with contextlib.suppress(ChangedMeanwhile):
                before = b"".join(self._blobs.pieces(row))
                after = changed(before)
                if after == before:
                    continue
                if changes:
                    self._replace(row, after)
                yield "/".join((RUNS, run_in(folder) or folder, *rest))

    def _replace(self, row: Row, after: bytes) -> None:
        with self._blobs.stored(row._replace(size=len(after)), after) as made, self._names.table.change() as kept:
            if kept.named([row.path]) != [row]:
                raise ChangedMeanwhile("The run was dropped meanwhile.")
            kept.replace(made)
        self._blobs.drop([row])
