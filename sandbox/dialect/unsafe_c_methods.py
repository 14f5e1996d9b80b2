"""Security boundary: methods written in C that make an object of their receiver's class and write into what they get.

`SimpleNamespace.__replace__` calls the class, takes what a `__new__` of the code's own returns for a namespace, and
writes names that code chose to where a namespace has its dictionary; a function has the variables of its module there.
The copying methods of a property write into whatever property they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, MethodDescriptorType, MethodType, SimpleNamespace
from typing import Any, Final, cast

from ..guest.real_classes import class_dict, derives
from .names import REPLACING_METHOD

_parts_of_property: Final = tuple(class_dict(property)[name].__get__ for name in ("fget", "fset", "fdel"))  # type: ignore[attr-defined]  # members written in C
_doc_of_property: Final = class_dict(property)["__doc__"].__get__  # type: ignore[attr-defined]  # as above
_attributes: Final = class_dict(SimpleNamespace)["__dict__"].__get__  # type: ignore[attr-defined]  # as above


def _replacing() -> Callable[..., object]:
    def replaced(self: Any, /, **changes: object) -> object:
        """Return a namespace like this one, with some attributes changed."""
        if not derives(type(self), SimpleNamespace):
            raise TypeError(f"__replace__() needs a SimpleNamespace, not {type(self).__name__!r}")
        made: Any = type(self)()
        if not derives(type(made), SimpleNamespace):
            raise TypeError(f"expected a SimpleNamespace, but {type(self).__name__}() returned {type(made).__name__!r}")
        SimpleNamespace.__init__(made, **(_attributes(self) | changes))
        return made

    return replaced


def _copying(part: int, raw: Callable[..., object]) -> Callable[..., object]:
    def copied(self: Any, function: object, /) -> object:
        if not derives(type(self), property) or type(self) is property:
            return raw(self, function)
        parts = [get(self) for get in _parts_of_property]
        doc = _doc_of_property(self)
        if doc is getattr(parts[0], "__doc__", None):
            doc = None  # the getter of the copy has it
        parts[part] = function if function is not None else parts[part]
        return type(self)(*parts, doc)

    return copied


_STAND_INS: Final[Mapping[str, tuple[type, Callable[..., object]]]] = {
    REPLACING_METHOD: (SimpleNamespace, _replacing()),
    **{
        name: (property, _copying(part, cast("Any", class_dict(property)[name])))
        for part, name in enumerate(("getter", "setter", "deleter"))
    },
}
REMAKING: Final = frozenset(_STAND_INS)
"""The names of such methods."""


def remade(value: object, name: str) -> object:
    """Return the method `value`, read under `name`, or what is given in its place."""
    cls, stand_in = _STAND_INS[name]
    if type(value) is MethodDescriptorType and value is class_dict(cls).get(name):
        return stand_in
    if type(value) is BuiltinFunctionType and value.__name__ == name and derives(type(value.__self__), cls):
        return MethodType(stand_in, value.__self__)
    return value
