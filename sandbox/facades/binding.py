"""A security boundary: a method of a host class works on instances of that class only.

`Counter.copy` ends in `self.__class__(self)`. Called as `Counter.copy(int)`, that is `type(int)`: the real `type`, with
which code could make classes that no compiler has judged. Methods written in C check their receiver; those written in
Python do not, so the ones that ask for their receiver's class get a check here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType

from ..names import Verdict, judge

_OF_CLASSES = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_ASKS = frozenset({"__class__", "__dict__", "delattr", "getattr", "setattr", "type", "vars"})
"""What a method does that must not be done for an object that only looks like an instance, such as a namespace."""


def bind_methods(classes: Iterable[type]) -> int:
    """Give the methods that ask for their receiver's class a check of it; return how many."""
    bound = 0
    for cls in classes:
        for name, method in list(vars(cls).items()):
            if type(method) is FunctionType and _is_reachable(name) and _is_to_be_bound(method):
                type.__setattr__(cls, name, _checked(method, cls))
                bound += 1
    return bound


def _is_reachable(name: str) -> bool:
    return name not in _OF_CLASSES and judge(name) in {Verdict.PLAIN, Verdict.GUARDED}


def _is_to_be_bound(method: FunctionType) -> bool:
    # The stand-ins hold what only they may hold: called on another object, they would tell it.
    return method.__globals__["__name__"].startswith(__package__) or _asks_for_a_class(method.__code__)


def _asks_for_a_class(code: CodeType) -> bool:
    return code.co_argcount > 0 and any(_ASKS & set(part.co_names) for part in _parts(code))


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _checked(method: FunctionType, cls: type) -> Callable[..., object]:
    @functools.wraps(method)
    def checked(self: object, /, *args: object, **kwargs: object) -> object:
        if cls not in type(self).__mro__:
            raise TypeError(
                f"descriptor {method.__name__!r} for {cls.__name__!r} objects doesn't apply to a "
                f"{type(self).__name__!r} object"
            )
        return method(self, *args, **kwargs)

    return checked
