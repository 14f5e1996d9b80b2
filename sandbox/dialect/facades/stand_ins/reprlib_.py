"""`reprlib` of a private copy that reads the methods named for a type through the guard."""

from __future__ import annotations

from ...guards import guarded_getattr
from ..identity import id_of
from ..private import copy_of

__all__ = ["Repr", "recursive_repr", "repr"]

_copy = copy_of("reprlib", replacing={"getattr": guarded_getattr, "id": id_of})
Repr = _copy.Repr
recursive_repr = _copy.recursive_repr
repr = _copy.repr  # noqa: A001 - Python's own name
