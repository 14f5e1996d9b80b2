"""`pkgutil` as guest code: the files of packages, and objects by their dotted names."""

import importlib
import importlib.resources

__all__ = ["get_data", "resolve_name"]


def get_data(package, resource):
    """Return the bytes of a file of a package, by its path there. Raises OSError."""
    return importlib.resources.read_binary(package, *resource.split("/"))


def resolve_name(name):
    """Return the module or the object that `package.module:object` or `package.module.object` names."""
    module, colon, path = name.partition(":")
    first, *rest = module.split(".")
    if not all(part.isidentifier() for part in [first, *rest, *(path.split(".") if path else [])]):
        raise ValueError(f"invalid format: {name!r}")
    found = importlib.import_module(first)
    parts = path.split(".") if path else []
    while rest:
        dotted = f"{first}.{rest[0]}"
        try:
            found = importlib.import_module(dotted)
        except ImportError:
            if colon:
                raise
            parts = rest
            break
        first, rest = dotted, rest[1:]
    for part in parts:
        found = getattr(found, part)
    return found
