"""`importlib` as guest code: modules by a name that is made at run time."""

import _modules

__all__ = ["import_module", "invalidate_caches", "reload"]


def import_module(name, package=None):
    """Return a module by its name. Raises ImportError."""
    if name.startswith("."):
        if not package:
            raise TypeError(f"the 'package' argument is required to perform a relative import for {name!r}")
        level = len(name) - len(name.lstrip("."))
        parts = package.split(".")
        if level > len(parts):
            raise ImportError("attempted relative import beyond top-level package")
        name = ".".join([*parts[: len(parts) - level + 1], *filter(None, [name[level:]])])
    return _modules.load(name)


def invalidate_caches():
    """Do nothing: the modules there are do not change."""


def reload(module):
    """Return the module as it is: its source does not change."""
    return module
