"""`traceback` of the code's own lines: nothing of the host's frames, files or paths."""

# Python's own names and signatures.
# ruff: noqa: ARG001, PLR0917

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

from ....guest.guest import GUEST
from ..call_records import CodeLine, lines_of_callers, lines_of_traceback
from ..streams import STDERR
from .sys_ import show_errors_by

__all__ = [
    "FrameSummary", "StackSummary", "extract_stack", "extract_tb", "format_exc", "format_exception",
    "format_exception_only", "format_list", "format_stack", "format_tb", "print_exc", "print_exception", "print_list",
    "print_stack", "print_tb",
]  # fmt: skip

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

    text = describe(error, GUEST.sources.get(SOURCE_NAME, ""), earlier=GUEST.sources).traceback
    return [f"{line}\n" for line in (text or "").splitlines()]


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


class FrameSummary(NamedTuple):
    """One line of the code, with the function that it is in and its text."""

    filename: str
    lineno: int
    name: str
    line: str = ""

    def __repr__(self) -> str:
        return f"<FrameSummary file {self.filename}, line {self.lineno} in {self.name}>"


class StackSummary(list[FrameSummary]):
    """Lines of the code, as a list."""

    def format(self) -> list[str]:
        """Return the lines as Python prints them."""
        return format_list(self)


def extract_tb(tb: object, limit: object = None) -> StackSummary:
    """Return the lines of the code that an exception passed, outermost first; the first `limit` of them."""
    if tb is not None and type(tb) is not TracebackType:
        raise TypeError(f"expected a traceback, got {type(tb).__name__!r}")
    return _summary(lines_of_traceback(tb), _whole(limit))


def extract_stack(f: object = None, limit: object = None) -> StackSummary:
    """Return the lines that the code is in, innermost last; the last `limit` of them."""
    if f is not None:
        raise TypeError("the stack of a frame is not shown here; leave f out")
    most = _whole(limit)
    return _summary(lines_of_callers()[::-1], None if most is None else -most)


def _whole(limit: object) -> int | None:
    if limit is not None and type(limit) is not int:
        raise TypeError(f"limit must be an int or None, not {type(limit).__name__!r}")
    return limit


def _summary(lines: list[CodeLine], limit: int | None) -> StackSummary:
    from ....report.failures import source_line

    kept = lines if limit is None else lines[:limit] if limit >= 0 else lines[limit:]
    return StackSummary(
        FrameSummary(*each, source_line(GUEST.sources.get(each.filename, ""), each.lineno)) for each in kept
    )


def format_list(extracted_list: Iterable[Any]) -> list[str]:
    """Return lines of the code as Python prints them."""
    shown = []
    for each in extracted_list:
        filename, lineno, name, text = each
        shown.append(
            f'  File "{filename}", line {lineno}, in {name}\n' + (f"    {str(text).strip()}\n" if text else "")
        )
    return shown


def format_tb(tb: object, limit: object = None) -> list[str]:
    """Return the lines of the code that an exception passed, as Python prints them."""
    return format_list(extract_tb(tb, limit))


def format_stack(f: object = None, limit: object = None) -> list[str]:
    """Return the lines that the code is in, as Python prints them."""
    return format_list(extract_stack(f, limit))


def print_list(extracted_list: Iterable[Any], file: Any = None) -> None:
    """Write lines of the code to `file`, by default to standard error."""
    (GUEST.write_error if file is None else file.write)("".join(format_list(extracted_list)))


def print_tb(tb: object, limit: object = None, file: Any = None) -> None:
    """Write the lines of the code that an exception passed."""
    print_list(extract_tb(tb, limit), file)


def print_stack(f: object = None, limit: object = None, file: Any = None) -> None:
    """Write the lines that the code is in."""
    print_list(extract_stack(f, limit), file)


show_errors_by(lambda error: print_exception(error, file=STDERR))
