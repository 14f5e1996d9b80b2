"""A security boundary: the bytes of a `bytearray` stay where they are while a method asks a value for its number.

Written in C, these methods find the bytes and then call the `__index__`, `__len__`, `__repr__` or `__iter__` of what
they are given: code that emptied the `bytearray` there had them read memory that was freed (CPython 3.11 to 3.13). A
buffer that is shown by a `memoryview` refuses to change its size.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any, Final

from ....guest.type_flags import replace_method

_ASKING: Final = (
    (bytearray, "__contains__ __mod__ count endswith find hex index join rfind rindex startswith".split()),  # noqa: SIM905 - read as words
    (memoryview, ["hex"]),
)
_PLAIN: Final = frozenset({int, bool, bytes, bytearray, str, type(None)})
"""Classes of what is asked nothing."""
_shown: Final[Callable[[Any], memoryview]] = memoryview
_release: Final = memoryview.release
_hash_of: Final[Callable[[memoryview], int]] = memoryview.__hash__
_write_to: Final[Callable[..., None]] = array.array.tofile


def keep() -> None:
    """Let these methods show the buffer while they work, as do the hash of a view and an array that writes itself."""
    for cls, names in _ASKING:
        for name in names:
            replace_method(cls, name, _showing(cls, getattr(cls, name)))
    replace_method(memoryview, "__hash__", _hash)
    replace_method(array.array, "tofile", _write)


def _hash(self: memoryview, /) -> int:
    try:
        view = _shown(self)
    except ValueError:  # it was released
        return _hash_of(self)
    try:
        return _hash_of(self)  # asks the object whose bytes these are
    finally:
        _release(view)


def _write(self: array.array[Any], file: Any, /) -> None:
    with _shown(self):
        _write_to(self, file)


def _showing(cls: type, method: Callable[..., Any]) -> Callable[..., Any]:
    def shown(self: Any, /, *arguments: Any, **keywords: Any) -> Any:
        if (not keywords and _PLAIN.issuperset(map(type, arguments))) or not isinstance(self, cls):
            return method(self, *arguments, **keywords)
        view = _shown(self)
        try:
            return method(self, *arguments, **keywords)
        finally:
            _release(view)

    shown.__name__ = shown.__qualname__ = method.__name__
    shown.__doc__ = method.__doc__
    return shown
