"""A security boundary: a read-only table that never hands out what is behind it.

A `MappingProxyType` that is compared or joined gives the other side the dictionary itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def table(entries: dict[Any, Any]) -> Mapping[Any, Any]:
    """Return a read-only mapping of `entries`, which looks them up as fast as a dictionary."""
    names = ("__getitem__", "__contains__", "__iter__", "__len__", "__repr__", "copy", "get")
    methods = {name: getattr(entries, name) for name in names}  # bound, and `__self__` is not for code
    kind: type[Mapping[Any, Any]] = type(
        "Table", (Mapping,), {"__slots__": (), "__module__": __name__, "__doc__": "A read-only table.", **methods}
    )
    return kind()
