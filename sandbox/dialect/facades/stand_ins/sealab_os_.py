"""What the guest modules `os` and `io` are made on: each function is one host call for a file of the workspace.

A security boundary: what guest code passes is of exactly the type that it should be, and travels as data. Each function
returns a tuple that begins with an errno, 0 where the host did what was asked; then comes the answer, or the reason.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import cast

from ....guest.guest import GUEST
from ....guest.randomness import urandom
from ....job import Json
from .. import package_data

__all__ = [
    "close_file",
    "disk_usage",
    "list_folder",
    "make_folder",
    "open_file",
    "path_status",
    "read_file_at",
    "remove_folder",
    "remove_path",
    "rename_path",
    "set_modified",
    "store_file",
    "strerror",
    "truncate_file",
    "urandom",
    "write_file_at",
]

_PIECE_BYTES = 2 * 1024 * 1024
"""What one call reads or writes: as base64 below `frames.CALL_BYTES_MAX`."""
_TEXT_BYTES = 512 * 1024
"""What one call writes of a text, which may take six bytes for each character."""
_opened: dict[str, int] = {}
_closed: list[str] = []
_waiting: dict[str, str] = {}
"""Files whose content has to be stored when they are closed, with their paths."""


def open_file(path: str, mode: str, size: int, /) -> tuple[object, ...]:
    """Open a file in the mode "r", "r+", "w", "x" or "a".

    Returns `(0, identity, bytes in it, when it was changed in ns, what it begins with)`, at most `size` bytes of that.
    """
    packaged = package_data.file(_text(path)) if _text(mode) == "r" else None
    if packaged is not None:
        return 0, path, len(packaged), 0, packaged[: _whole(size)]
    answer = _ask("file_open", {"filename": _text(path), "mode": _text(mode), "size": _whole(size)})
    if "errno" in answer:
        return answer["errno"], answer["why"]
    identity = cast("str", answer["identity"])
    _opened[identity] = _opened.get(identity, 0) + 1
    if "waits" in answer:
        _waiting[identity] = path
    return 0, identity, answer["size"], answer["modified_ns"], _data(answer)


def close_file(identity: str, /) -> tuple[object, ...]:
    """Close an open file. Returns `(0,)`.

    The host is notified with the next call, or at once where it has to store what was written.
    """
    left = _opened.get(_text(identity), 0) - 1
    path = _waiting.get(identity)
    if left > 0:
        _opened[identity] = left
        return (0,) if path is None else store_file(identity)
    if _opened.pop(identity, None) is None:
        return (0,)
    if path is not None:
        del _waiting[identity]
        return _done("file_close", {"filename": path, "identity": identity})
    _closed.append(identity)
    return (0,)


def store_file(identity: str, /) -> tuple[object, ...]:
    """Ask the host to store what was written to an open file, where it has to. Returns `(0,)`."""
    path = _waiting.get(_text(identity))
    return (0,) if path is None else _done("file_sync", {"filename": path, "identity": identity})


def read_file_at(path: str, identity: str, offset: int, size: int, /) -> tuple[object, ...]:
    """Return `(0, bytes)`: up to `size` from `offset` on, fewer at the end of the file alone."""
    where = {"filename": _text(path), "identity": _text(identity)}
    offset, size = _whole(offset), _whole(size)
    packaged = package_data.file(path)
    if packaged is not None:
        return 0, packaged[offset : offset + size]
    pieces: list[bytes] = []
    while size > 0:
        wanted = min(size, _PIECE_BYTES)
        answer = _ask("file_read", {**where, "offset": offset, "size": wanted})
        if "errno" in answer:
            return answer["errno"], answer["why"]
        data = _data(answer)
        pieces.append(data)
        offset += len(data)
        size -= len(data)
        if len(data) < wanted:
            break
    return 0, pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_file_at(path: str, identity: str, offset: int | None, data: bytes, is_text: bool, /) -> tuple[object, ...]:
    """Write at `offset`, or at the end where that is None. Returns `(0, bytes taken, where they end)`.

    `is_text` says that these are whole characters of UTF-8. Where not all can be written, `(errno, bytes taken, end)`.
    """
    if type(data) is not bytes:
        raise TypeError(f"a bytes-like object is required, not {type(data).__name__!r}")
    where = {"filename": _text(path), "identity": _text(identity)}
    end = None if offset is None else _whole(offset)
    taken = 0
    while True:
        piece, content, encoding = _piece(data, taken, is_text is True)
        answer = _ask(
            "file_write",
            {**where, "offset": None if offset is None else end, "content": content, "encoding": encoding},
        )
        if "errno" in answer:
            return answer["errno"], taken, end
        taken += piece
        end = cast("int", answer["offset"])
        if taken >= len(data):
            return 0, taken, end


def _piece(data: bytes, start: int, is_text: bool) -> tuple[int, str, str]:
    """Return how many bytes from `start` on go at once, and how they travel: a text in whole lines where it can."""
    if is_text:
        end = start + _TEXT_BYTES
        if end < len(data):
            line = data.rfind(b"\n", start, end)
            end = line + 1 if line >= 0 else end
        piece = data[start:end]
        try:
            return len(piece), piece.decode(), "utf-8"
        except UnicodeDecodeError as error:
            if start < error.start + start < len(data) and error.reason == "unexpected end of data":
                return error.start, piece[: error.start].decode(), "utf-8"
    piece = data[start : start + _PIECE_BYTES]
    return len(piece), base64.b64encode(piece).decode("ascii"), "base64"


def truncate_file(path: str, identity: str, size: int, /) -> tuple[object, ...]:
    """Make an open file `size` bytes long. Returns `(0,)`."""
    return _done("file_truncate", {"filename": _text(path), "identity": _text(identity), "size": _whole(size)})


def path_status(path: str, /) -> tuple[object, ...]:
    """Return `(0, identity, whether it is a folder, bytes, when it was changed in ns)`."""
    packaged = _packaged(_text(path))
    if packaged is not None:
        return (0, *packaged)
    answer = _ask("file_status", {"filename": path})
    if "errno" in answer:
        return answer["errno"], answer["why"]
    return (0, *_status(answer))


def list_folder(path: str, /) -> tuple[object, ...]:
    """Return `(0, [(name, identity, whether it is a folder, bytes, when it was changed in ns), …])`, sorted by name."""
    packaged = package_data.folder(_text(path))
    if packaged is not None:
        return 0, [(name, *(_packaged(f"{path}/{name}") or ())) for name in packaged]
    answer = _ask("list_folder", {"filename": path})
    if "errno" in answer:
        return answer["errno"], answer["why"]
    entries = cast("list[Mapping[str, Json]]", answer["entries"])
    return 0, [(entry["name"], *_status(entry)) for entry in entries]


def _packaged(path: str) -> tuple[Json, ...] | None:
    """Return the status of a file or folder that a package was installed with, as `path_status` does."""
    data = package_data.file(path)
    if data is not None:
        return path, False, len(data), 0
    return None if package_data.folder(path) is None else (path, True, 0, 0)


def make_folder(path: str, /) -> tuple[object, ...]:
    """Make one folder. Returns `(0,)`."""
    return _done("make_folder", {"filename": _text(path)})


def remove_path(path: str, /) -> tuple[object, ...]:
    """Remove a file. Returns `(0,)`."""
    return _done("remove_path", {"filename": _text(path)})


def remove_folder(path: str, /) -> tuple[object, ...]:
    """Remove an empty folder. Returns `(0,)`."""
    return _done("remove_folder", {"filename": _text(path)})


def rename_path(path: str, target: str, /) -> tuple[object, ...]:
    """Give a file or a folder another name. Returns `(0,)`."""
    return _done("rename_path", {"filename": _text(path), "target": _text(target)})


def set_modified(path: str, modified_ns: int, /) -> tuple[object, ...]:
    """Set when a file was last changed. Returns `(0,)`."""
    return _done("set_modified", {"filename": _text(path), "modified_ns": _whole(modified_ns)})


def disk_usage() -> tuple[object, ...]:
    """Return `(0, bytes that the workspace may hold, bytes that it holds)`."""
    answer = _ask("disk_usage", {})
    return 0, answer["total"], answer["used"]


def _done(name: str, arguments: dict[str, Json]) -> tuple[object, ...]:
    answer = _ask(name, arguments)
    return (answer["errno"], answer["why"]) if "errno" in answer else (0,)


def _ask(name: str, arguments: dict[str, Json]) -> Mapping[str, Json]:
    if _closed:
        arguments["closed"] = " ".join(_closed)
        _closed.clear()
    return cast("Mapping[str, Json]", GUEST.call_host(name, arguments))


def _status(answer: Mapping[str, Json]) -> tuple[Json, ...]:
    return answer["identity"], answer["folder"], answer["size"], answer["modified_ns"]


def _data(answer: Mapping[str, Json]) -> bytes:
    data = cast("str", answer["data"])
    return base64.b64decode(data) if answer["encoding"] == "base64" else data.encode()


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(f"a plain str is needed here, not {type(value).__name__!r}")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"an int is needed here, not {type(value).__name__!r}")
    return value


def strerror(code: int, /) -> str:
    """Return what an errno says."""
    return os.strerror(_whole(code))
