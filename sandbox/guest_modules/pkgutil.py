"""`pkgutil` as guest code: the files of packages."""

import importlib.resources

__all__ = ["get_data"]


def get_data(package, resource):
    """Return the bytes of a file of a package, by its path there. Raises OSError."""
    return importlib.resources.read_binary(package, *resource.split("/"))
