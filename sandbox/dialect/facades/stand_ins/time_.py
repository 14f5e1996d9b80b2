"""`time`: clocks, sleeping and formatting. All clocks, those of `datetime` too, are that of the run.

A security boundary besides: the classes of `datetime` take bytes for a state that they pickled, and look at its month
alone. In the year 0 C takes the name of the weekday from before its table (CPython 3.11 to 3.13). No other method reads
memory by it.
"""

from __future__ import annotations

import _strptime  # type: ignore[import-not-found]  # the part of `time` that is written in Python
import datetime as dt
import errno
import os
import time as real
from collections.abc import Callable, Mapping
from functools import wraps
from time import struct_time
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ....guest import clock
from ....guest.type_flags import replace_method
from ... import green_threads

__all__ = [
    "asctime", "clock_gettime", "clock_gettime_ns", "ctime", "gmtime", "localtime", "monotonic", "monotonic_ns",
    "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "sleep", "strftime", "strptime",
    "thread_time", "thread_time_ns", "time", "time_ns",
]  # fmt: skip

T = TypeVar("T")
_parse = _strptime._strptime_time
_OF_PROCESSOR: Final = frozenset({"CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID"})
_OF_DAY: Final = frozenset({"CLOCK_REALTIME", "CLOCK_TAI"})


def _reading(name: str, clock_of_run: Callable[[], T]) -> Callable[[], T]:
    def read() -> T:
        return clock_of_run()

    read.__name__ = read.__qualname__ = name
    read.__doc__ = getattr(real, name, clock_of_run).__doc__  # WebAssembly has no clock of a thread
    return read


time = _reading("time", clock.time)
time_ns = _reading("time_ns", clock.time_ns)
monotonic = _reading("monotonic", clock.monotonic)
monotonic_ns = _reading("monotonic_ns", clock.monotonic_ns)
perf_counter = _reading("perf_counter", clock.monotonic)
perf_counter_ns = _reading("perf_counter_ns", clock.monotonic_ns)
process_time = _reading("process_time", clock.process_time)
process_time_ns = _reading("process_time_ns", clock.process_time_ns)
# All threads take turns on one.
thread_time = _reading("thread_time", clock.process_time)
thread_time_ns = _reading("thread_time_ns", clock.process_time_ns)


def _clocks() -> Mapping[int, Callable[[], int]]:
    clocks: dict[int, Callable[[], int]] = {}
    for name in filter(lambda name: name.startswith("CLOCK_"), vars(real)):
        read = clock.time_ns if name in _OF_DAY else clock.monotonic_ns
        clocks[getattr(real, name)] = clock.process_time_ns if name in _OF_PROCESSOR else read
    return MappingProxyType(clocks)


_CLOCKS: Final = _clocks()


def clock_gettime_ns(clk_id: int, /) -> int:
    """Return what one of the clocks `CLOCK_…` shows, in nanoseconds. Raises OSError for any other."""
    if type(clk_id) is not int:
        raise TypeError(f"an integer is required (got type {type(clk_id).__name__})")
    read = _CLOCKS.get(clk_id)
    if read is None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return read()


def clock_gettime(clk_id: int, /) -> float:
    """Return what one of the clocks `CLOCK_…` shows, in seconds. Raises OSError for any other."""
    return clock_gettime_ns(clk_id) / 1e9


def localtime(seconds: float | None = None, /) -> struct_time:
    """Return a time as local time; now by default."""
    return real.localtime(clock.time() if seconds is None else seconds)


def gmtime(seconds: float | None = None, /) -> struct_time:
    """Return a time as UTC; now by default."""
    return real.gmtime(clock.time() if seconds is None else seconds)


def ctime(seconds: float | None = None, /) -> str:
    """Return a time as text, such as `Wed Jun  9 04:26:40 1993`; now by default."""
    return real.ctime(clock.time() if seconds is None else seconds)


def asctime(*moment: struct_time) -> str:
    """Return a time as text, as `ctime` does."""
    return real.asctime(*(moment or (localtime(),)))


def strftime(format: str, /, *moment: struct_time) -> str:  # noqa: A002 - Python's own name
    """Format a time; now by default."""
    return real.strftime(format, *(moment or (localtime(),)))


def strptime(string: str, format: str = "%a %b %d %H:%M:%S %Y", /) -> struct_time:  # noqa: A002 - Python's own name
    """Parse a time. The real function imports its parser when it is called, in the name of the calling code."""
    parsed: struct_time = _parse(string, format)
    return parsed


def sleep(seconds: float, /) -> None:
    """Wait for so many seconds, in which other threads run. Raises as Python's own does."""
    if green_threads.are_there_others() and type(seconds) in {int, float} and seconds >= 0:
        green_threads.sleep(seconds)
    else:
        clock.sleep(seconds)


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
