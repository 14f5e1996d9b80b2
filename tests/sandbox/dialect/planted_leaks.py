"""Leaks that the sandbox once had, put back one at a time in the process of a walk, which must find each.

A leak is planted where guest code reaches it: a member of a facade, or an entry of the builtins, is replaced by one that
does what the real module or the stand-in of that time did. None of them relies on how the sandbox prevents it today.
"""

# What is planted is private by nature.

from __future__ import annotations
import __future__

import builtins
import contextvars
import copy
import dataclasses
import decimal
import enum
import functools
import gc
import keyword
import sys
import types
import typing
from abc import ABCMeta
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sealab.sandbox.dialect import classes, facades, names, namespace, shields
from sealab.sandbox.dialect.facades.stand_ins import contextvars_
from sealab.sandbox.guest import ownership

from .opaque import is_of_guest


@dataclass(frozen=True)
class Planted:
    """A leak: what puts it back, what of the guest's the walk is to try then, and a word of what it must find."""

    plant: Callable[[], None]
    walked: str
    found: str


def _give(module: str, name: str, value: object) -> None:
    object.__setattr__(facades.find(module), name, value)
    facades.given_classes.cache_clear()
    classes._shown_host_type.cache_clear()


def _give_builtin(name: str, value: object) -> None:
    for table in ("_GUARDED", "HOOKS"):
        if name in getattr(namespace, table, {}):
            setattr(namespace, table, {**getattr(namespace, table), name: value})


def _make_plain(name: str) -> None:
    """Let source read and define a name as if nothing were known of it."""
    for module in (names, classes):
        for table in ("GUARDED", "REFUSED", "GUEST_ONLY_METHODS", "SHIELDED"):
            if name in getattr(module, table, ()):
                setattr(module, table, getattr(module, table) - {name})
        for table in ("SPECIAL_METHODS", "NATIVE", "DEFINABLE", "_KNOWN"):
            if hasattr(module, table):
                setattr(module, table, getattr(module, table) | {name})


def _field_defaults() -> None:
    _give("dataclasses", "dataclass", dataclasses.dataclass)


def _renamed_fields() -> None:
    def asdict(obj: Any, **_options: object) -> dict[str, object]:
        return {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}

    _give("dataclasses", "asdict", asdict)


def _made_by(maker: Callable[[str, tuple[object, ...], dict[str, object]], object]) -> Callable[..., object]:
    given = namespace.guarded_builtins()["__build_class__"]

    def build(function: types.FunctionType, name: str, /, *bases: object, **keywords: object) -> object:
        if not bases or all(isinstance(base, type) for base in bases):
            return given(function, name, *bases, **keywords)
        return builtins.__build_class__(function, name, metaclass=lambda _name, _bases, body: maker(name, bases, body))

    return build


def _class_of_a_base_is_called() -> None:
    _give_builtin("__build_class__", _made_by(lambda name, bases, body: type(bases[0])(name, bases, body)))


def _base_is_handed_the_seal() -> None:
    def make(name: str, bases: tuple[object, ...], body: dict[str, object]) -> object:
        ownership.mark_body(body)
        return type(bases[0])(name, bases, body)

    _give_builtin("__build_class__", _made_by(make))


def _subclass_checks() -> None:
    _make_plain("__subclasscheck__")

    class Asks(ABCMeta):
        def __instancecheck__(cls, instance: object) -> bool:
            for base in cls.__mro__:
                check = shields.unshielded(vars(base).get("__subclasscheck__"))
                if check is not None:
                    return bool(getattr(check, "__func__", check)(type(instance)))
            return False

    class ABC(metaclass=Asks):
        pass

    ABC.__module__ = "builtins"
    _give("abc", "ABC", ABC)


def _dispatch_is_copied() -> None:
    def singledispatch(function: Callable[..., object]) -> Callable[..., object]:
        generic = functools.singledispatch(function)

        def dispatching(*args: object) -> object:
            return generic.dispatch(type(args[0]))(*args)

        return dispatching

    _give("functools", "singledispatch", singledispatch)


def _registry() -> None:
    _give("functools", "singledispatch", functools.singledispatch)


def _entries_of_aliases() -> None:
    _make_plain("__mro_entries__")
    _give("typing", "Type", cast("Any", typing)._SpecialGenericAlias(type, 1, inst=False, name="Type"))


def _memo() -> None:
    def deepcopy(x: object, memo: Any = None, _nil: object = None) -> object:
        memo = {} if memo is None else memo
        state = [getattr(x, slot, None) for slot in getattr(type(x), "__slots__", ()) if isinstance(slot, str)]
        memo[id(x)] = state
        return x if state else copy.deepcopy(x, memo)

    _give("copy", "deepcopy", deepcopy)


def _lying_keys() -> None:
    def make_dataclass(
        name: str,
        fields: object,
        *,
        bases: tuple[type, ...] = (),
        namespace: Mapping[str, object] | None = None,
        **_options: object,
    ) -> type:
        made = type(bases[0])(name, bases, dict(namespace or {})) if bases else type(name, (), dict(namespace or {}))
        ownership.mark_class(made)
        return made

    _give("dataclasses", "make_dataclass", make_dataclass)


def _lying_slots() -> None:
    def build(function: types.FunctionType, name: str, /, *bases: type, **keywords: object) -> object:
        made = builtins.__build_class__(function, name, *bases, **keywords)
        ownership.mark_class(made)
        return made

    _give_builtin("__build_class__", build)


def _builtins_inside_exec() -> None:
    def run(source: str, space: dict[str, object] | None = None, _locals: object = None, /) -> None:
        space = {} if space is None else space
        space["__builtins__"] = namespace.guarded_builtins()
        builtins.exec(builtins.compile(source, "<string>", "exec"), space)

    _give_builtin("exec", run)


def _properties() -> None:
    _make_plain("__init__")
    names.INITIALIZER = "no name"  # type: ignore[misc]  # what the transformer asks the guard for

    class Fraction:
        numerator = property(lambda _self: 1)

    Fraction.__module__ = "fractions"
    _give("fractions", "Fraction", Fraction)


def _containers() -> None:
    _give("keyword", "softkwlist", keyword.kwlist)


def _functional_enums() -> None:
    _give("enum", "Enum", enum.Enum)


def _real_contexts() -> None:
    _give("contextvars", "copy_context", contextvars.copy_context)


def _host_variables() -> None:
    decimal.getcontext()  # keeps its context in a variable
    _give("decimal", "getcontext", lambda: next(iter(contextvars.copy_context())))


PLANTED: Mapping[str, Planted] = {
    "a: a field's default": Planted(_field_defaults, "builtins.str", "the raw method format"),
    "a: a field that was renamed": Planted(_renamed_fields, "builtins.str", "the raw method format"),
    "b: the class of a base is called": Planted(
        _class_of_a_base_is_called, "operator.methodcaller", "a text that shows"
    ),
    "b: a base is handed the seal": Planted(
        _base_is_handed_the_seal, "builtins.property", "the real dictionary of a class"
    ),
    "c: __subclasscheck__": Planted(_subclass_checks, "abc.ABC", "the real type"),
    "d: dispatch is copied": Planted(_dispatch_is_copied, "functools.singledispatch", "the real type"),
    "e: the registry": Planted(_registry, "functools.singledispatch", "the dictionary behind a read-only view"),
    "f: __mro_entries__": Planted(_entries_of_aliases, "typing.Type", "the real type"),
    "g: the memo": Planted(_memo, "builtins.compile", "a code"),
    "h: keys that lie": Planted(_lying_keys, "builtins.int", "no plain str"),
    "h: slots that lie": Planted(_lying_slots, "builtins.object", "unjudged name"),
    "i: builtins inside exec": Planted(_builtins_inside_exec, "builtins.int", "counts as the host's"),
    "i: a property of the host": Planted(_properties, "fractions.Fraction", "fget"),
    "i: a list of the host": Planted(_containers, "keyword.softkwlist", "changed: "),
    "i: a functional enum": Planted(_functional_enums, "enum.Enum", "unjudged name"),
    "j: a real context": Planted(_real_contexts, "contextvars.copy_context", "a real Context"),
    "j: a variable of the host": Planted(_host_variables, "decimal.getcontext", "a real ContextVar"),
}


_TABLE = {"yes": True}


def _tables() -> None:
    _give("keyword", "softkwlist", types.MappingProxyType(_TABLE))


def _features() -> None:
    _give("__future__", "annotations", __future__.annotations)


class _Redirect:
    def __init__(self, _function: object = None) -> None:
        """Take what it decorates."""

    def __get__(self, instance: Any, _owner: object = None) -> object:
        return getattr(instance._value_, "gi_frame", self)


def _redirects() -> None:
    _give("functools", "cached_property", _Redirect)


class _OfOwner:
    def __init__(self, method: Any) -> None:
        self._owner = getattr(method, "__self__", None)

    def __call__(self) -> object:
        return self._owner if type(self) is not _OfOwner else None


class _OfMethod(_OfOwner):
    def __call__(self) -> object:
        return None


def _owners() -> None:
    _give("weakref", "ReferenceType", _OfOwner)
    _give("weakref", "WeakMethod", _OfMethod)


class _Remade:
    def __replace__(self, /, **changes: object) -> object:
        made: Any = type(self)()
        getattr(made, "__globals__", made.__dict__).update(changes)
        return made

    def replaced(self, /, **changes: object) -> object:
        return self.__replace__(**changes)


def _replaced() -> None:
    _give("types", "SimpleNamespace", _Remade)


_TRUSTED: contextvars.ContextVar[object] = contextvars.ContextVar("trusted")


class _Trusting:
    def __call__(self) -> object:
        return getattr(_TRUSTED.get(), "__globals__", None)


def _variables() -> None:
    (methods,) = gc.get_referents(vars(contextvars.ContextVar))
    methods |= {"set": contextvars_._set, "reset": contextvars_._reset}
    _TRUSTED.set(None)
    _give("decimal", "getcontext", _Trusting())


def _building() -> None:
    built = namespace.guarded_builtins()["__build_class__"]

    def build(function: types.FunctionType, name: str, /, *bases: object, **keywords: object) -> object:
        told = sys._getframe(1).f_builtins.get("print")
        if is_of_guest(told):
            cast("Any", told)(sys._getframe(1))
        return built(function, name, *bases, **keywords)

    _give_builtin("__build_class__", build)


MISUSED: Mapping[str, Planted] = {
    "operators: the dictionary behind a table": Planted(_tables, "keyword", "of a mappingproxy"),
    "stores: the features of the future": Planted(_features, "__future__", "takes compiler_flag"),
    "descriptors: a redirect reads what was forged": Planted(_redirects, "functools", "a frame"),
    "bases: the base of a reference gives its object": Planted(_owners, "weakref random", "that only the host has"),
    "makers: an object is remade as what its class makes": Planted(_replaced, "types", "writes into a function"),
    "variables: what the host trusts is forged": Planted(_variables, "decimal", "the dictionary of the module"),
    "hooks: a builtin of the code's own is told a frame": Planted(_building, "keyword", "a frame"),
}
"""As `PLANTED`, for `misuse`: the rule that must find each stands before its name."""
