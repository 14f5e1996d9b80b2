"""What the library's `tokenize` is made of from Python 3.12 on: C's tokenizer, kept from lines that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .held_items import alone

__all__ = ["TokenizerIter"]


def TokenizerIter(  # noqa: N802 - Python's own name
    readline: Callable[[], str | bytes], *, encoding: str | None = None, extra_tokens: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Give the tokens of the lines that `readline` returns. Raises SyntaxError, TypeError."""
    from _tokenize import TokenizerIter as Tokens  # type: ignore[import-not-found]  # its stubs are missing

    def line() -> str | bytes:
        """Read a line. A null byte in one makes the tokenizer return a token and raise at once (CPython 3.12, 3.13)."""
        read = readline()
        if (type(read) is str and "\0" in read) or (type(read) is bytes and b"\0" in read):
            raise SyntaxError("source code cannot contain null bytes")
        if type(read) is not str and type(read) is not bytes:
            raise TypeError(f"readline() returned {type(read).__name__!r}, not a line")
        return read

    if encoding is not None and type(encoding) is not str:
        raise TypeError(f"encoding must be a string or None, not {type(encoding).__name__!r}")
    options = {} if encoding is None else {"encoding": encoding}
    tokens: Iterator[tuple[Any, ...]] = Tokens(line, extra_tokens=extra_tokens is True, **options)
    return alone(tokens)  # `readline` could enter it
