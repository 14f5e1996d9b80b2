"""A security boundary: what an importer holds of a guest module, whose variables are guest code's own.

Reads and stores go to the variables of the module, name by name and under the names that its source gave them; the
dictionary itself is never handed out. Like an object of a guest class, a module answers none of the host's questions
about private state (`names.is_of_host`), neither from a variable nor by a `__getattr__` of its own (PEP 562).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from ...guest.facade import Facade, Module
from ..names import HOOK_NAMES, PREFIX, demangle, exact, is_of_host, mangle
from ..views import DictionaryView, namespace_view

_MISSING: Final = object()


class GuestModule(Facade):
    """A module that runs as guest code; see `make_module`."""

    __slots__ = ("_variables",)
    __module__ = "builtins"

    def __getattribute__(self, name: str) -> object:
        if type(name) is not str:
            raise TypeError(f"attribute name must be string, not {type(name).__name__!r}")
        variables = _variables_of(self)
        if name[:1] != "_" and name in variables:
            return variables[name]
        if is_of_host(name):
            return object.__getattribute__(self, name)
        value = _asked(self, demangle(name), _MISSING)
        if value is not _MISSING:
            return value
        if name.startswith("__") and name != "__annotations__":  # those of its class
            return object.__getattribute__(self, name)
        raise AttributeError(
            f"module {module_name(self)!r} has no attribute {demangle(name)!r}", name=demangle(name), obj=self
        )

    def __setattr__(self, name: str, value: object) -> None:
        _variables_of(self)[_stored(name)] = value

    def __delattr__(self, name: str) -> None:
        if _variables_of(self).pop(_stored(name), _MISSING) is _MISSING:
            raise AttributeError(f"module {module_name(self)!r} has no attribute {demangle(name)!r}")

    def __repr__(self) -> str:
        return f"<module {module_name(self)!r}>"

    def __dir__(self) -> list[str]:
        variables = _variables_of(self)
        own = variables.get("__dir__")
        names = variables if own is None else cast("Any", own)()
        return [mangle(name) for name in names if type(name) is str and _is_shown(name)]


class Modules(dict[str, object]):
    """What `sys.modules` is: the modules that were imported, by their names. An import looks here first.

    What code puts in is found by its own imports and by nothing of the host.
    """

    __slots__ = ()
    __module__ = "builtins"


LOADED: Final = Modules()

_variables_of: Final[Callable[[GuestModule], dict[str, object]]] = GuestModule.__dict__["_variables"].__get__


def make_module(variables: dict[str, object]) -> GuestModule:
    """Return the module whose global variables are `variables`."""
    module = object.__new__(GuestModule)
    GuestModule.__dict__["_variables"].__set__(module, variables)
    return module


def _new_module(cls: type[Module], /, *arguments: object, **keywords: object) -> Module:
    """Make an empty guest module, as `Module(name, doc)` does, or an object of a class that code derived from it."""
    if cls is not Module:
        return object.__new__(cls)

    def given(name: str, doc: object = None) -> GuestModule:
        if not isinstance(name, str):
            raise TypeError(f"module name must be str, not {type(name).__name__}")
        variables = {"__name__": exact(name), "__doc__": doc, "__package__": None, "__loader__": None, "__spec__": None}
        return make_module(variables)

    return given(*arguments, **keywords)  # type: ignore[arg-type]  # Python says which do not fit


type.__setattr__(Module, "__new__", staticmethod(_new_module))


def variables_of(module: GuestModule) -> dict[str, object]:
    """Return the dictionary itself, for the code that runs the module, and for nothing else."""
    return _variables_of(module)


def module_name(module: GuestModule) -> str:
    """Return the name of a module, as its own code may have changed it."""
    name = _variables_of(module).get("__name__")
    return exact(name) if isinstance(name, str) else "?"


def member(module: GuestModule, name: str, default: object) -> object:
    """Return a variable of the module, or what its `__getattr__` answers to the name, or `default`.

    Raises whatever that function raises but for `AttributeError`.
    """
    try:
        return _asked(module, name, default)
    except AttributeError:
        return default


def _asked(module: GuestModule, name: str, default: object) -> object:
    """As `member`, but an `AttributeError` of the module's own, which may say what to use instead, comes through."""
    variables = _variables_of(module)
    if not _is_shown(name):
        return default
    if name in variables:
        return variables[name]
    own = variables.get("__getattr__")
    if own is None or name.startswith("__"):
        return default
    return cast("Any", own)(name)


def view_of(module: GuestModule) -> DictionaryView:
    """Show the module's variables, as `vars(module)` does."""
    return namespace_view(_variables_of(module))


def variable_names(module: GuestModule) -> list[str]:
    """Return the names of the module's variables, without a question to its own code."""
    return [name for name in list(_variables_of(module)) if type(name) is str and _is_shown(name)]


def set_member(module: GuestModule, name: str, value: object) -> None:
    """Set a variable of the module; for a submodule, which its package has as an attribute once it is imported."""
    _variables_of(module)[name] = value


def public_members(module: GuestModule) -> dict[str, object]:
    """Return what `from module import *` binds: what `__all__` lists, else every name without an underscore.

    Raises `AttributeError` for a listed name that is missing, `TypeError` for a name that is not a string.
    """
    variables = _variables_of(module)
    listed = variables.get("__all__")
    if listed is None:
        return {name: variables[name] for name in list(variables) if name[:1] != "_" and _is_shown(name)}
    found: dict[str, object] = {}
    for name in cast("list[str]", listed):
        if type(name) is not str:
            raise TypeError(f"Item in {module_name(module)}.__all__ must be str, not {type(name).__name__}")
        found[name] = member(module, name, _MISSING)
        if found[name] is _MISSING:
            raise AttributeError(f"module {module_name(module)!r} has no attribute {name!r}")
    return found


def _is_shown(name: str) -> bool:
    return PREFIX not in name and name not in HOOK_NAMES


def _stored(name: str) -> str:
    plain = demangle(name)
    if is_of_host(exact(name)) or not _is_shown(plain):
        raise AttributeError(f"the attribute {plain!r} of a module cannot be changed")
    return plain
