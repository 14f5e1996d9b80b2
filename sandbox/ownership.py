"""Security boundary: tells the classes and functions that guest code made from those of the host.

The mark of a class is an attribute of its own dictionary, that of a function an entry of the builtins it was compiled
under. Guest code can spell neither name, and the value is one object that only this module hands out.
"""

from __future__ import annotations

from types import FrameType, FunctionType, MethodType
from typing import Final

from .names import PREFIX

SEAL: Final = object()
BUILTINS_MARK: Final = f"{PREFIX}seal"
# `typing` leaves names that start with _abc_ out of a protocol's members; any other mark would become one of them.
_CLASS_MARK: Final = "_abc_sealab"

_own_dict = type.__dict__["__dict__"].__get__
_set_on_class = type.__setattr__
_builtins_of = vars(FunctionType)["__builtins__"].__get__  # since Python 3.10; the stubs do not know it


def mark_class(cls: type) -> None:
    """Record that guest code made `cls`."""
    _set_on_class(cls, _CLASS_MARK, SEAL)


def mark_body(body: dict[str, object]) -> None:
    """Record that guest code makes the class whose dictionary this will be."""
    dict.__setitem__(body, _CLASS_MARK, SEAL)


def is_guest_class(cls: type) -> bool:
    """Tell whether guest code made `cls` itself; a base that it made does not count."""
    return _own_dict(cls).get(_CLASS_MARK) is SEAL


def is_guest_callable(value: object) -> bool:
    """Tell whether `value` is a function, or a bound method of a function, that was compiled from guest source."""
    if type(value) is MethodType:
        value = value.__func__
    return type(value) is FunctionType and _sealed(_builtins_of(value))


def is_guest_frame(frame: FrameType) -> bool:
    """Tell whether `frame` runs guest source."""
    return _sealed(frame.f_builtins)


def is_guest_namespace(namespace: dict[str, object]) -> bool:
    """Tell whether source that runs in `namespace` runs under the guarded builtins."""
    return _sealed(namespace.get("__builtins__"))


def _sealed(builtins: object) -> bool:
    return type(builtins) is dict and builtins.get(BUILTINS_MARK) is SEAL
