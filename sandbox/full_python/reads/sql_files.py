"""Which files a text of SQL may read: the names in it, and whether it makes up others.

SQL is not parsed: whatever stands between quotes of any kind, and every word with a dot, may be the name of a file
(DuckDB reads `from people.csv` as well as `from 'people.csv'`). A text that computes a name may read any file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_QUOTED: Final = re.compile(r"'((?:[^']|'')+)'|\"((?:[^\"]|\"\")+)\"")
_SEAM: Final = re.compile(r"['\"]|\$\w*\$")
"""Where a text within quotes begins or ends; whether it does is not asked, since comments have apostrophes."""
_DOTTED: Final = re.compile(r"\w+(?:\.\w+)+")

_LITERAL: Final = r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$)"
_PLAIN: Final = re.compile(
    rf"\s*(?:{_LITERAL}|\[\s*(?:'(?:[^']|'')*'\s*,?\s*)*\]|\?\d*|[$:]\w+)\s*[,)]", re.DOTALL | re.IGNORECASE
)
"""What is no expression where the name of a file stands: a literal, a list of them, or a parameter."""
_READING: Final = re.compile(r"\b(?:read_\w+|\w+_scan|sniff_\w+|parquet_\w+|glob)\s*\(", re.IGNORECASE)
_COMPUTING: Final = re.compile(
    r"\bquery(?:_table)?\s*\(|\bgetvariable\s*\(|\bfile_search_path\b|\bexecute\s+\w+\s*\(|\be'[^']*\\", re.IGNORECASE
)
"""SQL that is put together within SQL, values that SQL has set, names with escapes, and folders that are searched."""


def names_in(text: str) -> Iterator[str]:
    """Give all that may be the name of a file, or a pattern of such names."""
    for quoted in _QUOTED.findall(text):
        yield "".join(quoted).replace("''", "'").replace('""', '"')
    yield from _SEAM.split(text)
    yield from _DOTTED.findall(text)


def computes_names(text: str) -> bool:
    """Return whether it may read files whose names do not stand in it, nor are given with it."""
    if _COMPUTING.search(text):
        return True
    return any(not _PLAIN.match(text, call.end()) for call in _READING.finditer(text))
