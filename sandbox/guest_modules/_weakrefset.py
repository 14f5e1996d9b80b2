"""`_weakrefset`: the set is that of `weakref`."""

from weakref import WeakSet

__all__ = ["WeakSet"]
