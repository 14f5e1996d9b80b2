"""Security boundary: the flags of classes, which no store from Python reaches (`tp_flags` in Include/object.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

IMMUTABLE: Final = 1 << 8
"""Python refuses stores to the class (`Py_TPFLAGS_IMMUTABLETYPE`)."""
GUEST: Final = 1 << 15
"""A bit that CPython leaves to Stackless Python: it neither reads it nor hands it on to subclasses."""
_OFFSET: Final = 21 * ctypes.sizeof(ctypes.c_void_p)
"""Where `tp_flags` stands in `PyTypeObject`: after 21 words, in every CPython that is not free-threaded."""

flags_of: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__


def set_flag(cls: type, flag: int) -> None:
    """Set one of the flags above. Raises RuntimeError on an interpreter whose types are laid out otherwise."""
    flags = ctypes.c_ulong.from_address(id(cls) + _OFFSET)
    if flags.value != flags_of(cls):
        raise RuntimeError("the classes of this Python cannot be sealed: it is not a CPython laid out as expected")
    flags.value |= flag
