"""A security boundary: a context of `decimal` that was current is not freed, since C code may still work with it.

Written in C, many operations hold the current context without keeping it, and then call the code: a comparison asks a
number for its numerator, a new number its digits, a format its keys. Where that made another context current, flags
were written into whatever took the memory of the first one (CPython 3.11 to 3.13). So contexts that were current are
kept; once they are many, `localcontext` takes one of them that nothing else holds.

A context also lives for as long as code holds its flags or its traps: they are written in C and point into the memory
of their context, which they do not keep alive.
"""

from __future__ import annotations

import decimal
import sys
from collections import deque
from typing import Any, Final

from ....guest.type_flags import replace_method

__all__ = ["localcontext", "setcontext"]

KEPT_MAX: Final = 100_000
"""How many contexts one process keeps, some 300 bytes each."""
USED_AGAIN_FROM: Final = 20_000
"""From how many on `localcontext` looks for one to use again, which takes ten times as long as a new one."""
_LOOKED_AT: Final = 4
_PARTS: Final = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_SIGNALS: Final = ("flags", "traps")
_initialize: Final[Any] = decimal.Context.__init__
_copy_of: Final[Any] = decimal.Context.copy
_get: Final[Any] = decimal.Context.__getattribute__
_contexts: Final[dict[int, decimal.Context]] = {}
_to_use: Final[deque[decimal.Context]] = deque()


def setcontext(context: decimal.Context, /) -> None:
    """Make a context the current one of this thread. Raises `RuntimeError` where too many were it."""
    _keep(decimal.getcontext())
    decimal.setcontext(context)


class localcontext:  # noqa: N801 - what code calls
    """A context manager under which a copy of a context is current, changed as keywords say."""

    __slots__ = ("_before", "_own")

    def __init__(self, ctx: decimal.Context | None = None, **parts: Any) -> None:
        if ctx is None:
            ctx = decimal.getcontext()
        elif not isinstance(ctx, decimal.Context):
            raise TypeError("optional argument must be a context")
        self._own = _copy(ctx)
        self._before: decimal.Context | None = None
        _initialize(self._own, **parts)  # changes what is given, and nothing else

    def __enter__(self) -> decimal.Context:
        self._before = decimal.getcontext()
        setcontext(self._own)
        return self._own

    def __exit__(self, *_error: object) -> None:
        if self._before is not None:
            setcontext(self._before)


def _keep(context: decimal.Context) -> None:
    if id(context) in _contexts:
        return
    if len(_contexts) >= KEPT_MAX:
        raise RuntimeError(
            f"more than {KEPT_MAX} contexts were made current. Change one context, or use localcontext()."
        )
    _contexts[id(context)] = context
    _to_use.append(context)


def _copy(context: decimal.Context) -> decimal.Context:
    """Copy a context into a new one; where many are kept, into one of those that nothing else holds."""
    for _ in range(_LOOKED_AT if len(_contexts) >= USED_AGAIN_FROM else 0):
        _to_use.rotate()
        if _references(_to_use) <= _UNUSED and type(_to_use[0]) is decimal.Context:
            found = _to_use[0]
            _initialize(found, *(_get(context, part) for part in _PARTS), *(_set(context, part) for part in _SIGNALS))
            return found
    made: decimal.Context = _copy_of(context)
    return made


def _set(context: decimal.Context, part: str) -> list[Any]:
    return [signal for signal, is_set in _get(context, part).items() if is_set]


def _references(contexts: deque[decimal.Context]) -> int:
    """Count the references to the first of the contexts."""
    return sys.getrefcount(contexts[0])


def _references_when_only_kept() -> int:
    contexts = deque([decimal.Context()])
    kept = dict(enumerate(contexts))
    return _references(contexts) if kept else 0


_UNUSED: Final = _references_when_only_kept()
"""References to a context that only `_contexts` and `_to_use` hold."""


_PROBE: Final = decimal.Context()
_KIND_OF_SIGNALS: Final = type(_PROBE.flags)
_SWEPT_FROM: Final = 1_024
_kept: Final[dict[int, tuple[decimal.Context, object]]] = {}
"""Contexts, each with flags or traps that code asked for, by the identity of those."""


def keep_owners() -> None:
    """Return flags or traps that keep their context alive."""
    replace_method(decimal.Context, "__getattribute__", _get_kept)


def _get_kept(context: decimal.Context, name: str, /) -> object:
    value = _get(context, name)
    if type(value) is _KIND_OF_SIGNALS and id(value) not in _kept:
        if len(_kept) >= _SWEPT_FROM and len(_kept).bit_count() == 1:  # a power of two
            _forget_unused()
        _kept[id(value)] = context, value
    return value


def _forget_unused() -> None:
    for pair in list(_kept.values()):
        if _references_to_signals(pair) <= _UNUSED_SIGNALS:
            _kept.pop(id(pair[1]), None)


def _references_to_signals(pair: tuple[decimal.Context, object]) -> int:
    return sys.getrefcount(pair[1])


_UNUSED_SIGNALS: Final = _references_to_signals((_PROBE, _PROBE.flags))
"""Those of signals that only their context and a pair hold."""
