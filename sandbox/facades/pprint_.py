"""`pprint` to the guest's output."""

from __future__ import annotations

import pprint as real
from typing import IO, Any, cast

from .streams import STDOUT

__all__ = ["PrettyPrinter", "pp", "pprint"]


class PrettyPrinter(real.PrettyPrinter):
    """Prints nested data, one item to a line where it does not fit on one."""

    def __init__(
        self, indent: int = 1, width: int = 80, depth: int | None = None, stream: Any = None, **options: Any
    ) -> None:
        super().__init__(indent, width, depth, cast("IO[str]", STDOUT) if stream is None else stream, **options)


def pprint(object: object, stream: Any = None, indent: int = 1, width: int = 80, **options: Any) -> None:  # noqa: A002 - Python's own name
    """Print `object` to `stream`, by default to the output."""
    PrettyPrinter(indent, width, stream=stream, **options).pprint(object)


def pp(object: object, *args: Any, sort_dicts: bool = False, **options: Any) -> None:  # noqa: A002 - Python's own name
    """Print `object` with dicts in their own order."""
    pprint(object, *args, sort_dicts=sort_dicts, **options)
