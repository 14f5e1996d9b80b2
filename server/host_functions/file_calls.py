"""The host functions behind `open`, `os` and `pathlib` of running code: a run's files, read and written in place.

Paths are those that the code sees, `/workspace/…` and `/tmp/…`. What the workspace refuses is answered as
`{errno, why}`, since the code raises it as Python would; everything else that is wrong is a `HostCallError`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import cast

from ...sandbox.job import Json
from ...workspace.dry_run_files import files_of_run
from ...workspace.errors import WorkspaceError
from ...workspace.run_files import HERE, Mode, RunFiles, Status
from ...workspace.store import Encoding, Workspace, encoded
from ..host_work import Kind, in_thread
from ..journal.changes import MADE_HERE, REPEATABLE_HERE, Change
from .broker import Arguments, Calls, Handler

CONTENT_CHARS_MAX = 8 * 1024 * 1024
"""Characters that one call writes."""
_CHANGES = MappingProxyType(
    {
        "file_open": "open",
        "make_folder": "os.mkdir",
        "remove_path": "os.remove",
        "remove_folder": "os.rmdir",
        "rename_path": "os.rename",
        "set_modified": "os.utime",
    }
)
"""The functions that a dry run notes, by what the code calls them; "file_open" unless its mode is "r"."""

_Work = Callable[[Calls, RunFiles, Arguments], Json]
_MARKED = b'\b\t\n\f\r"\\'
"""What JSON escapes by one character more."""
_ESCAPED = bytes([*range(0x20), *b'"\\'])
_MORE_CHARS = 4
"""How many more it takes for the other control characters: `\\u0000`."""
_TEXT = (str,)
_WHOLE = (int,)
_WHOLE_OR_NONE = (int, type(None))


def handlers(workspace: Workspace) -> Mapping[str, Handler]:
    """Return what answers for a run's files, by name."""
    path = {"filename": _TEXT}
    opened = {**path, "identity": _TEXT}
    working: Mapping[str, tuple[_Work, Mapping[str, tuple[type, ...]]]] = {
        "file_open": (_open, {**path, "mode": _TEXT, "size": _WHOLE}),
        "file_read": (_read, {**opened, "offset": _WHOLE, "size": _WHOLE}),
        "file_write": (_write, {**opened, "offset": _WHOLE_OR_NONE, "content": _TEXT, "encoding": _TEXT}),
        "file_truncate": (_truncate, {**opened, "size": _WHOLE}),
        "file_close": (_close, {**path, "identity": _TEXT}),
        "file_sync": (_sync, {**path, "identity": _TEXT}),
        "file_status": (_status, path),
        "list_folder": (_list, path),
        "make_folder": (_make_folder, path),
        "remove_path": (_remove, path),
        "remove_folder": (_remove_folder, path),
        "rename_path": (_rename, {**path, "target": _TEXT}),
        "set_modified": (_set_modified, {**path, "modified_ns": _WHOLE}),
        "disk_usage": (_usage, {}),
    }
    return {name: _handler(workspace, name, work, takes) for name, (work, takes) in working.items()}


def _handler(workspace: Workspace, name: str, work: _Work, takes: Mapping[str, tuple[type, ...]]) -> Handler:
    """Make a handler that needs all it takes, and also takes what the code has closed in the meantime."""

    def answer(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
        try:
            for identity in cast("str", arguments.get("closed", "")).split():
                files.release(identity)
            answered = work(calls, files, arguments)
        except WorkspaceError as error:
            return {"errno": error.number, "why": str(error)}
        _note_dry(calls, name, arguments)
        return answered

    async def answer_in_thread(calls: Calls, arguments: Arguments) -> Json:
        # Here, not in a thread: calls that are made at once find the same files.
        return await in_thread(Kind.FILES, partial(answer, calls, files_of(calls, workspace), arguments))

    return Handler(
        answer_in_thread,
        {**takes, "closed": _TEXT},
        frozenset(takes),
        {"content": CONTENT_CHARS_MAX},
        is_of_files=True,
        changes=partial(_change, name),
    )


def _change(name: str, arguments: Arguments) -> Change | None:
    """Return what a call changes. What says where it writes, or how long a file is to be, can be done again."""
    match name:
        case "file_open":
            return {"r": None, "x": MADE_HERE}.get(cast("str", arguments["mode"]), REPEATABLE_HERE)
        case "file_write":
            return MADE_HERE if arguments["offset"] is None else REPEATABLE_HERE
        case "file_truncate" | "file_close" | "file_sync" | "set_modified":
            return REPEATABLE_HERE
        case "make_folder" | "remove_path" | "remove_folder" | "rename_path":
            return MADE_HERE
    return None


def files_of(calls: Calls, workspace: Workspace) -> RunFiles:
    """Return the files of the execution that makes these calls."""
    first = calls.outermost
    if first.files is None:
        first.files = files_of_run(workspace, calls.caller.scope, dry_run=calls.dry_run)
    return first.files


def _note_dry(calls: Calls, name: str, arguments: Arguments) -> None:
    """Note what a dry run would have changed in the workspace; temporary files do not count."""
    if not calls.dry_run or name not in _CHANGES or arguments.get("mode") == "r":
        return
    paths = {each: cast("str", arguments[each]) for each in ("filename", "target") if each in arguments}
    if any(path.startswith(f"{HERE}/") for path in paths.values()):
        noted: dict[str, Json] = {each: _name(path) for each, path in paths.items()}
        calls.log.note_dry(_CHANGES[name], noted | {"mode": arguments["mode"]} if "mode" in arguments else noted)


def _open(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path, mode, size = _path(arguments), cast("Mode", arguments["mode"]), cast("int", arguments["size"])
    status = files.open(path, mode)
    if mode in {"w", "x"} or (mode == "a" and not status.size):
        _note_written(calls, path, status.size)
    data = b""
    if size > 0 and status.size:
        data = files.read(path, status.identity, 0, size)
        calls.move_file_bytes(len(data))
    waits: dict[str, Json] = {"waits": True} if mode != "r" and files.waits_at_close(path) else {}
    return {**_described(status), **_content(data), **waits}


def _read(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    data = files.read(
        _path(arguments),
        cast("str", arguments["identity"]),
        cast("int", arguments["offset"]),
        cast("int", arguments["size"]),
    )
    calls.move_file_bytes(len(data))
    return _content(data)


def _content(data: bytes) -> dict[str, Json]:
    """Return `{data, encoding}`: a text where it is one that a frame holds in no more than base64 takes."""
    plain = len(data.translate(None, _ESCAPED))
    controls = len(data.translate(None, _MARKED)) - plain
    if len(data) - plain + controls * _MORE_CHARS <= len(data) // 3:
        with suppress(UnicodeDecodeError):
            return {"data": data.decode(), "encoding": "utf-8"}
    return {"data": base64.b64encode(data).decode("ascii"), "encoding": "base64"}


def _write(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path = _path(arguments)
    data = encoded(cast("str", arguments["content"]), cast("Encoding", arguments["encoding"]))
    calls.move_file_bytes(len(data))
    end = files.write(path, cast("str", arguments["identity"]), cast("int | None", arguments["offset"]), data)
    _note_written(calls, path, max(end, calls.written.get(_name(path), 0)))
    return {"offset": end}


def _truncate(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path, size = _path(arguments), cast("int", arguments["size"])
    files.truncate(path, cast("str", arguments["identity"]), size)
    _note_written(calls, path, size)
    return {}


def _close(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    """Have the workspace hold what was written, where that takes more than a folder does, and close the file."""
    identity = cast("str", arguments["identity"])
    try:
        files.sync(identity)
    finally:
        files.release(identity)
    return {}


def _sync(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    files.sync(cast("str", arguments["identity"]))
    return {}


def _status(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    return _described(files.status(_path(arguments)))


def _list(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    return {"entries": [{"name": entry.name, **_described(entry.status)} for entry in files.list(_path(arguments))]}


def _make_folder(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    files.make_folder(_path(arguments))
    return {}


def _remove(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path = _path(arguments)
    files.remove(path)
    calls.written.pop(_name(path), None)
    return {}


def _remove_folder(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    files.remove_folder(_path(arguments))
    return {}


def _rename(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path, target = _path(arguments), cast("str", arguments["target"])
    files.rename(path, target)
    status = files.status(target)
    if not status.is_folder:
        calls.written.pop(_name(path), None)
        _note_written(calls, target, status.size)
        return {}
    inside = _name(path) + "/"
    for name in [name for name in calls.written if name.startswith(inside)]:
        _note_written(calls, f"{target}/{name.removeprefix(inside)}", calls.written.pop(name))
    return {}


def _set_modified(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    files.set_modified(_path(arguments), cast("int", arguments["modified_ns"]))
    return {}


def _usage(_calls: Calls, files: RunFiles, _arguments: Arguments) -> Json:
    usage = files.usage()
    return {"total": usage.quota_bytes, "used": usage.used_bytes}


def _described(status: Status) -> dict[str, Json]:
    return {
        "identity": status.identity,
        "folder": status.is_folder,
        "size": status.size,
        "modified_ns": status.modified_ns,
    }


def _path(arguments: Arguments) -> str:
    return cast("str", arguments["filename"])


def _name(path: str) -> str:
    return path.removeprefix(f"{HERE}/")


def _note_written(calls: Calls, path: str, size: int) -> None:
    if path.startswith(f"{HERE}/") and not calls.dry_run:
        calls.written[_name(path)] = size
