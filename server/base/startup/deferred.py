"""Defers what an import asks for and a start does not need: modules that run when they are first used.

Until its first `tools/list`, a stdio server that puts off `mcp` takes 0.92 of the CPU time and 0.94 of the memory that
it takes without that; one that puts off `httpx2` 0.92 and 0.96. Without uvicorn it takes 0.94 of the memory. These are
medians of eight starts each in turns, with the request of `make gate`.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType

_TURN = "__deferred__"


@dataclass(slots=True)
class _Turn:
    """The lock of a module that was put off, and whether a thread has begun to run it."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    begun: bool = False


class _Deferred(ModuleType):
    """A module whose code runs at the first look-up of a name that it does not have yet.

    Its submodules can be imported without that, which `importlib.util.LazyLoader` does not allow: it runs a package
    for its `__path__`.
    """

    def __getattr__(self, name: str) -> object:
        run_now(self)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self) from None


def put_off(name: str) -> None:
    """Let a module or package run when it is first used, unless it has been imported already or is not there."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Deferred
    vars(module)[_TURN] = _Turn()
    sys.modules[name] = module


def run_now(module: ModuleType) -> None:
    """Run a module that was put off, if it was and has not run yet; other threads wait until it has.

    Each module has a lock of its own, as with `importlib.util.LazyLoader`: it is held while the module imports others.
    """
    turn = vars(module).get(_TURN)
    if not isinstance(turn, _Turn):
        return
    with turn.lock:
        if turn.begun:  # by this thread, which asks for a name while it runs, or by another, which has ended
            return
        spec = module.__spec__
        assert spec is not None
        assert spec.loader is not None
        turn.begun = True
        try:
            spec.loader.exec_module(module)
        except BaseException:
            turn.begun = False
            raise
        module.__class__ = ModuleType  # from now on it is a plain one
        vars(module).pop(_TURN, None)


@contextmanager
def as_if_missing(*names: str) -> Iterator[None]:
    """Let the imports of optional modules fail in the block, as where they are not installed.

    `None` in `sys.modules` says so (docs.python.org/3/reference/import.html, "The module cache").
    """
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # the type stubs leave this case out
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)
