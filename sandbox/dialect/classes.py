"""Security boundary: what a class may be made from, and what guest code gets for `type`.

A metaclass, or a class made from a dictionary, would define methods that no compiler has judged. So class statements go
through `build_class`, which judges and respells what the body bound, and `type` is a stand-in that tells the type of an
object, or makes a class by the same rules. What code derives from it is not a metaclass to Python (`metaclasses`).
"""

from __future__ import annotations

import builtins
import io
import struct
import types
from abc import ABCMeta
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, EnumMeta
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple, Self, TypedDict, cast

from ..guest.facade import Facade, Module
from ..guest.ownership import is_guest_callable, is_guest_class, mark_body, mark_class
from ..guest.real_classes import derives
from ..guest_api.answers import AwaitableAnswer, AwaitableList, AwaitableText, DocumentedObject
from . import metaclasses
from .facades import gives
from .metaclasses import GOVERNOR, AbstractMetaclass, Metaclass, governor_of, is_metaclass
from .names import (
    CLASS_BODY,
    DEFINABLE,
    INERT,
    INSPECTION,
    PREFIX,
    RUNTIME_PUBLIC,
    Verdict,
    demangle,
    exact,
    given,
    judge,
    mangle,
)
from .shields import JUDGED_IN_CLASSES, shielded
from .views import DictionaryView

_build_class = builtins.__build_class__
_own_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_set_on_class = type.__setattr__
_NAMED_TUPLE: Final = type(types.resolve_bases((NamedTuple,))[0])
_ENUM_BODY: Final = type(EnumMeta.__prepare__("Probe", ()))
_TYPED_DICTIONARY: Final = type(types.new_class("Probe", (TypedDict,)))
_NO_BASES: Final = (
    type, staticmethod, classmethod, super, types.GenericAlias, struct.Struct, io.IncrementalNewlineDecoder,
)  # fmt: skip
"""Metaclasses; what hands on the attributes of a host object, which of a subclass would count as the code's own; and
what C code goes on to work with after it called the code, which of a subclass could be initialized again by then.
"""
_IMPLICIT: Final = frozenset(
    {*CLASS_BODY, "__orig_bases__", "__type_params__", "__static_attributes__", "__firstlineno__"}
)


class _TypeStandIn(type):
    """The class of stand-ins for types: they test instances as the real type does, and cannot be called."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL[cls])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(_REAL.get(subclass, subclass), (_REAL[cls], *filter(None, [_RECORDS.get(cls)])))

    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"cannot set {name!r} attribute of immutable type {cls.__name__!r}")

    def __delattr__(cls, name: str) -> None:
        raise TypeError(f"cannot delete {name!r} attribute of immutable type {cls.__name__!r}")

    def __call__(cls, *_arguments: object, **_keywords: object) -> object:
        raise TypeError(f"cannot create {cls.__name__!r} instances here")

    def __repr__(cls) -> str:
        return f"<class {cls.__name__!r}>"


class _TypeOfObject(_TypeStandIn):
    """The class of the stand-in for `type`."""

    def __call__(cls, *arguments: object, **keywords: object) -> type:
        """Return the type of the one argument, or make a class of three, as a class statement would."""
        if len(arguments) == _NAME_BASES_BODY:
            return _class_of(*arguments, **keywords)
        if len(arguments) != 1 or keywords:
            raise TypeError("type() takes 1 or 3 arguments")
        return class_of(arguments[0])


_NAME_BASES_BODY: Final = 3


def _class_of(name: object, bases: object, body: object, /, **keywords: object) -> type:
    _check_parts(bases, body)
    # A name that answers for itself could be one to a look-up here and another to CPython.
    keywords = {given(key, "a keyword of a class"): value for key, value in keywords.items()}
    made = make_class(given(name, "the name of a class"), tuple(cast("Any", bases)), cast("Any", body), **keywords)
    return cast("type", made)


def _check_parts(bases: object, body: object) -> None:
    if not isinstance(bases, tuple):
        raise TypeError(f"type() argument 2 must be tuple, not {shown_type(type(bases)).__name__}")
    if not isinstance(body, dict):
        raise TypeError(f"type() argument 3 must be dict, not {shown_type(type(body)).__name__}")


def opaque(real: type) -> type:
    """Return a class that only tests what is an instance of `real`."""
    return OPAQUE.get(real) or _stand_in(real)


def _stand_in(real: type, kind: type[_TypeStandIn] = _TypeStandIn) -> type:
    made = kind(real.__name__, (), {"__module__": "builtins", "__slots__": (), "__doc__": real.__doc__})
    _REAL[made] = real
    return made


def _of_type(cls: type, item: object) -> types.GenericAlias:
    return types.GenericAlias(cls, item)


_REAL: dict[type, type] = {}
type_of = _stand_in(type, _TypeOfObject)
_set_on_class(type_of, "__class_getitem__", classmethod(_of_type))


def _bound_function(function: object, instance: object, owner: object = None, /) -> object:
    """Bind a function of the code's own, as its `__get__` does: what decorators of descriptors call on its class."""
    if not is_guest_callable(function):
        raise TypeError("'__get__' of 'function' takes a function that the code made itself")
    return cast("types.FunctionType", function).__get__(instance, cast("type", owner))


abstract_metaclass = _stand_in(ABCMeta)
enum_metaclass = _stand_in(EnumMeta)
_RECORDS: Final[Mapping[type, type]] = {type_of: Metaclass, abstract_metaclass: AbstractMetaclass}
"""What code derives from in place of a metaclass."""
for _stands, _record in _RECORDS.items():
    for _name in ("__new__", "__init__", "__call__"):  # of `type.__new__(mcs, …)` in a metaclass
        _set_on_class(_stands, _name, staticmethod(getattr(_record, _name)))

OPAQUE: Final[Mapping[type, type]] = {
    **{
        real: _stand_in(real)
        for real in (
            types.FunctionType,
            types.BuiltinFunctionType,
            types.ModuleType,
            types.CodeType,
            types.FrameType,
            types.TracebackType,
            types.GeneratorType,
            types.CoroutineType,
            types.AsyncGeneratorType,
            types.CellType,
            types.MethodWrapperType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
        )
    },
    type: type_of,
    ABCMeta: abstract_metaclass,
    EnumMeta: enum_metaclass,
    Metaclass: type_of,
    AbstractMetaclass: abstract_metaclass,
    DictionaryView: dict,
    DocumentedObject: dict,
    AwaitableAnswer: dict,
    AwaitableList: list,
    AwaitableText: str,
}
"""Types whose constructors lead into the interpreter, each with what guest code gets in its place.

`type_of` is the builtin `type`; `abc.ABCMeta` and `enum.EnumMeta` are to be `abstract_metaclass` and `enum_metaclass`;
the names of the `types` module are to be the values of this mapping.
"""

_set_on_class(OPAQUE[types.FunctionType], "__get__", _bound_function)


@cache
def _shown_host_type(cls: type) -> type:
    if cls in OPAQUE:
        return OPAQUE[cls]
    if cls in _REAL:
        return cls
    if issubclass(cls, type):
        return type_of
    if issubclass(cls, _facade_type()):
        return Module
    if cls.__module__.startswith("sealab.") and ".facades." not in cls.__module__:
        return object
    return cls if _is_given(cls) else _stand_in(cls)


def _is_given(cls: type) -> bool:
    """Return whether code may call `cls`: what a call of any other class does was not judged.

    The class of `operator.attrgetter("x")` is such a one, and the base classes that stand-ins are made from.
    """
    return (
        getattr(builtins, cls.__name__, None) is cls
        or issubclass(cls, BaseException)
        or gives(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or (issubclass(cls, Enum) and cls.__module__ != "enum")
    )


def shown_type(cls: type) -> type:
    """Return what guest code may hold of the class `cls`: itself, or its stand-in."""
    return cls if is_guest_class(cls) else _shown_host_type(cls)


def class_of(obj: object) -> type:
    """Return what `type(obj)` is to guest code."""
    return governor_of(obj) or shown_type(type(obj))


@cache
def _facade_type() -> type:
    # Imported late: the facades' own stand-ins are made from this module.
    return Facade


_UNMADE: Final[dict[int, object]] = {}


def keep_unmade(instead: object) -> object:
    """Let what stands for a class that was refused stand for every class that is made from it, too; return it."""
    _UNMADE[id(instead)] = instead
    return instead


def build_class(function: types.FunctionType, name: str, /, *bases: object, **keywords: object) -> object:
    """Do what `builtins.__build_class__` does for a class statement, under the rules of this module.

    Raises `TypeError` for a base, a metaclass or a name in the body that is not allowed.
    """
    if not is_guest_callable(function):
        raise TypeError("a class is made by a class statement")
    name = given(name, "the name of a class")
    # CPython looks the names up again, and a name that answers for itself would replace the maker.
    keywords = {given(key, "a keyword of a class"): value for key, value in keywords.items()}
    for each in (*bases, keywords.get("metaclass")):
        if id(each) in _UNMADE:
            return each
    maker = _Maker(keywords.pop("metaclass", None), keywords, bases)
    # `type` stays `type` here: Python shows the bases to each `__mro_entries__`, and keeps them as `__orig_bases__`.
    return _build_class(function, name, *cast("tuple[type, ...]", bases), metaclass=cast("type", maker))


def make_class(name: str, bases: tuple[type, ...], body: Mapping[str, object], /, **keywords: object) -> object:
    """Make a class from data under the same rules, for the facades whose functions make classes."""
    name = given(name, "the name of a class")
    entries = _entries(body)
    maker = _Maker(None, keywords, bases)
    prepared = cast("dict[str, object]", maker.__prepare__(name, bases))
    prepared["__module__"] = "__main__"
    for key, value in entries:
        prepared[key] = value
    return maker(name, bases, prepared)


def _entries(body: Mapping[str, object]) -> list[tuple[str, object]]:
    entries = [(given(key, "a name in the body of a class"), value) for key, value in body.items()]
    for key, _value in entries:
        if key in _IMPLICIT:
            raise TypeError(f"{key!r} cannot be defined in a class here")
    return entries


_statements: Final[dict[int, tuple[dict[str, object], dict[str, object]]]] = {}
"""The bodies of class statements that metaclasses were handed, by identity, and what the compiler put there."""


def _ask_metaclass(governor: type, name: str, bases: tuple[type, ...], body: dict[str, object], more: Any) -> object:
    """Make the class of a statement by a metaclass of the code's own."""
    _check_keys(body)
    implicit = {key: value for key, value in body.items() if key in _IMPLICIT}
    handed = {key: value for key, value in body.items() if key not in _IMPLICIT}
    _statements[id(handed)] = handed, implicit
    try:
        made: object = governor(name, bases, handed, **more)
    finally:
        is_left = _statements.pop(id(handed), None) is not None
    if is_left and type(cell := implicit.get("__classcell__")) is types.CellType and _is_own_class(made):
        cell.cell_contents = made  # the class was made of a copy of the body
    return made


def _is_own_class(value: object) -> bool:
    return issubclass(type(value), type) and is_guest_class(cast("type", value))


def _make_governed(metaclass: type, /, *parts: Any, **keywords: object) -> object:
    """Do what `type.__new__(metaclass, name, bases, body)` does, for a metaclass that the code derived from `type`."""
    if metaclass is type_of:
        return _class_of(*parts, **keywords)
    if not is_metaclass(metaclass):
        raise TypeError("type.__new__() takes a metaclass that the code made itself")
    if len(parts) != _NAME_BASES_BODY:
        raise TypeError(f"type.__new__() takes exactly {_NAME_BASES_BODY} arguments ({len(parts)} given)")
    name, bases, body = parts
    _check_parts(bases, body)
    name, bases = given(name, "the name of a class"), tuple(bases)
    governor = metaclasses.winner(metaclass, bases)
    if governor is not metaclass:
        return cast("Any", governor).__new__(governor, name, bases, body, **keywords)
    for base in bases:
        _check_base(base)
    _check_mixed(bases)
    held = _statements.get(id(body))
    implicit = {} if held is None or held[0] is not body else _statements.pop(id(body))[1]
    prepared: dict[str, object] = {"__module__": "__main__", **dict(_entries(body))}
    _respell(prepared, name, own_annotations=True)
    prepared |= {**implicit, GOVERNOR: metaclass}
    keywords = {given(key, "a keyword of a class"): value for key, value in keywords.items()}
    return _made(metaclasses.real_metaclass(metaclass, bases), name, bases, prepared, keywords)


metaclasses.provide(_make_governed)


def _made(metaclass: type, name: str, bases: tuple[type, ...], body: dict[str, object], more: Any) -> object:
    """Make a class of a body that was judged."""
    mark_body(body)  # already here, since the body's own methods may run while the class is being made
    made: object = metaclass(name, bases, body, **more)
    if isinstance(made, type):
        mark_class(made)
        limit_match_args(made)
    return made


class _Maker:
    """Stands where CPython expects the metaclass of one class statement (Language Reference 3.3.3)."""

    __slots__ = ("_asked", "_governor", "_keywords", "_metaclass", "_written")

    def __init__(self, asked: object, keywords: Mapping[str, object], written: Sequence[object]) -> None:
        self._asked = asked
        self._written = written
        self._keywords = keywords
        self._metaclass: type = type
        self._governor: type | None = None

    def __prepare__(self, name: str, bases: tuple[type, ...], /) -> object:
        bases = self._derived_from(bases)
        for base in bases:
            _check_base(base)
        _check_mixed(bases)
        metaclasses.check_bases(bases)
        asked = cast("type", self._asked) if is_metaclass(self._asked) else None
        self._governor = metaclasses.winner(asked, bases)
        if self._governor is not None:
            if asked is None:
                _metaclass(self._asked, ())
            metaclasses.real_metaclass(self._governor, bases)
            return {}
        self._metaclass = _metaclass(self._asked, bases)
        if "_simple" in self._keywords and issubclass(self._metaclass, EnumMeta):
            raise TypeError("an enum cannot be made without its members")
        return self._metaclass.__prepare__(name, bases, **self._keywords)

    def __call__(self, name: str, bases: tuple[type, ...], body: dict[str, object], /) -> object:
        bases = self._derived_from(bases)
        if self._governor is not None:
            return _ask_metaclass(self._governor, name, bases, body, self._keywords)
        own_annotations = not issubclass(self._metaclass, _TYPED_DICTIONARY)
        if any(derives(base, Metaclass) for base in bases):
            _check_keys(body)
            metaclasses.check_body(body)
        _respell(body, name, own_annotations)
        if self._metaclass is _NAMED_TUPLE and _has_private_annotation(body):
            raise ValueError("Field names cannot start with an underscore")
        return _made(self._metaclass, name, bases, body, self._keywords)

    def _derived_from(self, bases: tuple[type, ...]) -> tuple[type, ...]:
        """Return what a class really derives from: a metaclass by `type` in its statement, and not by a base's word."""
        kinds = [base for base in _RECORDS if any(base is each for each in self._written)]
        return tuple(_RECORDS[base] if any(base is each for each in kinds) else base for base in bases)


def _has_private_annotation(body: dict[str, object]) -> bool:
    annotations = body.get("__annotations__")
    return type(annotations) is dict and any(type(name) is str and name.startswith(PREFIX) for name in annotations)


def _check_base(base: object) -> None:
    # The class of a base is what makes the new class, and `isinstance` uses what an object says of its class.
    if not issubclass(type(base), type):
        raise TypeError(f"a base must be a class, not an object of {shown_type(type(base)).__name__!r}")
    base = cast("type", base)
    if base in _REAL or issubclass(base, _NO_BASES):
        shown = shown_type(base).__name__
        raise TypeError(
            f"{shown!r} cannot be a base class here; keep one in an attribute, or use a class decorator or "
            "__init_subclass__ in place of a metaclass"
        )


def _check_mixed(bases: tuple[type, ...]) -> None:
    """Refuse to mix `SimpleNamespace`, whose attributes are data, with a class that keeps its state in attributes."""
    host = {base for each in bases for base in _mro(each) if not is_guest_class(base)}
    if types.SimpleNamespace in host and not host <= {types.SimpleNamespace, object}:
        raise TypeError("a class cannot derive from 'SimpleNamespace' and from another class of Python's own")

    if len(bases) > 1:
        _check_collisions([[base for base in _mro(each) if not is_guest_class(base)] for each in bases])


def _check_collisions(lineages: list[list[type]]) -> None:
    """Refuse to mix host classes that keep different things under the same private name.

    What one takes from data, such as the name of a section, the other would take for its own.
    """
    for first, second in combinations(lineages, 2):
        for one in first:
            for other in second:
                if one in second or other in first:
                    continue
                shared = private_names(one) & private_names(other)
                if shared:
                    raise TypeError(
                        f"a class cannot derive from both {one.__name__!r} and {other.__name__!r}: "
                        f"each keeps something of its own as {min(shared)!r}"
                    )


@cache
def private_names(cls: type) -> frozenset[str]:
    """Return the private attributes that the methods of a host class name, and the code within them."""
    import dis

    named: set[str] = set()
    waiting: list[object] = list(_own_dict(cls).values())
    while waiting:
        each = waiting.pop()
        if type(each) is types.CodeType:
            waiting += each.co_consts
            named.update(step.argval for step in dis.get_instructions(each) if step.opname in _ATTRIBUTE_STEPS)
        elif type(each) is types.FunctionType:
            waiting += [each.__code__, each.__dict__.get("__wrapped__")]
        elif isinstance(each, property):
            waiting += [each.fget, each.fset, each.fdel]
        elif isinstance(each, classmethod | staticmethod):
            waiting.append(each.__func__)
    return frozenset(name for name in named if name.startswith("_") and not name.startswith("__")) - _OF_A_MODULE


_ATTRIBUTE_STEPS: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})
_OF_A_MODULE: Final = frozenset({"_check_methods"})
"""What methods ask a module for, and no object."""


def _metaclass(asked: object, bases: tuple[type, ...]) -> type:
    if asked is None:
        winner = type(bases[0]) if bases else type
    elif asked is type_of or asked is abstract_metaclass or asked is enum_metaclass:
        winner = _REAL[asked]
    else:
        raise TypeError("this metaclass is not allowed here; use a class decorator or __init_subclass__")
    if issubclass(winner, EnumMeta) and not any(issubclass(type(base), EnumMeta) for base in bases):
        raise TypeError("an enum class needs a base: write class Name(Enum)")
    for base in bases:
        if issubclass(winner, type(base)):
            continue
        if not issubclass(type(base), winner):
            raise TypeError("metaclass conflict: the bases of the class have metaclasses that do not fit together")
        winner = type(base)
    return winner


def _respell(body: dict[str, object], class_name: str, own_annotations: bool) -> None:
    """Give the private names that a class body bound the spelling that attribute access has inside."""
    _check_keys(body)
    _rename(body, class_name)
    if type(body.get("__module__")) is not str:  # host code looks the module up by it
        dict.__setitem__(body, "__module__", "__main__")
    if issubclass(type(body.get("__qualname__")), str):  # host code puts it into messages
        dict.__setitem__(body, "__qualname__", exact(cast("str", body["__qualname__"])))
    for name in JUDGED_IN_CLASSES:
        if name in body:
            dict.__setitem__(body, name, shielded(name, body[name], shown_type))
    annotations = body.get("__annotations__")
    if annotations is not None and type(annotations) is not dict:
        if own_annotations is False:
            raise TypeError("__annotations__ of a class must be a dictionary")
        # A descriptor for its objects: the host takes it for no dictionary, and nothing else finds it.
        dict.__setitem__(body, PREFIX + "__annotations__", annotations)
        dict.__delitem__(body, "__annotations__")
    elif type(annotations) is dict:
        # A copy, since code that holds the dictionary may run at any moment, in a garbage collection.
        annotations = dict(annotations)
        _check_keys(annotations)
        if own_annotations:
            _rename(annotations, class_name)
        dict.__setitem__(body, "__annotations__", annotations)
    if issubclass(type(body), _ENUM_BODY) and "_ignore_" in body:
        dict.__setitem__(body, "_ignore_", _spelled_ignored(body["_ignore_"], class_name))
    if "__slots__" in body:
        dict.__setitem__(body, "__slots__", _spelled_slots(body["__slots__"], class_name))
    if "__match_args__" in body:
        dict.__setitem__(body, "__match_args__", spelled_match_args(body["__match_args__"]))


def _check_keys(entries: dict[str, object]) -> None:
    for key in dict.keys(entries):
        if type(key) is not str:
            raise TypeError(f"a name in the body of a class must be a string, not {type(key).__name__!r}")
        if key in INSPECTION:
            raise TypeError(f"{key!r} cannot be defined in a class here")


def _rename(entries: dict[str, object], class_name: str) -> None:
    renamed = {key: _spelled(key, class_name) for key in dict.keys(entries) if key.startswith("_")}
    if all(key == new for key, new in renamed.items()):
        return
    values = list(dict.items(entries))
    dict.clear(entries)
    for key, value in values:
        dict.__setitem__(entries, renamed.get(key, key), value)
    members = getattr(entries, "_member_names", None)  # of the dictionary that an enum's body fills
    if type(members) is dict:
        _rename(members, class_name)


def _spelled(key: str, class_name: str) -> str:
    if key in INERT:
        return PREFIX + key
    if key not in DEFINABLE | _IMPLICIT | RUNTIME_PUBLIC and judge(key) in {Verdict.GUARDED, Verdict.REFUSED}:
        raise TypeError(f"{key!r} cannot be defined in a class here")
    return mangle(key, class_name)


def _spelled_ignored(names: object, class_name: str) -> list[str]:
    """Spell what an enum's class body wants to be left out as the body itself is spelled; the enum pops it by name."""
    if type(names) is not list:
        raise TypeError("_ignore_ must be a string or a list of strings")
    return [mangle(given(name, "a name in _ignore_"), class_name) for name in names]


def _spelled_slots(slots: object, class_name: str) -> object:
    if isinstance(slots, str):
        slots = (slots,)
    if isinstance(slots, dict):
        texts = {_slot(name, class_name): text for name, text in slots.items()}
        return Slots(texts, {demangle(name): text for name, text in texts.items()})
    names = [_slot(name, class_name) for name in tuple(slots)]  # type: ignore[arg-type,var-annotated]  # raises as Python does
    return Slots(names, [demangle(name) for name in names]) if type(slots) is list else tuple(names)


class Slots(tuple[str, ...]):  # noqa: SLOT001 - a tuple cannot have slots of its own
    """The names in a `__slots__` that was written as a list or a dictionary, and a copy of what was written.

    Python reads them again to copy an object, without a guard. So they cannot change.
    """

    written: list[str] | dict[str, object]

    def __new__(cls, names: Iterable[str], written: list[str] | dict[str, object]) -> Self:
        """Return `names` with what code is shown in their place."""
        made = super().__new__(cls, names)
        made.written = written
        return made


def _slot(name: object, class_name: str) -> str:
    name = given(name, "a slot")
    if name in {"__dict__", "__weakref__"}:
        return name
    if name in JUDGED_IN_CLASSES:
        raise TypeError(f"{name!r} cannot be a slot here")
    return _spelled(name, class_name)


def spelled_match_args(names: object) -> tuple[str, ...]:
    """Return the names that a class may have as `__match_args__`, as they are spelled inside. Raises `TypeError`."""
    if type(names) is not tuple:
        raise TypeError("__match_args__ must be a tuple of strings")
    spelled = tuple(given(name, "a name in __match_args__") for name in names)
    for name in spelled:
        if not _may_match(name):
            raise TypeError(f"__match_args__ cannot name {name!r}; match it by an `if` guard")
    return tuple(map(mangle, spelled))


def _may_match(name: str) -> bool:
    plain = demangle(name)
    return judge(plain) in {Verdict.PLAIN, Verdict.PRIVATE} and not plain.startswith("__")


def limited_match_args(names: object) -> tuple[str, ...]:
    """Return what `__match_args__` may be of `names`: all of them, or none where one would read what needs a guard."""
    if type(names) is tuple and all(type(name) is str and _may_match(name) for name in names):
        return names
    return ()


def limit_match_args(cls: type) -> None:
    """Take positional class patterns from `cls` where they would read an attribute that needs a guard.

    A pattern reads what `__match_args__` names from any subject that `cls` admits, and `ABC.register` admits any.
    """
    for base in _mro(cls):
        names = _own_dict(base).get("__match_args__")
        if names is not None:
            if limited_match_args(names) is not names:
                _set_on_class(cls, "__match_args__", ())
            return
