"""`dataclasses` whose field names are identifiers whatever the code does to them.

The real module writes field names into source that it executes. Names come from annotations, which the compiler has
judged, but also from `Field.name` and `__dataclass_fields__`, which code can change, even in the middle of the
decorator by way of a descriptor. So a private copy of the module works with a `Field` whose name cannot be anything but
an identifier. String annotations are never evaluated: `ClassVar`, `InitVar` and `KW_ONLY` are recognised by their
names, looked up in the code's own variables.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import keyword
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from ..classes import limit_match_args, make_class
from ..guest import GUEST
from ..names import PREFIX, Verdict, demangle, judge, mangle
from ..ownership import is_guest_class
from ..value_kinds import recognise_fields
from .copy_ import deepcopy
from .private import copy_of

__all__ = ["Field", "asdict", "astuple", "dataclass", "field", "make_dataclass", "replace"]

_MISSING: Any = dataclasses.MISSING
_WRITTEN_NAME = re.compile(r"\s*(?:(\w+)\s*\.\s*)?(\w+)")
_MARKERS: tuple[object, ...] = (typing.ClassVar, dataclasses.InitVar, dataclasses.KW_ONLY)
T = TypeVar("T")


# Its own generated source is all that it executes; compiling a private name in it imports `unicodedata`.
_copy = copy_of("dataclasses", keeping=("exec", "__import__"))


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
            _check_name(name)
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        hook = getattr(type(self.default), "__set_name__", None)  # type: ignore[attr-defined]  # set by `__init__`
        if hook is not None:
            hook(self.default, owner, name)  # type: ignore[attr-defined]  # as above

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Field cannot be a base class: what a subclass calls its name would not be checked")

    def __repr__(self) -> str:
        return "Field(" + ",".join(f"{name}={getattr(self, name)!r}" for name in ("name", "type", *_SHOWN)) + ")"


_SHOWN = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
_GIVEN = frozenset(_SHOWN)
recognise_fields(Field)
_copy.Field = Field  # type: ignore[attr-defined]  # the copy's own name for what it makes and recognises
for _shared in ("InitVar", "FrozenInstanceError", "KW_ONLY", "MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"):
    # Whoever shows a dataclass asks the real module, so what both recognise fields by is the same.
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
    return dataclasses.replace(obj, **{_spelled(obj, name): value for name, value in changes.items()})


def _check_name(name: object) -> None:
    if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
        raise TypeError(f"Field names must be identifiers, and not keywords: {name!r}")
    if name.startswith("__") or judge(demangle(name)) is Verdict.REFUSED:
        raise TypeError(f"{demangle(name)!r} cannot be the name of a field here")


def _made(cls: object, options: dict[str, Any]) -> Any:
    if not isinstance(cls, type) or not is_guest_class(cls):
        raise TypeError("dataclass() takes a class that the code itself defines")
    written = inspect.get_annotations(cls)
    read = {name: _read(annotation) for name, annotation in written.items()}
    for name, annotation in read.items():
        _check_name(name)
        if annotation is not dataclasses.KW_ONLY:
            _give_field(cls, name)
    _check_inherited(cls)
    cls.__annotations__ = read
    try:
        made = _copy.dataclass(cls, **options)
    finally:
        cls.__annotations__ = written
    _tell_written_types(made, written)
    _speak_plainly(made, options)
    limit_match_args(made)
    return made


def _check_inherited(cls: type) -> None:
    """Refuse what code put among the fields of a base. Between here and their use, no guest code runs."""
    for base in cls.__mro__[1:]:
        fields = base.__dict__.get("__dataclass_fields__", {})
        if type(fields) is not dict or not all(type(item) is Field for item in fields.values()):
            raise TypeError(f"the fields of {base.__name__!r} were changed; fields come from annotations")


def _read(annotation: object) -> object:
    """Return the marker that a string annotation names, `object` for any other string, and the rest as it is."""
    if not isinstance(annotation, str):
        return annotation
    found = _WRITTEN_NAME.match(annotation)
    if found is None:
        return object
    module, name = found.groups()
    if module is None:
        meant = GUEST.namespace.get(name)
    else:
        owner = GUEST.namespace.get(module)
        meant = next((marker for marker in _MARKERS if getattr(owner, name, None) is marker), None)
    return next((marker for marker in _MARKERS if meant is marker), object)


def _give_field(cls: type, name: str) -> None:
    """Put a `Field` of our own where the decorator would make one of the real module's."""
    default = getattr(cls, name, _MISSING)
    if isinstance(default, Field):
        return
    if isinstance(default, types.MemberDescriptorType):  # the attribute of `__slots__` is no default
        default = _MISSING
    type.__setattr__(cls, name, field(default=default))


def _tell_written_types(cls: type, written: Mapping[str, object]) -> None:
    cls.__annotations__ = dict(written)
    fields = cls.__dict__["__dataclass_fields__"]
    annotations = getattr(cls.__dict__.get("__init__"), "__annotations__", {})
    for name, annotation in written.items():
        if isinstance(annotation, str) and name in fields:
            fields[name].type = annotation
            if name in annotations:
                annotations[name] = annotation


def _speak_plainly(cls: type, options: Mapping[str, Any]) -> None:
    """Let private fields, which are spelled apart inside, be written `A(_x=1)` and shown as `_x`."""
    if isinstance(cls.__doc__, str):
        cls.__doc__ = demangle(cls.__doc__)
    if not any(name.startswith(PREFIX) for name in cls.__dict__["__dataclass_fields__"]):
        return
    if options.get("init", True):
        _take_plain_names(cls)
    shown = cls.__dict__.get("__repr__")
    if shown is not None and options.get("repr", True) and getattr(shown, "__wrapped__", None) is not None:
        type.__setattr__(cls, "__repr__", functools.wraps(shown)(lambda self: demangle(shown(self))))


def _take_plain_names(cls: type) -> None:
    init = cls.__dict__["__init__"]

    @functools.wraps(init)
    def taking_plain_names(self: object, *args: object, **kwargs: object) -> None:
        init(self, *args, **{_spelled(self, name): value for name, value in kwargs.items()})

    type.__setattr__(cls, "__init__", taking_plain_names)


def _spelled(obj: object, name: str) -> str:
    inside = mangle(name)
    return inside if inside in getattr(type(obj), "__dataclass_fields__", ()) else name


def _converted(obj: Any, combine: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    kind = type(obj)
    if hasattr(kind, "__dataclass_fields__"):
        names = [item.name for item in dataclasses.fields(obj)]
        return combine([(name, _converted(getattr(obj, name), combine)) for name in names])
    if kind in {str, int, float, bool, type(None)}:
        return obj
    if isinstance(obj, tuple) and hasattr(kind, "_fields"):
        return kind(*(_converted(item, combine) for item in obj))
    if isinstance(obj, list | tuple):
        return kind(_converted(item, combine) for item in obj)
    if isinstance(obj, dict):
        pairs = [(_converted(key, combine), _converted(value, combine)) for key, value in obj.items()]
        factory = getattr(obj, "default_factory", None)
        if factory is None:
            return kind(pairs)
        made = cast("Callable[[Any], dict[Any, Any]]", kind)(factory)
        made.update(pairs)
        return made
    return deepcopy(obj)
