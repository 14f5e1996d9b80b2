"""The MCP tools of the workspace."""

from __future__ import annotations

import base64
import json
import mimetypes
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Literal, NotRequired

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from typing_extensions import TypedDict

from ....sandbox.job import Isolation
from ....workspace.store import FileSlice, Workspace
from ...base.host_work import Kind, in_thread
from ...base.settings import OutputFormat
from ...governance.caller import Caller
from ...governance.scopes import caller_of, scope_of
from ...privacy.gates.file_gate import shown_slice
from ...privacy.privacy import Privacy
from ...use_cases.runs.compact import written
from ...use_cases.runs.executor import Executor
from ...use_cases.runs.images import IMAGE_BYTES_MAX, Picture, image_type
from ...use_cases.runs.tables.table_previews import ROWS, is_table, isolation_for, previewed
from ...use_cases.runs.truncation import SHOWN_CHARS
from .answers import READS, OptionalWhole, answered, image_content
from .strict_tool import mcp_tool

Encoding = Literal["utf-8", "base64"]


class WrittenAnswer(TypedDict):
    """A file after writing; `size` in bytes."""

    filename: str
    size: int


class ReadAnswer(TypedDict):
    """A file, or the slice asked for; `size` is that of the whole file, in bytes.

    Of an image, asked for without an encoding, the content is empty: the image follows as content of its own. Of a
    table (parquet, npy, feather, xlsx) it is its columns and rows, which `offset` and `limit` count there, where full
    Python is allowed, which reads it. Where more follows, `truncated` is true. `read_with` reads on where that is for
    lack of a limit.
    """

    filename: str
    content: str
    size: int
    truncated: bool
    read_with: NotRequired[str]


class ListedFile(TypedDict):
    """One file of a listing; `size` in bytes, `modified` in ISO 8601."""

    name: str
    size: int
    modified: str


class ListAnswer(TypedDict):
    """The files below a folder of the workspace, and how full it is."""

    path: str
    files: list[ListedFile]
    count: int
    used_bytes: int
    quota_bytes: int
    truncated: NotRequired[dict[str, object]]


class DeletedAnswer(TypedDict):
    """A file after deleting."""

    filename: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class WorkspaceTools:
    """The tools that write, read, list and delete workspace files; `executor` reads files of tables.

    Without a limit reading gives at most `chars_max` characters, and of base64 as many bytes as that is.
    """

    workspace: Workspace
    privacy: Privacy
    executor: Executor
    chars_max: int

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest="list_workspace_files()",
    )
    async def write_workspace_file(
        self, filename: str, content: str, encoding: Encoding = "utf-8"
    ) -> Annotated[CallToolResult, WrittenAnswer]:
        """Write a whole workspace file."""
        write = partial(self.workspace.write, filename, content, encoding=encoding)
        written = await in_thread(Kind.FILES, write)
        return answered(asdict(written), f"wrote {written.filename} ({written.size} bytes)")

    @mcp_tool(READS)
    async def read_workspace_file(
        self,
        filename: str,
        ctx: Context[None, None],
        *,
        offset: int = 0,
        limit: OptionalWhole = None,
        encoding: Encoding = "utf-8",
    ) -> Annotated[CallToolResult, ReadAnswer]:
        """Read a workspace file or a slice of it."""
        caller, workspace, privacy = caller_of(ctx.request_context), self.workspace, self.privacy
        picture = None if privacy.filters else await _picture(workspace, filename, caller.scope, offset, encoding)
        if picture is not None:
            return _picture_answer(filename, picture)
        where = isolation_for(self.executor) if encoding == "utf-8" and is_table(filename) else None
        if where is not None:
            return await self._table_answer(caller, filename, where, offset=offset, limit=limit)
        most = limit
        if most is None:
            most = self.chars_max if encoding == "utf-8" else self.chars_max * 3 // 4
        if privacy.filters:
            read = await shown_slice(
                privacy, caller.scope, workspace, filename, offset=offset, limit=most, encoding=encoding
            )
        else:
            reading = partial(workspace.read, filename, offset, most, encoding=encoding, owner=caller.scope)
            read = await in_thread(Kind.FILES, reading)
        answer = ReadAnswer(filename=read.filename, content=read.content, size=read.size, truncated=read.truncated)
        if limit is None and read.truncated:
            answer["read_with"] = _reader(read.filename, offset + most, most, encoding)
        return answered(answer, _short_text(read, offset, most, encoding))

    @mcp_tool(READS, rest="list_files(subpath) in code")
    async def list_workspace_files(
        self, ctx: Context[None, None], subpath: str = "."
    ) -> Annotated[CallToolResult, ListAnswer]:
        """List workspace files."""
        scope = scope_of(ctx.request_context)
        listed = await in_thread(Kind.FILES, partial(self.workspace.list, subpath, owner=scope))
        lines = [f"{file.size:>12}  {file.modified}  {file.name}" for file in listed.files]
        used = f"{listed.count} files; {listed.used_bytes} of {listed.quota_bytes} bytes used"
        return answered(asdict(listed), "\n".join([*lines, used]))

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest="list_workspace_files()",
    )
    async def delete_workspace_file(self, filename: str) -> Annotated[CallToolResult, DeletedAnswer]:
        """Delete a workspace file."""
        deleted = await in_thread(Kind.FILES, partial(self.workspace.delete, filename))
        return answered(asdict(deleted), f"deleted {deleted.filename}")

    async def _table_answer(
        self, caller: Caller, filename: str, isolation: Isolation, *, offset: int, limit: int | None
    ) -> CallToolResult:
        """Return what is in a file that holds a table, as text: `limit` rows from `offset` on."""
        beginning = partial(self.workspace.read, filename, 0, 1, encoding="base64", owner=caller.scope)
        size = (await in_thread(Kind.FILES, beginning)).size
        preview = await previewed(self.executor, caller, filename, isolation, offset=offset, limit=limit)
        text = written(preview.shown, OutputFormat.AUTO)
        following = preview.following
        is_cut = preview.is_cut or following is not None
        answer = ReadAnswer(filename=filename, content=text, size=size, truncated=is_cut)
        more = ""
        if following is not None and (limit is None or following - offset < limit):
            answer["read_with"] = _reader(filename, following, limit or ROWS, "utf-8")
            more = f"\n… [more rows follow: {answer['read_with']}]"
        if len(text) <= SHOWN_CHARS:
            return answered(answer, text + more)
        return answered(answer, f"{text[:SHOWN_CHARS]}\n… [cut here; the structured content has more]")


def _picture_answer(filename: str, picture: Picture) -> CallToolResult:
    size = len(picture.content)
    answer = ReadAnswer(filename=filename, content="", size=size, truncated=False)
    shown = answered(answer, f"{filename} is an image ({picture.mime_type}, {size} bytes)")
    shown.content.append(image_content(picture))
    return shown


def _short_text(read: FileSlice, offset: int, limit: int, encoding: Encoding) -> str:
    """Return the beginning of what was read; where more follows, it ends with the call that reads on."""
    text = read.content[:SHOWN_CHARS]
    if len(read.content) <= SHOWN_CHARS and not read.truncated:
        return text
    end = offset + (len(text) if encoding == "utf-8" else len(text) * 3 // 4)
    following = _reader(read.filename, end, limit if len(text) == len(read.content) else SHOWN_CHARS, encoding)
    return f"{text}\n… [more follows, of {read.size} bytes in all: {following}]"


async def _picture(workspace: Workspace, filename: str, scope: str, offset: int, encoding: Encoding) -> Picture | None:
    kind = mimetypes.guess_type(filename)[0] or ""
    if offset or encoding != "utf-8" or not kind.startswith("image/"):
        return None
    whole = partial(workspace.read, filename, 0, IMAGE_BYTES_MAX, encoding="base64", owner=scope)
    read = await in_thread(Kind.FILES, whole)
    content = base64.b64decode(read.content)
    known = None if read.truncated else image_type(content)
    return None if known is None else Picture(known, content)


def _reader(filename: str, offset: int, limit: int, encoding: Encoding) -> str:
    kind = "" if encoding == "utf-8" else f', encoding="{encoding}"'
    name = json.dumps(filename, ensure_ascii=False)
    return f"read_workspace_file(filename={name}, offset={offset}, limit={limit}{kind})"
