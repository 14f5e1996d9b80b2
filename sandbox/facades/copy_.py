"""A security boundary: `copy` that gives no object an attribute which its class lacks, and shows nobody its state.

The real module applies whatever state an object's `__getstate__` hands it, by name, to whatever its constructor
returned: `setattr` without a guard. Here state reaches only an object of the same class, and where the guest wrote
`__getstate__`, only names that its source could have written.

The real module also leaves all that it copied in the memo, which every `__deepcopy__` is handed. Here the memo that
guest code sees holds only what guest code put there, and only objects of its own classes are looked up in it.
"""

from __future__ import annotations

import copy as real
import copyreg
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from ..names import PREFIX, SETTABLE, Verdict, judge
from ..ownership import is_guest_callable, is_guest_class
from ..real_classes import attribute_of_class, class_dict, mro_of
from ..views import DictionaryView, shown_attributes

__all__ = ["Error", "copy", "deepcopy", "replace"]

Error = real.Error
T = TypeVar("T")
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
    if cls is DictionaryView:
        return cast("T", dict(cast("DictionaryView", x)))
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


class _Copying:
    """One deep copy under way: what was copied so far, by identity, and the memo that guest code is handed."""

    __slots__ = ("copies", "kept", "memo")

    def __init__(self, memo: dict[int, object]) -> None:
        self.memo = memo
        self.copies: dict[int, object] = {}
        # Ids are unique only among the living: what was copied must live as long as this.
        self.kept: list[object] = []


_NOTHING: Final = object()
_under_way: dict[int, _Copying] = {}
"""The deep copies under way, by the identity of their memos: a `__deepcopy__` goes on with the one that called it."""


def deepcopy(x: T, memo: dict[int, Any] | None = None, _nil: object = None) -> T:
    """Return a copy of `x` and of all it holds. `memo` maps ids of what was copied already to their copies.

    Raises TypeError where a class cannot be copied, and for a memo that is not a plain dict.
    """
    if memo is None:
        memo = {}
    elif type(memo) is not dict:
        raise TypeError(f"the memo of deepcopy() must be a dict, not {type(memo).__name__!r}")
    known = _under_way.get(id(memo))
    if known is not None:
        return cast("T", _deep(x, known))
    copying = _under_way[id(memo)] = _Copying(memo)
    try:
        return cast("T", _deep(x, copying))
    finally:
        del _under_way[id(memo)]


def _deep(x: Any, copying: _Copying) -> Any:
    cls = type(x)
    if cls in _ATOMIC:
        return x
    known = copying.copies.get(id(x), _NOTHING)
    if known is _NOTHING and is_guest_class(cls):
        known = copying.memo.get(id(x), _NOTHING)
    if known is not _NOTHING:
        return known
    copier = _COPIERS.get(cls)
    if copier is not None:
        made = copier(x, copying)
    elif isinstance(x, type):
        return x
    else:
        made = _deep_object(x, cls, copying)
    if made is not x:
        copying.copies[id(x)] = made
        copying.kept.append(x)
    return made


def _deep_object(x: object, cls: type, copying: _Copying) -> object:
    own = getattr(cls, "__deepcopy__", None)
    if own is None:
        return _rebuilt(x, _reduced(x), copying)
    # The host's own methods would leave in the memo what they copied.
    return own(x, copying.memo if is_guest_callable(own) else {})


def _copy_list(x: list[object], copying: _Copying) -> list[object]:
    made: list[object] = []
    copying.copies[id(x)] = made
    append = made.append
    for item in x:
        append(item if type(item) in _ATOMIC else _deep(item, copying))
    return made


def _copy_dict(x: dict[object, object], copying: _Copying) -> dict[object, object]:
    made: dict[object, object] = {}
    copying.copies[id(x)] = made
    for key, value in x.items():
        made[_deep(key, copying)] = value if type(value) in _ATOMIC else _deep(value, copying)
    return made


def _copy_tuple(x: tuple[object, ...], copying: _Copying) -> tuple[object, ...]:
    items = [_deep(item, copying) for item in x]
    if id(x) in copying.copies:  # the tuple holds itself, by way of something that can
        return cast("tuple[object, ...]", copying.copies[id(x)])
    return x if all(new is old for new, old in zip(items, x, strict=True)) else tuple(items)


def _copy_method(x: types.MethodType, copying: _Copying) -> types.MethodType:
    return types.MethodType(x.__func__, _deep(x.__self__, copying))


_COPIERS: dict[type, Callable[[Any, _Copying], object]] = {
    list: _copy_list,
    dict: _copy_dict,
    DictionaryView: lambda x, copying: _copy_dict(dict(x), copying),
    tuple: _copy_tuple,
    set: lambda x, copying: {_deep(item, copying) for item in x},
    frozenset: lambda x, copying: frozenset(_deep(item, copying) for item in x),
    bytearray: lambda x, _copying: x.copy(),
    types.MethodType: _copy_method,
}


def _reduced(x: object) -> _Reduced | str:
    reducer = copyreg.dispatch_table.get(type(x))
    return reducer(x) if reducer is not None else type(x).__reduce_ex__(x, 4)


def _rebuilt(x: object, reduced: _Reduced | str, copying: _Copying | None) -> object:
    if isinstance(reduced, str):
        return x
    build, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if copying is not None:
        args = tuple(_deep(argument, copying) for argument in args)
    made = build(*args)
    if copying is not None:
        copying.copies[id(x)] = made
        state = _deep(state, copying)
    if state is not None:
        _restore(x, made, state)
    for item in _copied(items, copying):
        made.append(item)
    for key, value in _copied(pairs, copying):
        made[key] = value
    return made


def _copied(items: Iterable[Any] | None, copying: _Copying | None) -> Iterable[Any]:
    for item in items or ():
        yield item if copying is None else _deep(item, copying)


def _restore(x: object, made: Any, state: object) -> None:
    cls = type(x)
    if type(made) is not cls:
        raise TypeError(f"copying a {cls.__name__} made a {type(made).__name__}; define __copy__ or __deepcopy__")
    getter, setter = _owner(cls, "__getstate__"), _owner(cls, "__setstate__")
    own = getter is None or not is_guest_class(getter)
    if setter is not None:
        if not own and not is_guest_class(setter):
            raise TypeError(f"copying a {cls.__name__} needs __setstate__ beside __getstate__; or define __copy__")
        if own and is_guest_class(setter):
            state = _shown(state)  # of the host's making: what the host keeps there is not for code
        elif issubclass(cls, BaseException):
            _check_attributes(state)  # an exception sets whatever it is given
        cast("Any", cls).__setstate__(made, state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)  # noqa: PLR2004 - as `object.__reduce_ex__` gives them
    if not own:
        attributes, slots = _checked(attributes), _checked(slots)
    if attributes:
        made.__dict__.update(cast("dict[str, object]", attributes))
    for name, value in (slots or {}).items():
        # A class lists its slots in a list that code may change; what it did not make a slot of is no state.
        if type(attribute_of_class(cls, name)) is types.MemberDescriptorType:
            setattr(made, name, value)


def _shown(state: object) -> object:
    if type(state) is dict:
        return shown_attributes(state)
    return tuple(_shown(part) for part in state) if type(state) is tuple else state


def _check_attributes(state: object) -> None:
    for name in cast("dict[object, object]", state) if type(state) is dict else ():
        if type(name) is not str or (name.startswith("__") and name not in SETTABLE):
            raise TypeError(f"the attribute {name!r} of an exception cannot be copied")


def _owner(cls: type, name: str) -> type | None:
    """Return the class that has the attribute for `cls`."""
    return next((base for base in mro_of(cls) if name in class_dict(base)), None)


def replace_real_copying() -> None:
    """Let the real module, which classes of the standard library call, copy as this one does.

    C code took the real function long ago, so its code is exchanged and not the function.
    """
    real._reconstruct = _reconstruct  # type: ignore[attr-defined]  # what every copy of an object goes through
    real.__dict__["_guarded_deepcopy"] = deepcopy
    real.deepcopy.__code__ = _calling_guarded.__code__


def _reconstruct(
    x: object,
    memo: object,  # noqa: ARG001 - as the real one is called
    func: Callable[..., object],
    args: tuple[object, ...],
    *rest: object,
    **_options: object,
) -> object:
    return _rebuilt(x, (func, args, *rest), None)


def _calling_guarded(x: Any, memo: Any = None, _nil: Any = None) -> Any:
    return _guarded_deepcopy(x, memo)  # type: ignore[name-defined]  # noqa: F821 - runs in the real module


def _checked(state: object) -> dict[str, object] | None:
    """Return a copy of what `__getstate__` returned, which code may still hold."""
    if state is None:
        return None
    if type(state) is not dict:
        raise TypeError("__getstate__ must return a dict here, or the class must define __setstate__")
    state = dict(state)
    for name in state:
        if type(name) is not str or not (name.startswith(PREFIX) or _is_public(name)):
            raise TypeError(f"__getstate__ returned the name {name!r}, which cannot be set")
    return state


def _is_public(name: str) -> bool:
    return judge(name) is Verdict.PLAIN and not name.startswith("_")
