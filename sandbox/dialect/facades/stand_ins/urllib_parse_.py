"""`urllib.parse` whose cache compares no argument with the type of another.

The real `urlsplit` keeps results by arguments and types, in an order that depends on how many arguments are keywords.
"""

from __future__ import annotations

from typing import Any
from urllib import parse

__all__ = ["urlsplit"]


def urlsplit(url: Any, scheme: Any = "", allow_fragments: Any = True) -> Any:
    """Return the five parts of a URL."""
    return parse.urlsplit(url, scheme, allow_fragments)
