"""A cheap look at a text before a costly one: most texts hold nothing that an expression could match."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=4)
def lowered(text: str) -> str:
    """Return a text in lower case and of the same length, with the letters that `re.IGNORECASE` takes for ASCII's too.

    Of all letters only `İ` has a small one of two characters; the sign for kelvin has `k`.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").replace("\u0131", "i").replace("\u017f", "s").lower()


@lru_cache(maxsize=4)
def has_digit(text: str) -> bool:
    """Return whether any digit stands in a text."""
    return _DIGIT.search(text) is not None


def holds(text: str, parts: Iterable[str]) -> bool:
    """Return whether any of the parts stands in a text."""
    return any(part in text for part in parts)
