"""Says what guest code must never hold, and finds it in what a program reached.

Works in the process of the guest, with the host's eyes: a value is judged by its real type, and read by the names that
the dialect reads, plain ones raw and guarded ones through the guards.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import operator
import os
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sealab.sandbox.dialect import classes, event_loop, facades, guards, metaclasses, names, namespace, shields, views
from sealab.sandbox.dialect import compiling as language
from sealab.sandbox.guest import ownership
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.guest_api import answers, host_modules
from tests.sandbox.dialect.opaque import _NEVER_CLASSES, Opaque, all_classes

CANARY: Final = " ".join(("canary of", str(os.getpid())))
"""A text that stands in every namespace of the host, as one object."""
NODES_MAX, DEPTH_MAX = 400, 4
_ITEMS_MAX = 60

_ATOMS: Final = frozenset(
    {int, float, complex, bool, bytes, bytearray, range, slice, type(None), type(...), type(NotImplemented)}
    | {types.TracebackType}  # code has that of an exception; the names of what is behind it are refused
)
_NEVER_TYPES: Final = (types.ModuleType, types.FrameType, types.CodeType, types.CellType)
_own_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_FORMATS: Final = frozenset({"format", "format_map"})
_RAW_ACCESS: Final = frozenset(
    {
        "__getattribute__", "__setattr__", "__delattr__", "__subclasses__", "mro", "__reduce__", "__reduce_ex__",
        "__prepare__",
    }
)  # fmt: skip
_CLASS_ITSELF: Final = frozenset(
    {type, *(real for real in classes.OPAQUE if not real.__module__.startswith("sealab."))}
)
_OWN_TYPES_GIVEN: Final = (
    language._Compiled, views.DictionaryView, event_loop.GuestLoop, event_loop._Timer, guards.SecurityError, facades.Facade,
    answers.DocumentedObject, answers.AwaitableAnswer, answers.AwaitableList, answers.AwaitableText,
)  # fmt: skip
_OF_OURS_GIVEN: Final = frozenset(
    id(value) for name, value in namespace.guarded_builtins().items() if name.isascii() and name != "__build_class__"
)
_SEALS: Final = tuple(value for name, value in vars(ownership).items() if name.endswith("SEAL"))
_GIVEN_BY_WRAPS: Final = frozenset({"__wrapped__"})
_METHODS_GIVEN: Final = frozenset(
    {id(classes._of_type), id(event_loop._future_of_loop), id(event_loop._task_of_loop)}
) | frozenset(
    id(value)
    for cls in (*_OWN_TYPES_GIVEN, classes._TypeStandIn, classes._TypeOfObject)
    for base in _mro(cls)
    for value in _own_dict(base).values()
)
_WORDS_READ: Final = tuple(
    sorted((names.GUARDED - names.ATTRIBUTE_METHODS) | {"__dataclass_fields__", "__annotations__"})
)


@dataclass(frozen=True)
class Leak:
    """What was reached, and by which way from which variable."""

    reason: str
    path: str
    shape: str = ""
    """What the statement did, in a word."""

    @property
    def kind(self) -> str:
        """What sets this leak apart from others, without the names of variables."""
        return f"{self.reason} | {self.shape}"


def mapping_behind(proxy: types.MappingProxyType[object, object]) -> object:
    """Return what a proxy stands before, without calling it where it is a dictionary."""
    found = next(iter(gc.get_referents(proxy)), None)
    return found if issubclass(type(found), dict) else None


class Oracle:
    """Judges what was reached since the host was as it is now."""

    def __init__(self) -> None:
        self._opaque = Opaque()
        self._known: dict[int, object] = {}
        self._names_of: dict[type, tuple[str, ...]] = {}
        self._guest_codes: dict[int, types.CodeType] = {}
        self._namespaces: dict[int, str] = {}
        self._class_dicts: dict[int, type] = {}
        self._host_classes: weakref.WeakSet[type] = weakref.WeakSet()
        self._registries: dict[int, object] = {}
        compiling = language._compile

        def noting(*arguments: object, **options: object) -> types.CodeType:
            code = compiling(*arguments, **options)  # type: ignore[arg-type]  # passed on
            self._note(code)
            return code

        language._compile = noting  # what every way of the guest's to compile goes through

    def begin(self, helpers: Mapping[str, object]) -> None:
        """Take the host as it is: what stands in it now and is given to guests, `helpers` too, is no leak."""
        for value in helpers.values():
            self._know(value)
        for facade in [*map(facades.find, facades.exports()), *host_modules.fixed()]:
            self._know(facade)
            for name in dir(facade):
                self._know(getattr(facade, name))
        for value in namespace.guarded_builtins().values():
            self._know(value)
        for name in ("__new__", "__init__", "__call__"):  # what `type` has for metaclasses of the code's own
            self._know(getattr(metaclasses.Metaclass, name))
        self._know(_own_dict(metaclasses.Governed)["__call__"])  # works on classes that are governed, and tells nothing
        for name, module in list(sys.modules.items()):
            if isinstance(module, types.ModuleType):
                self._namespaces[id(vars(module))] = name
        self._namespaces[id(GUEST.namespace)] = "the guest's own globals"
        self._namespaces[id(GUEST.namespace["__builtins__"])] = "the builtins of the guest's globals"
        for cls in all_classes():
            self._host_classes.add(cls)
            self._class_dicts[id(mapping_behind(_own_dict(cls)))] = cls

    def _know(self, value: object) -> None:
        if callable(value) or isinstance(value, facades.Facade):
            self._known[id(value)] = value

    def _note(self, code: types.CodeType) -> None:
        self._guest_codes[id(code)] = code
        for constant in code.co_consts:
            if type(constant) is types.CodeType:
                self._note(constant)

    # Walking

    def leaks(
        self, roots: Iterable[tuple[str, object]], *, nodes: int = NODES_MAX, depth: int = DEPTH_MAX
    ) -> Leak | None:
        """Return the first leak among what the roots lead to."""
        waiting = deque((path, value, 0) for path, value in roots)
        seen: dict[int, object] = {}
        while waiting and len(seen) < nodes:
            path, value, level = waiting.popleft()
            kind = type(value)
            if kind in _ATOMS or id(value) in seen:
                continue
            if kind is str:
                if value is CANARY:
                    return Leak("the canary of the host's namespaces", path)
                continue
            seen[id(value)] = value  # kept alive, so that no other object takes its id
            if id(value) in self._known:
                continue
            reason = self.why_bad(value)
            if reason is not None:
                return Leak(reason, path)
            if level < depth:
                waiting.extend((f"{path}{step}", found, level + 1) for step, found in self._steps(value, level))
        return None

    def _steps(self, value: object, level: int) -> Iterator[tuple[str, object]]:
        kind = type(value)
        if issubclass(kind, dict):
            if id(value) in self._namespaces:
                return
            for key, item in list(dict.items(value))[:_ITEMS_MAX]:  # type: ignore[arg-type]  # a dict by its real type
                yield " key", key
                if not (type(item) is dict and type(key) is str and key == "__builtins__"):
                    yield f"[{key!r}]" if type(key) in {str, int} else "[…]", item
        elif issubclass(kind, list | tuple | set | frozenset | deque):
            base = next(base for base in (list, tuple, set, frozenset, deque) if issubclass(kind, base))
            for item in list(base.__iter__(value))[:_ITEMS_MAX]:  # type: ignore[arg-type]  # as above
                yield "[…]", item
        elif kind is types.MappingProxyType:
            behind = mapping_behind(value)  # type: ignore[arg-type]  # as above
            if behind is not None:
                for key, item in list(dict.items(behind))[:_ITEMS_MAX]:  # type: ignore[arg-type]
                    yield f"[{key!r}]"[:60], item
        for name in self._readable(value):
            yield from self._read(value, name, builtin_getattr)
        if level == 0:
            for name in _WORDS_READ:
                yield from self._read(value, name, guards.guarded_getattr)

    @staticmethod
    def _read(value: object, name: str, read: Callable[[object, str], object]) -> Iterator[tuple[str, object]]:
        with contextlib.suppress(BaseException):  # a program that catches it is another program
            yield f".{name}", read(value, name)

    def _readable(self, value: object) -> Iterator[str]:
        kind = type(value)
        known = self._names_of.get(kind)
        if known is None:
            known = tuple(sorted({name for cls in _mro(kind) for name in _own_dict(cls) if _is_plain(name)}))
            if kind in self._host_classes:
                self._names_of[kind] = known
        yield from known
        if isinstance(kind, type) and issubclass(kind, type):
            for cls in _mro(value):
                if cls not in self._host_classes:
                    yield from [name for name in _own_dict(cls) if _is_plain(name)]
        else:
            own = instance_dict(value)
            if own is not None:
                yield from [name for name in own if _is_plain(name)]

    # Judging

    def why_bad(self, value: object) -> str | None:
        """Return why guest code must not hold `value`, or None."""
        kind = type(value)
        if issubclass(kind, _NEVER_TYPES):
            return f"a {kind.__name__}"
        if kind is object and any(value is seal for seal in _SEALS):
            return "the seal of guest code"
        if issubclass(kind, type):
            return self._why_class(value)  # type: ignore[arg-type]  # a class by its real type
        if issubclass(kind, dict):
            return self._why_dict(value)  # type: ignore[arg-type]  # as above
        if issubclass(kind, asyncio.AbstractEventLoop) and kind is not event_loop.GuestLoop:
            return "a real event loop"
        if kind is types.FunctionType:
            return self._why_function(value)  # type: ignore[arg-type]  # as above
        if kind is types.BuiltinFunctionType or kind is types.MethodDescriptorType or kind is types.MethodWrapperType:
            return self._why_builtin(value)
        if kind is types.MethodType:
            return self.why_bad(value.__func__) if id(value.__func__) not in self._known else None  # type: ignore[attr-defined]
        if kind is operator.attrgetter or kind is operator.methodcaller:
            return self._why_getter(value)
        if kind is types.MappingProxyType:
            return self._why_proxy(value)  # type: ignore[arg-type]  # as above
        if kind in self._host_classes and _is_of_ours(kind):
            return (
                None
                if issubclass(kind, (*_OWN_TYPES_GIVEN, BaseException))
                else f"a {kind.__module__}.{kind.__qualname__}"
            )
        if ownership.is_guest_class(kind):
            return None
        try:
            return self._shorter(self._opaque.why(value))
        except Exception:
            return None

    @staticmethod
    def _shorter(reason: str | None) -> str | None:
        return None if reason is None else reason.partition(":")[0]

    def _why_class(self, cls: type) -> str | None:
        if cls in _CLASS_ITSELF or issubclass(cls, type):
            return (
                f"the class {type.__dict__['__name__'].__get__(cls)}"
                if cls in self._host_classes
                else "a metaclass of the guest's"
            )
        if cls in _NEVER_CLASSES:
            return f"the class {cls.__name__}"
        if cls in self._host_classes:
            ours = _is_of_ours(cls) and not issubclass(cls, _OWN_TYPES_GIVEN)
            return f"the class {cls.__module__}.{cls.__qualname__}" if ours else None
        return self._why_guest_class(cls)

    def _why_guest_class(self, cls: type) -> str | None:
        """Look for what a class body must not have brought into a class."""
        for name, value in list(_own_dict(cls).items()):
            if type(name) is not str:
                return f"a class with a name in it that is a {'subclass of str' if isinstance(name, str) else 'no str'}"
            plain = names.demangle(name)
            if name in shields.SHIELDED and not _is_shield(value) and self._is_guests(value):
                return f"a class with an unshielded {name}"
            if name == "__match_args__" and type(value) is not tuple:
                return "a class with unchecked __match_args__"
            forbidden = names.judge(plain) in {names.Verdict.GUARDED, names.Verdict.REFUSED}
            if (
                forbidden
                and plain.startswith("__")
                and plain not in names.DEFINABLE | _GIVEN_BY_WRAPS
                and self._is_guests(value)
            ):
                return f"a class with {plain} in it"
            if cls in classes._REAL and self._is_guests(value):
                return "a stand-in for a type that was changed"
        return None

    def _is_guests(self, value: object) -> bool:
        kind = type(value)
        if kind is classmethod or kind is staticmethod:
            return self._is_guests(value.__func__)
        if kind is property:
            return self._is_guests(value.fget)
        if kind is types.FunctionType:
            return id(value.__code__) in self._guest_codes
        return kind not in self._host_classes and not issubclass(kind, type)

    def _why_dict(self, value: dict[object, object]) -> str | None:
        found = self._namespaces.get(id(value))
        if found is not None:
            return f"the namespace of {found}"
        if id(value) in self._class_dicts:
            return "the dictionary of a host class"
        if id(value) in self._registries:
            return "the registry behind a read-only proxy"
        if type(dict.get(value, ownership._MARKER_NAME)) is ownership._Marker:
            return "the body of a class with its seal"
        return None

    def _why_proxy(self, proxy: types.MappingProxyType[object, object]) -> str | None:
        behind = mapping_behind(proxy)
        if behind is None:
            return None
        if id(behind) in self._class_dicts or id(behind) in self._namespaces:
            return "a proxy of a host's dictionary"
        keys = list(dict.keys(behind))  # type: ignore[arg-type]  # a dict by its real type
        is_registry = object in keys and all(isinstance(key, type) for key in keys)
        # What a function of the host reads stands in a cell; a copy made to be looked at does not.
        if is_registry and any(type(holder) is types.CellType for holder in gc.get_referrers(behind)):
            self._registries[id(behind)] = behind
        return None

    def _why_function(self, function: types.FunctionType) -> str | None:
        if id(function.__code__) in self._guest_codes:
            return (
                None if ownership.is_guest_callable(function) else "a function of the guest's that counts as the host's"
            )
        module = function.__globals__.get("__name__")
        if type(module) is str and module.startswith("sealab.") and ".facades" not in module:
            if (
                id(function) in _OF_OURS_GIVEN
                or id(function) in _METHODS_GIVEN
                or "<locals>" in function.__code__.co_qualname
                or not _is_ours_private(module)
            ):
                return None
            return f"the function {module}.{function.__code__.co_qualname}"
        try:
            return self._shorter(self._opaque.why(function))
        except Exception:
            return None

    def _why_builtin(self, value: object) -> str | None:
        name = getattr(value, "__name__", "")
        receiver = getattr(value, "__self__", None)
        if name in _FORMATS and (issubclass(type(receiver), str) or getattr(value, "__objclass__", None) is str):
            return "the real str.format"
        if name in _RAW_ACCESS:
            return f"the real {name}"
        if issubclass(type(receiver), types.ModuleType):
            try:
                return self._shorter(self._opaque.why(value))
            except Exception:
                return None
        return None

    @staticmethod
    def _why_getter(getter: object) -> str | None:
        reduced = getter.__reduce__()
        read = reduced[1] if type(reduced) is tuple else ()
        first = getattr(reduced[0], "args", ()) if type(reduced) is tuple else ()
        words = [part for text in (*first, *read) if type(text) is str for part in text.split(".")]
        if type(getter) is operator.methodcaller:
            words = words[:1]
        for word in words:
            if names.judge(word) in {names.Verdict.GUARDED, names.Verdict.REFUSED}:
                return f"an {type(getter).__name__} of {word}"
            if names.judge(word) is names.Verdict.PRIVATE and not word.startswith(names.PREFIX):
                return f"an {type(getter).__name__} of a host's private name"
        return None


builtin_getattr = getattr


def instance_dict(value: object) -> dict[str, object] | None:
    """Return an object's own dictionary without calling anything of its class."""
    for cls in _mro(type(value)):
        found = _own_dict(cls).get("__dict__")
        if type(found) is types.GetSetDescriptorType:
            own = found.__get__(value)
            return own if type(own) is dict else None
    return None


def _is_plain(name: object) -> bool:
    return type(name) is str and names.judge(name) is names.Verdict.PLAIN and name not in names.SPECIAL_METHODS


def _is_shield(value: object) -> bool:
    function = value.__func__ if type(value) is classmethod else value
    return type(function) is types.FunctionType and function.__code__ in shields._CODES


def _is_of_ours(cls: type) -> bool:
    module = cls.__module__
    return type(module) is str and module.startswith("sealab.") and ".facades" not in module


def _is_ours_private(module: str) -> bool:
    # What asks the host is a helper, given to code one way or another.
    return module.startswith("sealab.sandbox.") and not module.startswith("sealab.sandbox.guest_api.hosted")
