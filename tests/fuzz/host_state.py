"""What of the host a guest must not change: compared as it was with as it is."""

from __future__ import annotations

import gc
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

from .oracle import all_classes, instance_dict

_own_dict = type.__dict__["__dict__"].__get__
_CHANGING_MODULES = frozenset(
    [
        "sealab.sandbox.guest.guest", "sealab.sandbox.dialect.facades.stand_ins.warnings_",
        "sealab.sandbox.dialect.facades.stand_ins.logging_", "random", "gc", "re", "sre_compile", "asyncio.events",
        "asyncio.tasks", "weakref", "tests.fuzz", "linecache", "threading",
    ]
)  # fmt: skip
"""Modules with documented state of their own that a guest may change through their facades."""
_CACHES = frozenset(
    [
        "sealab.sandbox.dialect.classes._REAL", "sealab.sandbox.dialect.guards._held",
        "sealab.sandbox.dialect.guest_modules._compiled", "sealab.sandbox.dialect.guest_modules._first_run",
        "sealab.sandbox.dialect.formatting._has_lookups", "sealab.sandbox.dialect.event_loop._cancelled",
        "sealab.sandbox.dialect.facades.stand_ins.decimal_._contexts", "sealab.sandbox.dialect.facades.streams._now",
        "sealab.sandbox.dialect.facades.identity._known", "sealab.sandbox.dialect.facades.identity._of_kept",
        "sealab.sandbox.dialect.facades.stand_ins.held_callables._entered",
        "sealab.sandbox.dialect.facades.stand_ins.asyncio_._current",
        "sealab.sandbox.dialect.facades.stand_ins.log_records._level_names",
        "sealab.sandbox.dialect.facades.stand_ins.log_records._levels", "base64._b32rev", "base64._b32tab2",
        "_csv._dialects",
    ]
)  # fmt: skip
_ADDED_BY_PYTHON = frozenset({"__annotations__", "__warningregistry__", "__annotations_cache__", "__slotnames__"})
"""What CPython puts into the dictionary of a class or a module when it is first asked for, or warns there."""
_CHANGING_WORDS = ("cache", "registry", "_abc_", "counter", "_pending", "_cleanup", "_warn")
Parts = Mapping[object, object]
"""What stands in something, by name or by number."""


def _of_function(function: types.FunctionType) -> Parts:
    """Leave out its attributes: code may hang what it likes on a function or an object; nothing of the host calls it."""
    return {
        "__code__": function.__code__,
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


def _of_instance(value: object) -> Parts:
    return {name: kept for name, kept in (instance_dict(value) or {}).items() if _is_private(name)}


def _is_private(name: object) -> bool:
    return type(name) is str and name.startswith("_") and not name.startswith("__")


_PARTS: Mapping[type, Callable[..., Parts]] = {
    types.FunctionType: _of_function,
    dict: _of_dict,
    list: _of_items,
    set: _of_items,
    property: _of_property,
    classmethod: _of_method,
    staticmethod: _of_method,
}


def _difference(before: Parts, now: Parts) -> list[str]:
    """Return what differs, without what is None until it is first needed and what CPython puts there."""
    missing = object()
    names = {_shown(key) for key in before if now.get(key, missing) is not before[key] is not None}
    names |= {_shown(key) for key in now if key not in before}
    return sorted(names - _ADDED_BY_PYTHON)


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
                if type(value) in {dict, list, set} and not any(part in word.lower() for part in _CHANGING_WORDS):
                    yield value
        for cls in all_classes():
            if cls.__module__ in _CHANGING_MODULES:
                continue
            yield cls
            for word, value in list(_own_dict(cls).items()):
                if type(value) not in {int, str, tuple} and not any(part in word.lower() for part in _CHANGING_WORDS):
                    yield value
        for value in gc.get_objects():
            if type(value) is types.FunctionType:
                yield value

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
