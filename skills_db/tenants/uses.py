"""What was used, by whom and when: without the database, so that it is at hand at once where runs end."""

from __future__ import annotations

from typing import NamedTuple


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
