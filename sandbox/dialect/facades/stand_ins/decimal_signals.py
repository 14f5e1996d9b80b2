"""A security boundary: a context of `decimal` lives for as long as code holds its flags or its traps.

They are written in C and point into the memory of their context, which they do not keep alive.
"""

from __future__ import annotations

import decimal
import sys
from typing import Any, Final

from ....guest.type_flags import replace_method

_PROBE: Final = decimal.Context()
_SIGNALS: Final = type(_PROBE.flags)
_SWEPT_FROM: Final = 1_024
_get: Final[Any] = decimal.Context.__getattribute__
_kept: Final[dict[int, tuple[decimal.Context, object]]] = {}
"""Contexts, each with flags or traps that code asked for, by the identity of those."""


def keep_owners() -> None:
    """Return flags or traps that keep their context alive."""
    replace_method(decimal.Context, "__getattribute__", _get_kept)


def _get_kept(context: decimal.Context, name: str, /) -> object:
    value = _get(context, name)
    if type(value) is _SIGNALS and id(value) not in _kept:
        if len(_kept) >= _SWEPT_FROM and len(_kept).bit_count() == 1:  # a power of two
            _forget_unused()
        _kept[id(value)] = context, value
    return value


def _forget_unused() -> None:
    for pair in list(_kept.values()):
        if _references(pair) <= _UNUSED:
            _kept.pop(id(pair[1]), None)


def _references(pair: tuple[decimal.Context, object]) -> int:
    return sys.getrefcount(pair[1])


_UNUSED: Final = _references((_PROBE, _PROBE.flags))
"""Those of signals that only their context and a pair hold."""
