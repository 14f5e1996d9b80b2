"""`pkgutil` as guest code: the files of packages, and objects by their dotted names."""

import importlib
import importlib.resources

__all__ = ["get_data", "resolve_name"]
_NAME_PATTERN = None
"""What `resolve_name`, which is CPython's own (`library_modules`), keeps of its pattern."""


def get_data(package, resource):
    """Return the bytes of a file of a package, by its path there. Raises OSError."""
    return importlib.resources.read_binary(package, *resource.split("/"))
