"""Which columns a table of pandas has, for code that named one which it has not.

For full Python alone, where a hint may ask objects of the code: they can do there whatever they like anyway.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from ..guest.guest import GUEST
from .disclosure import bounded
from .near_names import nearest
from .subscripts import SOURCE_CHARS_MAX

_COLUMNS_SHOWN: Final = 12
_NAME_CHARS_MAX: Final = 40
_LIKELY: Final = 0.6
_QUOTED: Final = re.compile(r"'([^']{1,80})'")


def columns_of_tables(key: object, source: str, line: int | None, frame: FrameType | None) -> str | None:
    """Return the columns of a table that `line` names and that has not the column `key`; None where there is none.

    `key` is what a KeyError holds: the column, or a text of pandas that has it in quotes.
    """
    if not GUEST.full_python or line is None or frame is None or len(source) > SOURCE_CHARS_MAX:
        return None
    if not isinstance(key, str | int):
        return None
    for name, table in _tables(source, line, frame):
        columns = list(table.columns)
        missing = [key] if key not in columns else []
        if isinstance(key, str) and (quoted := _QUOTED.findall(key)):
            missing = [each for each in quoted if each not in columns]
        if not missing:
            continue
        texts = [str(each) for each in columns]
        close = nearest(str(missing[0]), texts, _LIKELY)
        if close is not None:
            return f"{name} has no column {bounded(str(missing[0]), _NAME_CHARS_MAX)!r}: did you mean {close!r}?"
        shown = ", ".join(repr(bounded(each, _NAME_CHARS_MAX)) for each in texts[:_COLUMNS_SHOWN])
        more = f" and {len(texts) - _COLUMNS_SHOWN} more" if len(texts) > _COLUMNS_SHOWN else ""
        return f"{name} has the columns {shown}{more}." if texts else f"{name} has no columns."
    return None


def _tables(source: str, line: int, frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the tables that a line names, in the order of their names there."""
    names = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and node.lineno <= line <= _end(node)
    ]
    for name in dict.fromkeys(node.id for node in sorted(names, key=lambda node: node.col_offset)):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        kind = type(value)
        if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas":
            yield name, value


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno
