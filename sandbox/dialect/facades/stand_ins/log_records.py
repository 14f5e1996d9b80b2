"""What a log entry is, and how it becomes text: the levels, `LogRecord` and `Formatter` of `logging`."""

# Python's own names and signatures.
# ruff: noqa: N802

from __future__ import annotations

import string
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ....guest import clock
from ... import green_threads
from ...formatting import format_string
from ...guards import guarded_getattr
from ...names import exact
from .time_ import localtime
from .traceback_ import format_exception

NOTSET: Final = 0
DEBUG: Final = 10
INFO: Final = 20
WARN: Final = 30
WARNING: Final = 30
ERROR: Final = 40
CRITICAL: Final = 50
FATAL: Final = 50
BASIC_FORMAT: Final = "%(levelname)s:%(name)s:%(message)s"

_level_names: dict[int, str] = {
    CRITICAL: "CRITICAL", ERROR: "ERROR", WARNING: "WARNING", INFO: "INFO", DEBUG: "DEBUG", NOTSET: "NOTSET",
}  # fmt: skip
_levels: dict[str, int] = {name: level for level, name in _level_names.items()} | {"WARN": WARN, "FATAL": FATAL}


def getLevelName(level: int | str) -> int | str:
    """Return the name of a level, or the level of a name."""
    if isinstance(level, str):
        return _levels.get(level, f"Level {level}")
    return _level_names.get(level, f"Level {level}")


def getLevelNamesMapping() -> dict[str, int]:
    """Return the levels by their names."""
    return dict(_levels)


def addLevelName(level: int, name: str) -> None:
    """Name a level."""
    _level_names[level] = name
    _levels[name] = level


def level_of(level: int | str) -> int:
    """Return a level given as a number or by its name. Raises ValueError."""
    if isinstance(level, int):
        return level
    if level not in _levels:
        raise ValueError(f"Unknown level: {level!r}")
    return _levels[level]


class LogRecord:
    """One event that was logged."""

    def __init__(self, name: str, level: int, msg: object, args: Any, exc_info: BaseException | None = None) -> None:
        self.name = name
        self.msg = msg
        self.args = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
        self.levelno = level
        self.levelname = str(getLevelName(level))
        self.exc_info = exc_info
        self.exc_text: str | None = None
        self.stack_info: str | None = None
        self.created = clock.time()
        self.msecs = int(self.created % 1 * 1000) + 0.0
        self.relativeCreated = (self.created - clock.started()) * 1000
        self.filename = self.pathname = "<code>"
        self.module = "__main__"
        self.funcName = "<module>"
        self.lineno = 0
        self.process = 1
        self.processName = "MainProcess"
        self.thread = green_threads.current().ident
        self.threadName = _thread_name()
        self.taskName: str | None = None
        self.message = ""
        self.asctime = ""

    def __repr__(self) -> str:
        return f'<LogRecord: {self.name}, {self.levelno}, "{self.msg}">'

    def set_place(self, filename: str, lineno: int, name: str) -> None:
        """Say which line of the code logged it."""
        self.pathname = filename
        self.filename = filename.rpartition("/")[2]
        self.lineno = lineno
        self.funcName = name

    def getMessage(self) -> str:
        """Return the message with its arguments filled in."""
        text = str(self.msg)
        return text % self.args if self.args else text


def _thread_name() -> str:
    """Return the name of the running thread, as the code's own `threading` has it."""
    from ... import guest_modules

    if green_threads.current() is green_threads.main() or not guest_modules.is_loaded("threading"):
        return "MainThread"
    name = getattr(guest_modules.call("threading", "current_thread"), "name", None)
    return exact(name) if isinstance(name, str) else "MainThread"


def makeLogRecord(attributes: Mapping[str, object]) -> LogRecord:
    """Return a record with the given attributes."""
    record = LogRecord("", NOTSET, "", ())
    for name, value in attributes.items():
        set_extra(record, name, value)
    return record


def set_extra(record: LogRecord, name: str, value: object) -> None:
    """Set an attribute of a record that the code itself named."""
    if type(name) is not str or name.startswith("_"):
        raise KeyError(f"{name!r} cannot be the name of a record's attribute")
    setattr(record, name, value)


_attributes = LogRecord.__dict__["__dict__"].__get__


def attributes_of(record: LogRecord) -> dict[str, object]:
    """Return what a record holds. Raises TypeError for anything else: the dictionary of a class is not to be seen."""
    if LogRecord not in type(record).__mro__:
        raise TypeError(f"a LogRecord was expected, got {type(record).__name__!r}")
    return dict(_attributes(record))


class Formatter:
    """Turns a record into text, by a template in the style `%`, `{` or `$`."""

    default_time_format = "%Y-%m-%d %H:%M:%S"
    default_msec_format: str | None = "%s,%03d"
    converter: Callable[[float | None], time.struct_time] = staticmethod(localtime)

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: str = "%",
        validate: bool = True,  # noqa: ARG002 - Python's own signature
        *,
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        if style not in _STYLES:
            raise ValueError(f"Style must be one of: {','.join(_STYLES)}")
        plain, self._fill = _STYLES[style]
        self._template = fmt or plain
        self._defaults = dict(defaults or {})
        self.datefmt = datefmt

    def format(self, record: LogRecord) -> str:
        """Return the whole text of a record, its exception's included."""
        record.message = record.getMessage()
        if "asctime" in self._template:
            record.asctime = self.formatTime(record, self.datefmt)
        text = self.formatMessage(record)
        if record.exc_info is not None:
            record.exc_text = record.exc_text or self.formatException(record.exc_info)
            text = f"{text.rstrip(chr(10))}\n{record.exc_text}"
        return text

    def formatMessage(self, record: LogRecord) -> str:
        """Return the template filled in."""
        return self._fill(self._template, self._defaults | attributes_of(record))

    def formatTime(self, record: LogRecord, datefmt: str | None = None) -> str:
        """Return the time of a record."""
        moment = self.converter(record.created)
        if datefmt:
            return time.strftime(datefmt, moment)
        text = time.strftime(self.default_time_format, moment)
        return self.default_msec_format % (text, record.msecs) if self.default_msec_format else text

    def formatException(self, exc_info: Any) -> str:
        """Return the traceback of an exception, the code's own lines only."""
        error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
        return "".join(format_exception(error)).rstrip("\n")


def _fill_percent(template: str, values: Mapping[str, object]) -> str:
    return template % values


def _fill_braces(template: str, values: Mapping[str, object]) -> str:
    return format_string(template, (), values, guarded_getattr)


def _fill_dollars(template: str, values: Mapping[str, object]) -> str:
    return string.Template(template).substitute(values)


_STYLES: Final[dict[str, tuple[str, Callable[[str, Mapping[str, object]], str]]]] = {
    "%": (BASIC_FORMAT, _fill_percent),
    "{": ("{levelname}:{name}:{message}", _fill_braces),
    "$": ("${levelname}:${name}:${message}", _fill_dollars),
}
