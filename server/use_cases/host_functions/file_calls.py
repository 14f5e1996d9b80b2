"""The host functions behind `open`, `os` and `pathlib` of running code: a run's files, read and written in place.

Paths are those that the code sees, `/workspace/…` and `/tmp/…`. What the workspace refuses is answered as
`{errno, why}`, since the code raises it as Python would; everything else that is wrong is a `HostCallError`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ....sandbox.job import Json
from ....workspace.dry_run_files import files_of_run
from ....workspace.errors import WorkspaceError
from ....workspace.run_files import HERE, Mode, PathStatus, RunFiles
from ....workspace.store import Encoding, Workspace, encoded
from ...base.host_call import MADE_HERE, REPEATABLE_HERE, AnnouncedChange
from ...base.host_work import Kind, in_thread
from .broker import Arguments, Calls, Handler

CONTENT_CHARS_MAX = 8 * 1024 * 1024
"""Characters that one call writes."""
_MARKED = b'\b\t\n\f\r"\\'
"""What JSON escapes by one character more."""
_ESCAPED = bytes([*range(0x20), *b'"\\'])
_MORE_CHARS = 4
"""How many more it takes for the other control characters: `\\u0000`."""
_Change = AnnouncedChange | Callable[[Arguments], AnnouncedChange | None] | None


@dataclass(frozen=True, slots=True)
class _FileFunction:
    """A host function `work(calls, files, *, …)`, which runs in a thread; its parameters are what it takes.

    `noted` is what the code calls it, where a dry run notes it down.
    """

    work: Callable[..., Json]
    changes: _Change = None
    noted: str = ""


def handlers(workspace: Workspace) -> dict[str, Handler]:
    """Return what answers for a run's files, by name."""
    return {each.work.__name__.removeprefix("_"): _handler(workspace, each) for each in _FUNCTIONS}


def _handler(workspace: Workspace, function: _FileFunction) -> Handler:
    """Make a handler that also takes what the code has closed in the meantime."""

    def answer(calls: Calls, files: RunFiles, closed: str, arguments: Arguments) -> Json:
        try:
            for identity in closed.split():
                files.release(identity)
            answered = function.work(calls, files, **arguments)
        except WorkspaceError as error:
            return {"errno": error.number, "why": str(error)}
        if function.noted and calls.dry_run and not calls.in_tests:
            _note_dry(calls, function.noted, arguments)
        return {} if answered is None else answered

    async def answer_in_thread(calls: Calls, *, closed: str = "", **arguments: Any) -> Json:
        # Here, not in a thread: calls that are made at once find the same files.
        return await in_thread(Kind.FILES, partial(answer, calls, files_of(calls, workspace), closed, arguments))

    longest = {"content": CONTENT_CHARS_MAX}
    handler = Handler.of(function.work, longest=longest, of_files=True, changes=function.changes)
    return replace(handler, answer=answer_in_thread, takes={**handler.takes, "closed": (str,)})


def files_of(calls: Calls, workspace: Workspace) -> RunFiles:
    """Return the files of the execution that makes these calls; tests have their own, but in a dry run."""
    first = calls if calls.in_tests and not calls.dry_run else calls.outermost
    if first.files is None:
        first.files = files_of_run(workspace, calls.caller.scope, dry_run=calls.spares_files)
    return first.files


def _note_dry(calls: Calls, name: str, arguments: Arguments) -> None:
    if arguments.get("mode") == "r":
        return
    paths = {each: str(arguments[each]) for each in ("filename", "target") if each in arguments}
    if any(path.startswith(f"{HERE}/") for path in paths.values()):
        noted: dict[str, Json] = {each: _name(path) for each, path in paths.items()}
        calls.log.note_dry(name, noted | {"mode": arguments["mode"]} if "mode" in arguments else noted)


def _file_open(calls: Calls, files: RunFiles, *, filename: str, mode: Mode, size: int) -> Json:
    status = files.open(filename, mode)
    if mode in {"w", "x"} or (mode == "a" and not status.size):
        _note_written(calls, filename, status.size)
    data = b""
    if size > 0 and status.size:
        data = files.read(filename, status.identity, 0, size)
        calls.move_file_bytes(len(data))
    waits: dict[str, Json] = {"waits": True} if mode != "r" and files.waits_at_close(filename) else {}
    return {**_described(status), **_content(data), **waits}


def _file_read(calls: Calls, files: RunFiles, *, filename: str, identity: str, offset: int, size: int) -> Json:
    data = files.read(filename, identity, offset, size)
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


def _file_write(
    calls: Calls,
    files: RunFiles,
    *,
    filename: str,
    identity: str,
    offset: int | None,
    content: str,
    encoding: Encoding,
) -> Json:
    data = encoded(content, encoding)
    calls.move_file_bytes(len(data))
    end = files.write(filename, identity, offset, data)
    _note_written(calls, filename, max(end, calls.written.get(_name(filename), 0)))
    return {"offset": end}


def _file_truncate(calls: Calls, files: RunFiles, *, filename: str, identity: str, size: int) -> None:
    files.truncate(filename, identity, size)
    _note_written(calls, filename, size)


def _file_close(_calls: Calls, files: RunFiles, *, filename: str, identity: str) -> None:  # noqa: ARG001 - the code sends it
    """Store what was written where the workspace is more than a folder, and close the file."""
    try:
        files.sync(identity)
    finally:
        files.release(identity)


def _file_sync(_calls: Calls, files: RunFiles, *, filename: str, identity: str) -> None:  # noqa: ARG001 - as above
    files.sync(identity)


def _file_status(_calls: Calls, files: RunFiles, *, filename: str) -> Json:
    return _described(files.status(filename))


def _list_folder(_calls: Calls, files: RunFiles, *, filename: str) -> Json:
    return {"entries": [{"name": entry.name, **_described(entry.status)} for entry in files.list(filename)]}


def _make_folder(_calls: Calls, files: RunFiles, *, filename: str) -> None:
    files.make_folder(filename)


def _remove_path(calls: Calls, files: RunFiles, *, filename: str) -> None:
    files.remove(filename)
    calls.written.pop(_name(filename), None)


def _remove_folder(_calls: Calls, files: RunFiles, *, filename: str) -> None:
    files.remove_folder(filename)


def _rename_path(calls: Calls, files: RunFiles, *, filename: str, target: str) -> None:
    files.rename(filename, target)
    status = files.status(target)
    if not status.is_folder:
        calls.written.pop(_name(filename), None)
        _note_written(calls, target, status.size)
        return
    inside = _name(filename) + "/"
    for name in [name for name in calls.written if name.startswith(inside)]:
        _note_written(calls, f"{target}/{name.removeprefix(inside)}", calls.written.pop(name))


def _set_modified(_calls: Calls, files: RunFiles, *, filename: str, modified_ns: int) -> None:
    files.set_modified(filename, modified_ns)


def _disk_usage(_calls: Calls, files: RunFiles) -> Json:
    usage = files.usage()
    return {"total": usage.quota_bytes, "used": usage.used_bytes}


def _opens(arguments: Arguments) -> AnnouncedChange | None:
    return {"r": None, "x": MADE_HERE}.get(str(arguments["mode"]), REPEATABLE_HERE)


def _writes(arguments: Arguments) -> AnnouncedChange:
    return MADE_HERE if arguments["offset"] is None else REPEATABLE_HERE


_FUNCTIONS = (
    _FileFunction(_file_open, _opens, "open"),
    _FileFunction(_file_read),
    _FileFunction(_file_write, _writes),
    _FileFunction(_file_truncate, REPEATABLE_HERE),
    _FileFunction(_file_close, REPEATABLE_HERE),
    _FileFunction(_file_sync, REPEATABLE_HERE),
    _FileFunction(_file_status),
    _FileFunction(_list_folder),
    _FileFunction(_make_folder, MADE_HERE, "os.mkdir"),
    _FileFunction(_remove_path, MADE_HERE, "os.remove"),
    _FileFunction(_remove_folder, MADE_HERE, "os.rmdir"),
    _FileFunction(_rename_path, MADE_HERE, "os.rename"),
    _FileFunction(_set_modified, REPEATABLE_HERE, "os.utime"),
    _FileFunction(_disk_usage),
)
"""What says where it writes, or how long a file is to be, can be done again."""


def _described(status: PathStatus) -> dict[str, Json]:
    return {
        "identity": status.identity,
        "folder": status.is_folder,
        "size": status.size,
        "modified_ns": status.modified_ns,
    }


def _name(path: str) -> str:
    return path.removeprefix(f"{HERE}/")


def _note_written(calls: Calls, path: str, size: int) -> None:
    if path.startswith(f"{HERE}/") and not calls.spares_files:
        calls.written[_name(path)] = size
