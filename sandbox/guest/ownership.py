"""Security boundary: distinguishes the classes and functions that guest code made from those of the host.

The mark of a class is one of its flags, which no store reaches: a name that came from data could otherwise shadow it.
That of a function or a frame is the last constant of its code: the code of a function cannot be exchanged, whereas the
builtins that it runs under can. Guest code can reach neither mark.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType, MethodType
from typing import Final

from .type_flags import GUEST, flags_of, set_flag

_CODE_SEAL: Final = object()
# `typing` leaves names that start with _abc_ out of a protocol's members; any other would become one of them.
_MARKER_NAME: Final = "_abc_sealab"


def mark_class(cls: type) -> None:
    """Record that guest code made `cls`."""
    set_flag(cls, GUEST)


class _Marker:
    """Stands first in the body of a class: Python calls its `__set_name__` before any method that the body defines."""

    __slots__ = ()

    def __set_name__(self, owner: type, _name: str) -> None:
        mark_class(owner)


def mark_body(body: dict[str, object]) -> None:
    """Let each class that is made of this dictionary, or of a copy of it, be marked before code of its own can run."""
    entries = list(dict.items(body))
    dict.clear(body)
    dict.__setitem__(body, _MARKER_NAME, _Marker())
    for name, value in entries:
        dict.__setitem__(body, name, value)


def is_guest_class(cls: type) -> bool:
    """Return whether guest code made `cls` itself; a base that it made does not count."""
    return flags_of(cls) & GUEST != 0


def marked_code(code: CodeType, filename: str) -> CodeType:
    """Return `code`, and all code within it, as of `filename`, with the mark of code compiled from guest source."""
    constants = tuple(marked_code(each, filename) if type(each) is CodeType else each for each in code.co_consts)
    return code.replace(co_consts=(*constants, _CODE_SEAL), co_filename=filename)


def is_guest_code(code: CodeType) -> bool:
    """Return whether `code` was compiled from guest source."""
    constants = code.co_consts
    return bool(constants) and constants[-1] is _CODE_SEAL


def is_guest_callable(value: object) -> bool:
    """Return whether `value` is a function, or a bound method of a function, that was compiled from guest source."""
    if type(value) is MethodType:
        value = value.__func__
    return type(value) is FunctionType and is_guest_code(value.__code__)


def is_guest_frame(frame: FrameType) -> bool:
    """Return whether `frame` runs guest source."""
    return is_guest_code(frame.f_code)
