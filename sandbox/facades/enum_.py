"""`enum` whose functional form, `Color = Enum("Color", "RED GREEN")`, judges the names it is given.

Real enum classes, on a metaclass that checks: the real one would put any name, dunder methods among them, into the
class it makes, past the rules for class bodies.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..classes import enum_metaclass as EnumMeta  # noqa: N812 - it stands for that class
from ..names import Verdict, judge

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
        if cls.__members__:  # an enum with members makes no new ones: this looks up a member with several values
            return super().__call__(value, *values, **keywords)
        names = values[0] if values else keywords.pop("names", None)
        allowed = {name: keywords[name] for name in ("type", "start", "boundary") if name in keywords}
        if type(value) is not str or not value.isidentifier() or names is None:
            raise TypeError("an enum made by a call needs a name and the names of its members")
        return super().__call__(value, _checked(names), module="__main__", **allowed)


def _checked(names: str | Mapping[str, object] | Iterable[str | tuple[str, object]]) -> list[str] | list[Any]:
    if isinstance(names, str):
        members: list[Any] = names.replace(",", " ").split()
    else:
        members = list(names.items()) if isinstance(names, Mapping) else list(names)
    pairs = [item if isinstance(item, str) else tuple(item) for item in members]
    for item in pairs:
        name = item if isinstance(item, str) else cast("tuple[object, ...]", item)[0]
        if type(name) is not str or name.startswith("_") or judge(name) is Verdict.REFUSED:
            raise ValueError(f"{name!r} cannot be the name of an enum member here")
    return pairs


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
