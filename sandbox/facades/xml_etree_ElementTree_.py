"""`xml.etree.ElementTree` from text: the real one opens files by name. Expat bounds the growth of entities itself."""

# Python's own names and signatures.
# ruff: noqa: N999

from __future__ import annotations

import xml.etree.ElementTree as ET
from types import SimpleNamespace
from typing import Any

from .streams import STDOUT

__all__ = ["XML", "ElementTree", "dump", "fromstring", "parse"]


def fromstring(text: str | bytes, parser: object = None) -> ET.Element:  # noqa: ARG001 - Python's own signature
    """Parse XML text and return its root. Raises ParseError."""
    return ET.fromstring(text)  # noqa: S314 - hostile XML costs its author alone: memory and time are limited


XML = fromstring


class ElementTree(ET.ElementTree):
    """A document: a root element and what is asked of it."""

    def __init__(self, element: ET.Element | None = None, file: Any = None) -> None:
        super().__init__(element)
        if file is not None:
            self.parse(file)

    def parse(self, source: Any, parser: object = None) -> ET.Element:  # noqa: ARG002 - Python's own signature
        """Parse an open file, such as `io.StringIO(text)`."""
        root = ET.fromstring(_read(source))  # noqa: S314 - as in `fromstring`
        self._setroot(root)
        return root

    def write(self, file_or_filename: Any, *args: Any, **options: Any) -> None:
        """Write the document to an open file."""
        # Only the method goes on: what lacks it is taken for a name or a descriptor by the real class.
        super().write(SimpleNamespace(write=_opened(file_or_filename).write), *args, **options)

    def write_c14n(self, file: Any) -> None:
        """Write the document in canonical form to an open file."""
        text = ET.canonicalize(ET.tostring(self.getroot(), "unicode"))  # type: ignore[arg-type]  # it has a root
        _opened(file).write(text)


def parse(source: Any, parser: object = None) -> ElementTree:  # noqa: ARG001 - Python's own signature
    """Parse an open file, such as `io.StringIO(text)`."""
    return ElementTree(file=source)


def dump(elem: Any) -> None:
    """Write an element to the output."""
    element = elem.getroot() if isinstance(elem, ET.ElementTree) else elem
    STDOUT.write(f"{ET.tostring(element, 'unicode')}\n")


def _read(source: Any) -> str | bytes:
    text: str | bytes = _opened(source).read()
    return text


def _opened(file: Any) -> Any:
    if isinstance(file, str | bytes | int) or hasattr(file, "__fspath__"):
        raise TypeError("files cannot be opened here; use fromstring(read_file(name)) or an io.StringIO")
    return file
