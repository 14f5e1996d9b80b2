"""A security boundary: `functools` that neither copies a dictionary it was not meant to nor looks up what it keeps.

The real decorators copy the dictionary of whatever they are given over their own attributes, and then call these.
"""

from __future__ import annotations

import functools
import typing
from abc import get_cache_token
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType, GenericAlias, MethodType, UnionType
from typing import Any, Final, cast

from ....guest.ownership import is_guest_callable, is_guest_class
from ...bounded_cache import bounded, is_bounded
from ...classes import shown_type
from ...guards import guarded_getattr
from ...names import demangle, exact, is_of_host
from ...views import are_attributes
from .typing_ import get_type_hints

__all__ = [
    "cache", "cached_property", "cmp_to_key", "lru_cache", "singledispatch", "singledispatchmethod",
    "update_wrapper", "wraps",
]  # fmt: skip

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
    if not _is_of_code(wrapper):
        raise TypeError("a function of Python's own cannot be changed; wrap it in one of yours")
    return _alike(wrapper, wrapped, names, dictionaries)


def _is_of_code(wrapper: object) -> bool:
    if is_bounded(wrapper) or isinstance(wrapper, functools._lru_cache_wrapper):
        return _is_of_code(cast("Any", wrapper).__wrapped__)
    return (
        is_guest_callable(wrapper)
        or type(wrapper) is functools.partial
        or is_guest_class(wrapper if isinstance(wrapper, type) else type(wrapper))
    )


def _alike(
    wrapper: _ANY,
    wrapped: _ANY,
    assigned: tuple[str, ...] = functools.WRAPPER_ASSIGNMENTS,
    updated: tuple[str, ...] = functools.WRAPPER_UPDATES,
) -> _ANY:
    """Do what `functools.update_wrapper` does, without asking either side for its dictionary.

    A class would give its real one, and an object whichever it likes. What the host has becomes the code's own by it,
    so it is read as the code would read it.
    """
    read: Callable[[object, str], Any] = getattr if is_guest_callable(wrapped) else guarded_getattr
    for name in assigned:
        with suppress(AttributeError):
            value = read(wrapped, name)
            if name == "__module__" and not isinstance(value, str):
                continue  # host code looks modules up by it
            setattr(wrapper, name, exact(value) if isinstance(value, str) else value)
    own = None
    if updated:
        own = wrapper.__dict__ if type(wrapper) is FunctionType else _attributes(wrapper)
    if own is not None:
        own.update({name: value for name, value in (_attributes(wrapped) or {}).items() if _is_copied(name)})
    wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]  # as Python does
    return wrapper


def _attributes(obj: object) -> dict[str, object] | None:
    """Return the dictionary of the code's own function or object, or of a wrapper; of a guest class, a copy."""
    if type(obj) is MethodType:
        obj = obj.__func__
    if is_guest_callable(obj) or is_bounded(obj) or type(obj) in _WRAPPERS:
        return cast("dict[str, object]", obj.__dict__)
    if isinstance(obj, type):
        return dict(type.__dict__["__dict__"].__get__(obj)) if is_guest_class(obj) else None
    if not is_guest_class(type(obj)):
        return None
    with suppress(AttributeError):
        found = object.__getattribute__(obj, "__dict__")
        return found if are_attributes(found) else None
    return None


def _is_copied(name: object) -> bool:
    return type(name) is str and (
        name in {"__wrapped__", "__isabstractmethod__"} or not (name.startswith("__") or is_of_host(name))
    )


_WRAPPERS: Final = frozenset({functools.partial, functools._lru_cache_wrapper})


class cached_property:  # noqa: N801 - Python's own spelling
    """A property that is computed once, and then stands in the object's own dictionary.

    The real one reads and writes whatever dictionary it is given: that of `object` itself, for one. Its own state lies
    in slots, which no entry of an instance's dictionary can stand for.
    """

    __slots__ = ("__dict__", "__weakref__", "_name", "func")

    def __init__(self, func: Callable[[Any], object]) -> None:
        self.func = func
        self.__doc__ = func.__doc__
        self._name: str | None = None

    @property
    def attrname(self) -> str | None:
        """The name of the attribute."""
        return None if self._name is None else demangle(self._name)

    def __set_name__(self, owner: type, name: str) -> None:
        if self._name not in {None, name}:
            raise TypeError(
                "Cannot assign the same cached_property to two different names "
                f"({demangle(str(self._name))!r} and {demangle(name)!r})."
            )
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        if self._name is None:
            raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
        if is_of_host(self._name):
            raise TypeError(f"{demangle(self._name)!r} cannot be the name of a cached property here")
        kept = None if isinstance(instance, type) else _attributes(instance)
        if kept is None:
            raise TypeError(
                f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {self.attrname!r} property."
            )
        found = kept.get(self._name, _MISSING)
        if found is _MISSING:
            found = kept[self._name] = self.func(instance)
        return found

    __class_getitem__: classmethod[Any, Any, GenericAlias] = classmethod(GenericAlias)


_MISSING: Final = object()


def keep_cached_properties() -> None:
    """Let no store change the real cached properties, which stand in classes of the host (`ipaddress`)."""

    def refuse(_self: object, name: str, _value: object) -> None:
        raise AttributeError(f"cannot set {name!r} of a property of Python's own")

    type.__setattr__(functools.cached_property, "__setattr__", refuse)


def keep_wrapping() -> None:
    """Let the decorators of the host (`contextlib.contextmanager`) copy from what they are given as these do.

    They took the real function long ago, so its code is exchanged and not the function.
    """
    functools.__dict__["_guarded_alike"] = _alike
    functools.update_wrapper.__code__ = _calling_guarded.__code__


def _calling_guarded(wrapper: Any, wrapped: Any, assigned: Any = (), updated: Any = ()) -> Any:
    return _guarded_alike(wrapper, wrapped, tuple(assigned), tuple(updated))  # type: ignore[name-defined]  # noqa: F821 - runs in the real module


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


def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Any:
    """Make a key function of one that compares two objects.

    The keys are C's. They do not hold what they hand to a function, and code can exchange it meanwhile; a function
    written in Python holds it.
    """
    if type(mycmp) is FunctionType or not callable(mycmp):
        return functools.cmp_to_key(mycmp)
    return functools.cmp_to_key(lambda one, other: mycmp(one, other))  # noqa: PLW0108 - see above


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """Remember the results of a function by its arguments: the `maxsize` used last, or all with `None`."""
    if callable(maxsize) and isinstance(typed, bool):
        return _remembering(maxsize, 128, typed)
    if maxsize is not None and not isinstance(maxsize, int):
        raise TypeError("Expected first argument to be an integer, a callable, or None")
    size = None if maxsize is None else max(0, int.__pos__(maxsize))
    return lambda func: _remembering(func, size, typed)


def cache(user_function: _ANY, /) -> Any:
    """Remember all results of a function by its arguments."""
    return _remembering(user_function, None, typed=False)


def _remembering(func: _ANY, maxsize: int | None, typed: bool) -> Any:
    # Python's own decorator would copy the whole dictionary of what it is given, of a class of the host too.
    if not callable(func):
        raise TypeError("the first argument must be callable")
    wrap: Callable[..., Any] = functools._lru_cache_wrapper
    if maxsize:
        made: Any = bounded(func, maxsize, shown_type if typed else None)
    else:
        made = _remembering_types(func, maxsize) if typed else wrap(func, maxsize, False, functools._CacheInfo)
    _alike(made, func)
    made.__dict__["cache_parameters"] = lambda: {"maxsize": maxsize, "typed": typed}
    return made


def _remembering_types(func: _ANY, maxsize: int | None) -> Any:
    """Do what Python does with `typed=True`, with the types where no argument of another call is compared with them.

    Python puts the real types of the arguments behind them, at a place that depends on how many are keywords.
    """
    wrap: Callable[..., Any] = functools._lru_cache_wrapper
    kept = wrap(lambda _types, *args, **kwargs: func(*args, **kwargs), maxsize, False, functools._CacheInfo)

    def remember(*args: object, **kwargs: object) -> object:
        return kept(tuple(shown_type(type(each)) for each in (*args, *kwargs.values())), *args, **kwargs)

    remember.__dict__.update(cache_info=kept.cache_info, cache_clear=kept.cache_clear)
    return remember


class _Generic:
    """The implementations of one generic function. It is never shown to guest code."""

    def __init__(self, func: _ANY) -> None:
        self._implementations: dict[type, _ANY] = {object: func}
        self._found: dict[type, _ANY] = {}
        self._abstract_classes = get_cache_token()
        self.shown: dict[object, _ANY] = {object: func}
        """What the attribute `registry` is. Nothing is read from it."""

    def add(self, cls: object, func: _ANY) -> None:
        members = typing.get_args(cls) if _is_union(cls) else (cls,)
        for member in members:
            if not issubclass(type(member), type):
                raise TypeError(f"Invalid first argument to `register()`: {cls!r} is not a class or union type.")
        for member in members:
            self._implementations[member] = func
            self.shown[shown_type(member)] = func
        self._found.clear()

    def find(self, cls: type) -> _ANY:
        if self._abstract_classes != get_cache_token():
            self._abstract_classes = get_cache_token()
            self._found.clear()
        found = self._found.get(cls)
        if found is None:
            nearest: Callable[[type, object], _ANY] = functools._find_impl  # type: ignore[attr-defined]  # what `singledispatch` itself uses
            found = self._found[cls] = nearest(cls, self._implementations)
        return found

    def register(self, cls: object, func: _ANY | None = None) -> _ANY:
        if func is not None:
            self.add(cls, func)
            return func
        if issubclass(type(cls), type) or _is_union(cls):
            return lambda implementation: self.register(cls, implementation)
        if not callable(cls):
            raise TypeError(f"Invalid first argument to `register()`: {cls!r}. Use a class, or annotate the function.")
        return self.register(_first_annotation(cls), cls)

    def dispatch(self, cls: type) -> _ANY:
        if not issubclass(type(cls), type):  # an object that looks like a class would be compared with the host's
            raise TypeError(f"dispatch() takes a class, not {shown_type(type(cls)).__name__!r}")
        return self.find(cls)


def _is_union(value: object) -> bool:
    return type(value) is UnionType or typing.get_origin(value) is typing.Union


def singledispatch(func: _ANY) -> _ANY:
    """Make `func` generic: `register` adds an implementation for the class of the first argument."""
    generic = _Generic(func)
    name = getattr(func, "__name__", "singledispatch function")

    def dispatching(*args: object, **kwargs: object) -> object:
        if not args:
            raise TypeError(f"{name} requires at least 1 positional argument")
        return generic.find(type(args[0]))(*args, **kwargs)

    wrapper = _alike(dispatching, func)
    dispatching.__dict__.update(
        register=lambda cls, func=None: generic.register(cls, func),
        dispatch=lambda cls: generic.dispatch(cls),  # noqa: PLW0108 - a bound method would lead to the object
        registry=generic.shown,
    )
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

    __slots__ = ("__dict__", "__weakref__", "_func", "_generic")

    def __init__(self, func: _ANY) -> None:
        if not callable(func) and not hasattr(func, "__get__"):
            raise TypeError(f"{func!r} is not callable or a descriptor")
        self._generic = _Generic(func)
        self._func = func

    def register(self, cls: object, method: _ANY | None = None) -> _ANY:
        """Add an implementation for `cls`; also usable as a decorator, bare or with a class."""
        return self._generic.register(cls, method)

    def __get__(self, obj: object, cls: type | None = None) -> _ANY:
        find = self._generic.find

        def method(*args: object, **kwargs: object) -> object:
            if not args:
                raise TypeError("a generic method requires at least 1 positional argument")
            return find(type(args[0])).__get__(obj, cls)(*args, **kwargs)

        _alike(method, self._func)
        method.__dict__["register"] = self.register
        return method
