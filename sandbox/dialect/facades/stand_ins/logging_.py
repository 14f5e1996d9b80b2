"""`logging` to the guest's output: loggers, levels, handlers and formatters as everyday code uses them.

Nothing here is the real module's: its records carry paths and threads, its handlers open files, and its formatters walk
attributes. Records go to the root's handlers as there, and by default warnings and worse are shown.
"""

# Python's own names and signatures.
# ruff: noqa: N802, A002

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ....guest.guest import GUEST
from ..call_records import lines_of_callers
from .log_handlers import FileHandler, Filter, Filterer, Handler, NullHandler, StreamHandler
from .log_records import (
    BASIC_FORMAT,
    CRITICAL,
    DEBUG,
    ERROR,
    FATAL,
    INFO,
    NOTSET,
    WARN,
    WARNING,
    Formatter,
    LogRecord,
    addLevelName,
    getLevelName,
    getLevelNamesMapping,
    level_of,
    makeLogRecord,
    set_extra,
)

__all__ = [
    "BASIC_FORMAT", "CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "WARN", "WARNING", "FileHandler", "Filter",
    "Formatter", "Handler", "LogRecord", "Logger", "LoggerAdapter", "NullHandler", "StreamHandler", "addLevelName",
    "basicConfig", "captureWarnings", "critical", "debug", "disable", "error", "exception", "fatal", "getLevelName",
    "getLevelNamesMapping", "getLogger", "info", "log", "makeLogRecord", "shutdown", "warn", "warning",
]  # fmt: skip


class _Levels:
    """The methods that log at one level each, by the `log` of the class."""

    log: Callable[..., None]

    def debug(self, msg: object, *args: object, **options: Any) -> None:
        """Log at DEBUG."""
        self.log(DEBUG, msg, *args, **options)

    def info(self, msg: object, *args: object, **options: Any) -> None:
        """Log at INFO."""
        self.log(INFO, msg, *args, **options)

    def warning(self, msg: object, *args: object, **options: Any) -> None:
        """Log at WARNING."""
        self.log(WARNING, msg, *args, **options)

    warn = warning

    def error(self, msg: object, *args: object, **options: Any) -> None:
        """Log at ERROR."""
        self.log(ERROR, msg, *args, **options)

    def exception(self, msg: object, *args: object, exc_info: object = True, **options: Any) -> None:
        """Log at ERROR, with the exception being handled."""
        self.log(ERROR, msg, *args, exc_info=exc_info, **options)

    def critical(self, msg: object, *args: object, **options: Any) -> None:
        """Log at CRITICAL."""
        self.log(CRITICAL, msg, *args, **options)


class Logger(_Levels, Filterer):
    """Takes events for one part of the code and passes them to its handlers and its parents'."""

    def __init__(self, name: str, level: int | str = NOTSET) -> None:
        super().__init__()
        self.name = name
        self.level = level_of(level)
        self.parent: Logger | None = None
        self.propagate = True
        self.handlers: list[Handler] = []
        self.disabled = False

    def __repr__(self) -> str:
        return f"<Logger {self.name} ({getLevelName(self.getEffectiveLevel())})>"

    def setLevel(self, level: int | str) -> None:
        """Take only events of this level and above."""
        self.level = level_of(level)

    def getEffectiveLevel(self) -> int:
        """Return the level of this logger, or of the nearest parent that has one."""
        logger: Logger | None = self
        while logger is not None:
            if logger.level:
                return logger.level
            logger = logger.parent
        return NOTSET

    def isEnabledFor(self, level: int) -> bool:
        """Return whether an event of `level` would be taken."""
        return not self.disabled and level > _disabled[0] and level >= self.getEffectiveLevel()

    def getChild(self, suffix: str) -> Logger:
        """Return the logger `name.suffix`."""
        return getLogger(suffix if self is _root else f"{self.name}.{suffix}")

    def addHandler(self, hdlr: Handler) -> None:
        """Add a handler."""
        if hdlr not in self.handlers:
            self.handlers.append(hdlr)

    def removeHandler(self, hdlr: Handler) -> None:
        """Remove a handler."""
        if hdlr in self.handlers:
            self.handlers.remove(hdlr)

    def hasHandlers(self) -> bool:
        """Return whether any handler would see an event of this logger."""
        return any(True for _handler in self._all_handlers())

    fatal = _Levels.critical

    def log(
        self,
        level: int,
        msg: object,
        *args: object,
        exc_info: object = None,
        extra: Mapping[str, object] | None = None,
        stack_info: bool = False,  # noqa: ARG002 - Python's own signature
        stacklevel: int = 1,
    ) -> None:
        """Log at any level."""
        if not isinstance(level, int):
            raise TypeError("level must be an integer")
        if self.isEnabledFor(level):
            record = LogRecord(self.name, level, msg, args, _exception(exc_info))
            callers = lines_of_callers(max(1, stacklevel) if type(stacklevel) is int else 1)
            if callers:
                record.set_place(*callers[-1])
            for name, value in (extra or {}).items():
                set_extra(record, name, value)
            self.handle(record)

    def handle(self, record: LogRecord) -> None:
        """Pass a record to all handlers, if the filters let it pass."""
        passed = self.filter(record)
        if self.disabled or not passed:
            return
        record = passed if isinstance(passed, LogRecord) else record
        handled = False
        for handler in self._all_handlers():
            handled = True
            if record.levelno >= handler.level:
                handler.handle(record)
        if not handled and record.levelno >= WARNING:
            GUEST.write_error(f"{record.getMessage()}\n")

    def _all_handlers(self) -> list[Handler]:
        found: list[Handler] = []
        logger: Logger | None = self
        while logger is not None:
            found += logger.handlers
            logger = logger.parent if logger.propagate else None
        return found


def _exception(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) > 1 and isinstance(exc_info[1], BaseException) else None
    return sys.exc_info()[1] if exc_info else None


class LoggerAdapter(_Levels):
    """A logger that adds something of its own to every event."""

    def __init__(self, logger: Any, extra: Mapping[str, object] | None = None, merge_extra: bool = False) -> None:
        self.logger = logger
        self.extra = extra
        self.merge_extra = merge_extra

    def process(self, msg: object, kwargs: dict[str, Any]) -> tuple[object, dict[str, Any]]:
        """Return what is logged instead of `msg`, and with which options."""
        own = dict(self.extra or {})
        kwargs["extra"] = own | dict(kwargs.get("extra") or {}) if self.merge_extra else own
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Log at any level."""
        msg, options = self.process(msg, options)
        self.logger.log(level, msg, *args, **options)

    def setLevel(self, level: int | str) -> None:
        """Set the logger's level."""
        self.logger.setLevel(level)


_root = Logger("root", WARNING)
_loggers: dict[str, Logger] = {}
_disabled = [NOTSET]


def getLogger(name: str | None = None) -> Logger:
    """Return the logger of that name, the same each time; without a name, the root."""
    if not name or name == "root":
        return _root
    if not isinstance(name, str):
        raise TypeError("A logger name must be a string")
    if name not in _loggers:
        _loggers[name] = Logger(name)
        for logger in _loggers.values():
            logger.parent = _parent(logger.name)
    return _loggers[name]


def _parent(name: str) -> Logger:
    while "." in name:
        name = name.rpartition(".")[0]
        if name in _loggers:
            return _loggers[name]
    return _root


def basicConfig(
    *,
    filename: object = None,
    filemode: str = "a",
    format: str | None = None,
    datefmt: str | None = None,
    style: str = "%",
    level: int | str | None = None,
    stream: Any = None,
    handlers: Any = None,
    force: bool = False,
    encoding: str | None = None,
    errors: str | None = "backslashreplace",
) -> None:
    """Give the root a handler that writes to the output, or to the file of a name, unless it has one."""
    if filename is not None and stream is not None:
        raise ValueError("'stream' and 'filename' should not be specified together")
    if force:
        _root.handlers.clear()
    if not _root.handlers:
        formatter = Formatter(format, datefmt, style)
        if handlers is None and filename is not None:
            handlers = [FileHandler(filename, filemode, encoding=encoding, errors=errors)]
        for handler in [StreamHandler(stream)] if handlers is None else handlers:
            if handler.formatter is None:
                handler.setFormatter(formatter)
            _root.addHandler(handler)
    if level is not None:
        _root.setLevel(level)


def _rooted(method: Callable[..., None]) -> Callable[..., None]:
    def call(*args: Any, **options: Any) -> None:
        if not _root.handlers:
            basicConfig()
        method(*args, **options)

    call.__name__ = call.__qualname__ = method.__name__
    call.__doc__ = method.__doc__
    return call


debug = _rooted(_root.debug)
info = _rooted(_root.info)
warning = warn = _rooted(_root.warning)
error = _rooted(_root.error)
exception = _rooted(_root.exception)
critical = fatal = _rooted(_root.critical)
log = _rooted(_root.log)


def disable(level: int = CRITICAL) -> None:
    """Drop all events of this level and below."""
    _disabled[0] = level_of(level)


def captureWarnings(capture: bool) -> None:
    """Do nothing: warnings and logs go to the same output."""


def shutdown(*_handlers: object) -> None:
    """Do nothing: nothing is held back."""
