"""`pprint` to the guest's output, of a private copy that reads the fields of a dataclass through the guard."""

from __future__ import annotations

import sys
from typing import Any

from ...guards import guarded_getattr
from .. import streams
from ..identity import id_of
from ..private import copy_of
from .ordered_dict import OrderedDict

__all__ = ["PrettyPrinter", "isreadable", "isrecursive", "pformat", "pp", "pprint", "saferepr"]

_copy = copy_of("pprint", replacing={"getattr": guarded_getattr, "id": id_of})


class _Sys:
    maxsize = sys.maxsize

    @property
    def stdout(self) -> Any:
        return streams.current("stdout")


_copy._sys = _Sys()  # type: ignore[attr-defined]  # the copy's own name
isreadable = _copy.isreadable
isrecursive = _copy.isrecursive
pformat = _copy.pformat
PrettyPrinter = _copy.PrettyPrinter
PrettyPrinter._dispatch[OrderedDict.__repr__] = PrettyPrinter._pprint_ordered_dict
saferepr = _copy.saferepr


def pprint(object: object, stream: Any = None, indent: int = 1, width: int = 80, **options: Any) -> None:  # noqa: A002 - Python's own name
    """Print `object` to `stream`, by default to the output."""
    PrettyPrinter(indent, width, stream=stream, **options).pprint(object)


def pp(object: object, *args: Any, sort_dicts: bool = False, **options: Any) -> None:  # noqa: A002 - Python's own name
    """Print `object` with dicts in their own order."""
    pprint(object, *args, sort_dicts=sort_dicts, **options)
