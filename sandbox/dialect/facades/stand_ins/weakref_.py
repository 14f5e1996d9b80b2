"""`weakref` whose finalizers keep their state outside their class, so that the class can be sealed as others are."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

from ....guest.ownership import is_guest_callable

__all__ = ["finalize"]


_real_new: Callable[..., Any] = weakref.WeakMethod.__new__


def _new(cls: type, meth: Any, callback: Any = None) -> Any:
    """Refer to a method of the code's own. The base class gives its object: that of the host's is not for code."""
    if type(meth) is MethodType and not is_guest_callable(meth):
        raise TypeError("a WeakMethod refers to methods that the code defined; keep one of Python's own as it is")
    return _real_new(cls, meth, callback)


def keep_objects() -> None:
    """Let no weak reference lead from a method of the host to its object."""
    type.__setattr__(weakref.WeakMethod, "__new__", _new)


class _Kept(NamedTuple):
    finalizer: finalize
    reference: weakref.ref[Any]
    func: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]


_registry: dict[int, _Kept] = {}


class finalize:  # noqa: N801 - Python's own spelling
    """Calls `func(*args, **kwargs)` when `obj` is collected, or when it is called itself; once in all."""

    __slots__ = ("__weakref__", "atexit")

    def __init__(self, obj: Any, func: Callable[..., object], /, *args: object, **kwargs: object) -> None:
        if id(self) in _registry:
            raise TypeError("a finalizer cannot be made anew")
        self.atexit = True
        _registry[id(self)] = _Kept(self, weakref.ref(obj, lambda _: self()), func, args, kwargs)

    def __call__(self, _: object = None) -> object:
        """Call the function unless that was done; return its value, else None."""
        kept = _registry.pop(id(self), None)
        return None if kept is None else kept.func(*kept.args, **kept.kwargs)

    def detach(self) -> tuple[object, Callable[..., object], tuple[object, ...], dict[str, object]] | None:
        """Return `(obj, func, args, kwargs)` and never call the function; None if it is too late."""
        found = self.peek()
        _registry.pop(id(self), None)
        return found

    def peek(self) -> tuple[object, Callable[..., object], tuple[object, ...], dict[str, object]] | None:
        """Return `(obj, func, args, kwargs)`; None if the finalizer is dead."""
        kept = _registry.get(id(self))
        obj = None if kept is None else kept.reference()
        return None if kept is None or obj is None else (obj, kept.func, kept.args, kept.kwargs)

    @property
    def alive(self) -> bool:
        """Whether the function is still to be called."""
        return id(self) in _registry
