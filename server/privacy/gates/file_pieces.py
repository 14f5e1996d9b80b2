"""What a run reads of its files piece by piece, as it is to be learned: no value is missed at a seam.

A security boundary. A piece is judged with what stood before it, back to the beginning of a line, and with the first
line of the file, which may say what a column holds.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Mapping
from dataclasses import dataclass

from ....sandbox.job import Json
from ...lru import Lru
from ..reading.encodings import encoding_of
from ..reading.legacy_encodings import encodings_of

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

    def told(self, arguments: Mapping[str, Json], answer: Json) -> Json:
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
            first_line, told = (line + end if end else b""), data
        else:
            told = (b"" if before.startswith(first_line) else first_line) + before + data
        whole = before + data
        kept = whole[-_BEFORE_BYTES:]
        line_end = kept.rfind(b"\n") if not kept.endswith(b"\n") else kept.rfind(b"\n", 0, -1)
        self._last[identity] = _LastPiece(first_line, offset + size, kept[line_end + 1 :])
        return _text_of(told)


def _text_of(data: bytes) -> str | None:
    """Return the text that bytes are, as far as they are text cut anywhere; None for other bytes.

    One that is no Unicode is told in each encoding that it may have, one after the other.
    """
    encoding = encoding_of(data) if b"\0" in data or data[:2] in _MARKS_OF_UTF_16 else None
    if encoding is not None:
        return data.decode(encoding, "replace")
    text = data.decode("utf-8", "replace")
    lost = text.count("\N{REPLACEMENT CHARACTER}")
    if lost > _LOST_AT_SEAMS and b"\0" not in data:
        return "\n\n".join(data.decode(each, "replace") for each in encodings_of(data) or ("latin-1",))
    return None if lost * 20 > len(text) else text
