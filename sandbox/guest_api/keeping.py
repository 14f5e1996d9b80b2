"""`keep`: brings a file from full Python's scratch directory into the workspace."""

from __future__ import annotations

import base64
import os

from ..guest.guest import GUEST
from ..job import Json

_SLICE = 3 * 1024 * 1024
"""Bytes in one call: as base64 below `frames.CALL_BYTES_MAX`."""


def keep(path: str | os.PathLike[str], name: str | None = None) -> Json:
    """Copy a file into the workspace, as `name` or under its own name, and return `{filename, size}`.

    Raises FileNotFoundError, PermissionError, ValueError, OSError when the quota is used up: then the workspace is as
    it was.
    """
    path = os.fspath(path)
    filename = os.path.basename(path) if name is None else name
    with open(path, "rb") as file:
        while True:
            content = file.read(_SLICE)
            last = file.tell() >= os.fstat(file.fileno()).st_size or not content
            answer = GUEST.call_host(
                "keep", {"filename": filename, "content": base64.b64encode(content).decode("ascii"), "last": int(last)}
            )
            if last:
                return answer
