"""What a docstring says of a function and its parameters, in the styles of Google, NumPy and reST."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TEXT_CHARS_MAX: Final = 20_000
_SECTION: Final = re.compile(r"\n\s*(?:\n|$)")
_EXAMPLE: Final = re.compile(r"^[^\S\n]*>>> ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """A docstring, read: the description without its sections, and for each parameter its text and type."""

    description: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    examples: bool = False


def preload() -> None:
    """Import the parser, in a process that still can."""
    _parser()


def read(docstring: str | None) -> DocstringParts:
    """Read a docstring; what no style explains is description."""
    if not docstring or not docstring.strip():
        return DocstringParts()
    text = inspect.cleandoc(docstring)[:TEXT_CHARS_MAX]
    examples = _EXAMPLE.search(text) is not None
    parser = _parser()
    if parser is None:
        return DocstringParts(_SECTION.split(text, 1)[0].strip(), examples=examples)
    try:
        said = parser.parse(text)
    except Exception:  # noqa: BLE001 - a docstring is free text: whatever the parser makes of it, the text stays
        return DocstringParts(_without_examples(text), examples=examples)
    parameters = [each for each in said.params if each.args and each.args[0] != "attribute"]
    parts = [said.short_description or "", _without_examples(said.long_description or "")]
    return DocstringParts(
        description="\n\n".join(part.strip() for part in parts if part.strip()),
        texts={_bare(each.arg_name): each.description.strip() for each in parameters if each.description},
        types={_bare(each.arg_name): each.type_name for each in parameters if each.type_name},
        examples=examples,
    )


def _bare(name: str) -> str:
    return name.strip().lstrip("*\\").strip()


def _without_examples(text: str) -> str:
    """Cut a description where its examples begin."""
    found = _EXAMPLE.search(text)
    kept = text if found is None else text[: found.start()]
    return re.sub(r"\n?(?:Examples?|Usage)\s*:{1,2}\s*\Z", "", kept.rstrip()).rstrip()


def _parser() -> Any:
    """Return the library, or None where it is not installed: an image for containers may do without."""
    try:
        return importlib.import_module("docstring_parser")
    except ImportError:
        return None
