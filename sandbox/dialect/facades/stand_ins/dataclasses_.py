"""A security boundary: `dataclasses` whose generated methods are guest code.

The real module writes field names into source that it executes, and reads attributes by these names. Names come from
annotations, which the compiler has judged, but also from `Field.name` and `__dataclass_fields__`, which code can
change, even in the middle of the decorator by way of a descriptor. So a private copy of the module executes its source
under the dialect, in variables of its own, and reads attributes through the guard. String annotations are never
evaluated: `ClassVar`, `InitVar` and `KW_ONLY` are recognised by their names, looked up in the code's own variables.
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

from ....guest.guest import variables_of
from ....guest.ownership import is_guest_class, mark_class
from ....guest.type_flags import final
from ....report.value_kinds import recognise_fields
from ...classes import limit_match_args, limited_match_args, make_class, shown_type
from ...compiling import exec_generated
from ...guards import guarded_getattr
from ...names import Verdict, demangle, given, judge, mangle
from ...shields import shielded, unshielded
from ..late_annotations import annotate_of, annotations_now, set_annotate
from ..private import copy_of
from .copy_ import deepcopy

__all__ = ["Field", "asdict", "astuple", "dataclass", "field", "make_dataclass", "replace"]

_MISSING: Any = dataclasses.MISSING
_WRITTEN_NAME = re.compile(r"\s*(?:(\w+)\s*\.\s*)?(\w+)")
_MARKERS: tuple[object, ...] = (typing.ClassVar, dataclasses.InitVar, dataclasses.KW_ONLY)
T = TypeVar("T")


def _getattr(obj: object, name: str, *default: object) -> object:
    if name == "__dataclass_fields__":
        return _fields_of(obj, *default)
    return guarded_getattr(obj, name, *default)


def _fields_of(cls: Any, *default: object) -> Any:
    """Return a copy of the fields of a class: code can change the table, at any moment."""
    found = getattr(cls, "__dataclass_fields__", *default)
    if found is None:
        return None
    fields = dict(found) if type(found) is dict else {"": None}
    if not all(type(item) is Field for item in fields.values()):
        raise TypeError(f"the fields of {cls.__name__!r} were changed; fields come from annotations")
    return fields


def _execute(text: str, _globals: object, made: dict[str, Any]) -> None:
    """Run the function that makes the methods of a class, as guest source.

    What it is given are variables of a guest frame, which code can read (`field(default_factory=locals)`): values and
    classes that code could hold anyway, and nothing of the machinery.
    """
    variables: dict[str, Any] = {}
    exec_generated(demangle(text), variables)
    make = variables["__create_fn__"]
    made["__create_fn__"] = lambda **values: make(**{demangle(name): value for name, value in values.items()})


def _state_of(obj: Any) -> list[object]:
    return [_getattr(obj, name) for name in _names_of(obj)]


def _restore_state(obj: Any, state: Iterable[object]) -> None:
    for name, value in zip(_names_of(obj), state, strict=False):
        if not is_guest_class(type(obj)):
            raise TypeError(f"{type(obj).__name__!r} object is not an instance of a dataclass")
        object.__setattr__(obj, mangle(name), value)


def _names_of(obj: object) -> list[str]:
    fields = [item for item in _fields_of(type(obj)).values() if item._field_type is _FIELD]
    for item in fields:
        _check_name(item.name)
    return [demangle(item.name) for item in fields]


# Compiling a private name in its source imports `unicodedata`.
_copy = copy_of("dataclasses", keeping=("__import__",), replacing={"exec": _execute, "getattr": _getattr})
_set_new_attribute = _copy._set_new_attribute


def _set_limited(cls: type, name: str, value: object) -> object:
    """Set an attribute as the module does, and `__match_args__` only as a class statement could have set them."""
    return _set_new_attribute(cls, name, limited_match_args(value) if name == "__match_args__" else value)


_copy._set_new_attribute = _set_limited  # type: ignore[attr-defined]  # a name of its own
_CLASS_VARIABLE, _INIT_VARIABLE, _FIELD = dataclasses._FIELD_CLASSVAR, dataclasses._FIELD_INITVAR, dataclasses._FIELD  # type: ignore[attr-defined]  # names of its own
_copy._dataclass_getstate = _state_of  # type: ignore[attr-defined]  # a name of its own
_copy._dataclass_setstate = _restore_state  # type: ignore[attr-defined]  # a name of its own


class _Unchanging(type):
    """The class of `Field`: were its `name` replaced, nothing would check names."""

    def __setattr__(cls, name: str, value: object) -> None:
        if not is_guest_class(cls):
            raise TypeError(f"cannot set {name!r} attribute of immutable type {cls.__name__!r}")
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        if not is_guest_class(cls):
            raise TypeError(f"cannot delete {name!r} attribute of immutable type {cls.__name__!r}")
        super().__delattr__(name)


@final
class Field(metaclass=_Unchanging):
    """One field of a dataclass."""

    __slots__ = (
        "_field_type", "_name", "compare", "default", "default_factory", "hash", "init", "kw_only", "metadata", "repr",
        "type",
    )  # fmt: skip

    def __init__(self, **values: Any) -> None:
        if type(self) is not Field or not values.keys() <= _GIVEN:  # nor may it set attributes of anything else
            raise TypeError("a field is made by field()")
        for name, value in values.items():
            setattr(self, name, value)
        self.type: object = None
        self.name = None
        self._field_type: object = None

    @property
    def name(self) -> str | None:
        """The field's name: an identifier, or None until the class has one."""
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        if name is not None:
            name = _field_name(name)  # the module sets an attribute of the class by it
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        hook = getattr(type(self.default), "__set_name__", None)  # type: ignore[attr-defined]  # set by `__init__`
        if hook is not None:
            hook(self.default, owner, name)  # type: ignore[attr-defined]  # as above

    def __repr__(self) -> str:
        return "Field(" + ",".join(f"{name}={getattr(self, name)!r}" for name in ("name", "type", *_SHOWN)) + ")"


_SHOWN = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
_GIVEN = frozenset(_SHOWN)
recognise_fields(Field)
_copy.Field = Field  # type: ignore[attr-defined]  # the copy's own name for what it makes and recognises
for _shared in ("InitVar", "FrozenInstanceError", "KW_ONLY", "MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"):
    # What shows a dataclass asks the real module, so both recognise fields by the same mark.
    setattr(_copy, _shared, getattr(dataclasses, _shared))


def field(
    *,
    default: Any = _MISSING,
    default_factory: Any = _MISSING,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - Python's own parameter
    hash: bool | None = None,  # noqa: A002 - as above
    compare: bool = True,
    metadata: Mapping[Any, Any] | None = None,
    kw_only: Any = _MISSING,
) -> Any:
    """Describe one field, as `dataclasses.field` does."""
    if default is not _MISSING and default_factory is not _MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return Field(
        default=default,
        default_factory=default_factory,
        init=init,
        repr=repr,
        hash=hash,
        compare=compare,
        metadata=types.MappingProxyType({} if metadata is None else metadata),
        kw_only=kw_only,
    )


def dataclass(cls: object = None, /, **options: Any) -> Any:
    """Give a class the methods that its annotated fields call for; the options are Python's own."""
    if cls is None:
        return lambda cls: _made(cls, options)
    return _made(cls, options)


def make_dataclass(
    cls_name: str,
    fields: Iterable[str | tuple[str, Any] | tuple[str, Any, Any]],
    *,
    bases: tuple[type, ...] = (),
    namespace: Mapping[str, object] | None = None,
    module: object = None,  # noqa: ARG001 - there is only one module that a class can belong to
    **options: Any,
) -> type:
    """Make a dataclass from names and types: `("x", int)`, `("y", int, field(default=0))` or just `"z"`."""
    if type(cls_name) is not str:
        raise TypeError("the name of a class is a string")
    body: dict[str, object] = dict(namespace or {})
    annotations: dict[str, object] = {}
    for item in fields:
        name, kind, *default = (item, Any) if isinstance(item, str) else item
        _check_name(name)
        if name in annotations:
            raise TypeError(f"Field name duplicated: {name!r}")
        annotations[name] = kind
        if default:
            body[name] = default[0]
    body["__annotations__"] = annotations
    return cast("type", _made(make_class(cls_name, tuple(bases), body), options))


def asdict(obj: Any, *, dict_factory: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
    """Return the fields of a dataclass instance as a dict, and so those of the instances within."""
    if isinstance(obj, type) or not dataclasses.is_dataclass(obj):
        raise TypeError("asdict() should be called on dataclass instances")
    return _converted(obj, lambda pairs: dict_factory([(demangle(name), value) for name, value in pairs]))


def astuple(obj: Any, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
    """Return the fields of a dataclass instance as a tuple, and so those of the instances within."""
    if isinstance(obj, type) or not dataclasses.is_dataclass(obj):
        raise TypeError("astuple() should be called on dataclass instances")
    return _converted(obj, lambda pairs: tuple_factory([value for _name, value in pairs]))


def replace(obj: Any, /, **changes: Any) -> Any:
    """Return a new instance with some fields changed."""
    if isinstance(obj, type) or not dataclasses.is_dataclass(obj):
        raise TypeError("replace() should be called on dataclass instances")
    cls = cast("Any", type(obj))
    for item in cls.__dataclass_fields__.values():
        kind, name = item._field_type, given(item.name)
        if kind is _CLASS_VARIABLE:
            continue
        if not item.init:
            if name in changes:
                raise ValueError(f"field {name} is declared with init=False, it cannot be specified with replace()")
        elif name not in changes:
            if kind is _INIT_VARIABLE and item.default is _MISSING:
                raise ValueError(f"InitVar {name!r} must be specified with replace()")
            changes[name] = _getattr(obj, name)
    return cls(**changes)


_copy._replace = replace  # type: ignore[attr-defined]  # what `copy.replace` calls, from Python 3.13 on


def _field_name(name: object) -> str:
    """Return the name of a field as attribute access spells it inside: never that of the host's own attribute."""
    _check_name(name)
    return mangle(given(name))


def _check_name(name: object) -> None:
    plain = given(name, "the name of a field")
    if not plain.isidentifier() or keyword.iskeyword(plain):
        raise TypeError(f"Field names must be identifiers, and not keywords: {plain!r}")
    if plain.startswith("__") or judge(plain) is Verdict.REFUSED:
        raise TypeError(f"{plain!r} cannot be the name of a field here")


def _made(cls: object, options: dict[str, Any]) -> Any:
    if not isinstance(cls, type) or not is_guest_class(cls):
        raise TypeError("dataclass() takes a class that the code itself defines")
    # Anything may be given for an option; asked meanwhile whether it is true, it would run code of its own.
    options = {name: bool(value) for name, value in options.items()}
    annotate = annotate_of(cls)
    found = inspect.get_annotations(cls) if annotate is None else annotations_now(annotate)
    written = {_field_name(name): annotation for name, annotation in found.items()}
    read = {name: _read(annotation) for name, annotation in written.items()}
    for name, annotation in read.items():
        if annotation is not dataclasses.KW_ONLY:
            _give_field(cls, name)
    cls.__annotations__ = read
    try:
        made = _copy.dataclass(cls, **options)
    finally:
        cls.__annotations__ = written
        limit_match_args(cls)
        if options.get("frozen"):
            _shield(cls)
    mark_class(made)
    _tell_written_types(made, written)
    set_annotate(made, annotate)
    if isinstance(made.__doc__, str):
        made.__doc__ = demangle(made.__doc__)
    if options.get("frozen"):
        _shield(made)
    limit_match_args(made)
    return made


def _shield(cls: type) -> None:
    """Put shields before what the decorator has made a class refuse stores with."""
    for name in ("__setattr__", "__delattr__"):
        written = cls.__dict__.get(name)
        if written is not None and unshielded(written) is written:
            type.__setattr__(cls, name, shielded(name, written, shown_type))


def _read(annotation: object) -> object:
    """Return the marker that a string annotation names, `object` for any other string, and the rest as it is."""
    if not isinstance(annotation, str):
        return annotation
    found = _WRITTEN_NAME.match(annotation)
    if found is None:
        return object
    module, name = found.groups()
    variables = variables_of(sys._getframe())
    if module is None:
        meant = variables.get(name)
    else:
        owner = variables.get(module)
        meant = next((marker for marker in _MARKERS if getattr(owner, name, None) is marker), None)
    return next((marker for marker in _MARKERS if meant is marker), object)


def _give_field(cls: type, name: str) -> None:
    """Put a `Field` of our own where the decorator would make one of the real module's."""
    default = _getattr(cls, name, _MISSING)
    if type(default) is Field:
        return
    if isinstance(default, types.MemberDescriptorType):  # the attribute of `__slots__` is not a default
        default = _MISSING
    type.__setattr__(cls, name, field(default=default))


def _tell_written_types(cls: type, written: Mapping[str, object]) -> None:
    cls.__annotations__ = dict(written)
    fields = cls.__dict__["__dataclass_fields__"]
    annotations: dict[str, object] = {}
    with suppress(NameError):  # of a base whose annotations name what is defined later
        annotations = getattr(cls.__dict__.get("__init__"), "__annotations__", {})
    for name, annotation in written.items():
        if isinstance(annotation, str) and name in fields:
            fields[name].type = annotation
            if name in annotations:
                annotations[name] = annotation


def _converted(obj: Any, combine: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    kind = type(obj)
    if hasattr(kind, "__dataclass_fields__"):
        names = [item.name for item in dataclasses.fields(obj)]
        return combine([(name, _converted(_getattr(obj, name), combine)) for name in names])
    if kind in {str, int, float, bool, type(None)}:
        return obj
    if isinstance(obj, tuple) and hasattr(kind, "_fields"):
        return kind(*(_converted(item, combine) for item in obj))
    if isinstance(obj, list | tuple):
        return kind(_converted(item, combine) for item in obj)
    if isinstance(obj, dict):
        pairs = [(_converted(key, combine), _converted(value, combine)) for key, value in obj.items()]
        factory = getattr(obj, "default_factory", None) if hasattr(kind, "default_factory") else None
        if factory is None:
            return kind(pairs)
        made = cast("Callable[[Any], dict[Any, Any]]", kind)(factory)
        made.update(pairs)
        return made
    return deepcopy(obj)
