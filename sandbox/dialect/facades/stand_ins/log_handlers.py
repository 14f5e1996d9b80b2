"""What becomes of a log entry: the filters that let it pass and the handlers that write it, of `logging`."""

# Python's own names and signatures.
# ruff: noqa: N802, A002

from __future__ import annotations

from typing import Any

from .. import streams
from ..private import open_file
from .log_records import NOTSET, Formatter, LogRecord, level_of

_PLAIN = Formatter("%(message)s")


class Filter:
    """Lets the records of one logger and its children pass."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def filter(self, record: LogRecord) -> bool | LogRecord:
        """Return whether a record passes."""
        return not self.name or record.name == self.name or record.name.startswith(f"{self.name}.")


class Filterer:
    """What has filters: loggers and handlers."""

    def __init__(self) -> None:
        self.filters: list[Any] = []

    def addFilter(self, filter: Any) -> None:
        """Add a filter: an object with `filter`, or a function of a record."""
        if filter not in self.filters:
            self.filters.append(filter)

    def removeFilter(self, filter: Any) -> None:
        """Remove a filter."""
        if filter in self.filters:
            self.filters.remove(filter)

    def filter(self, record: LogRecord) -> bool | LogRecord:
        """Return whether all filters let a record pass."""
        for item in self.filters:
            passed = item.filter(record) if hasattr(item, "filter") else item(record)
            if not passed:
                return False
            if isinstance(passed, LogRecord):
                record = passed
        return record


class Handler(Filterer):
    """Takes records; subclasses say in `emit` what becomes of one."""

    def __init__(self, level: int | str = NOTSET) -> None:
        super().__init__()
        self.level = level_of(level)
        self.formatter: Formatter | None = None
        self.name: str | None = None

    def setLevel(self, level: int | str) -> None:
        """Take only records of this level and above."""
        self.level = level_of(level)

    def setFormatter(self, fmt: Formatter | None) -> None:
        """Set what turns records into text."""
        self.formatter = fmt

    def format(self, record: LogRecord) -> str:
        """Return the text of a record."""
        return (self.formatter or _PLAIN).format(record)

    def handle(self, record: LogRecord) -> bool | LogRecord:
        """Emit a record, if the filters let it pass."""
        passed = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, LogRecord) else record)
        return passed

    def emit(self, record: LogRecord) -> None:
        """Do with a record what the handler is for."""
        raise NotImplementedError("emit must be implemented by Handler subclasses")

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class StreamHandler(Handler):
    """Writes records to a stream, by default to standard error."""

    terminator = "\n"

    def __init__(self, stream: Any = None) -> None:
        super().__init__()
        self.stream: Any = streams.current("stderr") if stream is None else stream

    def emit(self, record: LogRecord) -> None:
        """Write a record."""
        self.stream.write(self.format(record) + self.terminator)

    def setStream(self, stream: Any) -> Any:
        """Set the stream and return the one before."""
        before, self.stream = self.stream, stream
        return before


class NullHandler(Handler):
    """Does nothing with records."""

    def handle(self, record: LogRecord) -> bool:  # noqa: ARG002 - Python's own signature
        """Drop a record."""
        return True

    def emit(self, record: LogRecord) -> None:
        """Drop a record."""


class FileHandler(StreamHandler):
    """Writes records to a file of the workspace."""

    def __init__(
        self,
        filename: Any,
        mode: str = "a",
        encoding: str | None = None,
        delay: bool = False,
        errors: str | None = None,
    ) -> None:
        super().__init__()
        self.baseFilename = filename
        self.mode = mode
        self.encoding = encoding
        self.errors = errors
        self.stream = None if delay else self.open_stream()

    def open_stream(self) -> Any:
        """Open the file."""
        return open_file(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors)

    def emit(self, record: LogRecord) -> None:
        """Write a record, and have it in the file at once."""
        if self.stream is None:
            self.stream = self.open_stream()
        super().emit(record)
        self.stream.flush()

    def flush(self) -> None:
        """Write what is held back."""
        if self.stream is not None:
            self.stream.flush()

    def close(self) -> None:
        """Close the file."""
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()
