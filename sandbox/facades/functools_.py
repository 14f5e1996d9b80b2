"""`functools` without the ways in which it takes attribute names or evaluates annotations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import cast

from .typing_ import get_type_hints

__all__ = ["singledispatch", "singledispatchmethod", "update_wrapper", "wraps"]

_ANY = Callable[..., object]


def update_wrapper(
    wrapper: _ANY,
    wrapped: _ANY,
    assigned: Sequence[str] = functools.WRAPPER_ASSIGNMENTS,
    updated: Sequence[str] = functools.WRAPPER_UPDATES,
) -> _ANY:
    """Make `wrapper` look like `wrapped`. Only the attributes that are copied by default can be asked for.

    `updated=("__globals__",)` would otherwise write the guest's names into the host's functions.
    """
    names, dictionaries = tuple(assigned), tuple(updated)
    if not _among(names, functools.WRAPPER_ASSIGNMENTS) or not _among(dictionaries, functools.WRAPPER_UPDATES):
        raise TypeError("wraps() copies only the attributes it copies by default; set the others yourself")
    return functools.update_wrapper(wrapper, wrapped, names, dictionaries)


def wraps(
    wrapped: _ANY,
    assigned: Sequence[str] = functools.WRAPPER_ASSIGNMENTS,
    updated: Sequence[str] = functools.WRAPPER_UPDATES,
) -> Callable[[_ANY], _ANY]:
    """Return a decorator that makes a function look like `wrapped`."""
    names, dictionaries = tuple(assigned), tuple(updated)
    return lambda wrapper: update_wrapper(wrapper, wrapped, names, dictionaries)


def _among(names: tuple[str, ...], allowed: Sequence[str]) -> bool:
    return all(type(name) is str and name in allowed for name in names)


def singledispatch(func: _ANY) -> _ANY:
    """Make `func` generic: `register` adds an implementation for the class of the first argument."""
    generic = functools.singledispatch(func)
    name = getattr(func, "__name__", "singledispatch function")

    def dispatching(*args: object, **kwargs: object) -> object:
        if not args:
            raise TypeError(f"{name} requires at least 1 positional argument")
        return generic.dispatch(type(args[0]))(*args, **kwargs)

    def register(cls: object, func: _ANY | None = None) -> _ANY:
        if func is not None:
            return generic.register(cast("type", cls), func)
        if isinstance(cls, type | UnionType) or not callable(cls):
            return lambda implementation: register(cls, implementation)
        return register(_first_annotation(cls), cls)

    wrapper = functools.update_wrapper(dispatching, func)
    wrapper.__dict__.update(register=register, dispatch=generic.dispatch, registry=generic.registry)
    return wrapper


def _first_annotation(implementation: _ANY) -> object:
    hints: Mapping[str, object] = {
        name: hint for name, hint in get_type_hints(implementation).items() if name != "return"
    }
    if not hints:
        raise TypeError(
            "register() needs the class of the first argument: annotate that argument, or write @function.register(int)"
        )
    return next(iter(hints.values()))


class singledispatchmethod:  # noqa: N801 - Python's own spelling
    """A generic method, chosen by the class of the first argument after `self`."""

    def __init__(self, func: _ANY) -> None:
        if not callable(func) and not hasattr(func, "__get__"):
            raise TypeError(f"{func!r} is not callable or a descriptor")
        self._dispatcher = singledispatch(func)
        self._func = func

    def register(self, cls: object, method: _ANY | None = None) -> _ANY:
        """Add an implementation for `cls`; also usable as a decorator, bare or with a class."""
        return cast("_ANY", self._dispatcher.__dict__["register"](cls, method))

    def __get__(self, obj: object, cls: type | None = None) -> _ANY:
        dispatch = self._dispatcher.__dict__["dispatch"]

        def method(*args: object, **kwargs: object) -> object:
            if not args:
                raise TypeError("a generic method requires at least 1 positional argument")
            return dispatch(type(args[0])).__get__(obj, cls)(*args, **kwargs)

        method = functools.update_wrapper(method, self._func)
        method.__dict__["register"] = self.register
        return method
