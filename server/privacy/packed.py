"""Bytes within texts on their way to the model: base64, hexadecimal digits, and bytes as Python writes them.

A security boundary. In the base64 of a packed file no filter of texts finds anything, and a model reads it. So such
bytes are judged by what is packed in them, and a note stands in their place where that may not be shown. This is for
programs as they are written: what is cut, turned around or packed otherwise goes unseen.
"""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ...sandbox.job import Json
from ..base.errors import PrivacyFailed
from ..base.host_work import checked
from .reading.file_texts import MARKS, hides_texts
from .token_texts import spliced
from .tokens.parts import Part, Text

RUNS_MAX = 100
"""So many of these are judged in what is hidden at once; further ones that are packed are withheld."""
_LEAST = 24
_LOOSE_LEAST = 200
"""From this length on bytes are judged that are neither packed nor text, such as those of a pickle."""
_BEGINNING_CHARS = 64
_LETTERS = "A-Za-z0-9+/_-"
_END_OF_LINE = r"(?:\r?\n|\\r\\n|\\n)"
_RUN = re.compile(
    rf"(?<![{_LETTERS}])(?:(?:[{_LETTERS}]{{60,76}}+{_END_OF_LINE})++(?:[{_LETTERS}]{{1,76}}+={{0,2}})?+"
    rf"|[{_LETTERS}]{{{_LEAST},}}+={{0,2}})"
)
"""Base64, in lines of 60 to 76 letters or in one (RFC 2045, RFC 4648), or hexadecimal digits."""
_BREAKS = re.compile(_END_OF_LINE)
_HEX = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2})++)")
_WRITTEN = re.compile(r"(?<!\w)b(?:'(?:[^'\\\n]|\\.){16,}+'|\"(?:[^\"\\\n]|\\.){16,}+\")")
_WITH_SIGNS = {ord("-"): "+", ord("_"): "/"}

_BEGINNINGS = frozenset(
    (
        *(base64.b64encode(mark[:2])[:2].decode() for mark in MARKS),
        *(mark[:2].hex() for mark in MARKS),
        *("b'", 'b"'),
    )
)
_DUCKDB = base64.b64encode(b"UCK").decode()
"""Its name stands at the ninth byte."""

Judge = Callable[[bytes, bool], str | None]
"""Takes bytes, and whether they are packed, and returns what stands in their place; None where they may be shown."""


def without_packed(part: Part, judge: Judge) -> Part:
    """Return a part with a note in place of each stretch of bytes that may not be shown."""
    if isinstance(part, Text):
        text = _without(part.text, judge)
        return part if text is part.text else replace(part, text=text)
    value = _value_without(part.value, judge)
    return part if value is part.value else replace(part, value=value)


def _value_without(value: Json, judge: Judge) -> Json:
    if isinstance(value, str):
        return _without(value, judge)
    if isinstance(value, Mapping):
        changed = {_without(key, judge): _value_without(inner, judge) for key, inner in value.items()}
        if len(changed) < len(value):
            raise PrivacyFailed("Several keys of an object are bytes that may not be shown. Give them other names.")
        return changed if any(changed.get(key) is not inner for key, inner in value.items()) else value
    if isinstance(value, Sequence):
        items = [_value_without(inner, judge) for inner in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else cast("Json", value)
    return value


def _without(text: str, judge: Judge) -> str:
    if len(text) < _LEAST:
        return text
    edits = [
        (start, end, note) for start, end, data, packed in bytes_in(text) if (note := judge(data, packed)) is not None
    ]
    return spliced(text, edits) if edits else text


def bytes_in(text: str) -> Iterator[tuple[int, int, bytes, bool]]:
    """Give where a text has bytes that are packed, or long and no text, these bytes, and whether they are packed."""
    end = 0
    found = list(_RUN.finditer(text))
    if "b'" in text or 'b"' in text:
        found = sorted((*found, *_WRITTEN.finditer(text)), key=re.Match.start)
    for match in checked(found):
        if match.start() < end or (len(match[0]) < _LOOSE_LEAST and not _may_be_packed(match[0])):
            continue
        for decoded in (_of_written,) if match[0][1:2] in {"'", '"'} else (_of_hex, _of_base64):
            is_packed = hides_texts(decoded(match[0][:_BEGINNING_CHARS]))
            if not is_packed and (decoded is _of_written or len(match[0]) < _LOOSE_LEAST):
                continue
            data = decoded(match[0])
            if is_packed or not _is_text(data):
                yield match.start(), match.end(), data, is_packed
                end = match.end()
                break


def _may_be_packed(run: str) -> bool:
    return (
        run[:2].translate(_WITH_SIGNS) in _BEGINNINGS
        or run[:4].lower() in _BEGINNINGS
        or run[12:16] == _DUCKDB
        or run[:2] == "0x"
    )


def _of_hex(run: str) -> bytes:
    digits = _HEX.match(run)
    return b"" if digits is None or digits.end() < len(run) - 1 else bytes.fromhex(digits[1])


def _of_base64(run: str) -> bytes:
    letters = _BREAKS.sub("", run).rstrip("=").translate(_WITH_SIGNS)
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4))
    except binascii.Error:
        return b""


def _of_written(run: str) -> bytes:
    """Read bytes as Python writes them, or as JSON writes that; of a cut beginning as far as it goes."""
    quote = run[1]
    inner = run[2:-1] if run.endswith(quote) else run[2:]
    for source in (inner, inner.replace("\\\\", "\\")):
        for cut in range(4):  # within an escape
            try:
                data: bytes = ast.literal_eval(f"b{quote}{source[: len(source) - cut]}{quote}")
            except (SyntaxError, ValueError):
                continue
            if hides_texts(data):
                return data
            break
    return b""


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
