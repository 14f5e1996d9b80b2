"""The output of full Python: the shared buffer as the process's own standard output and error.

Whatever writes to descriptor 1 or 2, in Python or in C, writes into the buffer where the last one ended, since all of
them share one file offset (open(2), "open file description"). What Python's own `sys.stderr` writes goes to the text of
standard error instead.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import sys
from typing import TYPE_CHECKING

from ..wire.output import HEADER_BYTES, OutputBuffer, OutputFull

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS = (1, 2)


class StreamOutput(OutputBuffer):
    """One mapped buffer, in the child, that also is a file."""

    descriptor = -1

    def attach(self, descriptor: int) -> None:
        """Map the head of the buffer behind this descriptor, and keep a copy of it."""
        self.descriptor = os.dup(descriptor)
        super().attach(descriptor)

    def mapped_bytes(self, size: int) -> int:
        """Map the length alone: the text is written, and what native code could unmap would be memory more for it."""
        return min(size, mmap.PAGESIZE)

    def become_standard_streams(self) -> None:
        """Put the buffer where standard output and error are, for C and for Python."""
        for stream in _STREAMS:
            os.dup2(self.descriptor, stream)
        os.close(self.descriptor)
        self.descriptor = _STREAMS[0]
        self.clear()
        for name, stream in zip(("stdout", "stderr"), _STREAMS, strict=True):
            text = io.TextIOWrapper(_LimitedStream(self, stream), "utf-8", "backslashreplace", line_buffering=True)
            setattr(sys, name, text)
            setattr(sys, f"__{name}__", text)

    def clear(self, bytes_max: int | None = None) -> None:
        """Forget the text; from now on hold at most `bytes_max` bytes of it."""
        super().clear(bytes_max)
        os.lseek(self.descriptor, HEADER_BYTES, os.SEEK_SET)

    def write(self, text: str) -> None:
        """Append text. Raises `OutputFull` after keeping what fits."""
        self.append(text.encode("utf-8", "backslashreplace"))

    def append(self, data: ReadableBuffer) -> int:
        """Append bytes and return how many. Raises `OutputFull` after keeping what fits."""
        with memoryview(data).cast("B") as given:
            position = os.lseek(self.descriptor, 0, os.SEEK_CUR)
            room = max(0, HEADER_BYTES + self._bytes_max - position)
            written = os.write(self.descriptor, given[:room]) if room else 0
            self.note_length()
            if len(given) > room:
                raise OutputFull(self._bytes_max)
            return written

    def append_error(self, data: ReadableBuffer) -> int:
        """Append bytes to standard error and return how many. Raises `OutputFull` after keeping what fits."""
        given = bytes(data)
        self.write_error(given.decode("utf-8", "replace"))
        return len(given)

    def _put(self, at: int, data: bytes) -> None:
        os.pwrite(self.descriptor, data, at)

    def write_out(self) -> None:
        """Write everything that is still held back, by Python and by C (fflush(3))."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError, OutputFull):
                continue  # the code may have closed or replaced it
        ctypes.CDLL(None).fflush(None)
        self.note_length()

    def note_length(self) -> None:
        """Report to the host how far the text goes."""
        end = min(os.lseek(self.descriptor, 0, os.SEEK_CUR), HEADER_BYTES + self._text_bytes_max)
        self._set_length(max(0, end - HEADER_BYTES))


class _LimitedStream(io.RawIOBase):
    """A standard stream that stops at the output's limit instead of at the end of the buffer."""

    def __init__(self, output: StreamOutput, descriptor: int) -> None:
        self._output = output
        self._descriptor = descriptor

    @property
    def name(self) -> str:
        return "<stdout>" if self._descriptor == _STREAMS[0] else "<stderr>"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: ReadableBuffer, /) -> int:
        return self._output.append(data) if self._descriptor == _STREAMS[0] else self._output.append_error(data)
