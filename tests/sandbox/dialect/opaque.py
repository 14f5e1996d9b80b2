"""Says what guest code must never hold: `Opaque` judges one value by what it is, whatever its class says."""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import asyncio
import builtins
import contextlib
import contextvars
import gc
import io
import logging
import os
import socket
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from enum import FlagBoundary
from http import HTTPStatus
from re import RegexFlag
from typing import Any

from sealab.sandbox.dialect import classes, names
from sealab.sandbox.dialect.event_loop import GuestLoop
from sealab.sandbox.dialect.guards import guarded_getattr
from sealab.sandbox.dialect.names import PREFIX, Verdict
from sealab.sandbox.guest import ownership
from sealab.sandbox.guest.facade import Facade

from ..facades_walk import forbidden_functions

_NEVER = (
    *(types.ModuleType, types.FrameType, types.CodeType, types.CellType, io.FileIO, socket.socket),
    *(logging.Logger, logging.Handler, logging.Manager),
)
_NEVER_CLASSES = (
    *(type, types.FunctionType, types.CodeType, types.ModuleType, types.FrameType, types.TracebackType, types.CellType),
    *(io.FileIO, logging.Logger, logging.Formatter, logging.FileHandler, asyncio.BaseEventLoop, subprocess.Popen),
)
_REAL_VARIABLES = frozenset({contextvars.Context, contextvars.ContextVar, contextvars.Token})
_RAW_METHODS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_GIVEN_RAW = frozenset({"__get__"})
"""Guarded only to name the owner: what it is bound to is judged by the value that it gives."""
_CLASS_MARK = ownership._MARKER_NAME
_SEALS = [value for name, value in vars(ownership).items() if name.endswith("SEAL")]
_BY_METACLASSES = frozenset(
    "__dict__ __weakref__ __abstractmethods__ _abc_impl __orig_bases__ __parameters__ __type_params__ __classcell__ "
    "__static_attributes__ __firstlineno__ __hash__ __protocol_attrs__ __non_callable_proto_members__ __annotate__ "
    "__annotations_cache__ __annotate_func__ __final__ __orig_class__ __wrapped__ __signature__ __reduce_ex__ "
    "__isabstractmethod__ __subclasses__ __classdictcell__ __unittest_skip__ __unittest_skip_why__".split()
) | {_CLASS_MARK, *vars(HTTPStatus), *vars(FlagBoundary), *vars(RegexFlag)}

_HARMLESS_CLASSES = frozenset({"_empty", "Kind", "_ParameterKind"})
"""Marks of a module that are classes and do nothing."""

_REFERENCES_OF_A_PROXY = 3
"""Of a dictionary that only a proxy, a variable and a call refer to: nothing changes when the guest changes it."""

_class_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_flags = type.__dict__["__flags__"].__get__
_MADE_AT_RUN_TIME = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class of C without it is made by nobody, though it may be known late (as Union of 3.14 is)."""


def _is(kind: type, base: type | tuple[type, ...]) -> bool:
    bases = base if isinstance(base, tuple) else (base,)
    return any(known is each for known in _mro(kind) for each in bases)


class Opaque:
    """Judges values. `given` are dictionaries that the guest made itself and may hold."""

    def __init__(self) -> None:
        self.behind: dict[int, object] = {}
        self.given: set[int] = set()
        self._judges: dict[type, Callable[[Any], str | None]] = {}
        self._kept: list[object] = []
        self._dictionaries = {
            id(vars(module)): f"the dictionary of the module {name}"
            for name, module in list(sys.modules.items())
            if isinstance(module, types.ModuleType)
        }
        self._dictionaries |= {id(sys.modules): "sys.modules", id(os.environ): "os.environ"}
        self._dictionaries[id(vars(builtins))] = "the dictionary of builtins"
        classes = list(all_classes())
        self._kept.append(classes)  # known by identity, which must not become another's
        self._class_dictionaries = {
            id(_behind(_class_dict(cls))): f"the dictionary of {cls.__qualname__}" for cls in classes
        }
        self._classes = {id(cls) for cls in classes}
        spaces = [each.__globals__ for each in gc.get_objects() if type(each) is types.FunctionType]
        self._host_globals = {id(space) for space in spaces}
        self._kept.append(spaces)
        self._forbidden = dict(forbidden_functions())

    def add_namespace(self, namespace: dict[str, object], name: str) -> None:
        """Count a real namespace of the guest among what it may only hold a view of."""
        self._kept.append(namespace)
        self._dictionaries[id(namespace)] = name
        self._dictionaries[id(namespace["__builtins__"])] = f"the builtins of {name}"

    def allow(self, value: object) -> None:
        """Let the guest hold a dictionary that is its own."""
        self._kept.append(value)
        self.given.add(id(value))

    def why(self, value: object) -> str | None:
        """Return what is opaque about `value`, its items apart."""
        kind = type(value)
        judge = self._judges.get(kind)
        if judge is None:
            judge = self._judges[kind] = self._judge_of(kind)
        if id(value) in self._forbidden:
            return f"the function {self._forbidden[id(value)]}"
        return judge(value)

    def _judge_of(self, kind: type) -> Callable[[Any], str | None]:
        if kind is str:
            return _why_text
        if kind is object:
            return lambda value: "the seal" if any(value is seal for seal in _SEALS) else None
        if _is(kind, _NEVER):
            return lambda _value: f"a {kind.__name__}"
        if _is(kind, asyncio.AbstractEventLoop) and not _is(kind, GuestLoop) and not ownership.is_guest_class(kind):
            return lambda _value: "a real event loop"
        if kind in _REAL_VARIABLES:
            return lambda _value: f"a real {kind.__name__}, which leads to the variables of the host"
        if _is(kind, type):
            return self._why_class
        if _is(kind, (dict, types.MappingProxyType)):
            return self._why_mapping
        if kind in _RAW_METHODS:
            return self._why_method
        if kind is types.FunctionType:
            return self._why_function
        if kind is types.MethodType:
            return lambda value: self.why(value.__func__)
        return lambda _value: None

    def _why_class(self, cls: type) -> str | None:
        if cls in classes._REAL:
            return None
        if ownership.is_guest_class(cls) or (id(cls) not in self._classes and _flags(cls) & _MADE_AT_RUN_TIME):
            unjudged = _why_unjudged(cls)
            if unjudged is not None or ownership.is_guest_class(cls):
                return unjudged
        if cls.__name__ in _HARMLESS_CLASSES or type(cls) is classes._TYPED_DICTIONARY:
            return None
        if _is(cls, type):
            return f"the real {cls.__name__}"
        if any(cls is each for each in _NEVER_CLASSES):
            return f"the class {cls.__name__}"
        if id(cls) not in self._classes or _is(cls, types.GenericAlias):
            return None
        try:
            shown = classes.shown_type(cls)
        except Exception as error:
            return f"a class that cannot be judged ({error!r})"
        if shown is not cls:
            return f"the real class {cls.__module__}.{cls.__qualname__}"
        return None

    def _why_mapping(self, mapping: object) -> str | None:
        if type(mapping) is types.MappingProxyType:
            target = _behind(mapping)
            if id(target) in self._class_dictionaries or _has(target, _CLASS_MARK):
                return "the real dictionary of a class"
            if id(target) not in self.given and id(target) not in self.behind:
                if sys.getrefcount(target) <= _REFERENCES_OF_A_PROXY or _is_only_shown(target):
                    self.allow(target)
                else:
                    self.behind[id(target)] = target
            return self._dictionaries.get(id(target))
        if id(mapping) in self.given:
            return None
        if id(mapping) in self._dictionaries:
            return self._dictionaries[id(mapping)]
        if id(mapping) in self.behind:
            return "the dictionary behind a read-only view"
        if _has(mapping, _CLASS_MARK):
            return "the real dictionary of a class"
        private = (
            [
                key
                for key, value in mapping.items()
                if _is_private(key) and not _only_describes(value) and key not in _ARGUMENTS
            ]
            if type(mapping) is dict
            else ()
        )
        if private:
            return f"private state of the host: {sorted(private)[:3]}"
        return None

    @staticmethod
    def _why_method(method: object) -> str | None:
        name = getattr(method, "__name__", "")
        owner = getattr(method, "__objclass__", None) or type(getattr(method, "__self__", None))
        if name in _GIVEN_RAW or names.judge(name) not in {Verdict.GUARDED, Verdict.REFUSED}:
            return None
        if names.judge(name) is Verdict.GUARDED and not _is_guarded_form(method, name):
            return None
        return f"the raw method {name} of {owner.__name__}"

    def _why_function(self, function: types.FunctionType) -> str | None:
        if ownership.is_guest_callable(function):
            return None
        if id(function.__globals__) in self._host_globals:
            return _evaluates(function)
        name = function.__globals__.get("__name__")
        if type(name) is str and name.startswith("namedtuple_"):  # as `collections.namedtuple` makes them
            return None
        return f"the function {function.__qualname__}, which the guest made and which counts as the host's"


def all_classes() -> Iterator[type]:
    """Give every class there is."""
    seen: set[type] = set()
    waiting: list[type] = [object]
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            waiting.extend(type.__subclasses__(cls))


def _evaluates(function: types.FunctionType) -> str | None:
    """Return it for a function of the host that takes annotations for source."""
    code = function.__code__
    if "eval_str" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return None

    def annotated(x) -> None: ...

    annotated.__annotations__ = {"x": "__import__('os').getpid()"}
    with contextlib.suppress(Exception):
        if str(os.getpid()) in str(function(annotated, eval_str=True)):
            return "evaluates annotations"
    return None


def _why_text(text: str) -> str | None:
    found = next((sign for sign in _SIGNS if sign in text), None)
    return None if found is None else f"a text that shows {found!r}"


_SIGNS = (
    "'__name__': '__main__', '__doc__': None, '__builtins__'",
    "ModuleSpec(",
    "<frame object at",
    "<frame at 0x",
    "<module 'os' ",
    "<function _abc_",
    "<cell at 0x",
    "<built-in method mro",
)
"""What is in the text of an opaque object that somebody formatted."""


def _is_guarded_form(method: object, name: str) -> bool:
    """Return whether the guards give something else in place of `method`."""
    target = getattr(method, "__self__", None)
    if target is None:
        target = getattr(method, "__objclass__", None)
    try:
        given = guarded_getattr(target, name)
    except Exception:
        return True
    return given is not method and type(given) not in _RAW_METHODS


def _why_unjudged(cls: type) -> str | None:
    for key, value in dict(_class_dict(cls)).items():
        if type(key) is not str:
            said = str.__str__(key) if isinstance(key, str) else type(key).__name__
            return f"a class that binds {said!r} under a key that is no plain str"
        if key in _BY_METACLASSES or key.startswith(PREFIX) or not key.startswith("_"):
            continue
        if key in names.DECLARATIONS | names.SETTABLE or (key in names.DEFINABLE and ownership.is_guest_class(cls)):
            continue
        if is_of_guest(value):
            return f"a class that binds the unjudged name {key!r}"
    return None


def is_of_guest(value: object) -> bool:
    """Return whether guest code made `value`, or it is a slot."""
    if type(value) is types.MemberDescriptorType:
        return True
    if type(value) in {classmethod, staticmethod}:
        value = value.__func__
    kind = type(value)
    return (
        ownership.is_guest_callable(value)
        or ownership.is_guest_class(kind)
        or (_is(kind, type) and ownership.is_guest_class(value))
    )


def _is_private(key: object) -> bool:
    return (
        type(key) is str
        and len(key) > 2
        and key.startswith("_")
        and not key.startswith("__")
        and key not in names.PUBLIC_SUNDERS
    )


def _is_only_shown(target: object) -> bool:
    """Return whether a stand-in keeps a dictionary for showing alone, in an attribute that says so."""
    return any(
        (each.get("shown") if type(each) is dict else getattr(each, "shown", None)) is target
        for each in gc.get_referrers(target)
        if not ownership.is_guest_class(type(each))  # reading an attribute would run the guest's code
    )


def _only_describes(value: object) -> bool:
    """Return whether a value is an annotation, a parameter or a module of the guest's, whose name may be private."""
    return isinstance(value, str | type | bool | Facade) or type(value).__name__ == "Parameter"


def _has(mapping: object, key: str) -> bool:
    return _is(type(mapping), dict) and dict.__contains__(mapping, key)


def _behind(proxy: object) -> object:
    return next(iter(gc.get_referents(proxy)), None)


_ARGUMENTS = frozenset({"_impl"})
"""Private names of parameters: the keywords of a converter that `configparser` makes name its parser's own method."""
