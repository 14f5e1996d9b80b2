"""The file helpers where code of full Python changes the workspace by itself: they see what `open` sees.

Names that are none of the workspace's own files (kept runs, what no file can be called) are the host's to answer. So is
what is written where the host makes tokens of personal data into values.
"""

from __future__ import annotations

import base64
import os
import shutil
import time
from collections.abc import Iterator

from ..guest.guest import GUEST
from ..guest_api import hosted, keeping
from ..guest_api.answers import awaitable
from ..job import Json

_WORKSPACE = "/workspace"
_RESERVED = ".runs"
_PRIVATE = ".sealab-"


def read_file(filename: str, offset: int = 0, limit: int | None = None, encoding: str | None = "utf-8") -> str | bytes:
    """Read a workspace file as text, or as bytes with `encoding=None`; "base64" gives base64 text.

    `offset` and `limit` count characters of a text, else bytes; None is all that follows. Raises FileNotFoundError,
    PermissionError, ValueError.
    """
    path = _path(filename)
    if path is None:
        return hosted.read_file(filename, offset, limit, encoding)
    end = None if limit is None else offset + limit
    with open(path, "rb") as file:
        if encoding not in {None, "base64"}:
            try:
                return file.read().decode(encoding)[offset:end]
            except UnicodeDecodeError:
                if encoding == "utf-8":
                    return hosted.read_file(filename, offset, limit, encoding)  # which says what it is in
                raise
        file.seek(offset)
        data = file.read() if limit is None else file.read(limit)
    return data if encoding is None else base64.b64encode(data).decode("ascii")


def write_file(
    filename: str, content: str | bytes, encoding: str = "utf-8", tokens: bool = False, allow_tokens: bool = False
) -> object:
    """Write a workspace file and return `{filename, size}`; bytes are written as they are.

    It comes home when the run ends well. Under `PRIVACY=auto` it is written at once, with values for tokens of personal
    data unless `tokens=True`. Raises PermissionError, ValueError, OSError.
    """
    path = _path(filename)
    if path is None or GUEST.tells_reads or tokens or not isinstance(content, str | bytes | bytearray | memoryview):
        return hosted.write_file(filename, content, encoding, tokens, allow_tokens)
    if isinstance(content, str):
        if encoding not in {"utf-8", "base64"}:
            return hosted.write_file(filename, content, encoding, tokens, allow_tokens)
        data = base64.b64decode(content, validate=True) if encoding == "base64" else content.encode()
    else:
        data = bytes(content)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return awaitable({"filename": os.path.relpath(path, _WORKSPACE), "size": len(data)})


def list_files(subpath: str = ".") -> object:
    """List workspace files below a folder, as `[{name, size, modified}]`."""
    if not GUEST.writes_workspace:
        return hosted.list_files(subpath)
    path = _WORKSPACE if subpath in {".", "", "./", _WORKSPACE, f"{_WORKSPACE}/"} else _path(subpath.rstrip("/"))
    if path is None or not os.path.isdir(path):
        return hosted.list_files(subpath)
    return awaitable(sorted(_listed(path), key=lambda each: str(each["name"])))


def _listed(path: str) -> Iterator[dict[str, Json]]:
    for folder, _folders, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            try:
                status = os.lstat(full)
            except OSError:
                continue
            if os.path.isfile(full) and not os.path.islink(full) and not name.startswith(_PRIVATE):
                moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(status.st_mtime))
                yield {
                    "name": os.path.relpath(full, _WORKSPACE),
                    "size": status.st_size,
                    "modified": f"{moment}.{status.st_mtime_ns // 10**6 % 1000:03d}Z",
                }


def delete_file(filename: str) -> object:
    """Delete a workspace file, and the folders it leaves empty, and return `{filename, deleted}`.

    Raises FileNotFoundError, PermissionError.
    """
    path = _path(filename)
    if path is None:
        return hosted.delete_file(filename)
    os.remove(path)
    folder = os.path.dirname(path)
    while folder != _WORKSPACE and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)
    return awaitable({"filename": os.path.relpath(path, _WORKSPACE), "deleted": True})


def keep(path: str | os.PathLike[str], name: str | None = None) -> Json:
    """Copy a file into the workspace, as `name` or under its own name, and return `{filename, size}`.

    Raises FileNotFoundError, PermissionError, ValueError, OSError.
    """
    source = os.path.abspath(os.fspath(path))
    target = _path(os.path.basename(source) if name is None else name)
    if target is None:
        return keeping.keep(path, name)
    if target != source:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
    return {"filename": os.path.relpath(target, _WORKSPACE), "size": os.path.getsize(target)}


def helpers() -> dict[str, object]:
    """Give every helper by the name under which code finds it."""
    return {
        "read_file": read_file,
        "write_file": write_file,
        "list_files": list_files,
        "delete_file": delete_file,
        "keep": keep,
    }


def _path(filename: object) -> str | None:
    """Return where a name of the workspace is; None where the host has to answer for it."""
    if not GUEST.writes_workspace or not isinstance(filename, str):
        return None
    name = filename.removeprefix("./").removeprefix(f"{_WORKSPACE}/")
    parts = name.split("/")
    first = parts[0].lower()
    if any(part in {"", ".", ".."} for part in parts) or first == _RESERVED or "\0" in name or "\\" in name:
        return None
    return None if any(part.lower().startswith(_PRIVATE) for part in parts) else f"{_WORKSPACE}/{name}"
