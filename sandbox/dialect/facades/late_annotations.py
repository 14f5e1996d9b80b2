"""A security boundary: annotations that Python evaluates late, from 3.14 on (PEP 649, PEP 749).

Where a name is missing, `annotationlib` runs the guest's code again among objects that stand for any name, which guest
code would hold and which lead to namespaces; and `ForwardRef.evaluate` evaluates text as Python. After `install` both
stay in the dialect: a missing name becomes a `ForwardRef`, and text is evaluated as the code itself would be.
"""

from __future__ import annotations

import importlib
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final, cast

from ...guest.ownership import is_guest_callable
from .stand_ins.typing_ import evaluated

_LATE: Final = sys.version_info >= (3, 14)
_VALUE: Final = 1
_STRING: Final = 4
"""Members of `annotationlib.Format`; an annotate function takes them as numbers."""

Annotate = Callable[[int], dict[str, object]]


def annotate_of(cls: type) -> Annotate | None:
    """Return what evaluates the annotations of `cls`, or None where they stand ready in `__annotations__`."""
    return cast("Annotate | None", type.__dict__["__annotate__"].__get__(cls)) if _LATE else None


def set_annotate(cls: type, annotate: Annotate | None) -> None:
    """Let `cls` evaluate its annotations by `annotate` again; does nothing for None."""
    if annotate is not None:
        type.__dict__["__annotate__"].__set__(cls, annotate)


def annotations_now(annotate: Annotate) -> dict[str, object]:
    """Return the annotations that `annotate` gives, with a `ForwardRef` for each name that is not defined yet.

    Raises what the annotations raise, `NameError` where a missing name stands in an inner scope.
    """
    try:
        return annotate(_VALUE)
    except NameError:
        if type(annotate) is not types.FunctionType or not is_guest_callable(annotate):
            raise
        return cast("Annotate", _with_every_name(annotate))(_VALUE)


def _with_every_name(annotate: types.FunctionType) -> types.FunctionType:
    code, space = annotate.__code__, annotate.__globals__
    builtins = cast("Any", annotate).__builtins__  # type checkers differ on whether functions have them
    missing = [name for name in code.co_names if name not in space and name not in builtins]
    cells = [_filled(cell, name) for cell, name in zip(annotate.__closure__ or (), code.co_freevars, strict=True)]
    # `__builtins__` stands in the copy as well: what the annotations define is the guest's own.
    return types.FunctionType(
        code, {**space, **{name: typing.ForwardRef(name) for name in missing}}, closure=tuple(cells) or None
    )


def _filled(cell: types.CellType, name: str) -> types.CellType:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return types.CellType(typing.ForwardRef(name))
    return cell


def install() -> None:
    """Make the standard library evaluate the guest's annotations this way, in a process of the guest's own."""
    if not _LATE:
        return
    library: Any = importlib.import_module("annotationlib")
    real_text = library.annotations_to_string

    def call_annotate_function(annotate: Annotate, format: int, **_options: object) -> dict[str, object]:  # noqa: A002 - Python's own parameter
        if is_guest_callable(annotate):
            found = annotations_now(annotate)
            return cast("dict[str, object]", real_text(found)) if format == _STRING and type(found) is dict else found
        try:
            return annotate(format)
        except NotImplementedError:
            return annotate(_VALUE)

    def evaluate(
        self: typing.ForwardRef,
        *,
        globals: dict[str, Any] | None = None,  # noqa: A002 - Python's own parameter
        locals: dict[str, Any] | None = None,  # noqa: A002 - as above
        **_options: object,
    ) -> object:
        return evaluated(self, globals, locals)

    library.call_annotate_function = call_annotate_function
    library.ForwardRef.evaluate = evaluate
