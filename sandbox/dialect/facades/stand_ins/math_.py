"""`math` with what later versions of Python have added."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

__all__: list[str] = []

if sys.version_info < (3, 12):
    __all__ += ["sumprod"]

    def sumprod(p: Iterable[Any], q: Iterable[Any], /) -> Any:
        """Return the sum of the products of two sequences of the same length."""
        products = [a * b for a, b in zip(p, q, strict=True)]
        return math.fsum(products) if all(type(each) is float for each in products) and products else sum(products)
