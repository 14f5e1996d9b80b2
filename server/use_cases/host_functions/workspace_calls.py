"""The host functions that reach the workspace: what the code's file helpers call."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from functools import partial

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....workspace.dry_run_files import DryRunFiles
from ....workspace.errors import ContentRefused
from ....workspace.names import Name
from ....workspace.store import Encoding, Workspace, encoded
from ...base.host_call import MADE_HERE, REPEATABLE_HERE
from ...base.host_work import Kind, in_thread
from ...privacy.reading.encodings import SAMPLE_BYTES, encoding_of
from .attachments import slice_of
from .broker import Calls, host_function
from .file_calls import files_of

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""What the server holds of one run's files while their parts arrive: as much as a worker's scratch directory."""
UNFINISHED_FILES_MAX = 16
"""Files of one run whose parts arrive at a time."""
CONTENT_CHARS_MAX = 32 * 1024 * 1024
"""Characters that one call writes; a frame holds no more."""

_LONGEST = {"content": CONTENT_CHARS_MAX}


@dataclass(frozen=True, slots=True)
class WorkspaceCalls:
    """Answers for the workspace."""

    workspace: Workspace

    @host_function(of_files=True)
    async def read_file(
        self, calls: Calls, *, filename: str, offset: int = 0, limit: int | None = None, encoding: Encoding = "utf-8"
    ) -> Json:
        """Return a slice of a file; a dry run finds what it wrote itself."""
        files = self._dry_files(calls)
        if files is not None:
            content = await in_thread(Kind.FILES, partial(files.own_content, filename))
            if content is not None:
                return slice_of(content, filename, offset, limit, encoding)
        read = partial(self.workspace.read, filename, owner=calls.caller.scope)
        try:
            return asdict(await in_thread(Kind.FILES, partial(read, offset, limit, encoding=encoding)))
        except ContentRefused as error:
            beginning = partial(read, offset=0, limit=SAMPLE_BYTES, encoding="base64")
            found = encoding_of(base64.b64decode((await in_thread(Kind.FILES, beginning)).content))
            if found in {None, "utf-8"} or encoding != "utf-8":
                raise
            raise HostCallError(
                f"{filename!r} is not UTF-8 text. By its bytes it is in {found}: read it with encoding={found!r}.",
                type="ValueError",
            ) from error

    @host_function(of_files=True, changes=REPEATABLE_HERE, longest=_LONGEST)
    async def write_file(
        self,
        calls: Calls,
        *,
        filename: str,
        content: str,
        encoding: Encoding = "utf-8",
        tokens: bool = False,
        allow_tokens: bool = False,  # noqa: ARG002
        last: int | None = None,
    ) -> Json:
        """Write a file, or take one part of it.

        Whether its tokens stay tokens, or some may be unknown, was decided before: see `privacy.gates.run_gate`.
        """
        if last is None:
            return await self._written(calls, filename, content, encoding, tokens=tokens)
        more = await in_thread(Kind.FILES, partial(encoded, content, encoding))
        return await self._take_part(calls, filename, more, is_last=bool(last), tokens=tokens)

    @host_function(of_files=True, changes=REPEATABLE_HERE, longest=_LONGEST)
    async def keep(self, calls: Calls, *, filename: str, content: str, last: int) -> Json:
        """Take one part of a file of full Python, in base64."""
        try:
            more = base64.b64decode(content, validate=True)
        except ValueError:
            raise HostCallError(
                "The content is not base64. Use keep(path), which sends it so.", type="ValueError"
            ) from None
        return await self._take_part(calls, filename, more, is_last=bool(last))

    @host_function(of_files=True)
    async def list_files(self, calls: Calls, *, subpath: str = ".") -> Json:
        """Return the files below a folder."""
        files = self._dry_files(calls)
        listing = (
            partial(self.workspace.list, subpath, owner=calls.caller.scope)
            if files is None
            else partial(files.list_whole, subpath)
        )
        return asdict(await in_thread(Kind.FILES, listing))

    @host_function(of_files=True, changes=MADE_HERE)
    async def delete_file(self, calls: Calls, *, filename: str) -> Json:
        """Delete a file; a dry run notes it down."""
        files = self._dry_files(calls)
        if files is None:
            deleted = await in_thread(Kind.FILES, partial(self.workspace.delete, filename))
            calls.written.pop(deleted.filename, None)
            return asdict(deleted)
        await in_thread(Kind.FILES, partial(files.delete, filename))
        if not calls.in_tests:
            calls.log.note_dry("delete_file", {"filename": filename})
        return {"filename": filename, "deleted": True}

    async def save(self, calls: Calls, name: str, content: bytes) -> Json:
        """Write a file for a run, which the code did not write itself; as `saved_answers.Save`."""
        return await self._written(calls, name, content)

    async def _written(
        self, calls: Calls, filename: str, content: str | bytes, encoding: Encoding = "utf-8", *, tokens: bool = False
    ) -> Json:
        files = self._dry_files(calls)
        if files is None:
            written = await in_thread(Kind.FILES, partial(self.workspace.write, filename, content, encoding=encoding))
            calls.written[written.filename] = written.size
            return asdict(written)
        data = content if isinstance(content, bytes) else encoded(content, encoding)
        await in_thread(Kind.FILES, partial(files.write_whole, filename, data))
        noted: dict[str, Json] = {"filename": filename, "size": len(data)}
        if not calls.in_tests:
            calls.log.note_dry("write_file", {**noted, "tokens": True} if tokens else noted)
        return noted

    def _dry_files(self, calls: Calls) -> DryRunFiles | None:
        files = files_of(calls, self.workspace) if calls.spares_files else None
        return files if isinstance(files, DryRunFiles) else None

    async def _take_part(
        self, calls: Calls, filename: str, more: bytes, *, is_last: bool, tokens: bool = False
    ) -> Json:
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
        if not is_last:
            return None
        del calls.parts[key]
        calls.parts_bytes -= len(so_far)
        return await self._written(calls, filename, bytes(so_far), tokens=tokens)
