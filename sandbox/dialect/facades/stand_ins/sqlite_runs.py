"""What SQLite takes from the machine, taken from the run: the time of its date functions, and its random numbers."""

from __future__ import annotations

import ctypes
import datetime as dt
import sqlite3
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ....guest import clock, randomness

_NOW: Final = "now"
_NS_OF_MILLISECOND: Final = 1_000_000
_PRNG_SEED: Final = 28
"""`SQLITE_TESTCTRL_PRNG_SEED` of sqlite3.h, since SQLite 3.28."""
_PARTS: Final = {"current_timestamp": slice(19), "current_date": slice(10), "current_time": slice(11, 19)}
_TAKING_A_TIME: Final = ("date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff")
_FORMAT_FIRST: Final = "strftime"


class Moment:
    """The current time, which is the same throughout one use of a database, as within one statement of SQLite."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text: str | None = None

    def forget(self) -> None:
        """Begin another use."""
        self._text = None

    def text(self) -> str:
        """Return it as SQLite writes a time, to the millisecond."""
        if self._text is None:
            seconds = clock.time_ns() // _NS_OF_MILLISECOND / 1000
            self._text = dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        return self._text


class _Plain:
    """A database of the worker's own, which computes what a time becomes."""

    __slots__ = ("_connection", "_known")

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._known: frozenset[str] | None = None

    def call(self, name: str, arguments: tuple[object, ...]) -> object:
        places = ", ".join("?" * len(arguments))
        return self._opened().execute(f"SELECT {name}({places})", arguments).fetchone()[0]

    def known(self) -> frozenset[str]:
        """Return the names of the functions that this version of SQLite has."""
        if self._known is None:
            self._known = frozenset(name for name, *_rest in self._opened().execute("PRAGMA function_list"))
        return self._known

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:")
        return self._connection


_plain: Final = _Plain()


def keep_time(connection: sqlite3.Connection, moment: Moment) -> None:
    """Let the date functions of a connection take `moment` for now."""
    for name, part in _PARTS.items():
        connection.create_function(name, 0, partial(_now, moment, part))
    for name in _plain.known().intersection(_TAKING_A_TIME):
        connection.create_function(name, -1, partial(_of_time, moment, name), deterministic=True)


def _now(moment: Moment, part: slice) -> str:
    return moment.text()[part]


def _of_time(moment: Moment, name: str, *arguments: Any) -> Any:
    if len(arguments) == (1 if name == _FORMAT_FIRST else 0):
        arguments = (*arguments, _NOW)
    return _plain.call(name, tuple(moment.text() if _is_now(each) else each for each in arguments))


def _is_now(value: object) -> bool:
    return type(value) is str and value.lower() == _NOW


class _Seeding:
    """Seeds SQLite once in a process. Where its library does not show how, its random numbers are the machine's."""

    __slots__ = ("_control", "_is_done", "_reset")

    def __init__(self) -> None:
        self._is_done = False
        self._control: Any = None
        self._reset: Any = None

    def find(self) -> None:
        with suppress(OSError, AttributeError, ImportError):
            import _sqlite3

            library = ctypes.CDLL(_sqlite3.__file__)  # and what it is linked with
            control, reset = library.sqlite3_test_control, library.sqlite3_randomness
            control.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
            reset.argtypes = [ctypes.c_int, ctypes.c_void_p]
            self._control, self._reset = control, reset

    def seed(self) -> None:
        if self._is_done or self._control is None:
            return
        self._is_done = True
        number = int.from_bytes(randomness.urandom(4), "big") & 0x7FFFFFFF | 1
        self._control(_PRNG_SEED, number, None)
        self._reset(0, None)


_seeding: Final = _Seeding()
_seeding.find()
seed: Final = _seeding.seed
