"""`string` whose `Formatter`, of a private copy, reads the attributes in a template through the guard."""

from __future__ import annotations

from ...guards import guarded_getattr
from ..private import copy_of

__all__ = ["Formatter"]

Formatter = copy_of("string", replacing={"getattr": guarded_getattr}).Formatter
