"""Security boundary: what no store from Python reaches in a class: its flags, and its methods where it is immutable.

The flags are `tp_flags` of Include/object.h.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_Class = TypeVar("_Class", bound=type)

IMMUTABLE: Final = 1 << 8
"""Python refuses stores to the class (`Py_TPFLAGS_IMMUTABLETYPE`)."""
_BASE: Final = 1 << 10
"""Classes may derive from the class (`Py_TPFLAGS_BASETYPE`)."""
GUEST: Final = 1 << 15
"""A bit that CPython leaves to Stackless Python: it neither reads it nor hands it on to subclasses."""
_OFFSET: Final = 21 * ctypes.sizeof(ctypes.c_void_p)
"""Where `tp_flags` stands in `PyTypeObject`: after 21 words, in every CPython that is not free-threaded."""
_DICT_OFFSET: Final = 33 * ctypes.sizeof(ctypes.c_void_p)
"""Where `tp_dict` stands there. From 3.12 on it is empty in the types that CPython itself defines."""

flags_of: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__


def set_flag(cls: type, flag: int) -> None:
    """Set one of the flags above. Raises RuntimeError on an interpreter whose types are laid out otherwise."""
    _flags(cls).value |= flag


def final(cls: _Class) -> _Class:
    """Let no class derive from this one, as none does from `bool`. Raises as `set_flag` does.

    `__init_subclass__` could not refuse it: another base may answer in its place.
    """
    _flags(cls).value &= ~_BASE
    return cls


def replace_method(cls: type, name: str, method: Callable[..., object]) -> None:
    """Put `method` into an immutable class. Raises as `set_flag` does."""
    flags = _flags(cls)
    own_dict = ctypes.c_size_t.from_address(id(cls) + _DICT_OFFSET)
    before = own_dict.value
    flags.value &= ~IMMUTABLE
    try:
        if not before:
            _members(cls)[name] = method
        type.__setattr__(cls, name, method)  # also has C code find it, in the class and in those that derive from it
    finally:
        own_dict.value = before
        flags.value |= IMMUTABLE


def remove_methods(cls: type, names: Iterable[str]) -> None:
    """Take methods out of a class, whether it was written in C or not. Those it does not have are passed over."""
    members = _members(cls)  # `type.__delattr__` finds none in a type that CPython itself defines
    for name in names:
        members.pop(name, None)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))  # empties the caches of attributes


def _members(cls: type) -> dict[str, object]:
    members: dict[str, object]
    (members,) = gc.get_referents(cls.__dict__)
    return members


def _flags(cls: type) -> ctypes.c_ulong:
    flags = ctypes.c_ulong.from_address(id(cls) + _OFFSET)
    if flags.value != flags_of(cls):
        raise RuntimeError("the classes of this Python cannot be sealed: it is not a CPython laid out as expected")
    return flags
