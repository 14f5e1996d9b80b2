"""What a run is given is learned while it goes on: in the order in which it comes, and never much behind.

A security boundary. A run that reads faster than its host can learn waits, so that what has to be learned when it ends
is little, and its memory too. Where learning fails, the run is given nothing more. No value of a file is missed at a
seam: a piece is judged with what stood before it, back to the beginning of a line, and with the first line of the file,
which may say what a column holds.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ...base.errors import PrivacyFailed
from ...base.host_work import Account, charged_to
from ...base.lru import Lru
from ..privacy import Privacy
from ..reading.encodings import encoding_of, encodings_of
from ..tokens.run_tokens import RunTokens

_FILES_MAX = 256
"""Files whose last pieces are kept; of one that is read on after so many others, a seam may be missed."""
_BEFORE_BYTES = 8 * 1024
_FIRST_LINE_BYTES = 4 * 1024
_LOST_AT_SEAMS = 6
"""Bytes that UTF-8 may lose at both ends of a piece."""
_MARKS_OF_UTF_16 = frozenset({codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE})


@dataclass(slots=True)
class _LastPiece:
    first_line: bytes
    end: int
    before: bytes


class FilePieces:
    """The ends of the pieces that one run has read."""

    def __init__(self) -> None:
        self._last: Lru[str, _LastPiece] = Lru(_FILES_MAX)

    def text(self, arguments: Mapping[str, Json], answer: Json) -> Json:
        """Return the text of an answer of `file_open`, `file_read` or `read_file`; None where it is not text."""
        if not isinstance(answer, Mapping):
            return None
        given = arguments.get("offset", 0)
        offset = given if isinstance(given, int) else 0
        if "content" in answer:
            # Of a text, offsets and sizes count characters.
            encoding = answer.get("encoding") or arguments.get("encoding") or "utf-8"
            identity = f"read_file {encoding} {arguments.get('filename')}"
            said = str(answer["content"])
        else:
            encoding = str(answer.get("encoding"))
            identity = str(answer.get("identity") or arguments.get("identity"))
            said = str(answer.get("data") or "")
        if not said:
            return None
        data = base64.b64decode(said) if encoding == "base64" else said.encode("utf-8", "surrogatepass")
        size = len(said) if "content" in answer and encoding != "base64" else len(data)
        last = self._last.get(identity)
        first_line = last.first_line if last is not None else b""
        before = last.before if last is not None and last.end == offset else b""
        if offset == 0:
            line, end, _rest = data[:_FIRST_LINE_BYTES].partition(b"\n")
            first_line, piece = (line + end if end else b""), data
        else:
            piece = (b"" if before.startswith(first_line) else first_line) + before + data
        whole = before + data
        kept = whole[-_BEFORE_BYTES:]
        line_end = kept.rfind(b"\n") if not kept.endswith(b"\n") else kept.rfind(b"\n", 0, -1)
        self._last[identity] = _LastPiece(first_line, offset + size, kept[line_end + 1 :])
        return _text_of(piece)


def _text_of(data: bytes) -> str | None:
    """Return the text that bytes are, as far as they are text cut anywhere; None for other bytes.

    Text that is not Unicode is returned in each encoding that it may have, one after the other.
    """
    encoding = encoding_of(data) if b"\0" in data or data[:2] in _MARKS_OF_UTF_16 else None
    if encoding is not None:
        return data.decode(encoding, "replace")
    text = data.decode("utf-8", "replace")
    lost = text.count("\N{REPLACEMENT CHARACTER}")
    if lost > _LOST_AT_SEAMS and b"\0" not in data:
        return "\n\n".join(data.decode(each, "replace") for each in encodings_of(data) or ("latin-1",))
    return None if lost * 20 > len(text) else text


BEHIND_CHARS_MAX = 4_000_000
"""Characters that may wait to be learned; one answer more than that at most."""
_ANSWER_CHARS = 1_000
"""What an answer counts that is no text."""


class Learning:
    """What one run has been given and has yet to be learned.

    It is charged to the account of the filter, since the last of it is learned when the run has ended.
    """

    def __init__(self, privacy: Privacy, scope: str, account: Account, tokens: RunTokens) -> None:
        self._privacy = privacy
        self._scope = scope
        self._account = account
        self._tokens = tokens
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._behind = 0
        self._failed: BaseException | None = None
        self._busy = 0
        self._since = 0.0
        self._seconds = 0.0
        self.given: dict[str, set[str]] = {}
        """The values that tools gave, by the names of the tools."""

    @property
    def seconds(self) -> float:
        """For how long something was being learned, or waited to be."""
        return self._seconds + (time.monotonic() - self._since if self._busy else 0.0)

    async def add(self, answer: Json, tool: str = "") -> None:
        """Queue what a `tool` gave to be learned, once the queue is short.

        Raises `HostCallError` where learning has failed.
        """
        chars = len(answer) if isinstance(answer, str) else _ANSWER_CHARS
        task = asyncio.create_task(self._learn(answer, tool))
        self._tasks[task] = chars
        self._behind += chars
        task.add_done_callback(self._done)
        if self._behind > BEHIND_CHARS_MAX:
            await asyncio.wait([task])
        if isinstance(self._failed, PrivacyFailed):
            raise HostCallError(str(self._failed))

    async def all(self) -> None:
        """Wait until everything is learned. Raises `PrivacyFailed`."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        if self._failed is not None:
            raise self._failed

    def drop(self) -> None:
        """Leave off: nothing of the run will be shown."""
        for task in self._tasks:
            task.cancel()

    async def _learn(self, answer: Json, tool: str) -> None:
        if not self._busy:
            self._since = time.monotonic()
        self._busy += 1
        try:
            with charged_to(self._account, ends=False):
                values = await self._privacy.learn(self._scope, answer, self._tokens)
            if tool:
                self.given.setdefault(tool, set()).update(values)
        finally:
            self._busy -= 1
            if not self._busy:
                self._seconds += time.monotonic() - self._since

    def _done(self, task: asyncio.Task[None]) -> None:
        self._behind -= self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if self._failed is None:
            self._failed = error
