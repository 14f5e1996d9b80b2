"""A security boundary: `contextvars` for variables of the guest alone.

`decimal` keeps its context in a variable, and takes whatever it finds there for an object of its own, in C. So code
holds neither a variable of the host nor a real context, in which it would find one. It holds the stand-ins below. And
once a process is sealed, Python has no method that sets a real variable: only this module keeps those methods.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator, Mapping
from types import GenericAlias
from typing import Any, Final, NoReturn, Self, TypeVar

from ....guest.type_flags import final, remove_methods
from ..identity import id_of

__all__ = ["Context", "ContextVar", "Token", "copy_context"]

T = TypeVar("T")
_set: Final = contextvars.ContextVar.set
_reset: Final = contextvars.ContextVar.reset
_MISSING: Final[Any] = contextvars.Token.MISSING
NO_CONTEXT: Final = "a Context was expected, not {!r}. Use contextvars.copy_context()."
_SETTING: Final = {contextvars.ContextVar: ("set", "reset"), contextvars.Token: ("__enter__", "__exit__")}
"""What sets a variable. A token is a context manager from Python 3.14 on."""


@final
class ContextVar:
    """A variable of the guest's. The real one holds it together with each value, so that a context can show it."""

    __slots__ = ("_default", "_real")

    def __init__(self, name: str, *, default: Any = _MISSING) -> None:
        if hasattr(self, "_real"):  # `__init__` is an ordinary method, which code may call again
            raise TypeError("this variable cannot be made anew")
        self._default = default
        self._real: contextvars.ContextVar[tuple[ContextVar, Any]] = contextvars.ContextVar(name)

    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)

    def __repr__(self) -> str:
        default = "" if self._default is _MISSING else f" default={self._default!r}"
        return f"<ContextVar name={self.name!r}{default} at {id_of(self):#x}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'ContextVar' object")

    @property
    def name(self) -> str:
        """Its name."""
        return self._real.name

    def get(self, default: Any = _MISSING, /) -> Any:
        """Return its value, else `default`, else its own default. Raises `LookupError` where there is none of them."""
        kept = self._real.get(None)
        if kept is not None:
            return kept[1]
        if default is _MISSING:
            default = self._default
        if default is _MISSING:
            raise LookupError(self)
        return default

    def set(self, value: object, /) -> Token:
        """Give it a value in the current context; return what undoes that."""
        return _token(self, _set(self._real, (self, value)))

    def reset(self, token: Token, /) -> None:
        """Undo what returned `token`. Raises `ValueError` for that of another variable or context."""
        if type(token) is not Token:
            raise TypeError(f"expected an instance of Token, got {token!r}")
        _reset(self._real, token._real)


@final
class Token:
    """What `ContextVar.set` returns."""

    __slots__ = ("_real", "_var")
    _real: contextvars.Token[tuple[ContextVar, Any]]
    _var: ContextVar
    MISSING = _MISSING

    def __init__(self) -> None:
        raise RuntimeError("Tokens can only be created by ContextVars")

    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)

    def __repr__(self) -> str:
        return f"<Token var={self._var!r} at {id_of(self):#x}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'Token' object")

    @property
    def var(self) -> ContextVar:
        """The variable."""
        return self._var

    @property
    def old_value(self) -> Any:
        """The value that the variable had before, or `Token.MISSING`."""
        old = self._real.old_value
        return _MISSING if old is _MISSING else old[1]

    if sys.version_info >= (3, 14):

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_error: object) -> None:
            _reset(self._var._real, self._real)


def _token(variable: ContextVar, real: contextvars.Token[tuple[ContextVar, Any]]) -> Token:
    made: Token = object.__new__(Token)
    made._var, made._real = variable, real
    return made


class Context(Mapping[ContextVar, Any]):
    """The values of the guest's variables."""

    __slots__ = ("__weakref__", "_real")

    def __init__(self) -> None:
        self._real = contextvars.Context()

    def __getitem__(self, variable: ContextVar, /) -> Any:
        if type(variable) is not ContextVar:
            raise TypeError(f"a ContextVar key was expected, got {variable!r}")
        kept = self._real.get(variable._real)
        if kept is None:
            raise KeyError(variable)
        return kept[1]

    def __iter__(self) -> Iterator[ContextVar]:
        return iter([kept[0] for variable, kept in self._real.items() if _is_of_guest(variable, kept)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'Context' object")

    def copy(self) -> Context:
        """Return a shallow copy."""
        return _context(self._real.copy())

    def run(self, callable: Callable[..., T], *args: object, **kwargs: object) -> T:  # noqa: A002 - Python's own name
        """Call `callable` with this context as the current one."""
        return self._real.run(callable, *args, **kwargs)


def copy_context() -> Context:
    """Return a copy of the current context."""
    return _context(contextvars.copy_context())


def real_context(context: object) -> contextvars.Context | None:
    """Return the real context that `context` stands for; None, and a real one, come back as they are.

    Raises `TypeError` for anything else: its `run` would be handed what a task is stepped by.
    """
    if context is None or type(context) is contextvars.Context:
        return context
    if type(context) is not Context:
        raise TypeError(NO_CONTEXT.format(type(context).__name__))
    return context._real


def _is_of_guest(variable: contextvars.ContextVar[Any], kept: object) -> bool:
    return type(kept) is tuple and bool(kept) and type(kept[0]) is ContextVar and kept[0]._real is variable


def _context(real: contextvars.Context) -> Context:
    made = object.__new__(Context)
    made._real = real
    return made


def keep_variables() -> None:
    """Let nothing but this module set a variable from Python. What is written in C sets its own as before."""
    for cls, names in _SETTING.items():
        remove_methods(cls, names)
