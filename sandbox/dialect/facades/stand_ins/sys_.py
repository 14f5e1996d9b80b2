"""`sys` as far as it concerns the code itself: its numbers, its streams, its recursion limit."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import NoReturn

from ..call_records import Frame, frame_of_caller
from ..module_object import LOADED
from ..streams import STDERR, STDIN, STDOUT

__all__ = [
    "__stderr__", "__stdin__", "__stdout__", "_getframe", "argv", "audit", "base_exec_prefix", "base_prefix",
    "exc_info", "excepthook", "exec_prefix", "executable", "exit", "getfilesystemencodeerrors",
    "getfilesystemencoding", "getrecursionlimit", "getrefcount", "implementation", "modules", "path", "prefix",
    "setrecursionlimit", "stderr", "stdin", "stdout", "version", "warnoptions",
]  # fmt: skip

RECURSION_LIMIT_MAX = 20_000
"""The deepest recursion that code may ask for, where the stack is large enough for it."""
STACK_BYTES_PER_CALL = 12 * 1024
"""What one level of recursion may take of the C stack, twice over: sorting by a key that sorts takes most, about 5 KiB
(measured on 3.11, 3.12 and 3.13 with a 256 MiB stack, where 40,000 levels of it still fit)."""
_RECURSION_LIMIT_DEFAULT = 1_000

argv = [""]
base_exec_prefix = base_prefix = exec_prefix = prefix = executable = ""
path: list[str] = []
implementation = SimpleNamespace(name=sys.implementation.name, version=sys.implementation.version)
stderr = STDERR
stdin = STDIN
stdout = STDOUT
__stderr__, __stdin__, __stdout__ = STDERR, STDIN, STDOUT
path = [""]
version = f"{sys.version.split()[0]} (sealab)"
modules = LOADED
warnoptions: list[str] = []
_getrefcount = sys.getrefcount


def exc_info() -> tuple[type[BaseException], BaseException, None] | tuple[None, None, None]:
    """Return the class and the exception being handled; the traceback's place is None."""
    kind, error, _traceback = sys.exc_info()
    return (None, None, None) if kind is None or error is None else (kind, error, None)


_shown_by: list[Callable[[object], None]] = []


def show_errors_by(show: Callable[[object], None]) -> None:
    """Let `excepthook` write by `show`, which `traceback_` has: it stands on what needs this module."""
    _shown_by[:] = [show]


def excepthook(kind: object, value: object, traceback: object, /) -> None:  # noqa: ARG001 - Python's own signature
    """Write an exception to standard error, as Python prints one that is not caught."""
    for show in _shown_by:
        show(value)


def audit(event: str, *_arguments: object) -> None:
    """Do nothing: there are no audit hooks."""
    if not isinstance(event, str):
        raise TypeError(f"expected str for argument 'event', not {type(event).__name__}")


def _getframe(depth: int = 0, /) -> Frame:
    """Return the record of the call that is `depth` calls above. Raises ValueError."""
    return frame_of_caller(_whole(depth))


def _whole(number: object) -> int:
    if type(number) is not int:
        raise TypeError(f"{type(number).__name__!r} object cannot be interpreted as an integer")
    return number


def exit(status: object = None, /) -> NoReturn:  # noqa: A001 - Python's own name
    """End the code here."""
    raise SystemExit(status)


def getfilesystemencoding() -> str:
    """Return "utf-8"."""
    return "utf-8"


def getfilesystemencodeerrors() -> str:
    """Return "surrogateescape"."""
    return "surrogateescape"


def getrecursionlimit() -> int:
    """Return how deep calls may nest."""
    return sys.getrecursionlimit()


@cache
def recursion_limit_max() -> int:
    """Return the deepest recursion that cannot overflow this process's main stack, at least Python's own default."""
    stack, _hard = resource.getrlimit(resource.RLIMIT_STACK)
    if stack == resource.RLIM_INFINITY:
        return RECURSION_LIMIT_MAX
    return max(_RECURSION_LIMIT_DEFAULT, min(RECURSION_LIMIT_MAX, stack // STACK_BYTES_PER_CALL))


def setrecursionlimit(limit: int, /) -> None:
    """Set how deep calls may nest, up to what the stack allows; a larger limit is taken as that one.

    Textbook code asks for a million as a matter of course. Whether it needs more shows only when it recurses, as a
    RecursionError.
    """
    if type(limit) is not int:
        raise TypeError(f"{type(limit).__name__!r} object cannot be interpreted as an integer")
    if limit <= 0:
        raise ValueError("recursion limit must be greater or equal than 1")
    sys.setrecursionlimit(min(limit, recursion_limit_max()))


def getrefcount(obj: object, /) -> int:
    """Return the number of references to `obj`, the argument's own included."""
    return _getrefcount(obj) - 1
