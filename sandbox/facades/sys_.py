"""`sys` as far as it concerns the code itself: its numbers, its streams, its recursion limit."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NoReturn

from .streams import STDERR, STDOUT, Input

__all__ = [
    "argv", "exc_info", "executable", "exit", "getrecursionlimit", "getrefcount", "implementation", "setrecursionlimit",
    "stderr", "stdin", "stdout", "version",
]  # fmt: skip

RECURSION_LIMIT_MAX = 10_000
"""The deepest recursion that cannot overflow the main thread's stack of `STACK_BYTES_MIN`, on any supported Python."""
STACK_BYTES_MIN = 8 * 1024 * 1024

argv = [""]
executable = ""
implementation = SimpleNamespace(name=sys.implementation.name, version=sys.implementation.version)
stderr = STDERR
stdin = Input()
stdout = STDOUT
version = f"{sys.version.split()[0]} (sealab)"
_getrefcount = sys.getrefcount


def exc_info() -> tuple[type[BaseException], BaseException, None] | tuple[None, None, None]:
    """Return the class and the exception being handled; the traceback's place is None."""
    kind, error, _traceback = sys.exc_info()
    return (None, None, None) if kind is None or error is None else (kind, error, None)


def exit(status: object = None, /) -> NoReturn:  # noqa: A001 - Python's own name
    """End the code here."""
    raise SystemExit(status)


def getrecursionlimit() -> int:
    """Return how deep calls may nest."""
    return sys.getrecursionlimit()


def setrecursionlimit(limit: int, /) -> None:
    """Set how deep calls may nest, up to `RECURSION_LIMIT_MAX`; a larger limit is taken as that one.

    Textbook code asks for a million as a matter of course. Whether it needs more shows only when it recurses, as a
    RecursionError.
    """
    if type(limit) is not int:
        raise TypeError(f"{type(limit).__name__!r} object cannot be interpreted as an integer")
    if limit <= 0:
        raise ValueError("recursion limit must be greater or equal than 1")
    sys.setrecursionlimit(min(limit, RECURSION_LIMIT_MAX))


def getrefcount(obj: object, /) -> int:
    """Return the number of references to `obj`, the argument's own included."""
    return _getrefcount(obj) - 1
