"""A security boundary: `contextvars` whose contexts do not show the variables of the host.

`decimal` keeps its context in one, and takes whatever it finds there for an object of its own, in C.
"""

from __future__ import annotations

import contextvars
import decimal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

__all__ = ["Context", "copy_context"]

T = TypeVar("T")
_host_variables: set[int] = set()


class Context(Mapping[contextvars.ContextVar[Any], Any]):
    """The values of variables."""

    __slots__ = ("__weakref__", "_real")

    def __init__(self) -> None:
        self._real = contextvars.Context()

    def __getitem__(self, variable: contextvars.ContextVar[T], /) -> T:
        if type(variable) is not contextvars.ContextVar:
            raise TypeError(f"a ContextVar key was expected, got {variable!r}")
        if id(variable) in _host_variables:
            raise KeyError(variable)
        return self._real[variable]

    def __iter__(self) -> Iterator[contextvars.ContextVar[Any]]:
        return iter([variable for variable in self._real if id(variable) not in _host_variables])

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


def _context(real: contextvars.Context) -> Context:
    made = object.__new__(Context)
    made._real = real
    return made


def keep_variables() -> None:
    """Show no variable of a context that there is by now: those of modules, and that of `decimal`, which is in none."""
    decimal.getcontext()
    modules = [getattr(each, "__dict__", {}) for each in sys.modules.values()]
    found = (each for variables in modules for each in variables.values())
    _host_variables.update(id(each) for each in found if type(each) is contextvars.ContextVar)
    _host_variables.update(map(id, contextvars.copy_context()))
