"""The modules that guest code may import: frozen stand-ins, each with exactly the names listed for it.

`find` and `exports` are what the dialect resolves `import x.y` and `from x import y` against, at compile time.
"""

from __future__ import annotations

import copy
import importlib
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from types import FunctionType, MappingProxyType

from ...guest.facade import Facade, make, names, replace, title
from ..names import mangle
from . import streams
from .module_allow_list import ALIASES, PUBLIC, REAL, STAND_INS, SUBMODULES
from .stand_ins import codecs_, sys_, zoneinfo_

__all__ = [
    "Facade",
    "exports",
    "find",
    "given_classes",
    "given_values",
    "gives",
    "preload",
    "title",
]


_IMPORTED_LATE = """
_pylong _strptime ast bisect concurrent.futures dataclasses decimal dis email.charset fractions ipaddress linecache
locale stringprep tokenize tracemalloc unicodedata zoneinfo
"""
"""What the standard library and the interpreter import only when they first need it."""


def find(module: str) -> Facade | None:
    """Return the facade of `module` (a dotted name such as `collections.abc`), or None where there is none."""
    return _facades().get(module)


def exports() -> Mapping[str, frozenset[str]]:
    """Return the public names of every module, submodules among them: `{"collections": {"abc", "deque", …}, …}`."""
    return _exports()


def preload() -> None:
    """Build every facade and read what they read, so that nothing needs a file once the process is confined."""
    _exports()
    for module in _IMPORTED_LATE.split():
        with suppress(ImportError):  # not every Python has each
            importlib.import_module(module)
    codecs_.preload()
    zoneinfo_.add_files()
    sys_.recursion_limit_max()
    time.localtime()
    random.Random("")  # noqa: S311 - from 3.13 on the first seed that is a text imports what hashes it


def gives(cls: type) -> bool:
    """Return whether `cls` is a class that some module gives; its bases need not be."""
    return cls in given_classes()


@cache
def given_classes() -> frozenset[type]:
    """Return the classes that some module gives."""
    return frozenset(value for value in given_values() if isinstance(value, type))


def given_values() -> Iterator[object]:
    """Give what stands in the modules."""
    return (getattr(facade, name) for facade in _facades().values() for name in names(facade))


@cache
def _exports() -> Mapping[str, frozenset[str]]:
    return MappingProxyType({module: names(facade) for module, facade in _facades().items()})


@cache
def _facades() -> Mapping[str, Facade]:
    facades: dict[str, Facade] = {}
    modules = _with_parents(PUBLIC)
    for module in sorted(modules, key=lambda name: -name.count(".")):  # submodules first: their parents hold them
        members = dict(_members(module)) if module in PUBLIC else {}
        for child in modules:
            parent, _, name = child.rpartition(".")
            if parent == module:
                members[name] = facades[child]
        store = _exchanged if module == "sys" else None
        facades[module] = make(module, members, SUBMODULES.get(module, ()), store=store)
    facades |= {alias: facades[module] for alias, module in ALIASES.items()}
    streams.on_exchange(partial(replace, facades["sys"]))
    return MappingProxyType(facades)


def _exchanged(name: str, value: object) -> bool:
    """Take another stream, or other arguments, from code that assigns to `sys`."""
    if name == "argv":
        replace(_facades()["sys"], name, value)
    elif name in streams.NAMES:
        streams.exchange(name, value)
    else:
        return False
    return True


def set_arguments(words: Iterable[str]) -> None:
    """Give `sys.argv` of code these words."""
    replace(_facades()["sys"], "argv", [*words])


def _with_parents(modules: Iterable[str]) -> frozenset[str]:
    parts = (module.split(".") for module in modules)
    return frozenset(".".join(part[: n + 1]) for part in parts for n in range(len(part)))


def _members(module: str) -> Iterable[tuple[str, object]]:
    """Yield each listed name with its object: the stand-in's, else the real module's, if this Python has it.

    A private one, which modules of the standard library ask for, also has the spelling of an attribute inside.
    """
    replaced: Mapping[str, object] = {}
    if module in STAND_INS:
        stand_in = importlib.import_module(f".stand_ins.{STAND_INS[module]}", __name__)
        several = vars(stand_in).get("MEMBERS")
        replaced = several[module] if several else {name: getattr(stand_in, name) for name in stand_in.__all__}
    real: object = None
    for name in PUBLIC[module]:
        if name in replaced:
            value = replaced[name]
            if isinstance(value, type | FunctionType) and value.__module__.startswith(f"{__name__}."):
                _name_module(value, module)
            yield name, _own_copy(value)
            if name.startswith("_"):
                yield mangle(name), value
            continue
        real = real or importlib.import_module(REAL.get(module, module))
        if hasattr(real, name):
            yield name, _own_copy(getattr(real, name))
            if name.startswith("_"):
                yield mangle(name), getattr(real, name)


def _own_copy(value: object) -> object:
    """Return a table of a module's as one of the facade's own: what code does to it changes nothing else."""
    return copy.copy(value) if type(value) in {dict, list, set, type(annotations)} else value


def _name_module(value: type | FunctionType, module: str) -> None:
    """Let a repr or an error show the module that the code imported."""
    if isinstance(value, type):
        type.__setattr__(value, "__module__", module)
    else:
        value.__module__ = module
