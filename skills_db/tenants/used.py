"""What principals used, by day: values alone, since they are counted where no database may be waited for.

The tables of it, and with them SQLAlchemy, are imported by who reads or writes them.
"""

from __future__ import annotations

from typing import NamedTuple

DAYS_KEPT = 35
"""How many days are kept, today included."""


class DayOf(NamedTuple):
    """Whose use it is, of which day (`YYYY-MM-DD`)."""

    tenant: str
    principal: str
    day: str


class Use(NamedTuple):
    """What was used: CPU seconds, runs that ended, and characters of what the model wrote and read.

    `chars_called` are those of the arguments and the answers of upstream tools that code called: without sealab the
    model would have written and read them. `chars_defined` are those of the definitions of these tools' servers, which
    its client would have loaded.
    """

    seconds: float = 0.0
    runs: int = 0
    chars_written: int = 0
    chars_read: int = 0
    chars_called: int = 0
    chars_defined: int = 0

    def plus(self, other: Use) -> Use:
        """Return the sums."""
        return Use(self.seconds + other.seconds, *(one + more for one, more in zip(self[1:], other[1:], strict=True)))
