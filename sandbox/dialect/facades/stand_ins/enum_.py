"""A security boundary: `enum` whose functional form, `Color = Enum("Color", "RED GREEN")`, judges its names.

Real enum classes, on a metaclass that checks: the real one would put any name, dunder methods among them, into the
class it makes, past the rules for class bodies.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType
from typing import Any, cast

from ....guest.real_classes import derives
from ...classes import enum_metaclass as EnumMeta  # noqa: N812 - it stands for that class
from ...classes import make_class
from ...guards import guarded_getattr
from ...names import given, member_name

__all__ = ["Enum", "EnumMeta", "EnumType", "Flag", "IntEnum", "IntFlag", "StrEnum"]

EnumType = EnumMeta
_NOTHING = object()


class _CheckedEnumType(enum.EnumType):
    def __call__(cls, value: Any = _NOTHING, *values: Any, **keywords: Any) -> Any:
        """Look a member up by its value, or make a new enum from names."""
        if not values and not keywords and value is not _NOTHING:
            return super().__call__(value)
        if value is _NOTHING:
            value = keywords.pop("value")
        if cls.__members__:
            # An enum with members makes no new ones: this looks up a member with several values. The real class would
            # decide that by a list which code may change.
            return cast("Any", cls).__new__(cls, (value, *values) if values else value)
        names = values[0] if values else keywords.pop("names", None)
        name = given(value, "the name of an enum")
        if not name.isidentifier() or names is None:
            raise TypeError("an enum made by a call needs a name and the names of its members")
        kind = keywords.get("type")
        boundary = {"boundary": keywords["boundary"]} if keywords.get("boundary") is not None else {}
        # The real class would make it past the rules for bases and class bodies.
        bases = (cls,) if kind is None else (kind, cls)
        return make_class(name, bases, _members(cls, names, keywords.get("start", 1)), **boundary)

    @classmethod
    def _find_new_(cls, *found: Any) -> tuple[Any, bool, bool]:
        """Find what makes the members. What it returns is a member: its `__init__` is called, and it gets a name."""
        make, save_new, use_args = super()._find_new_(*found)  # type: ignore[misc]  # what the real class asks
        return make if type(make) is BuiltinFunctionType else _making_members(make), save_new, use_args


def _making_members(make: Callable[..., object]) -> Callable[..., object]:
    def made(cls: type, *args: object) -> object:
        member = make(cls, *args)
        if not derives(type(member), cls):
            raise TypeError(
                f"__new__ of {cls.__name__!r} must return one of its members, not a {type(member).__name__!r}"
            )
        return member

    return made


class _NameOnce:
    """The name of an `enum.property`, which looks it up: its class says it, and nothing changes it."""

    def __get__(self, holder: object, _cls: type | None = None) -> object:
        if holder is None:
            return self
        try:
            return holder.__dict__["name"]
        except KeyError:
            raise AttributeError("name") from None

    def __set__(self, holder: object, name: str) -> None:
        if "name" in holder.__dict__:
            raise AttributeError("the name of an enum property cannot be changed")
        holder.__dict__["name"] = name


def keep_names() -> None:
    """Let no store change a member of a host enum, or the name that an enum's attribute looks up (Python 3.12).

    What it looks up is judged, since code may hang it in another class, or give any object a `_value_`.
    """
    type.__setattr__(enum.property, "name", _NameOnce())
    vars(enum)["getattr"] = _getattr
    waiting: list[Any] = [enum.Enum]
    for kind in waiting:
        waiting += type.__subclasses__(kind)
        if kind.__members__:
            type.__setattr__(kind, "__setattr__", _keep_attributes)


def _getattr(obj: object, name: str, *default: object) -> object:
    """Read for the real module: a name of its own as it is, that of a member as the code could."""
    own = default or (type(name) is str and name.startswith("_"))
    return getattr(obj, name, *default) if own else guarded_getattr(obj, name)


def _keep_attributes(self: enum.Enum, name: str, value: object) -> None:
    # A flag remembers what is not in it. Flags that combine others are made later, and known when they have a name.
    known = type(self)._value2member_map_.get(self.__dict__.get("_value_"))
    if known is self and name != "_inverted_":
        raise AttributeError(f"cannot set {name!r}: the members of Python's own enums are read-only here")
    object.__setattr__(self, name, value)


def _members(
    cls: Any, names: str | Mapping[str, object] | Iterable[str | tuple[str, object]], start: Any
) -> dict[str, object]:
    """Return the values of the members, by their names; a name alone gets the value that `auto()` would give it."""
    given_names: list[Any]
    if isinstance(names, str):
        given_names = [*given(names, "the list of names").replace(",", " ").split()]
    else:
        given_names = list(names.items()) if isinstance(names, Mapping) else list(names)
    members: dict[str, object] = {}
    for item in given_names:
        if isinstance(item, str):
            name = member_name(item)
            value = cls._generate_next_value_(name, start, len(members), list(members.values()))
        else:
            name, value = item
            name = member_name(name)
        if name in members:
            raise TypeError(f"{name!r} already defined as {members[name]!r}")
        members[name] = value
    return members


class Enum(enum.Enum, metaclass=_CheckedEnumType):
    """A set of named constants."""


class IntEnum(enum.IntEnum, metaclass=_CheckedEnumType):
    """An enum whose members are ints."""


class StrEnum(enum.StrEnum, metaclass=_CheckedEnumType):
    """An enum whose members are strings."""


class Flag(enum.Flag, metaclass=_CheckedEnumType):
    """Named bits that can be combined."""


class IntFlag(enum.IntFlag, metaclass=_CheckedEnumType):
    """Named bits that can be combined and are ints."""
