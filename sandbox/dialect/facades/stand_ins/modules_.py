"""What the guest modules `importlib` and `pickle` are made of: modules by their names.

Every function may be called by guest code with anything. A name gives what an import statement would.
"""

from __future__ import annotations

from ....guest.guest import GUEST
from ..module_object import make_module

__all__ = ["exists", "load"]


def load(name: str) -> object:
    """Return the module of a dotted name, or the program's own as `__main__`. Raises ImportError."""
    from ... import imports

    if type(name) is not str:
        raise TypeError(f"the name of a module must be a string, not {type(name).__name__!r}")
    return make_module(GUEST.namespace) if name == "__main__" else imports.import_module(name)


def exists(name: str) -> bool:
    """Return whether there is a module of a dotted name; it is not run."""
    from ... import imports

    return type(name) is str and imports.is_importable(name)
