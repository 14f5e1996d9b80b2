"""A security boundary: `io.TextIOWrapper` that allows no use of Python's own while it asks its buffer.

Python's own, in C, keeps pieces of what it reads and writes while it calls methods of its buffer, which may be code of
the guest. Called again from there, it uses memory that was freed, or was never written. So the real object is taken
out of its place for as long as a call of it lasts: who comes in meanwhile finds none. No code holds the real object,
and it is made once.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
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

    def __iter__(self) -> Iterator[str]:
        return _lines(self) if type(self) is TextIOWrapper else self

    def write(self, s: str, /) -> int:
        """Write a text and return its length."""
        text = _taken(self)
        try:
            return text.write(s)
        finally:
            self._text = text

    def readline(self, size: int = -1, /) -> str:
        """Read to the end of the line, or so many characters of it."""
        text = _taken(self)
        try:
            return text.readline(size)
        finally:
            self._text = text

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write every text."""
        for line in lines:
            self.write(line)


def _taken(stream: TextIOWrapper) -> io.TextIOWrapper[Any]:
    if not hasattr(stream, "_text"):
        raise ValueError("I/O operation on uninitialized object")
    text, stream._text = stream._text, None
    if text is None:
        raise RuntimeError(_REENTRANT)
    return text


def _forwarding(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def forwarded(self: TextIOWrapper, /, *arguments: Any, **keywords: Any) -> Any:
        text = _taken(self)
        try:
            return method(text, *arguments, **keywords)
        finally:
            self._text = text

    forwarded.__name__, forwarded.__qualname__ = name, f"TextIOWrapper.{name}"
    forwarded.__doc__ = getattr(io.TextIOWrapper, name).__doc__
    return forwarded


_METHODS: Final = (
    "__next__ __repr__ close detach fileno flush isatty read readable readlines reconfigure seek seekable tell "
    "truncate writable"
)
_PROPERTIES: Final = "buffer closed encoding errors line_buffering name newlines write_through"
for _name in _METHODS.split():
    setattr(TextIOWrapper, _name, _forwarding(getattr(io.TextIOWrapper, _name), _name))
for _name in _PROPERTIES.split():
    setattr(TextIOWrapper, _name, property(_forwarding(attrgetter(_name), _name)))


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
