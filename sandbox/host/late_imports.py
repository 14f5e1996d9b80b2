"""Which libraries a zygote of full Python imports ahead, beside those that it always does: what code has used once.

They are seen in the text of the code, which costs nothing and is no more than a guess: who guesses wrong imports one
for nothing, or in its own run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "duckdb": "duckdb",
        "matplotlib": "matplotlib.pyplot",
        "openpyxl": "openpyxl",
        "parquet": "pyarrow.parquet",
        "polars": "polars",
        "pyarrow": "pyarrow",
        "scipy": "scipy.stats",
        "seaborn": "seaborn",
        "sklearn": "sklearn",
        "to_excel": "openpyxl",
        "read_excel": "openpyxl",
    }
)
_NAMED: Final = re.compile("|".join(_MODULES))


class LateImports:
    """What code of one pool has used. A library that cannot be imported ahead is not tried again."""

    def __init__(self) -> None:
        self.modules: tuple[str, ...] = ()
        self._tried: set[str] = set()
        self._newest: frozenset[str] = frozenset()

    def add(self, code: str) -> bool:
        """Note what code uses; return whether something is new."""
        new = {_MODULES[name] for name in _NAMED.findall(code)} - self._tried
        if not new:
            return False
        self._tried |= new
        self._newest = frozenset(new)
        self.modules = tuple(sorted({*self.modules, *new}))
        return True

    def drop_newest(self) -> None:
        """Leave out what was added last."""
        self.modules = tuple(module for module in self.modules if module not in self._newest)
