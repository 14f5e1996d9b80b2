"""Text that code, servers and files wrote, where it may stand among sealab's own: on a terminal, in a short answer.

There it must not move the cursor, change colours or reorder what stands beside it. JSON values and what goes into files
and pipes are data, and left as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from types import MappingProxyType
from typing import TextIO, cast

_RANGES = ((0, 8), (0x0B, 0x1F), (0x7F, 0x9F), (0x202A, 0x202E), (0x2066, 0x2069), (0xD800, 0xDFFF))
"""C0 but for tab and line ends, C1, what reorders text (Unicode's UAX 9, explicit formatting), and lone surrogates."""
_CONTROL = re.compile("[" + "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in _RANGES) + "]")
_WRITTEN = MappingProxyType({code: f"\\u{code:04x}" for first, last in _RANGES for code in range(first, last + 1)})


def visible(text: str) -> str:
    r"""Return the text with each control character as JSON would write it, such as `\u001b`."""
    if _CONTROL.search(text) is None:
        return text
    return "\r\n".join(line.translate(_WRITTEN) for line in text.split("\r\n"))


def one_line(text: str) -> str:
    r"""Return the text, `visible` and on one line: its line ends are written as `\n` and `\r`."""
    return visible(text.replace("\r", "\\r").replace("\n", "\\n"))


class VisibleStream:
    """A stream that writes control characters visibly; in all else the stream that it is made of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; returns how much of it, as it was given, was written: all."""
        self._stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def show_visibly(*, stdout: bool) -> None:
    """Write control characters visibly to standard error, and with `stdout` to a terminal there too."""
    if not isinstance(sys.stderr, VisibleStream):
        sys.stderr = cast("TextIO", VisibleStream(sys.stderr))
    if stdout and sys.stdout.isatty() and not isinstance(sys.stdout, VisibleStream):
        sys.stdout = cast("TextIO", VisibleStream(sys.stdout))
