"""Workspace files as the model may see them under `PRIVACY=auto`: slices of a text with tokens in it.

A security boundary. A slice is never judged alone: a value could lie across its edge, and what a column holds stands in
the first line. Files hold real values, so offsets and sizes count the real text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....workspace.store import Contents, Encoding, Workspace
from ...errors import RequestRefused
from ...host_work import Kind, in_thread
from ..privacy import Privacy

_WHOLE_BYTES_MAX = 1_000_000
"""Files up to this size are judged whole."""
_AROUND_CHARS = 8_000
"""How much is read before and after a slice of a larger one."""
_FIRST_LINE_MAX = 4_000
_PRINTED = re.compile(rb"[\x20-\x7e\t\r\n]{6,}")


async def shown_slice(
    privacy: Privacy,
    scope: str,
    workspace: Workspace,
    filename: str,
    *,
    offset: int,
    limit: int | None,
    encoding: Encoding,
) -> Contents:
    """Return a slice of a file with tokens in it. Raises `PrivacyFailed`, `RequestRefused`, and what reading raises."""
    read = partial(_read, partial(workspace.read, filename, owner=scope))
    asked = await read(offset, limit, encoding)
    if encoding == "base64":
        small = asked.size <= _WHOLE_BYTES_MAX
        from_byte = 0 if small else max(0, offset - _AROUND_CHARS)
        around = await read(from_byte, None if limit is None or small else limit + 2 * _AROUND_CHARS, encoding)
        await _refuse_personal(privacy, scope, base64.b64decode(around.content))
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
    content = await privacy.hide_window(scope, lead + text, start, start + len(asked.content))
    return replace(asked, filename=await privacy.hide_text(scope, filename), content=content)


async def _refuse_personal(privacy: Privacy, scope: str, data: bytes) -> None:
    """Refuse bytes that are text with something personal in it, which base64 would carry past every filter."""
    try:
        text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8")
    except UnicodeDecodeError:
        text = "\n".join(part.decode("ascii") for part in _PRINTED.findall(data))
    types = await privacy.types_in(scope, text)
    if types:
        raise RequestRefused(
            f"The file holds personal data ({', '.join(sorted(types))}), and base64 would show it. Read it as utf-8, "
            "or work on it in code."
        )


async def _read(read: Callable[..., Contents], offset: int, limit: int | None, encoding: Encoding) -> Contents:
    return await in_thread(Kind.FILES, partial(read, offset, limit, encoding=encoding))
