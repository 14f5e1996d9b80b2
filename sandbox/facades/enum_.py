"""A security boundary: `enum` whose functional form, `Color = Enum("Color", "RED GREEN")`, judges its names.

Real enum classes, on a metaclass that checks: the real one would put any name, dunder methods among them, into the
class it makes, past the rules for class bodies.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..classes import enum_metaclass as EnumMeta  # noqa: N812 - it stands for that class
from ..classes import make_class
from ..names import given, member_name

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


class _NameOnce:
    """The name of an `enum.property`, which looks it up: the class that it stands in says it, and nobody changes it."""

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
    """Let no store change the name that an attribute of an enum class looks up (Python 3.12 and later)."""
    type.__setattr__(enum.property, "name", _NameOnce())


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
