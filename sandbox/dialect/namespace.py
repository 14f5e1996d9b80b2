"""Security boundary: the variables and builtins that guest code starts with."""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Final, NoReturn

from ..guest.guest import GUEST
from ..guest.runtime import PRELOADED
from ..report.substitutes import NO_INPUT
from . import classes, compiling, facades, guards, guest_modules, helping, imports, transformer
from .facades import identity, streams
from .facades.private import open_file
from .names import demangle

PROGRAM: Final = "/workspace/main.py"
"""The path that a program gets as its own, beside the files of the workspace. No such file exists."""
_AS_THEY_ARE: Final = (
    "abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate "
    "filter float format frozenset hash hex int isinstance issubclass iter len list map max memoryview min next "
    "object oct ord pow property range repr reversed round set slice sorted staticmethod str sum super tuple zip "
    "None True False Ellipsis NotImplemented __debug__"
).split()


def new_namespace(helpers: Mapping[str, object] = MappingProxyType({})) -> dict[str, object]:
    """Return a fresh namespace for guest code: guarded builtins, the preloaded modules, and `helpers`."""
    imports.preload()
    return {
        "__name__": "__main__",
        "__doc__": None,
        "__file__": PROGRAM,
        "__builtins__": guarded_builtins(),
        **{name: facades.find(name) for name in PRELOADED},
        **helpers,
    }


def guarded_builtins() -> dict[str, object]:
    """Return a fresh table of what guest code finds without importing, and of the hooks its code calls."""
    return {
        **{name: getattr(builtins, name) for name in _AS_THEY_ARE},
        **{name: value for name, value in vars(builtins).items() if _is_exception(value)},
        **_GUARDED,
        "__name__": "__main__",  # of code that `exec` runs in a dictionary without one
    }


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _print(
    *values: object,
    sep: str | None = " ",
    end: str | None = "\n",
    file: object = None,
    flush: bool = False,
) -> None:
    for name, text in (("sep", sep), ("end", end)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{name} must be None or a string, not {type(text).__name__}")
    sep, end = " " if sep is None else sep, "\n" if end is None else end
    if file is None and GUEST.write is GUEST.output:
        GUEST.write(demangle(sep.join(map(str, values)) + end))
        return
    # A stream of the code's own sees each part by itself, as in Python.
    write = GUEST.write if file is None else file.write  # type: ignore[attr-defined]  # Python says so when it has none
    for number, value in enumerate(values):
        if number:
            write(demangle(sep))
        write(demangle(str(value)))
    write(demangle(end))
    if flush and file is not None:
        file.flush()  # type: ignore[attr-defined]  # as above


def _dir(*objects: object) -> list[str]:
    if not objects:
        return sorted(compiling._locals_of(sys._getframe(1)))
    (obj,) = objects
    return guards.guarded_dir(obj)


def _vars(*objects: object) -> object:
    if not objects:
        return compiling._locals_of(sys._getframe(1))
    (obj,) = objects
    return guards.guarded_vars(obj)


def _input(prompt: object = "", /) -> str:
    stream = streams.current("stdin")
    GUEST.write(demangle(str(prompt)))
    if stream is streams.STDIN:
        raise EOFError(f"input() has nobody to ask here; {NO_INPUT}")
    line = stream.readline()
    if not line:
        raise EOFError("EOF when reading a line")
    return str(line).removesuffix("\n")


def _exit(code: object = None) -> NoReturn:
    raise SystemExit(code)


def _unavailable(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_arguments: object, **_keywords: object) -> NoReturn:
        raise guards.SecurityError(f"{name}() is not available here; {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


HOOKS: Final[Mapping[str, object]] = {
    "__build_class__": classes.build_class,
    "__import__": imports.guarded_import,
    transformer.ATTRIBUTE_HOOK: guards.guarded_getattr,
    transformer.INITIALIZER_HOOK: guards.initializer_of,
    transformer.SLOT_HOOK: guards.slot_of,
    transformer.STORE_HOOK: guards.store_field,
    transformer.KEYWORDS_HOOK: guards.keywords_of,
    transformer.PLAIN_NAME_HOOK: demangle,
    transformer.RECORD_HOOK: guards.record_of,
    transformer.REFUSED_HOOK: compiling.refuse,
    transformer.UNMADE_HOOK: compiling.unmade,
    imports.MODULE_HOOK: imports.find,
    imports.MEMBER_HOOK: imports.member_of,
    imports.ABSENT_HOOK: imports.absent,
    imports.MISSING_HOOK: imports.missing,
    imports.STAR_HOOK: imports.star,
}
"""What the code of the guest calls without naming it. Code that runs without one of them finds none, and stops."""
_GUARDED: Final[Mapping[str, object]] = {
    **HOOKS,
    "SecurityError": guards.SecurityError,
    "breakpoint": _unavailable("breakpoint", "print() what you want to see"),
    "compile": compiling.guarded_compile,
    "delattr": guards.guarded_delattr,
    "dir": _dir,
    "eval": compiling.guarded_eval,
    "exec": compiling.guarded_exec,
    "exit": _exit,
    "getattr": guards.guarded_getattr,
    "globals": compiling.guarded_globals,
    "hasattr": guards.guarded_hasattr,
    "help": helping.guarded_help,
    "id": identity.id_of,
    "input": _input,
    "locals": compiling.guarded_locals,
    "open": open_file,
    "print": _print,
    "quit": _exit,
    "setattr": guards.guarded_setattr,
    "type": classes.type_of,
    "vars": _vars,
}
for _name, _function in _GUARDED.items():
    if isinstance(_function, FunctionType) and _name not in HOOKS:
        _function.__name__ = _function.__qualname__ = _name
compiling.provide_builtins(lambda: HOOKS, guarded_builtins)
guest_modules.provide(compiling.code_of_module, compiling.evaluate, guarded_builtins)
guest_modules.provide_import(imports.import_module)
