"""`string` whose `Formatter` judges the attributes that a template reads."""

from __future__ import annotations

from ..formatting import Formatter

__all__ = ["Formatter"]
