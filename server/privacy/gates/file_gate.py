"""Workspace files as the model may see them under `PRIVACY=auto`: slices of a text with tokens in it.

A security boundary. A slice is never judged alone: a value could lie across its edge, and what a column holds stands in
the first line. Files hold real values, so offsets and sizes count the real text.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import IO, cast

from ....workspace.store import Encoding, FileSlice, Workspace
from ...base.errors import RequestRefused
from ...base.host_work import Kind, in_thread
from ..privacy import Privacy
from ..reading.encodings import CHAR_BYTES_MAX, SAMPLE_BYTES
from ..reading.file_texts import hides_texts

_WHOLE_BYTES_MAX = 1_000_000
"""Files up to this size are judged whole."""
_AROUND_CHARS = 8_000
"""How much is read before and after a slice of a larger one."""
_FIRST_LINE_MAX = 4_000


async def shown_slice(
    privacy: Privacy,
    scope: str,
    workspace: Workspace,
    filename: str,
    *,
    offset: int,
    limit: int | None,
    encoding: Encoding,
) -> FileSlice:
    """Return a slice of a file with tokens in it. Raises `PrivacyFailed`, `RequestRefused`, and what reading raises."""
    read = partial(_read, partial(workspace.read, filename, owner=scope))
    asked = await read(offset, limit, encoding)
    if encoding == "base64":
        await _refuse_packed(privacy, scope, partial(workspace.read, filename, owner=scope))
        small = asked.size <= _WHOLE_BYTES_MAX
        from_byte = 0 if small else max(0, offset - _AROUND_CHARS) // CHAR_BYTES_MAX * CHAR_BYTES_MAX
        around = await read(from_byte, None if limit is None or small else limit + 2 * _AROUND_CHARS, encoding)
        head = (await read(0, _FIRST_LINE_MAX, encoding)).content if from_byte else ""
        await _refuse_personal(privacy, scope, head, around.content)
        return replace(asked, filename=await privacy.hide_text(scope, filename))
    start, lead = offset, ""
    if asked.size <= _WHOLE_BYTES_MAX:
        text = (await read(0, None, encoding)).content
    else:
        start = min(offset, _AROUND_CHARS)
        around = await read(offset - start, len(asked.content) + start + _AROUND_CHARS, encoding)
        text = around.content
        if offset > start:
            lead = (await read(0, _FIRST_LINE_MAX, encoding)).content.partition("\n")[0] + "\n"
    start += len(lead)
    if "\0" in text:  # as in UTF-16 that is read as UTF-8: between NULs nothing is found
        _refuse(await privacy.types_in(scope, (lead + text).replace("\0", "")), "NUL characters would hide it")
    content = await privacy.hide_window(scope, lead + text, start, start + len(asked.content))
    return replace(asked, filename=await privacy.hide_text(scope, filename), content=content)


async def _refuse_packed(privacy: Privacy, scope: str, read: Callable[..., FileSlice]) -> None:
    """Refuse a packed file with something personal in it: what a slice of it says, the other slices say."""
    file = _Pieces(read)
    beginning = await in_thread(Kind.FILES, partial(file.read, SAMPLE_BYTES))
    if hides_texts(beginning):
        _refuse(await privacy.types_packed(scope, cast("IO[bytes]", _Pieces(read))), "base64 would show it")


class _Pieces:
    def __init__(self, read: Callable[..., FileSlice]) -> None:
        self._read = read
        self._at = 0

    def read(self, size: int, /) -> bytes:
        some = base64.b64decode(self._read(self._at, size, encoding="base64").content)
        self._at += len(some)
        return some


async def _refuse_personal(privacy: Privacy, scope: str, head: str, around: str) -> None:
    """Refuse bytes that are text with something personal in it, which base64 would carry past every filter.

    Both are base64; of the head, which is the start of the file, the first line counts.
    """
    readings = await in_thread(Kind.PRIVACY, partial(_readings, privacy.detectors.text_of_any, head, around))
    _refuse(await privacy.types_in(scope, readings), "base64 would show it", "Read it as utf-8, or work")


def _refuse(types: Collection[str], why: str, do: str = "Work") -> None:
    if types:
        raise RequestRefused(
            f"The file holds personal data ({', '.join(sorted(types))}), and {why}. {do} on it in code."
        )


def _readings(text_of: Callable[[bytes], str], head: str, around: str) -> str:
    first_line = text_of(base64.b64decode(head)).partition("\n")[0] if head else ""
    text = text_of(base64.b64decode(around))
    return f"{first_line}\n{text}" if first_line else text


async def _read(read: Callable[..., FileSlice], offset: int, limit: int | None, encoding: Encoding) -> FileSlice:
    return await in_thread(Kind.FILES, partial(read, offset, limit, encoding=encoding))
