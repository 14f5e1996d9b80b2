"""`xml.etree.ElementTree`, of the private copy, which opens files as code does.

Expat itself bounds what entities grow to.
"""

# Python's own name.
# ruff: noqa: N999

from __future__ import annotations

from typing import Any

from ....guest.guest import GUEST
from ..private import copy_of

__all__ = [
    "PI",
    "XML",
    "Comment",
    "ElementTree",
    "ProcessingInstruction",
    "QName",
    "dump",
    "fromstring",
    "fromstringlist",
    "indent",
    "iselement",
    "parse",
    "register_namespace",
    "tostring",
    "tostringlist",
]  # fmt: skip

_copy = copy_of("xml.etree.ElementTree")
Comment = _copy.Comment
ElementTree = _copy.ElementTree
PI = _copy.PI
ProcessingInstruction = _copy.ProcessingInstruction
QName = _copy.QName
indent = _copy.indent
iselement = _copy.iselement
parse = _copy.parse
register_namespace = _copy.register_namespace
tostring = _copy.tostring
tostringlist = _copy.tostringlist


def fromstring(text: str | bytes, parser: object = None) -> Any:  # noqa: ARG001 - Python's own signature
    """Parse XML text and return its root. Raises ParseError."""
    return _copy.fromstring(text)


XML = fromstring


def fromstringlist(sequence: Any, parser: object = None) -> Any:  # noqa: ARG001 - Python's own signature
    """Parse XML text given in pieces and return its root. Raises ParseError."""
    return _copy.fromstringlist(sequence)


def dump(elem: Any) -> None:
    """Write an element to the output."""
    element = elem.getroot() if isinstance(elem, _copy.ElementTree) else elem
    GUEST.write(f"{_copy.tostring(element, 'unicode')}\n")
