"""`collections` with a checked `namedtuple`, a `UserString` without hidden attributes, an `OrderedDict` in Python."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, MappingView
from typing import Any

from ....guest.ownership import is_guest_class, mark_class
from ...formatting import format_string
from ...guards import guarded_getattr
from ...names import given, mangle
from .ordered_dict import OrderedDict

__all__ = ["OrderedDict", "UserString", "namedtuple"]


def namedtuple(
    typename: str,
    field_names: str | Iterable[str],
    *,
    rename: bool = False,
    defaults: Iterable[object] | None = None,
    module: object = None,  # noqa: ARG001 - there is only one module that a class can belong to
) -> type[tuple[object, ...]]:
    """Return a tuple class with named fields.

    Raises ValueError for a field name that is not an identifier, TypeError for one that is not a string.
    """
    if isinstance(field_names, str):
        field_names = given(field_names, "the list of names").replace(",", " ").split()
    names = [given(name, "the name of a field") for name in field_names]
    make: Any = collections.namedtuple  # noqa: PYI024 - made from data, by design
    name = given(typename, "the name of a class")
    made: type[tuple[object, ...]] = make(name, names, rename=bool(rename), defaults=defaults, module="__main__")
    mark_class(made)
    return made


class UserString(collections.UserString):
    """A string to subclass; its `format` goes through the guards."""

    def format(self, /, *args: object, **kwargs: object) -> str:
        """Format as `str.format` does."""
        return _format(self.data, args, kwargs)

    def format_map(self, mapping: Mapping[str, object]) -> str:
        """Format as `str.format_map` does."""
        return _format(self.data, (), mapping)


def _format(template: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
    return format_string(str(template), args, kwargs, guarded_getattr)


class _Shown:
    """What a view of a class of the code's own shows, as its attribute `_mapping`; the class itself has none."""

    __slots__ = ()

    def __get__(self, view: object, owner: object = None) -> object:
        return _slot.__get__(_own_view(view))

    def __set__(self, view: object, mapping: object) -> None:
        _slot.__set__(_own_view(view), mapping)


_slot: Any = MappingView.__dict__["_mapping"]


def _own_view(view: object) -> object:
    if not is_guest_class(type(view)):
        raise AttributeError(f"{type(view).__name__!r} object has no attribute '_mapping'")
    return view


def keep_mappings() -> None:
    """Let views of mappings that code derives find what they show as `self._mapping`, as the library's own do."""
    type.__setattr__(MappingView, mangle("_mapping"), _Shown())
