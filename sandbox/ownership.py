"""Security boundary: tells the classes and functions that guest code made from those of the host.

The mark of a class is an attribute of its own dictionary, that of a function or a frame the last constant of its code:
the code of a function cannot be exchanged, whereas the builtins that it runs under can. Guest code can reach neither
mark, and each is one object that only this module hands out.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType, MethodType
from typing import Final

_CLASS_SEAL: Final = object()
_CODE_SEAL: Final = object()
# `typing` leaves names that start with _abc_ out of a protocol's members; any other mark would become one of them.
_CLASS_MARK: Final = "_abc_sealab"

_own_dict = type.__dict__["__dict__"].__get__
_set_on_class = type.__setattr__


def mark_class(cls: type) -> None:
    """Record that guest code made `cls`."""
    _set_on_class(cls, _CLASS_MARK, _CLASS_SEAL)


def mark_body(body: dict[str, object]) -> None:
    """Record that guest code makes the class whose dictionary this will be."""
    dict.__setitem__(body, _CLASS_MARK, _CLASS_SEAL)


def is_guest_class(cls: type) -> bool:
    """Return whether guest code made `cls` itself; a base that it made does not count."""
    return _own_dict(cls).get(_CLASS_MARK) is _CLASS_SEAL


def marked_code(code: CodeType) -> CodeType:
    """Return `code`, and all code within it, with the mark of code that was compiled from guest source."""
    constants = tuple(marked_code(each) if type(each) is CodeType else each for each in code.co_consts)
    return code.replace(co_consts=(*constants, _CODE_SEAL))


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
