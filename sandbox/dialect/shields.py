"""Security boundary: stands between the host and those methods of a guest class to which the host would pass too much.

`__getattr__` and its kind are asked for every name, those of the host's private state among them: a subclass of
`graphlib.TopologicalSorter` that answered to `_node2info` would be handed what only the sorter may hold.
`__subclasshook__` is handed the real type of whatever `isinstance` is asked about; from a function, that is what makes
functions. `__get__` is handed the class of its owner, which is the real `type` where host code binds an attribute of a
class by hand.

`__exit__` is passed a traceback that only the exception holds. C code that stands there would go on with it after the
code has taken it out of the exception, so that nothing but a function is called (CPython 3.11 to 3.13).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

from ..guest.ownership import is_guest_class
from ..guest.real_classes import mro_of
from .names import ATTRIBUTE_METHODS, BINDING_METHOD, demangle, is_of_host

SUBCLASS_HOOK: Final = "__subclasshook__"
SHIELDED: Final = ATTRIBUTE_METHODS | {SUBCLASS_HOOK, BINDING_METHOD}
"""What a guest class may define, and then has behind a shield."""
EXIT_METHODS: Final = frozenset({"__exit__", "__aexit__"})
"""What has a shield where it is not a function."""
JUDGED_IN_CLASSES: Final = SHIELDED | EXIT_METHODS
"""What `shielded` is asked of."""

_PLAIN_ACCESS: Final[dict[str, Callable[..., Any]]] = {
    "__getattribute__": object.__getattribute__,
    "__setattr__": object.__setattr__,
    "__delattr__": object.__delattr__,
}


def shielded(name: str, method: object, shown_type: Callable[[type], type]) -> object:
    """Return what a class is to have under `name` in place of `method`; `shown_type` is `classes.shown_type`.

    Raises `TypeError` for a `__subclasshook__` that is not a class method.
    """
    if name == SUBCLASS_HOOK:
        return _hook(method, shown_type)
    if method is None:
        return method
    if name in EXIT_METHODS:
        return method if type(method) is FunctionType else ExitShield(method, shown_type)
    if name == BINDING_METHOD:
        return _described(_binding_shield(_as_function(method, shown_type), shown_type), name, method)
    return _named_access(name, method, shown_type)


def unshielded(value: object) -> object:
    """Return what the code itself wrote where `value` is a shield of it, else `value`."""
    if type(value) is classmethod:
        written = unshielded(value.__func__)
        return value if written is value.__func__ else classmethod(written)  # type: ignore[arg-type]  # what it was made from
    if type(value) is ExitShield:
        return value.written
    if type(value) is FunctionType and value.__code__ in _CODES:
        return value.__wrapped__  # type: ignore[attr-defined]  # set where the shield was made
    return value


class ExitShield:
    """Gives what code wrote as `__exit__`, and a function that calls it where Python would call C code itself."""

    __slots__ = ("_shown_type", "written")

    def __init__(self, written: object, shown_type: Callable[[type], type]) -> None:
        self.written = written
        self._shown_type = shown_type

    def __set_name__(self, owner: type, name: str) -> None:
        tell = getattr(type(self.written), "__set_name__", None)
        if tell is not None:
            tell(self.written, owner, name)

    def __get__(self, instance: object, owner: type) -> object:
        bind = getattr(type(self.written), "__get__", None)
        bound: Any = self.written if bind is None else bind(self.written, instance, self._shown_type(owner))
        if instance is None or _holds_arguments(bound):
            return bound

        def call(*arguments: object) -> object:
            return bound(*arguments)

        return call

    @property
    def __isabstractmethod__(self) -> bool:
        return bool(getattr(self.written, "__isabstractmethod__", False))


def _holds_arguments(call: object) -> bool:
    """Return whether what is called holds its arguments before it does anything else: C code with a vector may not."""
    function = call.__func__ if type(call) is MethodType else call
    if type(function) is FunctionType:
        return True
    return function is call and all(is_guest_class(base) or base is object for base in mro_of(type(call)))


def _named_access(name: str, method: object, shown_type: Callable[[type], type]) -> FunctionType:
    call = _as_function(method, shown_type)
    plain = _PLAIN_ACCESS.get(name)
    made = _asked_shield(call) if plain is None else _access_shield(call, plain)
    return _described(made, name, method)


def _asked_shield(call: Callable[..., object]) -> FunctionType:
    def shield(self: object, name: str, /) -> object:
        if is_of_host(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return call(self, demangle(name))

    return shield  # type: ignore[return-value]  # a function is a FunctionType


def _access_shield(call: Callable[..., object], plain: Callable[..., object]) -> FunctionType:
    def shield(self: object, name: str, /, *stored: object) -> object:
        if is_of_host(name):
            return plain(self, name, *stored)
        return call(self, demangle(name), *stored)

    return shield  # type: ignore[return-value]  # a function is a FunctionType


def _binding_shield(call: Callable[..., object], shown_type: Callable[[type], type]) -> FunctionType:
    def shield(self: object, instance: object, owner: type | None = None, /) -> object:
        return call(self, instance, owner if owner is None else shown_type(owner))

    return shield  # type: ignore[return-value]  # a function is a FunctionType


def _hook(method: object, shown_type: Callable[[type], type]) -> classmethod[Any, Any, object]:
    if type(method) is not classmethod:
        raise TypeError(f"{SUBCLASS_HOOK} must be a class method: write @classmethod above its def")
    return classmethod(
        _described(_hook_shield(_as_function(method.__func__, shown_type), shown_type), SUBCLASS_HOOK, method.__func__)
    )


def _hook_shield(call: Callable[..., object], shown_type: Callable[[type], type]) -> FunctionType:
    def shield(cls: type, subclass: type, /) -> object:
        try:
            return call(cls, shown_type(subclass))
        except AttributeError:
            if is_guest_class(subclass):
                raise
            return NotImplemented  # a class of Python's own does not show all that a hook asks for

    return shield  # type: ignore[return-value]  # a function is a FunctionType


def _as_function(method: object, shown_type: Callable[[type], type]) -> Callable[..., object]:
    if type(method) is FunctionType:
        return method
    bind = getattr(type(method), "__get__", None)
    if bind is None:
        return lambda _self, *arguments: method(*arguments)  # type: ignore[operator]  # Python says what is not callable
    return lambda self, *arguments: bind(method, self, shown_type(type(self)))(*arguments)


def _described(shield: FunctionType, name: str, method: object) -> FunctionType:
    shield.__name__ = name
    shield.__qualname__ = getattr(method, "__qualname__", name) if type(method) is FunctionType else name
    shield.__doc__ = method.__doc__ if type(method) is FunctionType else None
    shield.__dict__["__wrapped__"] = method
    return shield


_CODES: Final = frozenset(
    made.__code__
    for made in (
        _asked_shield(print),
        _access_shield(print, print),
        _binding_shield(print, type),
        _hook_shield(print, type),
    )
)
