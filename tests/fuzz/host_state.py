"""What of the host a guest must not change: compared as it was with as it is."""

from __future__ import annotations

import functools
import gc
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

from sealab.sandbox.dialect import facades
from sealab.sandbox.guest.ownership import is_guest_callable
from tests.sandbox.dialect.opaque import all_classes

from .oracle import instance_dict

_own_dict = type.__dict__["__dict__"].__get__
_CHANGING_MODULES = frozenset(
    [
        "sealab.sandbox.guest.guest",
        "sealab.sandbox.guest_api.hosted_runs",
        "random",
        "gc",
        "re",
        "sre_compile",
        "asyncio.events",
        "asyncio.tasks",
        "weakref",
        "tests.",
        "__main__",
        "linecache",
        "threading",
    ]
)
"""Modules with documented state of their own that a guest may change through their facades."""
_CACHES = frozenset(
    [
        "sealab.sandbox.dialect.classes._REAL",
        "sealab.sandbox.dialect.guards._held",
        "sealab.sandbox.dialect.guest_modules._compiled",
        "sealab.sandbox.dialect.guest_modules._first_run",
        "sealab.sandbox.dialect.formatting._has_lookups",
        "sealab.sandbox.dialect.event_loop._cancelled",
        "sealab.sandbox.dialect.facades.stand_ins.decimal_._contexts",
        "sealab.sandbox.dialect.facades.streams._now",
        "sealab.sandbox.dialect.facades.identity._known",
        "sealab.sandbox.dialect.facades.identity._of_kept",
        "sealab.sandbox.dialect.facades.stand_ins.held_callables._entered",
        "sealab.sandbox.dialect.facades.stand_ins.asyncio_._current",
        "sealab.sandbox.dialect.facades.stand_ins.held_callables._parents",
        "base64._b32rev",
        "base64._b32tab2",
        "_csv._dialects",
    ]
)
_ADDED_BY_PYTHON = frozenset({"__annotations__", "__warningregistry__", "__annotations_cache__", "__slotnames__"})
"""What CPython puts into the dictionary of a class or a module when it is first asked for, or warns there."""
_CHANGING_WORDS = ("cache", "registry", "_abc_", "counter", "_pending", "_cleanup", "_warn")
Parts = Mapping[object, object]
"""What stands in something, by name or by number."""


def _of_function(function: types.FunctionType) -> Parts:
    """Leave out its attributes: code may hang what it likes on a function or an object; nothing of the host calls it."""
    return {
        "__code__": function.__code__,
        "__closure__": function.__closure__,
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
    }


def _of_dict(value: dict[object, object]) -> Parts:
    return value


def _of_items(value: Iterable[object]) -> Parts:
    return dict(enumerate(value))


def _of_property(value: property) -> Parts:
    return {"fget": value.fget, "fset": value.fset, "fdel": value.fdel, "doc": value.__doc__}


def _of_method(value: classmethod[object, ..., object]) -> Parts:
    return {"__func__": value.__func__}


def _of_partial(value: functools.partial[object]) -> Parts:
    return {"func": value.func, "args": value.args, "keywords": value.keywords}


def _of_instance(value: object) -> Parts:
    return {name: kept for name, kept in (instance_dict(value) or {}).items() if _is_private(name)}


def _is_private(name: object) -> bool:
    return type(name) is str and name.startswith("_") and not name.startswith("__")


_PARTS: Mapping[type, Callable[..., Parts]] = {
    types.FunctionType: _of_function,
    dict: _of_dict,
    list: _of_items,
    set: _of_items,
    tuple: _of_items,
    functools.partial: _of_partial,
    property: _of_property,
    classmethod: _of_method,
    staticmethod: _of_method,
}


def _tables_in(value: object, depth: int = 3) -> Iterator[object]:
    """Give a table and what stands in it, down to a depth: tables, and objects with parts of their own."""
    kind = type(value)
    if kind in {dict, list, set, tuple}:
        yield value
        for item in list(value.values() if kind is dict else value) if depth else ():  # type: ignore[attr-defined,call-overload]
            yield from _tables_in(item, depth - 1)
    elif kind in _PARTS or (not isinstance(value, types.ModuleType | type | facades.Facade) and instance_dict(value)):
        yield value


def _difference(before: Parts, now: Parts) -> list[str]:
    """Return what differs, without what is None until it is first needed and what CPython puts there."""
    missing = object()
    names = {_shown(key) for key in before if now.get(key, missing) is not before[key] is not None}
    names |= {_shown(key) for key in now if key not in before and not _is_of_import(key, now[key])}
    return sorted(names - _ADDED_BY_PYTHON)


def _is_of_import(key: object, value: object) -> bool:
    """Return whether the import system added it: a module that was imported late, or what a module runs in."""
    return type(value) is types.ModuleType or (type(key) is str and key == "__builtins__")


def _shown(key: object) -> str:
    return key if type(key) is str else f"a {type(key).__name__}"


class HostState:
    """The host's functions, classes, modules and what stands in them, as they were."""

    def __init__(self) -> None:
        self._kept: list[tuple[object, Callable[..., Parts], tuple[object, ...], tuple[object, ...]]] = []
        seen: set[int] = set()
        for value in self._values():
            if id(value) not in seen:
                seen.add(id(value))
                take = _own_dict if isinstance(value, type) else _PARTS.get(type(value), _of_instance)
                parts = take(value)
                self._kept.append((value, take, tuple(parts), tuple(parts.values())))
        self._modules = {name: module for name, module in sys.modules.items() if isinstance(module, types.ModuleType)}

    @staticmethod
    def _values() -> Iterator[object]:
        for name, module in list(sys.modules.items()):
            if not isinstance(module, types.ModuleType) or any(name.startswith(known) for known in _CHANGING_MODULES):
                continue
            yield vars(module)
            for word, value in list(vars(module).items()):
                if f"{name}.{word}" in _CACHES:
                    continue
                if not any(part in word.lower() for part in _CHANGING_WORDS):
                    yield from _tables_in(value)
        for cls in all_classes():
            if cls.__module__ in _CHANGING_MODULES:
                continue
            yield cls
            for word, value in list(_own_dict(cls).items()):
                if type(value) not in {int, str} and not any(part in word.lower() for part in _CHANGING_WORDS):
                    yield value
                    yield from _tables_in(value)
        for value in gc.get_objects():
            if type(value) is types.FunctionType and not is_guest_callable(value):
                yield value
                for default in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
                    yield from _tables_in(default)

    def changes(self) -> Iterator[str]:
        """Give what differs."""
        for value, take, keys, values in self._kept:
            now = take(value)
            if len(now) == len(values) and all(map(operator.is_, now.values(), values)):
                continue
            names = _difference(dict(zip(keys, values, strict=True)), dict(now))
            if type(value) is types.FunctionType:
                # Python lets any function have new attributes, and what the host reads of its own have other names.
                names = [name for name in names if name in keys or name.startswith("_")]
            if names:
                yield f"changed: {self._title(value)}: {', '.join(names[:4])}"

    def _title(self, value: object) -> str:
        if isinstance(value, type):
            return f"the class {value.__module__}.{value.__qualname__}"
        if type(value) is types.FunctionType:
            return f"the function {value.__module__}.{value.__qualname__}"
        for name, module in self._modules.items():
            if vars(module) is value:
                return f"the module {name}"
            for word, member in vars(module).items():
                if member is value:
                    return f"{name}.{word}"
        for cls in all_classes():
            for word, member in _own_dict(cls).items():
                if member is value:
                    return f"{cls.__module__}.{cls.__qualname__}.{word}"
        return f"a {type(value).__name__}"
