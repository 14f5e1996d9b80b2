"""Brings a table that is too large to show into the workspace, as a file that code reads by its name."""

from __future__ import annotations

import base64
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from ..guest.guest import GUEST
from ..guest_api.keeping import keep
from ..job import Json
from .reads.told_reads import WORKSPACE

FOLDER: Final = "tables"
"""The folder of the workspace that these files are in."""
BYTES_MAX: Final = 512 * 1024 * 1024
"""Of a table that takes more memory no file is tried: what a run may send home at once is far smaller."""
_SLICE: Final = 3 * 1024 * 1024
"""Bytes in one call: as base64 below `frames.CALL_BYTES_MAX`."""

Write = Callable[[Any], object]
Form = tuple[str, Write | None, str]
"""The ending of a file, what writes a table to it, and the expression that reads it, with `{path}` in it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of the workspace, and the expression that reads it in full Python."""

    name: str
    read_with: str


def kept_as(stem: str, *forms: Form, by_path: Callable[[str], object] | None = None) -> Kept:
    """Write a table in the first of these forms that can hold it, and return where it is.

    With `by_path` it is written to a path in the scratch directory first. Raises what the last form raised, and what
    the host says, such as that the quota is used up.
    """
    for number, (ending, write, read_with) in enumerate(forms, 1):
        name = f"{FOLDER}/{stem}-{os.urandom(4).hex()}.{ending}"
        told = Kept(name, read_with.format(path=repr(f"{WORKSPACE}/{name}")))
        if write is None or by_path is not None:
            _by_path(name, cast("Callable[[str], object]", by_path))
            return told
        sent = _Sent(name)
        try:
            write(sent)
            sent.finish()
        except Exception:
            if number == len(forms) or sent.is_refused:
                raise
        else:
            return told
    raise AssertionError("there is always a form")


def _by_path(name: str, write: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        write(path)
        keep(path, name)


class _Sent(io.RawIOBase):
    """A file that is only written, whose bytes go to the host as they come; it is there once it is finished."""

    mode = "wb"

    def __init__(self, name: str) -> None:
        self._name = name
        self._held = bytearray()
        self._written = 0
        self.is_refused = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        given = data.encode() if isinstance(data, str) else memoryview(data).cast("B")
        self._held += given
        self._written += len(given)
        while len(self._held) > _SLICE:
            self._send(bytes(self._held[:_SLICE]), last=False)
            del self._held[:_SLICE]
        return len(given)

    def close(self) -> None:
        """Leave it open: a library that closes what it has written does not know whether that is all."""

    def finish(self) -> None:
        """Send what is left. Raises what the host says."""
        self._send(bytes(self._held), last=True)

    def _send(self, content: bytes, *, last: bool) -> None:
        arguments: Mapping[str, Json] = {
            "filename": self._name,
            "content": base64.b64encode(content).decode("ascii"),
            "last": int(last),
        }
        try:
            GUEST.call_host("keep", arguments)
        except Exception:
            self.is_refused = True
            raise
