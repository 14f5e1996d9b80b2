"""Warnings as a model reads them: each once, in one line, with the line of the code's own that led to it."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Final

from ..guest.guest import GUEST

SHOWN_MAX: Final = 20
"""Different warnings of one run that are shown; of the others it is said how many there are."""
_TEXT_CHARS_MAX: Final = 500
_FRAMES_MAX: Final = 200


class UniqueWarnings:
    """The warnings of one run: each category with the same text is written to standard error once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}

    def take_over(self) -> None:
        """Show warnings here, unless the code has a `showwarning` of its own."""
        warnings.showwarning = self._show  # type: ignore[assignment]  # called with what `warnings` calls it with

    def begin(self) -> None:
        """Begin anew."""
        self._seen.clear()
        # Any change of the filters has Python forget what it has warned of, in an earlier run of a session too.
        warnings.simplefilter("default", append=True)

    def end(self) -> None:
        """Write to standard error how many different warnings were left out."""
        left_out = len(self._seen) - SHOWN_MAX
        if left_out > 0:
            GUEST.write_error(f"… {left_out} more different warnings\n")

    def _show(
        self, message: Any, category: type[Warning], _filename: str, _lineno: int, _file: Any = None, _line: Any = None
    ) -> None:
        text = " ".join(str(message).split())
        warning = category.__name__, text if len(text) <= _TEXT_CHARS_MAX else f"{text[:_TEXT_CHARS_MAX]} …"
        seen = self._seen[warning] = self._seen.get(warning, 0) + 1
        if seen > 1 or len(self._seen) > SHOWN_MAX:
            return
        line = _own_line()
        GUEST.write_error(f"{warning[0]}{'' if line is None else f' (line {line})'}: {warning[1]}\n")


def _own_line() -> int | None:
    """Return the innermost line of the running program."""
    frame = sys._getframe(2)
    for _ in range(_FRAMES_MAX):
        if frame is None:
            return None
        if frame.f_code.co_filename in GUEST.sources:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]  # None ends it
    return None
