"""A security boundary: `io.TextIOWrapper` that allows no use of Python's own while it asks its buffer.

Python's own, in C, keeps pieces of what it reads and writes while it calls methods of its buffer, which may be code of
the guest. Called again from there, it uses memory that was freed, or was never written. So the real object is taken
out of its place for as long as a call of it lasts: who comes in meanwhile finds none. No code holds the real object,
and it is made once.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

__all__ = ["TextIOWrapper"]

_REENTRANT: Final = "reentrant call inside a text stream: its buffer must not use the stream that uses it"


_Base: Any = io.TextIOBase  # type checkers have it inherit from a stream of bytes


class TextIOWrapper(_Base):  # type: ignore[misc]  # as above
    """A text stream over a stream of bytes, as Python's own."""

    __slots__ = ("_text",)
    _text: io.TextIOWrapper[Any] | None

    def __init__(  # noqa: PLR0917 - Python's own signature
        self,
        buffer: Any,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        line_buffering: bool = False,
        write_through: bool = False,
    ) -> None:
        if hasattr(self, "_text"):
            raise RuntimeError("a text stream is initialized once; make another")
        self._text = None
        try:
            self._text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering, write_through)
        finally:
            if self._text is None:
                del self._text

    def __repr__(self) -> str:
        text = _taken(self)
        try:
            return repr(text)
        finally:
            self._text = text

    def __iter__(self) -> Iterator[str]:
        return _lines(self) if type(self) is TextIOWrapper else self

    def __next__(self) -> str:
        text = _taken(self)
        try:
            return next(text)
        finally:
            self._text = text

    @property
    def buffer(self) -> Any:
        """The stream of bytes."""
        return _attribute(self, "buffer")

    @property
    def encoding(self) -> str:
        """The name of the encoding."""
        return str(_attribute(self, "encoding"))

    @property
    def errors(self) -> Any:
        """What is done with what cannot be encoded or decoded."""
        return _attribute(self, "errors")

    @property
    def newlines(self) -> Any:
        """The ends of lines that were read so far."""
        return _attribute(self, "newlines")

    @property
    def line_buffering(self) -> bool:
        """Whether the end of a line flushes."""
        return bool(_attribute(self, "line_buffering"))

    @property
    def write_through(self) -> bool:
        """Whether nothing that was written is held."""
        return bool(_attribute(self, "write_through"))

    @property
    def name(self) -> Any:
        """The name of the buffer."""
        return _attribute(self, "name")

    @property
    def closed(self) -> bool:
        """Whether the buffer is closed."""
        return bool(_attribute(self, "closed"))

    def read(self, size: int | None = -1, /) -> str:
        """Read so many characters, or all."""
        text = _taken(self)
        try:
            return text.read(size)
        finally:
            self._text = text

    def readline(self, size: int = -1, /) -> str:
        """Read to the end of the line, or so many characters of it."""
        text = _taken(self)
        try:
            return text.readline(size)
        finally:
            self._text = text

    def readlines(self, hint: int | None = -1, /) -> list[str]:
        """Read all lines, or lines of so many characters."""
        text = _taken(self)
        try:
            return text.readlines(-1 if hint is None else hint)
        finally:
            self._text = text

    def write(self, s: str, /) -> int:
        """Write a text and return its length."""
        text = _taken(self)
        try:
            return text.write(s)
        finally:
            self._text = text

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write every text."""
        for line in lines:
            self.write(line)

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to what `tell` gave, or to the beginning or end."""
        text = _taken(self)
        try:
            return text.seek(cookie, whence)
        finally:
            self._text = text

    def tell(self) -> int:
        """Return what `seek` takes to come back."""
        text = _taken(self)
        try:
            return text.tell()
        finally:
            self._text = text

    def truncate(self, pos: int | None = None, /) -> int:
        """Cut the buffer off, here or where `pos` says."""
        text = _taken(self)
        try:
            return text.truncate(pos)
        finally:
            self._text = text

    def reconfigure(self, **options: Any) -> None:
        """Change what the stream was made with."""
        text = _taken(self)
        try:
            text.reconfigure(**options)
        finally:
            self._text = text

    def detach(self) -> Any:
        """Flush, and return the buffer; the stream is of no more use."""
        text = _taken(self)
        try:
            return text.detach()
        finally:
            self._text = text

    def flush(self) -> None:
        """Give the buffer what was written."""
        text = _taken(self)
        try:
            text.flush()
        finally:
            self._text = text

    def close(self) -> None:
        """Flush, and close the buffer."""
        text = _taken(self)
        try:
            text.close()
        finally:
            self._text = text

    def fileno(self) -> int:
        """Return the descriptor of the buffer."""
        text = _taken(self)
        try:
            return text.fileno()
        finally:
            self._text = text

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        text = _taken(self)
        try:
            return text.isatty()
        finally:
            self._text = text

    def readable(self) -> bool:
        """Return whether it can be read."""
        text = _taken(self)
        try:
            return text.readable()
        finally:
            self._text = text

    def writable(self) -> bool:
        """Return whether it can be written."""
        text = _taken(self)
        try:
            return text.writable()
        finally:
            self._text = text

    def seekable(self) -> bool:
        """Return whether there are places to go to."""
        text = _taken(self)
        try:
            return text.seekable()
        finally:
            self._text = text


def _taken(stream: TextIOWrapper) -> io.TextIOWrapper[Any]:
    if not hasattr(stream, "_text"):
        raise ValueError("I/O operation on uninitialized object")
    text, stream._text = stream._text, None
    if text is None:
        raise RuntimeError(_REENTRANT)
    return text


def _attribute(stream: TextIOWrapper, name: str) -> Any:
    text = _taken(stream)
    try:
        return getattr(text, name)
    finally:
        stream._text = text


def _lines(stream: TextIOWrapper) -> Iterator[str]:
    """Give the lines; `__next__` would be called through a check of the stream for each."""
    while True:
        text = _taken(stream)
        try:
            line = next(text, "")
        finally:
            stream._text = text
        if not line:
            return
        yield line
