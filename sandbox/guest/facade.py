"""A security boundary: the frozen object that guest code gets in place of a module.

Every facade is the only instance of a class of its own whose slots are its names. So there is no instance dictionary,
and a read costs one slot load. A name that is not listed does not exist, and neither the facade nor its class takes a
store. The class cannot be called or subclassed: `type(json)("os", None)` once made a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn, cast

from .spelling import exact


class Module:
    """The class of all modules, and `types.ModuleType`: facades and guest modules derive from it, and so may code.

    Called itself it makes a guest module; see `module_object`.
    """

    __slots__ = ()
    __module__ = "builtins"

    def __init__(self, name: str, doc: object = None) -> None:
        if isinstance(self, Facade):  # has its name
            return
        if not isinstance(name, str):
            raise TypeError(f"module name must be str, not {type(name).__name__}")
        object.__setattr__(self, "__name__", exact(name))
        object.__setattr__(self, "__doc__", doc)


Module.__name__ = Module.__qualname__ = "module"


class Sealed(type):
    """The class of facade classes: they take no stores, make no instances, and say so."""

    def __setattr__(cls, name: str, value: object) -> NoReturn:
        raise AttributeError("modules are read-only here; keep the value in a variable of your own")

    def __delattr__(cls, name: str) -> NoReturn:
        raise AttributeError("modules are read-only here")

    def __call__(cls, *_arguments: object, **_keywords: object) -> NoReturn:
        """Refuse: facades are made by `make` alone."""
        raise TypeError("modules cannot be made here; use a class or a dict")


class Facade(Module, metaclass=Sealed):
    """What every facade is an instance of; see `make` for how one comes to be."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        if Facade not in cls.__bases__:
            raise TypeError("a module cannot be a base class")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"cannot set {name!r}: modules are read-only here; keep the value in a variable of your own"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name!r}: modules are read-only here")

    def __repr__(self) -> str:
        return f"<module {title(self)!r}>"

    def __dir__(self) -> list[str]:
        return sorted(names(self))

    def __copy__(self) -> Facade:
        return self

    def __deepcopy__(self, _memo: object) -> Facade:
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a module cannot be pickled")


def make(
    module: str,
    members: Mapping[str, object],
    submodules: Iterable[str] = (),
    *,
    store: Callable[[str, object], bool] | None = None,
) -> Facade:
    """Return the facade of `module`, with exactly `members`; `submodules` are set when they are first imported.

    `store` says whether it has stored what code assigns.
    """
    # The class's name is what Python itself says on a miss: "'math module' object has no attribute 'sqr'".
    body: dict[str, object] = {"__slots__": tuple(sorted({*members, *submodules})), "__module__": "builtins"}
    if store is not None:
        body["__setattr__"] = _storing(store)
    kind = Sealed(f"{module} module", (Facade,), body)
    facade = object.__new__(cast("type[Facade]", kind))
    for name, value in members.items():
        object.__setattr__(facade, name, value)
    return facade


def _storing(store: Callable[[str, object], bool]) -> Callable[[Facade, str, object], None]:
    def set_attribute(self: Facade, name: str, value: object) -> None:
        if not store(name, value):
            Facade.__setattr__(self, name, value)

    return set_attribute


def replace(facade: Facade, name: str, value: object) -> None:
    """Let the host put another value under a name."""
    object.__setattr__(facade, name, value)


def title(facade: Facade) -> str:
    """Return the name of the module that `facade` stands for."""
    return type(facade).__name__.removesuffix(" module")


def set_submodule(facade: Facade, name: str, module: Facade) -> None:
    """Let a package have a module that was imported, if it has a place for it."""
    if name in type.__getattribute__(type(facade), "__slots__"):
        object.__setattr__(facade, name, module)


def names(facade: Facade) -> frozenset[str]:
    """Return the public names of `facade`."""
    return frozenset(name for name in type.__getattribute__(type(facade), "__slots__") if _has(facade, name))


def _has(facade: Facade, name: str) -> bool:
    try:
        object.__getattribute__(facade, name)
    except AttributeError:
        return False
    return True
