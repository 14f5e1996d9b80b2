"""The host functions behind `open`, `os` and `pathlib` of running code: a run's files, read and written in place.

Paths are those that the code sees, `/workspace/…` and `/tmp/…`. What the workspace refuses is answered as
`{errno, why}`, since the code raises it as Python would; everything else that is wrong is a `HostCallError`.
"""

from __future__ import annotations

import base64
import errno
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from ...sandbox.job import Json
from ...workspace.errors import Reserved, WorkspaceError
from ...workspace.run_files import HERE, Mode, RunFiles, Status
from ...workspace.store import Encoding, Workspace, encoded
from ..host_work import Kind, in_thread
from .broker import Arguments, Calls, Handler

CONTENT_CHARS_MAX = 8 * 1024 * 1024
"""Characters that one call writes."""
_READS = frozenset({"file_read", "file_status", "list_folder", "disk_usage"})
"""The functions that change nothing; `file_open` changes nothing with the mode "r"."""

_Work = Callable[[Calls, RunFiles, Arguments], Json]
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

    def answer(calls: Calls, arguments: Arguments) -> Json:
        first = calls.outermost
        files = first.files
        if files is None:
            files = first.files = RunFiles(workspace, calls.caller.scope)
        try:
            for identity in cast("str", arguments.get("closed", "")).split():
                files.release(identity)
            _judge_dry(first, name, arguments)
            return work(calls, files, arguments)
        except WorkspaceError as error:
            return {"errno": error.number, "why": str(error)}

    async def answer_in_thread(calls: Calls, arguments: Arguments) -> Json:
        return await in_thread(Kind.FILES, partial(answer, calls, arguments))

    return Handler(
        answer_in_thread,
        {**takes, "closed": _TEXT},
        frozenset(takes),
        {"content": CONTENT_CHARS_MAX},
        is_of_files=True,
    )


def _judge_dry(calls: Calls, name: str, arguments: Arguments) -> None:
    """Refuse and note a change of the workspace in a dry run; what is temporary may change."""
    reads = name in _READS or (name == "file_open" and arguments["mode"] == "r")
    if not calls.dry_run or reads:
        return
    paths = [cast("str", arguments[each]) for each in ("filename", "target") if each in arguments]
    if any(path.startswith(f"{HERE}/") for path in paths):
        calls.log.note_dry(name, {"filename": _name(paths[0]), **({"target": _name(paths[1])} if paths[1:] else {})})
        raise Reserved(
            "A dry run changes no file of the workspace. Write with write_file(), which a dry run only notes.",
            errno.EROFS,
        )


def _open(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    path, mode, size = _path(arguments), cast("Mode", arguments["mode"]), cast("int", arguments["size"])
    status = files.open(path, mode)
    if mode in {"w", "x"} or (mode == "a" and not status.size):
        _note_written(calls, path, status.size)
    data = b""
    if size > 0 and status.size:
        data = files.read(path, status.identity, 0, size)
        calls.move_file_bytes(len(data))
    return {**_told(status), "data": base64.b64encode(data).decode("ascii")}


def _read(calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    data = files.read(
        _path(arguments),
        cast("str", arguments["identity"]),
        cast("int", arguments["offset"]),
        cast("int", arguments["size"]),
    )
    calls.move_file_bytes(len(data))
    return {"data": base64.b64encode(data).decode("ascii")}


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


def _status(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    return _told(files.status(_path(arguments)))


def _list(_calls: Calls, files: RunFiles, arguments: Arguments) -> Json:
    return {"entries": [{"name": entry.name, **_told(entry.status)} for entry in files.list(_path(arguments))]}


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


def _told(status: Status) -> dict[str, Json]:
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
    if path.startswith(f"{HERE}/"):
        calls.written[_name(path)] = size
