"""`configparser`, of the private copy, whose `read` opens files as code does."""

from __future__ import annotations

import builtins

from ...names import Verdict, judge
from ..private import copy_of

_NOTHING = object()


def _getattr(obj: object, name: str, default: object = _NOTHING) -> object:
    _check(name)
    return builtins.getattr(obj, name) if default is _NOTHING else builtins.getattr(obj, name, default)


def _setattr(obj: object, name: str, value: object) -> None:
    _check(name)
    builtins.setattr(obj, name, value)


def _delattr(obj: object, name: str) -> None:
    _check(name)
    builtins.delattr(obj, name)


def _check(name: str) -> None:
    """Refuse what is not `get` and the name of a converter: the sum of both is what the code's `__radd__` says."""
    if type(name) is not str or judge(name) is not Verdict.PLAIN or name.startswith("__"):
        raise TypeError(f"{name!r} cannot be the name of a converter's method")


_copy = copy_of("configparser", replacing={"getattr": _getattr, "setattr": _setattr, "delattr": _delattr})
__all__ = [name for name in _copy.__all__ if not name.startswith("_")]
globals().update({name: getattr(_copy, name) for name in __all__})
