"""`string` whose `Formatter` judges the attributes that a template reads: of the private copy, under guarded `getattr`."""

from __future__ import annotations

from ..guards import guarded_getattr
from .private import copy_of

__all__ = ["Formatter"]

Formatter = copy_of("string", replacing={"getattr": guarded_getattr}).Formatter
