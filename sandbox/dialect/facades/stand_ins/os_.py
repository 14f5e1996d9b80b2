"""`os` without the operating system: names, separators, and an environment that is empty."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..read_only_table import table

__all__ = ["cpu_count", "environ", "getenv"]

environ: Mapping[str, str] = table({})
"""Nothing of the server's environment belongs to the code."""

PathLike = os.PathLike


def getenv(key: str, default: object = None) -> object:
    """Return `default`: the environment is empty."""
    if not isinstance(key, str):
        raise TypeError(f"str expected, not {type(key).__name__}")
    return default


def cpu_count() -> int:
    """Return 1: the code runs on one processor."""
    return 1
