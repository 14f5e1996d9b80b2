"""Lets threadpoolctl, which scikit-learn asks in many of its methods, find no libraries to inspect.

To find them it reads /proc/self/maps, which workers do not see, or has C call back into Python (dl_iterate_phdr(3)).
For that ctypes needs memory that is written and executed: the sandbox has none, and a `MemoryError` ends the program.
Without libraries it bounds nothing: the pools keep the threads that they have.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

_MODULE: Final = "threadpoolctl"


def leave_out() -> None:
    """Change the library once it is imported, ahead or by the code."""
    sys.meta_path.insert(0, _PoolFinder())


class _PoolFinder(MetaPathFinder):
    """Finds the library where it is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WithoutSearch(spec.loader)
        return spec


class _WithoutSearch(Loader):
    """Loads it as its own loader does, and takes the search away."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        # A library of another version works as it is.
        with suppress(AttributeError):
            module.ThreadpoolController._load_libraries = _find_none

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _find_none(_controller: object) -> None:
    """Find no library."""
