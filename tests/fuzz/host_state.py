"""What of the host a guest must not change: compared as it was with as it is."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator

from .oracle import all_classes, instance_dict

_own_dict = type.__dict__["__dict__"].__get__
_CHANGING_MODULES = frozenset(
    "sealab.sandbox.guest sealab.sandbox.facades.warnings_ sealab.sandbox.facades.logging_ random gc re sre_compile"
    " asyncio.events asyncio.tasks weakref tests.fuzz linecache threading".split()
)
"""Modules with documented state of their own that a guest may change through their facades."""
_CACHES = frozenset({"sealab.sandbox.classes._REAL", "sealab.sandbox.formatting._has_lookups"})
_ADDED_BY_PYTHON = frozenset({"__annotations__", "__warningregistry__", "__annotations_cache__"})
"""What CPython puts into the dictionary of a class or a module when it is first asked for, or warns there."""
_CHANGING_WORDS = ("cache", "registry", "_abc_", "counter", "_pending", "_cleanup", "_warn")
_Print = tuple[object, ...]


def _ids(values: object) -> tuple[int, ...]:
    return tuple(map(id, values))  # type: ignore[call-overload]  # of containers


def _of_function(function: types.FunctionType) -> _Print:
    own = function.__dict__
    return (
        ("__code__", "__defaults__", "__kwdefaults__", *own),
        (id(function.__code__), id(function.__defaults__), id(function.__kwdefaults__), *_ids(own.values())),
    )


def _of_class(cls: type) -> _Print:
    return _of_dict(_own_dict(cls))  # type: ignore[arg-type]  # read only


def _of_dict(value: dict[object, object]) -> _Print:
    kept = [(key, id(item)) for key, item in value.items() if not (type(key) is str and key in _ADDED_BY_PYTHON)]
    return (tuple(key for key, _ in kept), tuple(item for _, item in kept))


def _of_items(value: object) -> _Print:
    return _ids(value)


def _of_property(value: property) -> _Print:
    return (id(value.fget), id(value.fset), id(value.fdel), id(value.__doc__))


def _of_method(value: classmethod[object, ..., object]) -> _Print:
    return (id(value.__func__),)


def _of_instance(value: object) -> _Print:
    own = instance_dict(value)
    return () if own is None else (tuple(own), _ids(own.values()))


_PRINTS = {
    types.FunctionType: _of_function,
    dict: _of_dict,
    list: _of_items,
    set: _of_items,
    property: _of_property,
    classmethod: _of_method,
    staticmethod: _of_method,
}


def _same(one: _Print, other: _Print) -> bool:
    """Compare without asking what the guest made: keys are compared by identity first, and few are not the same."""
    return len(one) == len(other) and all(a is b or a == b for a, b in zip(one, other, strict=True))


def _difference(before: _Print, now: _Print) -> str:
    if len(before) != 2 or type(before[0]) is not tuple or type(now[0]) is not tuple:
        return ""
    old, new = (dict(zip(map(repr, keys), values, strict=True)) for keys, values in (before, now))  # type: ignore[call-overload]
    return " " + ", ".join(sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))[:4])


class HostState:
    """The host's functions, classes, modules and what stands in them, as they were."""

    def __init__(self) -> None:
        self._kept: list[tuple[object, object, _Print]] = []
        seen: set[int] = set()
        for value in self._values():
            if id(value) not in seen:
                seen.add(id(value))
                take = _of_class if isinstance(value, type) else _PRINTS.get(type(value), _of_instance)
                self._kept.append((value, take, take(value)))  # type: ignore[operator]  # one for each type
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

    def change(self) -> str | None:
        """Return what differs, or None."""
        for value, take, before in self._kept:
            now = take(value)  # type: ignore[operator]  # as above
            if not _same(now, before):
                return f"changed: {self._title(value)}{_difference(before, now)}"
        return None

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
