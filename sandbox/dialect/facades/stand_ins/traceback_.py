"""`traceback` of the code's own lines: nothing of the host's frames, files or paths."""

# Python's own names and signatures.
# ruff: noqa: ARG001, PLR0917

from __future__ import annotations

import sys
from typing import Any

from ....guest.guest import GUEST
from ..streams import STDERR
from .sys_ import show_errors_by

__all__ = ["format_exc", "format_exception", "format_exception_only", "print_exc", "print_exception"]

_FROM_VALUE: Any = object()


def format_exception(
    exc: object,
    /,
    value: Any = _FROM_VALUE,
    tb: object = None,
    limit: object = None,
    chain: bool = True,
    **_options: object,
) -> list[str]:
    """Return the lines that Python would print of an exception; also called as `(type, exception, traceback)`."""
    error = exc if value is _FROM_VALUE else value
    if not isinstance(error, BaseException):
        return ["NoneType: None\n"]
    from ....report.failures import SOURCE_NAME, describe

    told = describe(error, GUEST.sources.get(SOURCE_NAME, ""), earlier=GUEST.sources).traceback
    return [f"{line}\n" for line in (told or "").splitlines()]


def format_exception_only(exc: object, /, value: Any = _FROM_VALUE, **_options: object) -> list[str]:
    """Return the line that names an exception and its message."""
    error = exc if value is _FROM_VALUE else value
    if not isinstance(error, BaseException):
        return ["NoneType: None\n"]
    from ....report.failures import kind_of, message_of

    message = message_of(error)
    return [f"{kind_of(error)}: {message}\n" if message else f"{kind_of(error)}\n"]


def format_exc(limit: object = None, chain: bool = True) -> str:
    """Return what Python would print of the exception being handled."""
    return "".join(format_exception(sys.exc_info()[1]))


def print_exception(
    exc: object,
    /,
    value: Any = _FROM_VALUE,
    tb: object = None,
    limit: object = None,
    file: Any = None,
    chain: bool = True,
) -> None:
    """Write an exception to `file`, by default to standard error."""
    write = GUEST.write_error if file is None else file.write
    write("".join(format_exception(exc, value)))


def print_exc(limit: object = None, file: Any = None, chain: bool = True) -> None:
    """Write the exception being handled to `file`, by default to standard error."""
    print_exception(sys.exc_info()[1], file=file)


show_errors_by(lambda error: print_exception(error, file=STDERR))
