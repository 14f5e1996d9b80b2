"""What the guest modules `importlib` and `pickle` are made of: modules by their names.

Every function may be called by guest code with anything. A name gives what an import statement would.
"""

from __future__ import annotations

from ....guest.guest import GUEST
from ..module_object import LOADED, make_module

__all__ = ["exists", "load", "new_copy", "run_copy"]


def load(name: str) -> object:
    """Return the module of a dotted name, or the program's own as `__main__`. Raises ImportError."""
    from ... import imports

    if type(name) is not str:
        raise TypeError(f"the name of a module must be a string, not {type(name).__name__!r}")
    if name != "__main__":
        return imports.import_module(name)
    return LOADED[name] if name in LOADED else make_module(GUEST.namespace)


def exists(name: str) -> bool:
    """Return whether there is a module of a dotted name; it is not run."""
    from ... import imports

    return type(name) is str and imports.is_importable(name)


def new_copy(name: str) -> object:
    """Return a module that has not run, for `run_copy`. Raises ImportError where no guest module has the name."""
    from ... import guest_modules

    copy = guest_modules.new_copy(name) if type(name) is str else None
    if copy is None:
        raise ImportError(f"there is no source of the module {str(name)!r} here", name=str(name))
    return copy


def run_copy(module: object) -> None:
    """Run a module of `new_copy`. Raises what it raises, TypeError for another module."""
    from ... import guest_modules

    guest_modules.run_copy(module)
