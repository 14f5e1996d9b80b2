"""Security boundary: the importable modules that are made of host helpers, such as `skills` and `mcp.runtime`.

`hosted.modules` is their table. Which names a fixed one has is known when code is compiled; a dynamic one
(`guest.dynamic`) takes every public name, and whether it exists is found out when the import runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ..guest.dynamic import Dynamic, is_public
from ..guest.facade import Facade, names
from ..guest.known_modules import KNOWN_MODULES
from . import displaying, hosted, hosted_tools


@cache
def _table() -> dict[str, Facade]:
    return dict(hosted.modules())


def find(module: str) -> Facade | None:
    """Return the module of a dotted name, or None where there is none."""
    found = _table().get(module)
    if found is None:
        package, _, name = module.rpartition(".")
        found = hosted_tools.server_module(package, name) if is_public(name) else None
    return found


def gives(module: str, name: str) -> bool:
    """Return whether `from module import name` may be written."""
    found = find(module)
    if found is None:
        return False
    return is_public(name) if type(found) is Dynamic else name in names(found)


def listed(module: str) -> frozenset[str]:
    """Return the names that `from module import *` binds: none of a dynamic one."""
    found = find(module)
    return frozenset() if found is None or type(found) is Dynamic else names(found)


def fixed() -> list[Facade]:
    """Return those whose names are the same in every run."""
    return [facade for facade in _table().values() if type(facade) is not Dynamic]


def is_dynamic(module: str) -> bool:
    """Return whether a module has the names that the host says when it is asked."""
    return type(find(module)) is Dynamic


def all_names(module: str) -> list[str] | None:
    """Return the names that `from module import *` binds of a dynamic module, which the host is asked for."""
    return sorted(filter(is_public, dir(find(module)))) if is_dynamic(module) else None


def member(module: str, name: str) -> object:
    """Return what `from module import name` binds. Raises `ImportError`, with what the look-up said was wrong."""
    try:
        return getattr(find(module), name)
    except AttributeError as error:
        raise _cannot_import(module, name, str(error)) from None


def install() -> None:
    """Make them modules of this whole process, for code that imports as any Python program does.

    Those of notebooks stand in for libraries, and are found only where these are not installed.
    """
    for name in _table().keys() - displaying.modules():
        sys.modules[name] = _Module(name)
    if not any(type(finder) is _Missing for finder in sys.meta_path):
        sys.meta_path.append(_Missing())


class _Module(ModuleType):
    """A module as the import system wants it; its path makes a `from` import ask `_Missing` for what is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name == "__all__" and (names := all_names(self.__name__)) is not None:
            return names
        if not is_public(name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        return getattr(find(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(find(self.__name__))


class _Missing(MetaPathFinder, Loader):
    """Finds the modules of servers, and says what is wrong with an import that Python would not know."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        del path, target
        if find(fullname) is not None:
            return ModuleSpec(fullname, self, is_package=True)
        module, _, name = fullname.rpartition(".")
        if find(module) is not None:
            member(module, name)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it is there."""


def _cannot_import(module: str, name: str, why: str) -> ImportError:
    return ImportError(f"cannot import name {name!r} from {module!r}: {why}", name=module)


KNOWN_MODULES.host_module = find
KNOWN_MODULES.host_names = listed
