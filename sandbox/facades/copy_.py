"""`copy` that gives an object no attribute which its class did not have.

The real module applies whatever state an object's `__getstate__` hands it, by name, to whatever its constructor
returned: `setattr` without a guard. Here state reaches only an object of the same class, and where the guest wrote
`__getstate__`, only names that its source could have written.
"""

from __future__ import annotations

import copy as real
import copyreg
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from ..names import PREFIX, Verdict, judge
from ..ownership import is_guest_callable

__all__ = ["Error", "copy", "deepcopy", "replace"]

Error = real.Error
T = TypeVar("T")
_Memo = dict[int, Any]
_Reduced = tuple[Any, ...]

_ATOMIC: frozenset[type] = frozenset(
    {
        bool, bytes, complex, float, int, range, slice, str, type, property, types.NoneType, types.EllipsisType,
        types.NotImplementedType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, weakref.ref,
    }
)  # fmt: skip


_COPYABLE: frozenset[type] = frozenset({list, dict, set, bytearray})
_IMMUTABLE: frozenset[type] = _ATOMIC | {tuple, frozenset}


def copy(x: T) -> T:
    """Return a shallow copy of `x`. Raises TypeError where the class cannot be copied."""
    cls = type(x)
    if cls in _IMMUTABLE or isinstance(x, type):
        return x
    if cls in _COPYABLE:
        return cast("T", cast("list[object]", x).copy())
    own = getattr(cls, "__copy__", None)
    if own is not None:
        return cast("T", own(x))
    return cast("T", _rebuilt(x, _reduced(x), None))


def replace(obj: T, /, **changes: object) -> T:
    """Return a copy of `obj` with some fields changed, for classes with `__replace__` (named tuples, dataclasses)."""
    own = getattr(type(obj), "__replace__", None)
    if own is None:
        raise TypeError(f"replace() does not support {type(obj).__name__} objects")
    return cast("T", own(obj, **changes))


def deepcopy(x: T, memo: _Memo | None = None, _nil: object = None) -> T:
    """Return a copy of `x` and of all it holds. `memo` maps ids of what was copied already to their copies."""
    cls = type(x)
    if cls in _ATOMIC:
        return x
    if memo is None:
        memo = {}
    known = memo.get(id(x), memo)
    if known is not memo:
        return cast("T", known)
    copier = _COPIERS.get(cls)
    if copier is not None:
        made = copier(x, memo)
    elif isinstance(x, type):
        return x
    else:
        own = getattr(cls, "__deepcopy__", None)
        made = own(x, memo) if own is not None else _rebuilt(x, _reduced(x), memo)
    if made is not x:
        memo[id(x)] = made
        # Ids are unique only among the living: what was copied must live as long as the memo.
        memo.setdefault(id(memo), []).append(x)
    return cast("T", made)


def _copy_list(x: list[object], memo: _Memo) -> list[object]:
    made: list[object] = []
    memo[id(x)] = made
    append = made.append
    for item in x:
        append(item if type(item) in _ATOMIC else deepcopy(item, memo))
    return made


def _copy_dict(x: dict[object, object], memo: _Memo) -> dict[object, object]:
    made: dict[object, object] = {}
    memo[id(x)] = made
    for key, value in x.items():
        made[deepcopy(key, memo)] = value if type(value) in _ATOMIC else deepcopy(value, memo)
    return made


def _copy_tuple(x: tuple[object, ...], memo: _Memo) -> tuple[object, ...]:
    items = [deepcopy(item, memo) for item in x]
    if id(x) in memo:  # the tuple holds itself, by way of something that can
        return cast("tuple[object, ...]", memo[id(x)])
    return x if all(new is old for new, old in zip(items, x, strict=True)) else tuple(items)


def _copy_method(x: types.MethodType, memo: _Memo) -> types.MethodType:
    return types.MethodType(x.__func__, deepcopy(x.__self__, memo))


_COPIERS: dict[type, Callable[[Any, _Memo], object]] = {
    list: _copy_list,
    dict: _copy_dict,
    tuple: _copy_tuple,
    set: lambda x, memo: {deepcopy(item, memo) for item in x},
    frozenset: lambda x, memo: frozenset(deepcopy(item, memo) for item in x),
    bytearray: lambda x, _memo: x.copy(),
    types.MethodType: _copy_method,
}


def _reduced(x: object) -> _Reduced | str:
    reducer = copyreg.dispatch_table.get(type(x))
    return reducer(x) if reducer is not None else type(x).__reduce_ex__(x, 4)


def _rebuilt(x: object, reduced: _Reduced | str, memo: _Memo | None) -> object:
    if isinstance(reduced, str):
        return x
    build, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if memo is not None:
        args = tuple(deepcopy(argument, memo) for argument in args)
    made = build(*args)
    if memo is not None:
        memo[id(x)] = made
        state = deepcopy(state, memo)
    if state is not None:
        _restore(x, made, state)
    for item in _copied(items, memo):
        made.append(item)
    for key, value in _copied(pairs, memo):
        made[key] = value
    return made


def _copied(items: Iterable[Any] | None, memo: _Memo | None) -> Iterable[Any]:
    for item in items or ():
        yield item if memo is None else deepcopy(item, memo)


def _restore(x: object, made: Any, state: object) -> None:
    cls = type(x)
    if type(made) is not cls:
        raise TypeError(f"copying a {cls.__name__} made a {type(made).__name__}; define __copy__ or __deepcopy__")
    setstate = getattr(cls, "__setstate__", None)
    getstate = getattr(cls, "__getstate__", None)
    own = type(getstate) is types.MethodDescriptorType or (
        type(getstate) is types.FunctionType and not is_guest_callable(getstate)
    )
    if setstate is not None:
        if not own and not is_guest_callable(setstate):
            raise TypeError(f"copying a {cls.__name__} needs __setstate__ beside __getstate__; or define __copy__")
        setstate(made, state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)  # noqa: PLR2004 - as `object.__reduce_ex__` gives them
    if not own:
        _check_names(attributes)
        _check_names(slots)
    if attributes:
        made.__dict__.update(cast("dict[str, object]", attributes))
    for name, value in (slots or {}).items():
        setattr(made, name, value)


def rebuilt(
    x: object,
    memo: _Memo | None,
    func: Callable[..., object],
    args: tuple[object, ...],
    *rest: object,
    **_options: object,
) -> object:
    """Stand in for the real module's own rebuilding, which classes of the standard library reach (`UserDict.copy`)."""
    return _rebuilt(x, (func, args, *rest), memo)


def _check_names(state: object) -> None:
    if state is None:
        return
    if type(state) is not dict:
        raise TypeError("__getstate__ must return a dict here, or the class must define __setstate__")
    for name in state:
        if type(name) is not str or (judge(name) is not Verdict.PLAIN and not name.startswith(PREFIX)):
            raise TypeError(f"__getstate__ returned the name {name!r}, which cannot be set")
