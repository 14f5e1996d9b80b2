"""Security boundary: what stands for the metaclasses that code defines. None of them is a metaclass to Python.

A real one could define `__instancecheck__`, `mro` and `__prepare__`, which Python hands what only the host has. So
`class M(type)` makes an ordinary class of the guest's, a record of methods that derives from `Metaclass`. A class that
M governs is made by the rules for every other class (`classes`). Its real metaclass is `Governed`, of the host, which
gives M the few things that code asks it for: making the class, calling the class, and public or private attributes
that the class itself does not have.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from ..guest.ownership import is_guest_class
from ..guest.real_classes import attribute_of_class, class_dict, derives, mro_of
from .names import DEFINABLE, INITIALIZER, PREFIX, Verdict, demangle, is_of_host, judge

GOVERNOR: Final = f"{PREFIX}metaclass"
"""Where a class has its metaclass: a name that neither source nor data can spell, and that no dictionary shows."""
_DEFINED: Final = frozenset({"__new__", INITIALIZER, "__call__", "__doc__", "__module__", "__qualname__"})
"""Of the names that mean something to Python, what a metaclass may define."""
_real_call = type.__call__
_MISSING: Final = object()

_make: Callable[..., object]


def provide(make: Callable[..., object]) -> None:
    """Take what makes a class for `type.__new__`; `classes` calls it when it is imported."""
    global _make  # noqa: PLW0603 - once
    _make = make


class _Record(type):
    """The real class of metaclasses of the code's own: a call makes a class, then initializes it."""

    def __call__(cls, *arguments: object, **keywords: object) -> object:
        make: Any = cls.__new__
        made = make(cls, *arguments, **keywords)
        governor: Any = governor_of(made)
        if governor is not None and derives(governor, cls):
            governor.__init__(made, *arguments, **keywords)
        return made


def _call_plainly(cls: object, /, *arguments: object, **keywords: object) -> object:
    """Do what `type.__call__` does, for the classes that a metaclass of the code's own governs."""
    if governor_of(cls) is None:
        raise TypeError("type.__call__() takes a class that has a metaclass of the code's own")
    return _real_call(cls, *arguments, **keywords)  # type: ignore[arg-type]  # such a class


def _make_plainly(cls: object, /, *arguments: object, **keywords: object) -> object:
    return _make(cls, *arguments, **keywords)


def initialize_plainly(*_arguments: object, **_keywords: object) -> None:
    """Do nothing, as `type.__init__` does."""


class Metaclass(metaclass=_Record):
    """What a metaclass derives from that the code derives from `type`."""

    __new__ = _make_plainly  # type: ignore[assignment]  # a static method, as `__new__` always is
    __init__ = initialize_plainly
    __call__ = _call_plainly


class AbstractMetaclass(Metaclass):
    """What a metaclass derives from that the code derives from `ABCMeta`."""


_RECORDS: Final = frozenset({Metaclass, AbstractMetaclass})


class Governed(type):
    """The real class of the classes that have a metaclass of the code's own."""

    def __call__(cls, *arguments: object, **keywords: object) -> object:  # noqa: D102 - as its class says
        if governor_of(cls) is None:  # a bound method that is compared tells the other side its function
            raise TypeError(f"descriptor '__call__' does not apply to {type(cls).__name__!r} objects")
        call = own_call(cls)
        if call is None:
            return _real_call(cls, *arguments, **keywords)
        made = call(*arguments, **keywords)
        if not derives(type(made), cls):
            raise TypeError(f"__call__() of a metaclass must return an object of the class here, of {cls.__name__!r}")
        return made

    def __getattr__(cls, name: str) -> object:
        if not (name.startswith("__") or is_of_host(name)):
            for base in mro_of(_governor(cls)):
                value = class_dict(base).get(name, _MISSING) if is_guest_class(base) else _MISSING
                if value is not _MISSING:
                    return _bound(value, cls)
        raise AttributeError(
            f"type object {cls.__name__!r} has no attribute {demangle(name)!r}", name=demangle(name), obj=cls
        )

    @property  # type: ignore[misc]  # read-only
    def __class__(cls) -> type:  # what `super()` in a method of the metaclass asks for
        return _governor(cls)


class GovernedAbstract(Governed, ABCMeta):
    """The same for classes that have abstract methods."""


_FITTING: Final = (type, ABCMeta, Governed, GovernedAbstract)


def _governor(cls: type) -> type:
    found: type = cast("Any", attribute_of_class(cls, GOVERNOR))
    return found


def _bound(value: object, cls: type) -> Any:
    bind = getattr(type(value), "__get__", None)
    return value if bind is None else bind(value, cls, _governor(cls))


def governor_of(value: object) -> type | None:
    """Return the metaclass that governs `value`, where `value` is a class that has one of the code's own."""
    return _governor(cast("type", value)) if issubclass(type(value), Governed) else None


def own_call(value: object) -> Callable[..., object] | None:
    """Return what a metaclass of the code's own says for how `value`, a class that it governs, is called."""
    governor = governor_of(value)
    call = None if governor is None else attribute_of_class(governor, "__call__")
    return None if call is None or call is _call_plainly else _bound(call, cast("type", value))


def is_metaclass(value: object) -> bool:
    """Return whether `value` is a metaclass of the code's own."""
    return type(value) is _Record and is_guest_class(cast("type", value))


def real_metaclass(governor: type, bases: Iterable[type]) -> type:
    """Return what is really to make a class of these bases. Raises `TypeError` for what does not fit together."""
    kinds = [type(base) for base in bases]
    if not all(any(kind is fitting for fitting in _FITTING) for kind in kinds):
        raise TypeError("metaclass conflict: a metaclass of your own fits ordinary and abstract base classes alone")
    is_abstract = derives(governor, AbstractMetaclass) or any(derives(kind, ABCMeta) for kind in kinds)
    return GovernedAbstract if is_abstract else Governed


def winner(asked: type | None, bases: Iterable[object]) -> type | None:
    """Return the most derived of the metaclasses of the code's own. Raises `TypeError` where there is none such."""
    found = asked
    for governor in filter(None, map(governor_of, bases)):
        if found is None or derives(governor, found):
            found = governor
        elif not derives(found, governor):
            raise TypeError("metaclass conflict: the bases of the class have metaclasses that do not fit together")
    return found


def may_define(name: str) -> bool:
    """Return whether a metaclass may define a name: Python would look most special methods up in the real one."""
    return not name.startswith("__") or name in _DEFINED or judge(name) is Verdict.PRIVATE


def check_bases(bases: Iterable[type]) -> None:
    """Raise `TypeError` where a metaclass would derive from another class of Python's own.

    A class that it governs passes for an instance of all that it derives from, and would be initialized as one.
    """
    host = [base for each in bases for base in mro_of(each) if base is not object and not is_guest_class(base)]
    others = [base for base in host if base not in _RECORDS]
    if others and len(others) < len(host):
        other = others[0].__name__
        raise TypeError(f"a metaclass cannot derive from {other!r} here; derive it from type or ABCMeta alone")


def check_body(names: Iterable[str]) -> None:
    """Raise `TypeError` for what a metaclass would define in vain."""
    for name in names:
        if name in DEFINABLE and not may_define(name):
            raise TypeError(f"a metaclass cannot define {name!r} here; define __new__, __init__ or __call__")
