"""`csv` whose readers are not called by the lines that they read.

A reader is at work on a row while it asks for the next line; called again there, C code had no fields to go on with.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any, Final

from .held_items import alone

__all__ = ["reader"]

_PLAIN: Final = frozenset({list, tuple, StringIO})
"""Iterables that call no code."""
_reader: Final = csv.reader


def reader(iterable: Iterable[str], /, *arguments: Any, **keywords: Any) -> Any:
    """Return an iterator of the rows of text; takes the arguments of Python's own."""
    lines = iterable if type(iterable) in _PLAIN else alone(iter(iterable))
    return _reader(lines, *arguments, **keywords)


def read_alone() -> None:
    """Let the readers of the library (`csv.DictReader`) be such."""
    vars(csv)["reader"] = reader
