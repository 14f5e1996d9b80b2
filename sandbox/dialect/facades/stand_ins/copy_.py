"""A security boundary: `copy` that gives no object an attribute which its class lacks, and never shows its state.

The real module applies whatever state an object's `__getstate__` hands it, by name, to whatever its constructor
returned: `setattr` without a guard. Here state reaches only an object of the same class, and only under names that
source could have written, or with the values that the copied object itself holds.

The real module also leaves all that it copied in the memo, which every `__deepcopy__` is handed. Here the memo that
guest code sees holds only what guest code put there, and only objects of its own classes are looked up in it.
"""

from __future__ import annotations

import builtins
import contextlib
import copy as real
import copyreg
import types
import weakref
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from hmac import HMAC
from typing import Any, Final, TypeVar, cast

from ....guest.ownership import is_guest_callable, is_guest_class
from ....guest.real_classes import attribute_of_class, class_dict, derives, mro_of
from ...classes import private_names, shown_type
from ...names import NATIVE, PREFIX, REPLACING_METHOD, SETTABLE, Verdict, demangle, exact, judge
from ...unsafe_c_methods import remade
from ...views import DictionaryView, are_attributes

__all__ = ["Error", "copy", "deepcopy", "replace"]

Error = real.Error
T = TypeVar("T")
_Reduced = tuple[Any, ...]

_ATOMIC: frozenset[type] = frozenset(
    {
        bool, bytes, complex, float, int, range, slice, str, type, property, types.NoneType, types.EllipsisType,
        types.NotImplementedType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, weakref.ref,
        types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType,
        types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    }
)  # fmt: skip


_ExitStacks = contextlib._BaseExitStack  # what both kinds of stack derive from
_COPYABLE: frozenset[type] = frozenset({list, dict, set, bytearray})
_IMMUTABLE: frozenset[type] = _ATOMIC | {tuple, frozenset}


def copy(x: T) -> T:
    """Return a shallow copy of `x`. Raises TypeError where the class cannot be copied."""
    cls = type(x)
    if cls in _IMMUTABLE or cls is types.MethodType or isinstance(x, type):
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
    own: Any = remade(getattr(type(obj), REPLACING_METHOD, None), REPLACING_METHOD)
    if own is None:
        raise TypeError(f"replace() does not support {type(obj).__name__} objects")
    return cast("T", own(obj, **changes))


class _Copying:
    """One deep copy under way: what was copied so far, by identity, and the memo that guest code is handed."""

    __slots__ = ("copies", "kept", "memo")

    def __init__(self, memo: dict[int, object]) -> None:
        self.memo = memo
        self.copies: dict[int, object] = {}
        self.kept: list[object] = []

    def remember(self, x: object, made: object) -> None:
        """Note the copy of `x`. Ids are unique only among the living: `x` must live as long as its entry."""
        self.kept.append(x)
        self.copies[id(x)] = made


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
        copying.remember(x, made)
    return made


def _deep_object(x: object, cls: type, copying: _Copying) -> object:
    own = getattr(cls, "__deepcopy__", None)
    if own is None:
        return _rebuilt(x, _reduced(x), copying)
    # The host's own methods would leave in the memo what they copied.
    return own(x, copying.memo if is_guest_callable(own) else {})


def _copy_list(x: list[object], copying: _Copying) -> list[object]:
    made: list[object] = []
    copying.remember(x, made)
    append = made.append
    for item in x:
        append(item if type(item) in _ATOMIC else _deep(item, copying))
    return made


def _copy_dict(x: dict[object, object], copying: _Copying) -> dict[object, object]:
    made: dict[object, object] = {}
    copying.remember(x, made)
    for key, value in x.items():
        made[_deep(key, copying)] = value if type(value) in _ATOMIC else _deep(value, copying)
    return made


def _copy_tuple(x: tuple[object, ...], copying: _Copying) -> tuple[object, ...]:
    items = [_deep(item, copying) for item in x]
    if id(x) in copying.copies:  # the tuple holds itself, by way of something that can
        return cast("tuple[object, ...]", copying.copies[id(x)])
    return x if all(new is old for new, old in zip(items, x, strict=True)) else tuple(items)


def _copy_method(x: types.MethodType, copying: _Copying) -> types.MethodType:
    kind = type(x.__self__)
    if not is_guest_callable(x) and shown_type(kind) is not kind:  # what the host works with is not to be there twice
        return x
    made = _deep(x.__self__, copying)
    # A method of the host's, which had a guard where it was read, works on nothing but what it was read from.
    same = is_guest_callable(x) or type(made) is kind
    return types.MethodType(x.__func__, made) if same else x


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
    if build is builtins.getattr:  # what is found again by a name that code may have changed, such as a method
        return x
    setter = _found(type(x), "__setstate__")
    if state is not None:
        state = _own_state(x, state, setter)  # before any other code of the guest runs
    if copying is not None:
        args = tuple(_deep(argument, copying) for argument in args)
    made = build(*args)
    if copying is not None:
        copying.remember(x, made)
        state = _deep(state, copying)
    if state is not None:
        _restore(x, made, state, setter)
    for item in _copied(items, copying):
        made.append(item)
    for key, value in _copied(pairs, copying):
        made[key] = value
    return made


def _copied(items: Iterable[Any] | None, copying: _Copying | None) -> Iterable[Any]:
    for item in items or ():
        yield item if copying is None else _deep(item, copying)


def _found(cls: type, name: str) -> tuple[type, Any] | None:
    """Return the class that has the attribute for `cls`, with the attribute unbound: looked up once, it stays."""
    for base in mro_of(cls):
        attributes = class_dict(base)
        if name in attributes:
            return base, attributes[name]
    return None


def _own_state(x: object, state: object, setter: tuple[type, Any] | None) -> object:
    """Return what of `state` may be set on a copy of `x`, or be shown to a `__setstate__` of the code's own.

    Who made the state is unknown: hooks of the code ran meanwhile, and could have put a `__getstate__` in and taken
    it out again. So it is judged by what it holds: under a name of the host's, only what `x` itself holds there.
    """
    cls = type(x)
    if not (is_guest_class(cls) or any(map(is_guest_class, mro_of(cls)))):
        return state
    if setter is None:
        two = isinstance(state, tuple) and len(state) == 2  # noqa: PLR2004 - as `object.__reduce_ex__` gives them
        attributes, slots = cast("tuple[object, object]", state) if two else (state, None)
        return _own_attributes(x, attributes), _own_attributes(x, slots)
    if is_guest_class(setter[0]):
        return _shown(x, state)
    if issubclass(cls, BaseException):
        return _own_attributes(x, state)
    getter = _found(cls, "__getstate__")
    if getter is not None and is_guest_class(getter[0]):
        raise TypeError(f"copying a {cls.__name__} needs __setstate__ beside __getstate__; or define __copy__")
    return state if getter is None or getter[0] is object else getter[1].__get__(x, cls)()


def _own_attributes(x: object, state: object) -> dict[str, object] | None:
    """Return a copy of attributes that code may still hold. Raises TypeError for one of the host's that `x` lacks."""
    if state is None:
        return None
    if not are_attributes(state):
        raise TypeError("__getstate__ must return a dict here, or the class must define __setstate__")
    state, own, is_error = dict(state), _dictionary_of(x), isinstance(x, BaseException)
    for name, value in state.items():
        if type(name) is not str:
            raise TypeError(f"an attribute cannot be named by a {type(name).__name__!r}")
        if is_error and name.startswith("__") and name not in SETTABLE:
            raise TypeError(f"the attribute {name!r} of an exception cannot be copied")
        if own.get(name, _NOTHING) is not value and not (_is_nameable(name) or _slot_of(x, name) is value):
            raise TypeError(f"__getstate__ returned the name {name!r}, which cannot be set")
    return state


def _dictionary_of(x: object) -> dict[str, object]:
    """Return what `x` itself holds, asking no code of the guest."""
    try:
        own = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return own if are_attributes(own) else {}


def _slot_of(x: object, name: str) -> object:
    slot = attribute_of_class(type(x), name)
    with suppress(AttributeError):
        return slot.__get__(x) if type(slot) is types.MemberDescriptorType else _NOTHING
    return _NOTHING


def _restore(x: object, made: Any, state: Any, setter: tuple[type, Any] | None) -> None:
    cls = type(x)
    if type(made) is not cls:
        raise TypeError(f"copying a {cls.__name__} made a {type(made).__name__}; define __copy__ or __deepcopy__")
    if setter is not None:
        setter[1].__get__(made, cls)(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)  # noqa: PLR2004 - as above
    if attributes:
        made.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        # A class lists its slots in a list that code may change; what it did not make a slot of is not state.
        if type(attribute_of_class(cls, name)) is types.MemberDescriptorType:
            setattr(made, name, value)


def _shown(x: object, state: object) -> object:
    """Return a state for a `__setstate__` of the code's own: without what the host keeps in `x`.

    Always another dictionary: Python gives that of the object itself.
    """
    if type(state) is tuple:
        return tuple(_shown(x, part) for part in state)
    if not are_attributes(state):
        return state
    state = dict(state)
    if not any(map(_is_private, state)):
        return state
    hosts = [base for base in mro_of(type(x)) if not is_guest_class(base)]
    kept = {*map(_text_of, _dictionary_of(x)), *(name for base in hosts for name in private_names(base))}
    return {
        demangle(name) if type(name) is str else name: value
        for name, value in state.items()
        if not _is_private(name) or _text_of(name).startswith(PREFIX) or _text_of(name) not in kept
    }


def _is_private(name: object) -> bool:
    text = _text_of(name)
    return text.startswith(PREFIX) or (text.startswith("_") and text not in NATIVE)


def _text_of(name: object) -> str:
    """Return the characters of a key; one that is a string of the code's own says of itself what it likes."""
    return exact(name) if isinstance(name, str) else ""


def replace_real_copying() -> None:
    """Let the real module, which classes of the standard library call, copy as this one does.

    C code took the real function long ago, so its code is exchanged and not the function.
    """
    real._reconstruct = _reconstruct  # type: ignore[attr-defined]  # what every copy of an object goes through
    real.__dict__["_guarded_deepcopy"] = deepcopy
    real.deepcopy.__code__ = _calling_guarded.__code__
    for cls in (UserDict, UserList):
        type.__setattr__(cls, "__copy__", _copy_of_user_collection)
    type.__setattr__(HMAC, "copy", _copy_of_hmac)
    type.__setattr__(_ExitStacks, "pop_all", _pop_all)


def _copy_of_user_collection(self: Any) -> Any:
    """Do what `UserDict.__copy__` does; the real one writes into whatever a `__new__` of the code's own returned."""
    made = object.__new__(type(self))
    made.__dict__.update(self.__dict__)
    made.__dict__["data"] = self.__dict__["data"].copy()
    return made


def _copy_of_hmac(self: Any) -> Any:
    """Do what `HMAC.copy` does, without asking a `__new__` of the code's own for the copy."""
    made = object.__new__(type(self))
    for name in cast("tuple[str, ...]", HMAC.__slots__):
        member: Any = HMAC.__dict__[name]
        with suppress(AttributeError):  # some have no value, by the way in which it was made
            value = member.__get__(self)
            member.__set__(made, value.copy() if hasattr(value, "update") else value)
    return made


def _pop_all(self: Any) -> Any:
    """Return a new stack that holds the callbacks, as `ExitStack.pop_all` does; this one holds none any more."""
    made = type(self)()
    if not derives(type(made), _ExitStacks):
        raise TypeError(f"expected a stack, but {type(self).__name__}() returned {type(made).__name__!r}")
    made._exit_callbacks, self._exit_callbacks = self._exit_callbacks, deque()
    return made


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


def _is_nameable(name: str) -> bool:
    """Return whether source could have written the attribute, in the spelling that it has inside."""
    return name.startswith(PREFIX) or (judge(name) is Verdict.PLAIN and not name.startswith("_"))
