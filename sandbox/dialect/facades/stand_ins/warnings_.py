"""`warnings` of the code's own making: its own filters, written to its standard error, never the process's."""

# Python's own names and signatures.
# ruff: noqa: PLR0917, ARG001

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal, cast

from ....guest.guest import GUEST
from ....guest.ownership import is_guest_frame

__all__ = [
    "catch_warnings", "filterwarnings", "formatwarning", "resetwarnings", "showwarning", "simplefilter", "warn",
    "warn_explicit",
]  # fmt: skip

_Action = Literal["default", "error", "ignore", "always", "all", "module", "once"]
_ACTIONS = ("default", "error", "ignore", "always", "all", "module", "once")


@dataclass(frozen=True, slots=True)
class _Filter:
    action: _Action
    message: re.Pattern[str] | None
    category: type[Warning]
    line: int

    def covers(self, text: str, category: type[Warning], line: int) -> bool:
        return (
            (self.message is None or self.message.match(text) is not None)
            and issubclass(category, self.category)
            and self.line in {0, line}
        )


class WarningMessage:
    """A warning that `catch_warnings(record=True)` kept."""

    def __init__(self, message: Warning, category: type[Warning], filename: str, lineno: int) -> None:
        self.message = message
        self.category = category
        self.filename = filename
        self.lineno = lineno
        self.file: object = None
        self.line: object = None
        self.source: object = None

    def __str__(self) -> str:
        return (
            f"{{message : {self.message!r}, category : {self.category.__name__!r}, filename : {self.filename!r}, "
            f"lineno : {self.lineno}, line : {self.line!r}}}"
        )


_AT_FIRST = tuple(
    _Filter("ignore", None, kind, 0) for kind in (PendingDeprecationWarning, ImportWarning, ResourceWarning)
)


@dataclass(slots=True)
class _State:
    filters: list[_Filter] = field(default_factory=lambda: [*_AT_FIRST])
    shown: set[object] = field(default_factory=set)
    kept: list[WarningMessage] | None = None


_state = _State()


def warn(
    message: str | Warning,
    category: type[Warning] | None = None,
    stacklevel: int = 1,
    source: object = None,
    *,
    skip_file_prefixes: tuple[str, ...] = (),
) -> None:
    """Issue a warning about the line that called, or about a caller of it."""
    line = _line_of(sys._getframe(1), stacklevel)
    _issue(message, category, "<code>", line)


def warn_explicit(
    message: str | Warning, category: type[Warning], filename: str, lineno: int, *_rest: object, **_more: object
) -> None:
    """Issue a warning about a given place."""
    _issue(message, category, str(filename), lineno)


def _issue(message: str | Warning, category: type[Warning] | None, filename: str, line: int) -> None:
    category = type(message) if isinstance(message, Warning) else category or UserWarning
    if not issubclass(category, Warning):
        raise TypeError(f"category must be a Warning subclass, not {category!r}")
    warning = message if isinstance(message, Warning) else category(message)
    text = str(warning)
    action = next((item.action for item in _state.filters if item.covers(text, category, line)), "default")
    if action == "error":
        raise warning
    if action == "ignore" or not _is_new(action, text, category, line):
        return
    if _state.kept is not None:
        _state.kept.append(WarningMessage(warning, category, filename, line))
    else:
        showwarning(warning, category, filename, line)


def _is_new(action: str, text: str, category: type[Warning], line: int) -> bool:
    if action in {"always", "all"}:
        return True
    key = (text, category) if action in {"once", "module"} else (text, category, line)
    if key in _state.shown:
        return False
    _state.shown.add(key)
    return True


def _line_of(frame: FrameType | None, stacklevel: int) -> int:
    line = 0
    while frame is not None:
        if is_guest_frame(frame):
            line = frame.f_lineno
            stacklevel -= 1
            if stacklevel <= 0:
                break
        frame = frame.f_back
    return line


def formatwarning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: object = None,
) -> str:
    """Return what a warning is shown as: where it was issued, what it says, and the line of the code."""
    told = f"{filename}:{lineno}: {category.__name__}: {message}\n"
    source = GUEST.sources.get(filename, "") if line is None and type(filename) is str else str(line or "")
    lines = source.split("\n", lineno) if line is None else [""] * (lineno - 1) + [source]
    shown = lines[lineno - 1].strip() if 0 < lineno <= len(lines) else ""
    return f"{told}  {shown}\n" if shown else told


def showwarning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_rest: object, **_more: object
) -> None:
    """Write a warning to standard error."""
    GUEST.write_error(formatwarning(message, category, filename, lineno))


def filterwarnings(
    action: _Action,
    message: str = "",
    category: type[Warning] = Warning,
    module: str = "",
    lineno: int = 0,
    append: bool = False,
) -> None:
    """Say what becomes of warnings whose text starts as the pattern `message`, of `category`, at `lineno` (0: any)."""
    _add(_Filter(_known(action), re.compile(message, re.IGNORECASE) if message else None, category, lineno), append)


def simplefilter(action: _Action, category: type[Warning] = Warning, lineno: int = 0, append: bool = False) -> None:
    """Say what becomes of warnings of `category`, at `lineno` (0: any)."""
    _add(_Filter(_known(action), None, category, lineno), append)


def resetwarnings() -> None:
    """Forget all filters."""
    _state.filters.clear()
    _state.shown.clear()


def _known(action: str) -> _Action:
    if action not in _ACTIONS:
        raise ValueError(f"invalid action: {action!r}")
    return cast("_Action", action)


def _add(item: _Filter, append: bool) -> None:
    if not append:
        _state.filters.insert(0, item)
    elif item not in _state.filters:
        _state.filters.append(item)
    _state.shown.clear()


class catch_warnings:  # noqa: N801 - Python's own spelling
    """Restores the filters at the end of its block; with `record=True`, gives a list that takes the warnings."""

    __slots__ = ("__dict__", "__weakref__", "_append", "_before", "_filter", "_record")

    def __init__(
        self,
        *,
        record: bool = False,
        module: object = None,  # noqa: ARG002 - Python's own signature
        action: _Action | None = None,
        category: type[Warning] = Warning,
        lineno: int = 0,
        append: bool = False,
    ) -> None:
        self._record = record
        self._filter = None if action is None else _Filter(_known(action), None, category, lineno)
        self._append = append
        self._before: list[_State] = []

    def __enter__(self) -> list[WarningMessage] | None:
        self._before.append(_State(list(_state.filters), set(_state.shown), _state.kept))
        _state.shown.clear()
        if self._record:
            _state.kept = []
        if self._filter is not None:
            _add(self._filter, self._append)
        return _state.kept if self._record else None

    def __exit__(self, *_error: object) -> None:
        before = self._before.pop()
        _state.filters, _state.shown, _state.kept = before.filters, before.shown, before.kept
