"""How much of what all callers share one of them may have."""

from __future__ import annotations


def of_one_caller(places: int) -> int:
    """Return how many places one caller may have: most of all, but never the last ones where there are several."""
    return max(1, places - max(1, places // 4))
