"""Where is kept what is learned of upstream servers: in files of one machine, or where several servers find it.

Each text has one name. Whoever changes one reads it under a lock first, so that nothing of another's change is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .files import locked, write_whole


@dataclass(slots=True)
class Draft:
    """A text while it is changed; `data` is None where there is none, and what is put there is kept."""

    data: bytes | None


class KeptText(Protocol):
    """One text, in UTF-8. Every method blocks, and raises `OSError` where it cannot be read or written."""

    @property
    def where(self) -> str:
        """What messages call the place."""

    def read(self, bytes_max: int = -1) -> bytes | None:
        """Return it, cut after so many bytes unless they are negative; None where there is none."""

    def stamp(self) -> object:
        """Return something that is another after each change."""

    def editing(self) -> AbstractContextManager[Draft]:
        """Give it to be changed, by one at a time; what has changed is kept when the block ends well."""

    def remove(self) -> None:
        """Drop it, where it is there."""


class KeptFile:
    """A text in a file, which any number of processes may share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The path."""
        return str(self._path)

    def read(self, bytes_max: int = -1) -> bytes | None:
        """Return what the file holds. Raises `OSError`."""
        try:
            with self._path.open("rb") as opened:
                return opened.read(bytes_max)
        except FileNotFoundError:
            return None

    def stamp(self) -> int:
        """Return when it changed, in nanoseconds; 0 where there is none. Raises `OSError`."""
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    @contextmanager
    def editing(self) -> Iterator[Draft]:
        """Give it under a lock on its folder, which is made if need be. Raises `OSError`."""
        with locked(self._path):
            before = self.read()
            draft = Draft(before)
            yield draft
            if draft.data is not None and draft.data != before:
                write_whole(self._path, draft.data.decode())

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


class KeptInMemory:
    """A text that ends with the process."""

    where = "the memory"

    def __init__(self) -> None:
        self._data: bytes | None = None
        self._changes = 0

    def read(self, bytes_max: int = -1) -> bytes | None:
        """Return it."""
        return self._data if self._data is None or bytes_max < 0 else self._data[:bytes_max]

    def stamp(self) -> int:
        """Return how often it was changed."""
        return self._changes

    @contextmanager
    def editing(self) -> Iterator[Draft]:
        """Give it to be changed."""
        draft = Draft(self._data)
        yield draft
        if draft.data is not None and draft.data != self._data:
            self._data = draft.data
            self._changes += 1

    def remove(self) -> None:
        """Drop it."""
        self._data = None
        self._changes += 1


def kept_at(place: Path | KeptText | None) -> KeptText:
    """Return what is kept at a path, in memory where there is none, or elsewhere."""
    if place is None:
        return KeptInMemory()
    return KeptFile(place) if isinstance(place, Path) else place
