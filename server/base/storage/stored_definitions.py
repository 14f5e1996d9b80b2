"""Definitions of tools that lie in the object store, in a folder where the registry reads them.

They have the keys `.sealab-tools/<category>/<name>.json` and `.sealab-tools/<category>.json` below the prefix, as files
below `tools/` have their names, and are put there with the store's own tools. The folder is read only by its use: what
the store has is what it holds a few seconds later.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ....tools_registry.definitions import FILE_BYTES_MAX, SUFFIXES
from ....workspace.errors import ChangedMeanwhile, WorkspaceError
from ....workspace.names import DEFINITIONS, speakable
from ....workspace.objects.bucket import Bucket, Object

FETCHES_AT_ONCE = 8
_DEPTH = 2
_LOG = logging.getLogger(__name__)


class StoredDefinitions:
    """The definitions below a bucket's prefix, and the folder that holds copies of them. Any thread may use it."""

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self._bucket = bucket
        self._folder = folder
        self._had: dict[str, Object] = {}
        self._left_out: set[str] = set()
        self._turn = threading.Lock()

    def bring_if_answered(self) -> None:
        """Do as `bring`; where the store or the disk fails, that is logged and what the folder holds stays. Blocks."""
        try:
            self.bring()
        except (WorkspaceError, OSError) as error:
            _LOG.warning("The definitions of tools in the object store could not be had; the last are used: %s", error)

    def bring(self) -> None:
        """Bring the folder up to date with the store: what changed is fetched, several at once. Blocks.

        Raises `Unavailable` where the store does not answer, and `OSError`.
        """
        with self._turn:
            there = {
                name: each
                for each in self._bucket.walk(DEFINITIONS)
                if self._is_taken(name := each.key.partition("/")[2], each)
            }
            changed = [name for name, each in there.items() if self._had.get(name) != each]
            gone = [path for path in self._files() if path.relative_to(self._folder).as_posix() not in there]
            if not changed and not gone:
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            for path in gone:
                path.unlink(missing_ok=True)
                if path.parent != self._folder:
                    with contextlib.suppress(OSError):
                        path.parent.rmdir()  # which fails where others are in it
            self._had = {name: each for name, each in there.items() if name not in changed}
            try:
                with ThreadPoolExecutor(FETCHES_AT_ONCE, "definitions") as fetching:
                    fetched = list(fetching.map(lambda name: self._fetch(name, there[name]), changed))
                self._had.update((name, there[name]) for name, is_had in zip(changed, fetched, strict=True) if is_had)
            finally:
                os.utime(self._folder)

    def _is_taken(self, name: str, found: Object) -> bool:
        """Return whether an object is a definition that a folder can hold; what is not is said once."""
        parts = name.split("/")
        is_taken = (
            len(parts) <= _DEPTH
            and speakable(name)
            and not any(part.startswith(".") for part in parts)
            and name.lower().endswith(SUFFIXES)
            and found.size <= FILE_BYTES_MAX
        )
        if not is_taken and name not in self._left_out:
            self._left_out.add(name)
            _LOG.warning(
                "The object %r is no definition of a tool. Name it <category>/<name>.json or <category>.json, or "
                ".yaml, with at most %d MB.",
                found.key,
                FILE_BYTES_MAX // 1024**2,
            )
        return is_taken

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if not path.is_dir()]

    def _fetch(self, name: str, found: Object) -> bool:
        """Write one definition whole; return whether it was had, which one that changes meanwhile is not."""
        path = self._folder / name
        part = self._folder / f".{secrets.token_hex(8)}"
        if path.is_dir():
            shutil.rmtree(path)
        if path.parent.is_file():
            path.parent.unlink()
        path.parent.mkdir(exist_ok=True)
        try:
            with part.open("xb") as file:
                for piece in self._bucket.pieces(found):
                    file.write(piece)
            part.replace(path)
        except ChangedMeanwhile:
            return False  # the next look finds what it is then
        finally:
            part.unlink(missing_ok=True)
        return True
