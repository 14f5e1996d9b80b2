"""A security boundary: the host's classes take no stores once a process belongs to a guest.

Guest code holds real classes (`json.JSONEncoder`, `collections.abc.Mapping`), and `Class.method = mine` stands in its
source like any other store. CPython refuses that for the types written in C, by `Py_TPFLAGS_IMMUTABLETYPE` (PEP 674;
Include/object.h). Here the classes written in Python get the same flag, so that neither the standard library nor this
package ever calls guest code it did not mean to call. Subclassing stays as it is.
"""

from __future__ import annotations

import functools
import gc
import linecache
import pathlib
import re
import statistics
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from difflib import Match
from types import DynamicClassAttribute, FunctionType
from typing import Any

from ...guest.guest import GUEST
from ...guest.type_flags import IMMUTABLE, set_flag
from .. import bounded_cache, event_loop
from ..classes import shown_type
from ..guards import keep_descriptors, leads_nowhere
from . import given_values, identity, late_annotations
from .binding import bind_methods
from .stand_ins import (
    array_values,
    asyncio_,
    byte_buffers,
    collections_,
    contextvars_,
    copy_,
    decimal_,
    enum_,
    error_texts,
    few_names,
    functools_,
    held_callables,
    held_items,
    inspect_,
    itertools_,
    time_,
    typing_,
    weakref_,
)

_TEXTS = annotations.compiler_flag
"""The flag of code whose annotations are texts."""
_DESCRIBED = (property, DynamicClassAttribute, type(Match.a))
"""Descriptors whose texts can be changed: those of a property, an enum and a named tuple."""
_KEPT_IN_CLASSES = sys.version_info < (3, 14)
_CASE = "_is_case_sensitive"


def seal() -> int:
    """Make every class of the host immutable, this project's own among them; return how many.

    Before that, their methods are bound to their instances; see `binding`.

    For a process of its own: what runs in it afterwards can patch no class. Raises RuntimeError on an interpreter whose
    types are laid out otherwise.
    """
    gc.unfreeze()  # what follows finds caches and functions by the collector, which passes over what is frozen
    copy_.replace_real_copying()
    identity.show()
    time_.read_clock()
    enum_.keep_names()
    collections_.keep_mappings()
    asyncio_.keep_loops()
    asyncio_.keep_paths()
    asyncio_.hold_callbacks()
    contextvars_.keep_variables()
    event_loop.keep_contexts()
    decimal_.keep_owners()
    array_values.convert_first()
    byte_buffers.keep()
    error_texts.keep_to_the_object()
    held_callables.parse_one_text_at_a_time()
    held_callables.hold()
    held_items.hold()
    few_names.read_alone()
    functools_.keep_cached_properties()
    inspect_.keep_comparisons()
    itertools_.hold()
    weakref_.keep_objects()
    traceback.StackSummary.extract = classmethod(_no_stack)  # type: ignore[assignment,method-assign]  # in debug mode asyncio passes loops where a future was made
    late_annotations.install()
    typing_.keep_types()
    vars(re)["_compile"] = _compiling(vars(re)["_compile"], vars(re).get("_cache2", vars(re)["_cache"]))
    for module in (re._compiler, re._parser):  # type: ignore[attr-defined]  # they print what a pattern with re.DEBUG became
        vars(module)["print"] = _print
    # What is said of a warning, or of an error that cannot be caught, shows lines of the file that the code names.
    linecache.updatecache = lambda *_file: []
    sys.unraisablehook = lambda _error: None
    _keep_conversions()
    _keep_tables()
    _blunt_annotations()
    classes = [cls for cls in _classes() if not cls.__flags__ & IMMUTABLE]
    bind_methods((cls for cls in classes if not issubclass(cls, type)), _held())
    bounded_cache.replace_in_library(_classes(), shown_type)
    keep_descriptors(each for cls in classes for each in vars(cls).values() if isinstance(each, _DESCRIBED))
    for cls in classes:
        set_flag(cls, IMMUTABLE)
    functools_.keep_wrapping()
    _empty_caches()
    return len(classes)


def _held() -> frozenset[type]:
    # Two methods that are compared receive each other's functions.
    kinds = (value if isinstance(value, type) else type(value) for value in given_values())
    return frozenset(base for kind in kinds for base in kind.__mro__)


def _empty_caches() -> None:
    """Leave nothing of the host's in the caches of the standard library.

    A cache compares what it is asked for with what it keeps: a guest object with the same hash receives it.
    """
    for module in (pathlib, sys.modules.get("pathlib._abc")):  # keeps the real modules of paths
        uncached = getattr(getattr(module, _CASE, None), "__wrapped__", None)
        if uncached is not None:
            vars(module)[_CASE] = uncached
    for each in gc.get_objects():
        if type(each) is functools._lru_cache_wrapper and not each.__module__.startswith("sealab."):
            each.cache_clear()


def _keep_conversions() -> None:
    """Let `statistics`, which calls the class of its data, know the classes that code may hold."""
    coerce = vars(statistics)["_coerce"]
    vars(statistics)["_coerce"] = lambda known, other: coerce(known, shown_type(other))


def _keep_tables() -> None:
    """Make the public tables of host classes (`TextWrapper.unicode_whitespace_trans`) read-only."""
    for cls in _classes():
        for name, value in list(vars(cls).items()):
            if type(value) in {dict, list} and not name.startswith("_"):
                type.__setattr__(cls, name, _table(dict(value)) if type(value) is dict else tuple(value))


def _blunt_annotations() -> None:
    """Leave no annotation that leads to a class which code may not hold (`type[Any]`) in any function or class."""
    functions = (each for each in gc.get_objects() if type(each) is FunctionType)
    for obj in [*(each for each in functions if not each.__code__.co_flags & _TEXTS), *_classes()]:
        try:
            # Asking a class makes a dictionary, which its subclasses would share where a metaclass has one as well.
            hints = (
                vars(obj).get("__annotations__") if _KEPT_IN_CLASSES and isinstance(obj, type) else obj.__annotations__
            )
        except Exception:  # noqa: BLE001, S112 - a class without any; names that only type checkers import (Python 3.14)
            continue
        if type(hints) is dict:
            hints.update({name: repr(hint) for name, hint in hints.items() if not leads_nowhere(hint)})


def _compiling(real: Callable[..., object], known: dict[object, object]) -> Callable[..., object]:
    def compiling(pattern: object, flags: Any) -> object:
        """Do what `re` does first. A number of the code's own would stay in its cache, and equal any flags."""
        if type(flags) is not int:
            if not isinstance(flags, int):
                raise TypeError(f"flags must be an int or a RegexFlag, not {type(flags).__name__!r}")
            flags = int.__pos__(flags)
        try:
            return known[type(pattern), pattern, flags]
        except KeyError:
            pass  # it holds the real class of the pattern, and must not be the context of what follows
        return real(pattern, flags)

    return compiling


def _print(*values: object, end: str = "\n") -> None:
    GUEST.write(" ".join(map(str, values)) + end)


def _no_stack(kind: type[traceback.StackSummary], /, *_arguments: object, **_options: object) -> traceback.StackSummary:
    return kind()


def _classes() -> Iterator[type]:
    seen: set[type] = set()
    waiting: list[type] = [object]
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            waiting.extend(type.__subclasses__(cls))


def _table(entries: dict[Any, Any]) -> Mapping[Any, Any]:
    """Return a read-only mapping of `entries`, which looks them up as fast as a dictionary.

    It never hands out what is behind it, as a `MappingProxyType` does that is compared or joined.
    """
    names = ("__getitem__", "__contains__", "__iter__", "__len__", "__repr__", "copy", "get")
    methods = {name: getattr(entries, name) for name in names}  # bound, and `__self__` is not for code
    kind: type[Mapping[Any, Any]] = type(
        "Table", (Mapping,), {"__slots__": (), "__module__": __name__, "__doc__": "A read-only table.", **methods}
    )
    return kind()
