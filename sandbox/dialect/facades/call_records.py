"""Security boundary: records of the calls that code is in, and of its closures, in place of frames and cells.

Only frames that run guest code have a record. Their variables are those that `globals()` shows there. Of the
cells of its functions code finds those that hold the class of a method, for `super()`, and can put another there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CellType, CodeType, FrameType, FunctionType, TracebackType
from typing import Final, NamedTuple, cast

from ...guest.ownership import is_guest_callable, is_guest_class, is_guest_frame
from ..names import demangle
from ..views import namespace_view

_Call = tuple[CodeType, int, dict[str, object]]
"""What runs, at which line, and the global variables."""
DEPTH_MAX: Final = 1_000
"""Calls that have a record, from the innermost on."""


class Code:
    """The record of a function's or a call's code: a name, a file and a line."""

    __slots__ = ("_code",)
    __module__ = "builtins"
    _code: CodeType

    @property
    def co_name(self) -> str:
        """The name of the function."""
        return demangle(self._code.co_name)

    @property
    def co_filename(self) -> str:
        """The file that it is in."""
        return self._code.co_filename

    @property
    def co_firstlineno(self) -> int:
        """The line that it begins in."""
        return self._code.co_firstlineno

    def __eq__(self, other: object) -> bool:
        return type(self) is Code and type(other) is Code and self._code is other._code

    def __hash__(self) -> int:
        return id(self._code)


def code_of(real: CodeType) -> Code:
    """Return the record of code that was compiled from guest source."""
    made = Code()
    made._code = real
    return made


class Frame:
    """One call of those that code is in; `frame_attribute` gives what source names as its attributes."""

    __slots__ = ("_calls",)
    __module__ = "builtins"
    _calls: Sequence[_Call]

    @property
    def f_lineno(self) -> int:
        """The line that runs."""
        return self._calls[0][1]

    def __repr__(self) -> str:
        code, line, _variables = self._calls[0]
        return f"<frame, file {code.co_filename!r}, line {line}, code {demangle(code.co_name)}>"


def frame_attribute(frame: Frame, name: str) -> object:
    """Return an attribute of a frame. Raises `AttributeError` for what a record does not have."""
    code, _line, variables = frame._calls[0]
    match name:
        case "f_back":
            return _frame(frame._calls[1:])
        case "f_globals":
            return namespace_view(variables)
        case "f_code":
            return code_of(code)
        case _:
            raise AttributeError(f"{name!r} of a frame is not available here")


def frame_of_caller(depth: int) -> Frame:
    """Return the frame that is `depth` calls above the code that calls the function which calls this.

    Raises ValueError where there are fewer.
    """
    found = _frame(_calls_from(sys._getframe(2))[max(0, depth) :])
    if found is None:
        raise ValueError("call stack is not deep enough")
    return found


def _calls_from(real: FrameType | None, most: int = DEPTH_MAX) -> list[_Call]:
    calls: list[_Call] = []
    while real is not None and len(calls) < most:
        if is_guest_frame(real):
            calls.append((real.f_code, real.f_lineno, real.f_globals))
        real = real.f_back
    return calls


class CodeLine(NamedTuple):
    """A line of the code that runs, or that an exception passed."""

    filename: str
    lineno: int
    name: str


def lines_of_callers(most: int = DEPTH_MAX) -> list[CodeLine]:
    """Return the lines that the code is in which calls the host, innermost first."""
    return [_line_of(code, line) for code, line, _variables in _calls_from(sys._getframe(1), most)]


def lines_of_traceback(traceback: TracebackType | None) -> list[CodeLine]:
    """Return the lines of the code that an exception passed, outermost first."""
    lines: list[CodeLine] = []
    while traceback is not None and len(lines) < DEPTH_MAX:
        if is_guest_frame(traceback.tb_frame):
            lines.append(_line_of(traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return lines


def _line_of(code: CodeType, line: int | None) -> CodeLine:
    return CodeLine(code.co_filename, line or code.co_firstlineno, demangle(code.co_name))


def _frame(calls: Sequence[_Call]) -> Frame | None:
    if not calls:
        return None
    made = Frame()
    made._calls = calls
    return made


class ClassCell:
    """The cell of a method's class; `class_in` and `put_class` read and change it."""

    __slots__ = ("_cell",)
    __module__ = "builtins"
    _cell: CellType

    def __repr__(self) -> str:
        return "<cell of a class>"


def class_cells(function: object) -> tuple[ClassCell, ...]:
    """Return the cells of a function that code made itself in which the class of the method is."""
    if type(function) is not FunctionType or not is_guest_callable(function):
        return ()
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    made = [ClassCell()] if "__class__" in cells else []
    for each in made:
        each._cell = cells["__class__"]
    return tuple(made)


def class_in(cell: ClassCell) -> object:
    """Return what a cell holds, as `__class__` in the method does. Raises ValueError for an empty one."""
    return cell._cell.cell_contents


def put_class(cell: ClassCell, value: object) -> None:
    """Put a class that the code made itself into a cell. Raises TypeError for anything else."""
    if not (issubclass(type(value), type) and is_guest_class(cast("type", value))):
        raise TypeError("the class of a method can only be exchanged for one that the code made itself")
    cell._cell.cell_contents = value
