"""`datetime` by the clock of the run: what its classes give for now and today.

A security boundary besides: the classes take bytes for a state that they pickled, and look at its month alone. In the
year 0 C takes the name of the weekday from before its table (CPython 3.11 to 3.13). No other method reads memory by it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from ....guest import clock
from ....guest.type_flags import replace_method

_Day = TypeVar("_Day", bound=dt.date)
_Moment = TypeVar("_Moment", bound=dt.datetime)

_year_of: Final[Callable[[dt.date], int]] = dt.date.__dict__["year"].__get__
_of: Final[Callable[..., Callable[..., Any]]] = dt.datetime.__dict__["fromtimestamp"].__get__
_NS_OF_MICROSECOND: Final = 1000


def read_clock() -> None:
    """Let the classes ask the clock of the run; C would ask the machine."""
    for cls, method in ((dt.datetime, now), (dt.datetime, utcnow), (dt.date, today)):
        method.__qualname__ = f"{cls.__name__}.{method.__name__}"
        replace_method(cls, method.__name__, classmethod(method))  # type: ignore[arg-type]  # a descriptor of one
    for cls in (dt.date, dt.datetime):
        replace_method(cls, "ctime", _within_the_calendar(cls.__dict__["ctime"]))


def _within_the_calendar(raw: Callable[[Any], str]) -> Callable[..., str]:
    @wraps(raw, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def ctime(self: dt.date, /) -> str:
        if _year_of(self) < dt.MINYEAR:
            raise ValueError("year 0 is out of range. Make the date of a year, a month and a day, not of bytes.")
        return raw(self)

    del ctime.__wrapped__  # which `wraps` sets
    return ctime


def _seconds() -> float:
    return clock.time_ns() // _NS_OF_MICROSECOND / 1e6


def now(cls: type[_Moment], tz: dt.tzinfo | None = None) -> _Moment:
    """Return the current date and time, of the given zone or the local one."""
    if tz is not None and not isinstance(tz, dt.tzinfo):
        raise TypeError(f"tzinfo argument must be None or of a tzinfo subclass, not type {type(tz).__name__!r}")
    moment: _Moment = _of(None, cls)(_seconds(), tz)
    return moment


def utcnow(cls: type[_Moment]) -> _Moment:
    """Return the current date and time of UTC, without a zone."""
    moment = dt.datetime.fromtimestamp(_seconds(), dt.UTC)
    return cls(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond)


def today(cls: type[_Day]) -> _Day:
    """Return the current local date, or date and time."""
    return cls.fromtimestamp(clock.time())
