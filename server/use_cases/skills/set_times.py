"""Set times as people write them, such as `weekdays 07:00 Europe/Berlin`, or as five fields of cron and a zone.

cronsim computes them, as Debian's cron does: a time that a change of clocks skips comes at once after it, and one that
comes twice comes once. It is kept, has no dependencies, and takes 0.1 MB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from ...base.errors import RequestRefused

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_FIELDS = {
    "day": "*",
    "daily": "*",
    "days": "*",
    "weekday": "1-5",
    "weekdays": "1-5",
    "weekend": "0,6",
    "weekends": "0,6",
}
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_PERIOD = re.compile(r"(?:(\d+) )?(minute|hour)s?|hourly")
_MONTHLY = re.compile(r"month(?:ly)?(?: on)?(?: the)? (\d{1,2})(?:st|nd|rd|th)? ?(.*)")
_CRON_FIELDS = 5
_CHARS_MAX = 200
_TIMES_MAX = 24
_CRON = re.compile(r"[\d*]\S*")
_FORMS = (
    '"weekdays 07:00 Europe/Berlin", "monday, thursday 9:30 UTC", "monthly 1 06:00", "15 minutes", or five fields of '
    'cron such as "0 7 * * 1-5 Europe/Berlin"'
)


@dataclass(frozen=True, slots=True)
class SetTimes:
    """Times at which something is to run: lines of cron, in a zone of the IANA database."""

    every: str
    crons: tuple[str, ...]
    zone: str

    @classmethod
    def of(cls, text: str) -> SetTimes:
        """Read what a person wrote; without a zone it is the machine's. Raises `RequestRefused`.

        A time that does not come within 50 years (cronsim) is none. To find that out takes 15 ms of computing: call
        this, and `after`, from a thread.
        """
        _require_short(text)
        words = text.replace(",", ", ").split()
        if words[:1] == ["every"]:
            del words[0]
        is_cron = len(words) >= _CRON_FIELDS and bool(_CRON.fullmatch(words[0]))
        if is_cron:
            words = text.removeprefix("every ").split()
        named = words[_CRON_FIELDS:] if is_cron else [each for each in words[-1:] if _looks_like_zone(each)]
        fields = words[:_CRON_FIELDS] if is_cron else words[: len(words) - len(named)]
        if len(named) > 1:
            raise _unread(text)
        zone = named[0] if named else machine_zone()
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            raise RequestRefused(
                f"There is no time zone {zone!r:.80} on this machine. Name one of the IANA database, such as "
                "Europe/Berlin or UTC."
            ) from None
        crons = (" ".join(fields),) if is_cron else tuple(_crons_of(" ".join(fields).lower().replace(" ,", ","), text))
        times = cls(f"{' '.join(fields)} {zone}".replace(" ,", ","), crons, zone)
        _require_short(times.every)
        times.after(0.0)
        return times

    def after(self, moment: float) -> float:
        """Return the first of the times after a moment, in seconds since 1970. Raises `RequestRefused`."""
        from cronsim import CronSim, CronSimError

        begin = datetime.fromtimestamp(moment, ZoneInfo(self.zone))
        try:
            return min([next(CronSim(cron, begin)).timestamp() for cron in self.crons])
        except (CronSimError, StopIteration, OverflowError) as error:
            why = str(error) or "it never comes"
            raise RequestRefused(f"{self.every!r:.80} is no set time: {why}. Write {_FORMS}.") from None


def _require_short(text: str) -> None:
    if len(text) > _CHARS_MAX:
        raise RequestRefused(f"The set time is longer than {_CHARS_MAX} characters: {text!r:.80}. Write {_FORMS}.")


def machine_zone() -> str:
    """Return the name of the zone of this machine, UTC where it has none that can be named (tzset(3))."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        link = Path("/etc/localtime")
        named = os.path.realpath(link).partition("zoneinfo/")[2] if link.is_symlink() else ""
    return named if named and _is_zone(named) else "UTC"


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _looks_like_zone(word: str) -> bool:
    return "/" in word or (word.isupper() and not _TIME.fullmatch(word))


def _crons_of(words: str, text: str) -> Iterator[str]:
    """Yield the lines of cron that words stand for. Raises `RequestRefused`."""
    if period := _PERIOD.fullmatch(words):
        count, of_day = int(period[1] or 1), 60 if period[2] == "minute" else 24
        if not 0 < count < of_day or of_day % count:
            raise RequestRefused(
                f"{text!r:.80} does not come at the same times of each {'hour' if of_day > 24 else 'day'}. "  # noqa: PLR2004 - hours
                f"Give a number that divides {of_day}, or five fields of cron."
            )
        yield f"*/{count} * * * *" if period[2] == "minute" else f"0 */{count} * * *"
        return
    monthly = _MONTHLY.fullmatch(words)
    rest = monthly[2] if monthly else words
    days: list[str] = []
    times: list[re.Match[str]] = []
    for word in re.split(r"[ ,]+", rest):
        if time := _TIME.fullmatch(word):
            times.append(time)
        elif (day := _day_of(word)) is not None and not times and not monthly:
            days.append(day)
        elif word not in {"", "at", "and", "on"}:
            raise _unread(text)
    if not times or not (days or monthly):
        raise _unread(text)
    if len(times) > _TIMES_MAX:
        raise RequestRefused(f"{text!r:.80} has {len(times)} times. Give at most {_TIMES_MAX}, or fields of cron.")
    day = monthly[1] if monthly else "*"
    for time in times:
        yield f"{int(time[2])} {int(time[1])} {day} * {','.join(days) or '*'}"


def _day_of(word: str) -> str | None:
    """Return the field of cron for a day of the week, by its name, the beginning of it, or its plural."""
    if word in _FIELDS:
        return _FIELDS[word]
    single = word.removesuffix("s") if len(word) > 4 else word  # noqa: PLR2004 - `tues` is not the plural of `tue`
    found = [number for number, name in enumerate(_DAYS) if len(single) > 2 and name.startswith(single)]  # noqa: PLR2004
    return str(found[0]) if found else None


def _unread(text: str) -> RequestRefused:
    return RequestRefused(f"{text!r:.80} is no set time. Write {_FORMS}.")
