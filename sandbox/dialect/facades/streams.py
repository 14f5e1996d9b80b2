"""The guest's standard streams: what is written goes to its output or its standard error; nothing is there to read.

`sys.stdout` and the others may be exchanged for objects of the code's own, by assignment or by `contextlib`. `print`
and whatever else writes to a standard stream then write there; the streams themselves keep writing where they did.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NoReturn

from ...guest.guest import GUEST


class GuestStream:
    """A text stream that writes to the guest's output or to its standard error, whatever stands in `sys` meanwhile."""

    __slots__ = ("_name", "_write")

    _name: str
    _write: Callable[[str], None]
    encoding = "utf-8"
    errors = "strict"
    newlines = None
    closed = False
    mode = "w"

    def __init__(self, name: str, write: Callable[[str], None]) -> None:
        _set_name(self, name)
        _set_write(self, write)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: the output is read-only here")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle '_io.TextIOWrapper' object")

    def __repr__(self) -> str:
        return f"<{self._name}>"

    @property
    def name(self) -> str:
        """The stream's name."""
        return f"<{self._name}>"

    @property
    def buffer(self) -> BinaryOutput:
        """The stream for bytes."""
        return BinaryOutput(self._write)

    def write(self, text: str, /) -> int:
        """Write `text` and return its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._write(text)
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write every line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: what is written is out."""

    def fileno(self) -> NoReturn:
        """Raise the error that there is no descriptor."""
        raise io.UnsupportedOperation("fileno")

    def isatty(self) -> bool:
        """Return False: it is not a terminal."""
        return False

    def readable(self) -> bool:
        """Return False: it cannot be read."""
        return False

    def seekable(self) -> bool:
        """Return False: it has no positions."""
        return False

    def writable(self) -> bool:
        """Return True: it can be written."""
        return True

    def reconfigure(self, **_options: object) -> None:
        """Do nothing: the output is UTF-8 and unbuffered."""


_set_name = GuestStream.__dict__["_name"].__set__
_set_write = GuestStream.__dict__["_write"].__set__


class BinaryOutput:
    """What `sys.stdout.buffer` is: bytes are written as the text they encode."""

    __slots__ = ("_write",)

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def write(self, data: bytes, /) -> int:
        """Write UTF-8 `data` and return its length."""
        self._write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Do nothing: what is written is out."""


class Input(io.StringIO):
    """A text stream that is at its end: there is no input."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: the input is read-only here")

    @property
    def buffer(self) -> io.BytesIO:
        """The stream for bytes, at its end as well."""
        return io.BytesIO()


def _to_output(text: str) -> None:
    GUEST.output(text)


def _to_error_output(text: str) -> None:
    GUEST.error_output(text)


STDOUT = GuestStream("stdout", _to_output)
STDERR = GuestStream("stderr", _to_error_output)
STDIN = Input()
_AT_FIRST: Final[Mapping[str, object]] = MappingProxyType({"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR})
NAMES: Final = frozenset(_AT_FIRST)
_now: dict[str, object] = dict(_AT_FIRST)
_listeners: list[Callable[[str, object], None]] = []


def current(name: str) -> Any:
    """Return what stands as `stdin`, `stdout` or `stderr` in `sys`."""
    return _now[name]


def exchange(name: str, stream: object) -> object:
    """Put a stream in the place of `name`, and return the one before; None swallows what is written."""
    before, _now[name] = _now[name], stream
    if name == "stdout":
        GUEST.write = GUEST.output if stream is STDOUT else _writer(stream)
    elif name == "stderr":
        GUEST.write_error = GUEST.error_output if stream is STDERR else _writer(stream)
    for tell in _listeners:
        tell(name, stream)
    return before


def restore() -> None:
    """Undo what an earlier run exchanged."""
    for name, stream in _AT_FIRST.items():
        if _now[name] is not stream:
            exchange(name, stream)


def on_exchange(tell: Callable[[str, object], None]) -> None:
    """Call `tell` with each name and its new stream: by `sys`, which shows them."""
    _listeners.append(tell)


@contextmanager
def exchanged(name: str, stream: object) -> Iterator[None]:
    """Exchange a stream for as long as the block runs."""
    before = exchange(name, stream)
    try:
        yield
    finally:
        exchange(name, before)


def _writer(stream: Any) -> Callable[[str], None]:
    def write(text: str) -> None:
        if stream is not None:
            stream.write(text)

    return write
