"""`pprint` to the guest's output, of a private copy that reads the fields of a dataclass through the guard."""

from __future__ import annotations

from typing import IO, Any, cast

from ..guards import guarded_getattr
from .private import copy_of
from .streams import STDOUT

__all__ = ["PrettyPrinter", "isreadable", "isrecursive", "pformat", "pp", "pprint", "saferepr"]

_copy = copy_of("pprint", replacing={"getattr": guarded_getattr})
isreadable = _copy.isreadable
isrecursive = _copy.isrecursive
pformat = _copy.pformat
saferepr = _copy.saferepr


class PrettyPrinter(_copy.PrettyPrinter):  # type: ignore[misc, name-defined]  # of the private copy
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
