"""The guest's standard streams: what is written goes to its output, and nothing is ever there to read."""

from __future__ import annotations

import io
from collections.abc import Iterable

from ...guest.guest import GUEST


class GuestStream:
    """A text stream that writes to the guest's output; both `sys.stdout` and `sys.stderr` are one."""

    __slots__ = ("_name",)

    _name: str
    encoding = "utf-8"
    errors = "strict"
    newlines = None
    closed = False

    def __init__(self, name: str) -> None:
        _set_name(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: the output is read-only here")

    def __repr__(self) -> str:
        return f"<{self._name}>"

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._name

    @property
    def buffer(self) -> BinaryOutput:
        """The stream for bytes."""
        return BinaryOutput()

    def write(self, text: str, /) -> int:
        """Write `text` to the output and return its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        GUEST.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write every line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: what is written is out."""

    def isatty(self) -> bool:
        """Tell that nobody is watching."""
        return False

    def readable(self) -> bool:
        """Tell that it cannot be read."""
        return False

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def reconfigure(self, **_options: object) -> None:
        """Do nothing: the output is UTF-8 and unbuffered."""


_set_name = GuestStream.__dict__["_name"].__set__


class BinaryOutput:
    """What `sys.stdout.buffer` is: bytes are written as the text they encode."""

    __slots__ = ()

    def write(self, data: bytes, /) -> int:
        """Write UTF-8 `data` to the output and return its length."""
        GUEST.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Do nothing: what is written is out."""


class Input(io.StringIO):
    """A text stream that is at its end: nobody types here."""

    @property
    def buffer(self) -> io.BytesIO:
        """The stream for bytes, at its end as well."""
        return io.BytesIO()


STDOUT = GuestStream("stdout")
STDERR = GuestStream("stderr")
