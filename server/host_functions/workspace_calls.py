"""The host functions that reach the workspace: what the code's file helpers call."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import cast

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ...workspace.dry_run_files import DryRunFiles
from ...workspace.errors import ContentRefused
from ...workspace.names import Name
from ...workspace.store import Encoding, Workspace, encoded
from ..host_work import Kind, in_thread
from ..journal.changes import MADE_HERE, REPEATABLE_HERE
from ..privacy.reading.encodings import SAMPLE_BYTES, encoding_of
from .attachments import slice_of
from .broker import Arguments, Calls, Handler
from .file_calls import files_of
from .saved_answers import Save

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""What the server holds of one run's files while their parts arrive: as much as a worker's scratch directory."""
UNFINISHED_FILES_MAX = 16
"""Files of one run whose parts arrive at a time."""
CONTENT_CHARS_MAX = 32 * 1024 * 1024
"""Characters that one call writes; a frame holds no more."""

_TEXT = (str,)
_WHOLE = (int,)
_FLAG = (bool,)
_WHOLE_OR_NONE = (int, type(None))


def handlers(workspace: Workspace) -> Mapping[str, Handler]:
    """Return what answers for the workspace, by name."""
    return {
        "read_file": Handler(
            partial(_read_file, workspace),
            {"filename": _TEXT, "offset": _WHOLE, "limit": _WHOLE_OR_NONE, "encoding": _TEXT},
            frozenset({"filename"}),
            is_of_files=True,
        ),
        "write_file": Handler(
            partial(_write_file, workspace),
            {"filename": _TEXT, "content": _TEXT, "encoding": _TEXT, "tokens": _FLAG, "last": _WHOLE},
            frozenset({"filename", "content"}),
            {"content": CONTENT_CHARS_MAX},
            is_of_files=True,
            changes=lambda _arguments: REPEATABLE_HERE,
        ),
        "keep": Handler(
            partial(_keep, workspace),
            {"filename": _TEXT, "content": _TEXT, "last": _WHOLE},
            frozenset({"filename", "content", "last"}),
            {"content": CONTENT_CHARS_MAX},
            is_of_files=True,
            changes=lambda _arguments: REPEATABLE_HERE,
        ),
        "list_files": Handler(partial(_list_files, workspace), {"subpath": _TEXT}, frozenset(), is_of_files=True),
        "delete_file": Handler(
            partial(_delete_file, workspace),
            {"filename": _TEXT},
            frozenset({"filename"}),
            is_of_files=True,
            changes=lambda _arguments: MADE_HERE,
        ),
    }


def saver(workspace: Workspace) -> Save:
    """Return what writes a file for a run, which the code did not write itself."""

    async def save(calls: Calls, name: str, content: bytes) -> Json:
        return await _written(workspace, calls, {"filename": name}, content)

    return save


async def _read_file(workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    files = _dry_files(workspace, calls)
    if files is not None:
        content = await in_thread(Kind.FILES, partial(files.own_content, cast("str", arguments["filename"])))
        if content is not None:
            return slice_of(content, arguments)
    read = partial(workspace.read, **arguments, owner=calls.caller.scope)  # type: ignore[arg-type]  # Handler.check has judged them
    try:
        return asdict(await in_thread(Kind.FILES, read))
    except ContentRefused as error:
        beginning = partial(read, offset=0, limit=SAMPLE_BYTES, encoding="base64")
        found = encoding_of(base64.b64decode((await in_thread(Kind.FILES, beginning)).content))
        if found in {None, "utf-8"} or arguments.get("encoding", "utf-8") != "utf-8":
            raise
        raise HostCallError(
            f"{arguments['filename']!r} is not UTF-8 text. By its bytes it is in {found}: read it with "
            f"encoding={found!r}.",
            type="ValueError",
        ) from error


async def _write_file(workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    if "last" in arguments:
        encoding = cast("Encoding", arguments.get("encoding", "utf-8"))
        more = await in_thread(Kind.FILES, partial(encoded, cast("str", arguments["content"]), encoding))
        return await _take_part(workspace, calls, arguments, more)
    return await _written(workspace, calls, arguments, cast("str", arguments["content"]))


async def _written(workspace: Workspace, calls: Calls, arguments: Arguments, content: str | bytes) -> Json:
    """Write a file; in a dry run note it down, and have the run find it.

    Whether its tokens stay tokens was decided before: see `privacy.gates.run_gate`.
    """
    filename, encoding = cast("str", arguments["filename"]), cast("Encoding", arguments.get("encoding", "utf-8"))
    files = _dry_files(workspace, calls)
    if files is None:
        written = await in_thread(Kind.FILES, partial(workspace.write, filename, content, encoding=encoding))
        calls.written[written.filename] = written.size
        return asdict(written)
    data = content if isinstance(content, bytes) else encoded(content, encoding)
    await in_thread(Kind.FILES, partial(files.write_whole, filename, data))
    asked = {"tokens": True} if arguments.get("tokens") else {}
    calls.log.note_dry("write_file", {"filename": filename, "size": len(data), **asked})
    return {"filename": filename, "size": len(data)}


async def _list_files(workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    list_files = partial(workspace.list, **arguments, owner=calls.caller.scope)  # type: ignore[arg-type]  # Handler.check has judged them
    files = _dry_files(workspace, calls)
    if files is None:
        return asdict(await in_thread(Kind.FILES, list_files))
    return asdict(await in_thread(Kind.FILES, partial(files.list_whole, cast("str", arguments.get("subpath", ".")))))


async def _delete_file(workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    filename = cast("str", arguments["filename"])
    files = _dry_files(workspace, calls)
    if files is None:
        deleted = await in_thread(Kind.FILES, partial(workspace.delete, filename))
        calls.written.pop(deleted.filename, None)
        return asdict(deleted)
    await in_thread(Kind.FILES, partial(files.delete, filename))
    calls.log.note_dry("delete_file", {"filename": filename})
    return {"filename": filename, "deleted": True}


def _dry_files(workspace: Workspace, calls: Calls) -> DryRunFiles | None:
    """Return the files of a dry run; None where it is none."""
    files = files_of(calls, workspace) if calls.dry_run else None
    return files if isinstance(files, DryRunFiles) else None


async def _keep(workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    try:
        more = base64.b64decode(cast("str", arguments["content"]), validate=True)
    except ValueError:
        raise HostCallError(
            "The content is not base64. Use keep(path), which sends it so.", type="ValueError"
        ) from None
    return await _take_part(workspace, calls, arguments, more)


async def _take_part(workspace: Workspace, calls: Calls, arguments: Arguments, more: bytes) -> Json:
    """Take one part of a file; with the last one the file is written whole."""
    filename = cast("str", arguments["filename"])
    key = str(Name.parse(filename))
    if key not in calls.parts and len(calls.parts) >= UNFINISHED_FILES_MAX:
        raise HostCallError(
            f"This run has begun {UNFINISHED_FILES_MAX} files and finished none of them, the most at a time. "
            "Write one large file after another.",
            type="OSError",
        )
    so_far = calls.parts.setdefault(key, bytearray())
    if calls.parts_bytes + len(more) > KEPT_BYTES_MAX:
        calls.parts.clear()
        calls.parts_bytes = 0
        raise HostCallError(
            f"The file is larger than {KEPT_BYTES_MAX} bytes, the most that one call writes. Write it in pieces.",
            type="ValueError",
        )
    so_far += more
    calls.parts_bytes += len(more)
    if not arguments["last"]:
        return None
    del calls.parts[key]
    calls.parts_bytes -= len(so_far)
    return await _written(workspace, calls, arguments, bytes(so_far))
