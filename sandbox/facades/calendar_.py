"""`calendar` printing to the guest's output."""

from __future__ import annotations

import calendar
from typing import Any

from ..guest import GUEST

__all__ = ["TextCalendar", "prcal", "prmonth"]


class TextCalendar(calendar.TextCalendar):
    """A calendar as plain text."""

    def prweek(self, theweek: Any, width: int) -> None:
        """Print one week."""
        GUEST.write(self.formatweek(theweek, width))

    def prmonth(self, theyear: int, themonth: int, w: int = 0, l: int = 0) -> None:  # noqa: E741 - Python's own names
        """Print a month."""
        GUEST.write(self.formatmonth(theyear, themonth, w, l))

    def pryear(self, theyear: int, w: int = 0, l: int = 0, c: int = 6, m: int = 3) -> None:  # noqa: E741 - as above
        """Print a year."""
        GUEST.write(self.formatyear(theyear, w, l, c, m))


_calendar = TextCalendar()
prmonth = _calendar.prmonth
prcal = _calendar.pryear
