"""Security boundary: what code is told of the calls that it is in, and of its closures: no frame, and no cell.

Only frames that run code of the guest's are told of. Their variables are those that `globals()` shows there. Of the
cells of its functions code finds those that hold the class of a method, for `super()`, and can put another there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CellType, FrameType, FunctionType, SimpleNamespace
from typing import Final

from ...guest.ownership import is_guest_callable, is_guest_class, is_guest_frame
from ..names import demangle
from ..views import namespace_view

_Call = tuple[str, str, int, int, dict[str, object]]
"""The name of a function, its file, its first line, the line that runs, and the global variables."""
DEPTH_MAX: Final = 1_000
"""Calls that are told of, from the innermost on."""


class Frame:
    """One call of those that code is in; `told` gives what source names as its attributes."""

    __slots__ = ("_calls",)
    __module__ = "builtins"
    _calls: Sequence[_Call]

    @property
    def f_lineno(self) -> int:
        """The line that runs."""
        return self._calls[0][3]

    def __repr__(self) -> str:
        name, file, _first, line, _variables = self._calls[0]
        return f"<frame, file {file!r}, line {line}, code {name}>"


def told(frame: Frame, name: str) -> object:
    """Return an attribute of a frame. Raises `AttributeError` for what is not told."""
    function, file, first, _line, variables = frame._calls[0]
    match name:
        case "f_back":
            return _frame(frame._calls[1:])
        case "f_globals":
            return namespace_view(variables)
        case "f_code":
            return SimpleNamespace(co_name=function, co_filename=file, co_firstlineno=first)
        case _:
            raise AttributeError(f"{name!r} of a frame is not told here")


def frame_of_caller(depth: int) -> Frame:
    """Return the frame that is `depth` calls above the code that calls the function which calls this.

    Raises ValueError where there are fewer.
    """
    calls: list[_Call] = []
    real: FrameType | None = sys._getframe(2)
    while real is not None and len(calls) < DEPTH_MAX:
        if is_guest_frame(real):
            code = real.f_code
            calls.append((demangle(code.co_name), code.co_filename, code.co_firstlineno, real.f_lineno, real.f_globals))
        real = real.f_back
    found = _frame(calls[max(0, depth) :])
    if found is None:
        raise ValueError("call stack is not deep enough")
    return found


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
    if not (isinstance(value, type) and is_guest_class(value)):
        raise TypeError("the class of a method can only be exchanged for one that the code made itself")
    cell._cell.cell_contents = value
