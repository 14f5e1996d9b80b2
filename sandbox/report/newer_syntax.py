"""Syntax of Python versions later than the one that runs: which version has it, and what to write instead."""

from __future__ import annotations

import re
import sys
from typing import Final

_LATER: Final = (
    (
        (3, 12),
        re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["),
        re.compile(r""),
        "a list of type parameters after a name",
        "use typing.TypeVar and typing.Generic",
    ),
    (
        (3, 12),
        re.compile(r"^\s*type\s+\w+\s*[\[=]"),
        re.compile(r""),
        "the `type` statement",
        "write Name = …",
    ),
    (
        (3, 12),
        re.compile(r"(?i)\b(?:f|rf|fr)['\"]"),
        re.compile(r"^f-string(?!: (?:empty|single))|line continuation|^unterminated string"),
        "an f-string with its own quotes, a backslash or a comment within its braces",
        "use the other quotes there, or a variable",
    ),
    (
        (3, 14),
        re.compile(r"^\s*except\b"),
        re.compile(r"^multiple exception types must be parenthesized"),
        "`except A, B`",
        "write except (A, B)",
    ),
    ((3, 14), re.compile(r"\bt['\"]"), re.compile(r"^invalid syntax"), "a template string", "write an f-string"),
)
"""Since when, how the line of the error looks, how Python's message does, what it is, what to write instead."""


def explained(message: str, line: str) -> str | None:
    """Return what to say of a syntax error in `line`, or None where no later version would take it."""
    for since, looks, said, what, instead in _LATER:
        if sys.version_info < since and looks.search(line) and said.search(message):
            runs = ".".join(map(str, sys.version_info[:2]))
            return f"{what} needs Python {since[0]}.{since[1]}, and {runs} runs here; {instead}"
    return None
