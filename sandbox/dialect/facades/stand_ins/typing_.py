"""`typing` whose string annotations are evaluated under the dialect or not at all."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any, cast

from ....guest.guest import GUEST
from ...classes import make_class, opaque, shown_type, type_of
from ...compiling import guarded_eval
from ...guards import guarded_getattr, shown_annotation
from ...names import demangle, given
from . import ordered_dict

__all__ = [
    "NamedTuple",
    "OrderedDict",
    "Type",
    "TypedDict",
    "_GenericAlias",
    "get_args",
    "get_origin",
    "get_type_hints",
    "override",
    "reveal_type",
]

Type = cast("Any", typing)._SpecialGenericAlias(type_of, 1, inst=False, name="Type")
"""An alias of the stand-in: compared with what holds an object of the code's own, an alias passes it its origin."""
OrderedDict = cast("Any", typing)._SpecialGenericAlias(ordered_dict.OrderedDict, 2, name="OrderedDict")
"""An alias of the stand-in too."""
T = typing.TypeVar("T")
_GenericAlias = opaque(cast("Any", typing)._GenericAlias)
"""Only to test instances by."""
_Names = dict[str, Any] | None


def get_type_hints(
    obj: object, globalns: _Names = None, localns: _Names = None, include_extras: bool = False
) -> dict[str, object]:
    """Return the annotations of a class or function, with strings evaluated as the code itself would be."""
    hints: dict[str, object] = {}
    for owner in _owners(obj):
        for name, hint in owner.items():
            value = evaluated(hint, globalns, localns)
            hints[demangle(name)] = value if include_extras else _plain(value)
    return hints


def get_origin(tp: object) -> object:
    """Return what a generic alias is made from: `list` of `list[int]`; None of anything else."""
    origin = typing.get_origin(tp)
    return shown_type(origin) if isinstance(origin, type) else origin


def get_args(tp: object) -> tuple[object, ...]:
    """Return what a generic alias is made of: `(int,)` of `list[int]`. Of what code may not hold, the text."""
    return tuple(map(_shown_part, typing.get_args(tp)))


def _shown_part(part: object) -> object:
    return [_shown_part(each) for each in part] if type(part) is list else shown_annotation(part)


def reveal_type(obj: object, /) -> object:
    """Write the type of `obj` to the output and return `obj`."""
    GUEST.write_error(f"Runtime type is {type(obj).__name__!r}\n")
    return obj


def override(method: T, /) -> T:
    """Mark a method that replaces one of a base class."""
    with suppress(AttributeError, TypeError):
        method.__override__ = True  # type: ignore[attr-defined]  # as PEP 698 says
    return method


def TypedDict(  # noqa: N802 - Python's own name
    typename: str, fields: Mapping[str, object] | None = None, /, *, total: bool = True
) -> type:
    """Make a dictionary type from names and types; also a base class."""
    entries = {given(name, "the name of a field"): kind for name, kind in dict(fields or {}).items()}
    return cast("type", make_class(typename, (_TYPED_DICT,), {"__annotations__": entries}, total=total))


def NamedTuple(  # noqa: N802 - Python's own name
    typename: str, fields: Iterable[tuple[str, object]] | None = None, /, **kinds: object
) -> type:
    """Make a tuple class from names and types; also a base class."""
    if fields is not None and kinds:
        raise TypeError("Either list of fields or keywords can be provided to NamedTuple, not both")
    entries: dict[str, object] = {}
    for name, kind in kinds.items() if fields is None else fields:
        if given(name, "the name of a field") in entries:
            raise ValueError(f"Encountered duplicate field name: {name!r}")
        entries[given(name)] = kind
    return cast("type", make_class(typename, (_NAMED_TUPLE,), {"__annotations__": entries}))


_TYPED_DICT, _NAMED_TUPLE = types.resolve_bases((typing.TypedDict, typing.NamedTuple))
# What makes them base classes.
TypedDict.__mro_entries__ = lambda _bases: (_TYPED_DICT,)  # type: ignore[attr-defined]  # Python looks for it there
NamedTuple.__mro_entries__ = lambda _bases: (_NAMED_TUPLE,)  # type: ignore[attr-defined]  # as above


def keep_types() -> None:
    """Let a copied alias, which is looked up by its name, be the one of the stand-in as well."""
    vars(typing).update(Type=Type, OrderedDict=OrderedDict)


def _annotations_of(cls: type) -> Mapping[str, object]:
    return {name: shown_annotation(hint) for name, hint in inspect.get_annotations(cls).items()}


def _owners(obj: object) -> list[Mapping[str, object]]:
    if isinstance(obj, type):
        return [_annotations_of(base) for base in reversed(obj.__mro__)]
    while hasattr(obj, "__wrapped__"):
        obj = obj.__wrapped__
    annotations = cast("Mapping[str, object] | None", guarded_getattr(obj, "__annotations__", None))
    if annotations is None:
        if callable(obj):
            return []
        raise TypeError(f"{obj!r} is not a class or callable.")
    return [annotations]


def evaluated(hint: object, globalns: _Names = None, localns: _Names = None) -> object:
    """Return an annotation with all strings in it evaluated under the dialect."""
    if hint is None:
        return types.NoneType
    if isinstance(hint, typing.ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        # It evaluates where the code stands that asks: a skill sees its own variables, never those of its caller.
        return evaluated(guarded_eval(hint, globalns, localns), globalns, localns)
    args = getattr(hint, "__args__", None)
    if not isinstance(args, tuple) or isinstance(hint, type) or typing.get_origin(hint) is typing.Literal:
        return hint
    parts = tuple(
        evaluated(arg, globalns, localns)
        if isinstance(arg, str | typing.ForwardRef) or hasattr(arg, "__args__")
        else arg
        for arg in args
    )
    if parts == args:
        return hint
    if isinstance(hint, types.UnionType):
        return reduce(or_, parts)
    if isinstance(hint, types.GenericAlias):
        return types.GenericAlias(cast("type", hint.__origin__), parts)
    copy_with: Callable[[tuple[object, ...]], object] | None = getattr(hint, "copy_with", None)
    return copy_with(parts) if copy_with is not None else hint


def _plain(hint: object) -> object:
    strip: Callable[[object], object] = typing._strip_annotations  # type: ignore[attr-defined]  # what get_type_hints itself uses
    plain = strip(hint)
    return shown_type(plain) if isinstance(plain, type) else plain
