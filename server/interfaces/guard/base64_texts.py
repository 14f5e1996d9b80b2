"""Bytes in messages: those that are text are filtered as text is, and written again; others pass.

Whether they are text, their type says, or else they themselves do: bytes of pictures and sound are hardly ever UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re

from ....tools_registry.charsets import charset_named
from ...base.errors import PrivacyFailed
from ...privacy.reading.file_texts import hides_texts
from ...privacy.tokens.parts import Exchange, Text

_TEXT_TYPE = re.compile(
    r"text/|(?:application|image)/(?:.*\+)?(?:csv|ecmascript|graphql|javascript|json|ndjson|sql|toml|xml|x-ndjson|"
    r"x-sh|x-yaml|yaml)(?:;|\Z)",
    re.IGNORECASE,
)
_CHARSET = re.compile(r';\s*charset="?([\w.:-]{1,40})', re.IGNORECASE)
_LOOKED_AT = 4096
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def exchanged_base64(encoded: str, mime_type: str, exchange: Exchange) -> str:
    """Return bytes in base64 with another text in them, where they are text. Raises `PrivacyFailed`."""
    try:
        beginning = base64.b64decode(encoded[:_LOOKED_AT])
        if hides_texts(beginning):
            shown = str(exchange(Text(encoded)))  # as packed bytes within a text are judged
            return encoded if shown == encoded else base64.b64encode(shown.encode()).decode()
        if _TEXT_TYPE.match(mime_type) is None and not _may_be_text(beginning):
            return encoded
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise PrivacyFailed("What should be base64 is not, so nothing of it is shown. Ask for another form.") from None
    mark, charset = _read_as(content, mime_type)
    if charset is None or not content:
        return encoded
    text = content.removeprefix(mark).decode(charset)
    shown = str(exchange(Text(text)))
    return encoded if shown == text else base64.b64encode(mark + shown.encode(charset)).decode()


def _read_as(content: bytes, mime_type: str) -> tuple[bytes, str | None]:
    """Return the mark at the beginning, and how the rest is read as text: None where it is no text."""
    for mark, charset in _MARKS:
        if content.startswith(mark) and _reads(content.removeprefix(mark), charset):
            return mark, charset
    named = _CHARSET.search(mime_type)
    charset_said = charset_named(named[1]) if named else None
    for charset in (*([charset_said] if charset_said else ()), *_likely(content)):
        if _reads(content, charset):
            return b"", charset
    if _TEXT_TYPE.match(mime_type) is None:
        return b"", None
    if b"\0" in content:
        raise PrivacyFailed("A text is in an encoding that is not known, so nothing of it is shown. Ask for UTF-8.")
    return b"", "latin-1"


def _may_be_text(beginning: bytes) -> bool:
    """Return whether bytes that begin so may be text; a whole picture need not be decoded to see that it is none."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or bool(
            _likely(beginning[: len(beginning) & ~1])
        )
    return True


def _likely(content: bytes) -> tuple[str, ...]:
    """Return what bytes without a mark may be: in UTF-16 every other byte of most texts is zero."""
    if b"\0" not in content:
        return ("utf-8",)
    if len(content) % 2:
        return ()
    half = len(content) // 4
    low, high = content[1::2].count(0), content[::2].count(0)
    return ("utf-16-le",) if low > half >= high else ("utf-16-be",) if high > half >= low else ()


def _reads(content: bytes, charset: str) -> bool:
    try:
        return content.decode(charset).encode(charset) == content
    except (UnicodeError, LookupError):
        return False
