"""`configparser` of text: of the private copy, whose `read` has no files to open."""

from __future__ import annotations

from .private import copy_of

_copy = copy_of("configparser")
__all__ = [name for name in _copy.__all__ if not name.startswith("_")]
globals().update({name: getattr(_copy, name) for name in __all__})
