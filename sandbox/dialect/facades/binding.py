"""A security boundary: a method or property of a host class works on instances of that class only.

`Counter.copy` ends in `self.__class__(self)`. Called as `Counter.copy(int)`, that is `type(int)`: the real `type`, with
which code could make classes that no compiler has judged. Methods written in C check their receiver; those written in
Python do not, so the ones that ask for their receiver's class get a check here. So do those that read a private
attribute: an object whose dictionary code has chosen holds what it likes under any name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from inspect import CO_VARARGS, CO_VARKEYWORDS, iscoroutinefunction
from types import CodeType, DynamicClassAttribute, FunctionType
from typing import Any, cast

from ...guest import dynamic, facade
from ..names import INITIALIZER, NATIVE, Verdict, judge

_OF_CLASSES = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_OF_STAND_INS = (__package__, facade.__name__, dynamic.__name__)
_ASKS = frozenset({"__class__", "__dict__", "delattr", "getattr", "setattr", "type", "vars"})
"""What a method does that must not be done for an object that only looks like an instance, such as a namespace."""
_GIVES_ONLY_NUMBERS = frozenset({"_randbelow"})
"""Private names that need no check: those of `Random` alone, which the methods call with a number of the caller's.

An object that only looks like a `Random` receives no more there than `getrandbits` of a subclass does, and what it
returns is used as what that returns.
"""


def bind_methods(classes: Iterable[type], held: frozenset[type]) -> int:
    """Give the methods and properties that trust their receiver a check of its class; return how many.

    `held` are the classes from which code can take a method without an object.
    """
    bound = 0
    for cls in classes:
        for name, member in list(vars(cls).items()):
            checked = _bound(member, cls, cls in held and name != INITIALIZER) if _is_reachable(name) else member
            if checked is not member:
                type.__setattr__(cls, name, checked)
                bound += 1
    return bound


def _bound(member: object, cls: type, is_held: bool) -> object:
    """Return what is to stand in `cls` for `member`, which a class of the code's own may have as its attribute."""
    if isinstance(member, property):
        asked = [_bound(each, cls, is_held) for each in (member.fget, member.fset, member.fdel)]
        same = asked[0] is member.fget and asked[1] is member.fset and asked[2] is member.fdel
        return member if same else cast("Any", type(member))(*asked, member.__doc__)
    for attribute in ("fget", "fset", "fdel") if isinstance(member, DynamicClassAttribute) else ("func",):
        if isinstance(member, DynamicClassAttribute | functools.cached_property):
            # Those of an enum and the cached ones are written in Python, and may be refused stores by now.
            object.__setattr__(member, attribute, _bound(getattr(member, attribute), cls, is_held))
    return _checked(member, cls) if type(member) is FunctionType and _is_to_be_bound(member, is_held) else member


def _is_reachable(name: str) -> bool:
    # A class takes no property as its `__class__` and gives none: who asks it gets its metaclass.
    return name not in _OF_CLASSES and name != "__class__" and judge(name) in {Verdict.PLAIN, Verdict.GUARDED}


def _is_to_be_bound(method: FunctionType, is_held: bool) -> bool:
    # The stand-ins hold what only they may hold: called on another object, they would tell it.
    return (
        str(method.__globals__.get("__name__")).startswith(_OF_STAND_INS)
        or _asks_for_a_class(method.__code__)
        or (is_held and _reads_private_names(method))
    )


def _reads_private_names(method: FunctionType) -> bool:
    named = {name for part in _parts(method.__code__) for name in part.co_names}
    named -= method.__globals__.keys() | NATIVE | _GIVES_ONLY_NUMBERS
    return any(name.startswith("_") and not name.startswith("__") for name in named)


def _asks_for_a_class(code: CodeType) -> bool:
    return code.co_argcount > 0 and any(_ASKS & set(part.co_names) for part in _parts(code))


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _checked(method: FunctionType, cls: type) -> Callable[..., object]:
    # The check stands in each of them, and takes no call: it is made whenever such a method is called.
    @functools.wraps(method)
    def checked(self: object, /, *args: object, **kwargs: object) -> object:
        if type(self) is not cls and cls not in type(self).__mro__:
            raise _not_for(self, method, cls)
        return method(self, *args, **kwargs)

    @functools.wraps(method)
    def checked_alone(self: object, /) -> object:
        if type(self) is not cls and cls not in type(self).__mro__:
            raise _not_for(self, method, cls)
        return method(self)

    @functools.wraps(method)
    async def checked_later(self: object, /, *args: object, **kwargs: object) -> object:
        if type(self) is not cls and cls not in type(self).__mro__:
            raise _not_for(self, method, cls)
        return await method(self, *args, **kwargs)

    if iscoroutinefunction(method):
        return checked_later
    code = method.__code__
    takes_more = code.co_argcount > 1 or code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    return checked if takes_more else checked_alone


def _not_for(self: object, method: FunctionType, cls: type) -> TypeError:
    return TypeError(
        f"descriptor {method.__name__!r} for {cls.__name__!r} objects doesn't apply to a {type(self).__name__!r} object"
    )
