"""Lines of what was looked at: what, whether it held, and what was seen."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field


class LeftOutError(Exception):
    """Something cannot be looked at on this machine."""


@dataclass
class Report:
    """Prints a line for each thing as it is known, and keeps what failed."""

    failed: list[str] = field(default_factory=list)
    verbose: bool = False

    def line(self, what: str, ok: bool | None, figure: str) -> None:
        """Print a line; `ok` is None for a figure that has no goal."""
        word = {True: "ok", False: "FAILED", None: "figure"}[ok]
        print(f"{word:<7}{what:<42}{figure}", flush=True)
        if ok is False:
            self.failed.append(what)

    def left_out(self, what: str, why: str) -> None:
        """Print that something was not looked at."""
        print(f"{'-':<7}{what:<42}left out: {why}", flush=True)

    def of(self, what: str, look, *given) -> None:
        """Look, and print what was seen; a fault of one look does not end the others."""
        began = time.monotonic()
        try:
            seen = look(*given)
        except LeftOutError as missing:
            self.left_out(what, str(missing))
        except Exception as error:
            if self.verbose:
                traceback.print_exc()
            self.line(what, False, f"{type(error).__name__}: {error}"[:2000])
        else:
            self.line(what, True, f"{seen} ({time.monotonic() - began:.1f} s)")
