"""A cheap look at a text before a costly one: most texts hold nothing that an expression could match."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=4)
def lowered(text: str) -> str:
    """Return a text in lower case and of the same length: a few capitals have small letters of two characters."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


@lru_cache(maxsize=4)
def has_digit(text: str) -> bool:
    """Tell whether any digit stands in a text."""
    return _DIGIT.search(text) is not None


def holds(text: str, parts: Iterable[str]) -> bool:
    """Tell whether any of the parts stands in a text."""
    return any(part in text for part in parts)
