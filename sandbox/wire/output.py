"""What the running code prints: a buffer in memory that child and parent share.

Printing costs no system call, and what was printed before a SIGKILL is not lost. The buffer holds two 8-byte
little-endian lengths, the UTF-8 text of standard output, and, in `ERROR_BYTES` at its end, that of standard error. Its
size is sealed (memfd_create(2), fcntl(2) F_ADD_SEALS), so that a hostile child cannot shrink it under the parent
(SIGBUS); the parent accepts the lengths only up to that size.
"""

from __future__ import annotations

import codecs
import fcntl
import mmap
import os
import struct
import sys
import tempfile
from typing import cast

_LENGTH = struct.Struct("<Q")
_ERRORS_AT = _LENGTH.size
HEADER_BYTES = 2 * _LENGTH.size
ERROR_BYTES = 1 << 20
"""The most text that standard error holds."""
_UNTOUCHED = (1 << 64) - 1


_STEP_BYTES = 1 << 16
_new_decoder = codecs.getincrementaldecoder("utf-8")


class OutputFull(RuntimeError):
    """The code printed more than it may; what fitted is kept."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"The output is longer than {bytes_max} bytes. Print less, or write it to a file with write_file()."
        )


def buffer_bytes(text_bytes_max: int) -> int:
    """Return how many bytes a buffer for that much text takes."""
    return HEADER_BYTES + text_bytes_max + ERROR_BYTES


def create(text_bytes_max: int) -> int:
    """Make an empty buffer for that much text and return its descriptor."""
    size = buffer_bytes(text_bytes_max)
    if sys.platform != "linux":
        # Without memfd there are no seals either: a deleted file is the nearest thing.
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            return os.dup(file.fileno())
    descriptor = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


class OutputBuffer:
    """One mapped buffer, on either side. Closes the descriptor it is given, since the mapping outlives it.

    One that is made without a descriptor gets it later: a worker's is made before the worker.
    """

    _memory: mmap.mmap

    def __init__(self, descriptor: int | None = None) -> None:
        self._text_bytes_max = self._bytes_max = 0
        self._end = HEADER_BYTES
        if descriptor is not None:
            self.attach(descriptor)

    def attach(self, descriptor: int) -> None:
        """Map the buffer behind this descriptor."""
        try:
            size = os.fstat(descriptor).st_size
            self._memory = mmap.mmap(descriptor, self.mapped_bytes(size))
        finally:
            os.close(descriptor)
        self._text_bytes_max = self._bytes_max = size - HEADER_BYTES - ERROR_BYTES

    def mapped_bytes(self, size: int) -> int:
        """Return how many bytes of address space the mapping of a buffer of this size takes."""
        return size

    def clear(self, bytes_max: int | None = None) -> None:
        """Forget the text; from now on hold at most `bytes_max` bytes of it."""
        self._bytes_max = self._text_bytes_max if bytes_max is None else min(bytes_max, self._text_bytes_max)
        self._end = HEADER_BYTES
        self._set_length(0)
        _LENGTH.pack_into(self._memory, _ERRORS_AT, 0)

    def hand_over(self) -> None:
        """Mark the buffer (in the parent), so that it shows whether the child ever cleared it for its job."""
        _LENGTH.pack_into(self._memory, 0, _UNTOUCHED)
        _LENGTH.pack_into(self._memory, _ERRORS_AT, 0)

    @property
    def untouched(self) -> bool:
        """Whether the child died before it began with what it was sent."""
        return bool(_LENGTH.unpack_from(self._memory)[0] == _UNTOUCHED)

    def write(self, text: str) -> None:
        """Append text (in the child). Raises `OutputFull` after keeping what fits."""
        try:
            data = str.encode(text)
        except UnicodeEncodeError:
            data = str.encode(text, "utf-8", "backslashreplace")
        room = HEADER_BYTES + self._bytes_max - self._end
        full = len(data) > room
        if full:
            data = data[:room]
        end = self._end + len(data)
        self._memory[self._end : end] = data
        self._end = end
        # The length is written last, so that a kill in between leaves whole text.
        self._set_length(end - HEADER_BYTES)
        if full:
            raise OutputFull(self._bytes_max)

    def write_error(self, text: str) -> None:
        """Append to the text of standard error (in the child). Raises `OutputFull` after keeping what fits."""
        data = str.encode(text, "utf-8", "backslashreplace")
        at = self.error_length
        room = ERROR_BYTES - at
        # The length is written first: while one thread of full Python writes, another may begin.
        _LENGTH.pack_into(self._memory, _ERRORS_AT, min(at + len(data), ERROR_BYTES))
        self._put(HEADER_BYTES + self._text_bytes_max + at, data[:room])
        if len(data) > room:
            raise OutputFull(ERROR_BYTES)

    def _put(self, at: int, data: bytes) -> None:
        self._memory[at : at + len(data)] = data

    def read(self) -> str:
        """Give the text so far (in the parent), whatever the child wrote there."""
        return self._decoded(HEADER_BYTES, self.length)

    def read_after(self, bytes_max: int) -> str:
        """Give what native code wrote behind the text before its process ended (in the parent), or what is left there.

        It was written to the descriptor itself, so that the length does not tell of it.
        """
        at = HEADER_BYTES + self.length
        end = min(at + bytes_max, HEADER_BYTES + self._text_bytes_max)
        return bytes(self._memory[at:end]).partition(b"\0")[0].decode("utf-8", "replace")

    def read_errors(self) -> str:
        """Give the text of standard error so far (in the parent), whatever the child wrote there."""
        return self._decoded(HEADER_BYTES + self._text_bytes_max, self.error_length)

    @property
    def length(self) -> int:
        """How many bytes of text there are (in the parent)."""
        (length,) = _LENGTH.unpack_from(self._memory)
        return 0 if length == _UNTOUCHED else min(length, self._text_bytes_max)

    @property
    def error_length(self) -> int:
        """How many bytes of text standard error has."""
        (length,) = _LENGTH.unpack_from(self._memory, _ERRORS_AT)
        return min(cast("int", length), ERROR_BYTES)

    def _decoded(self, start: int, length: int) -> str:
        """Return a text, read in steps straight from the buffer, so that other threads run meanwhile.

        CPython adds to a text in its place where nothing else refers to it: there is never a second copy, as a join
        needs one.
        """
        decoder = _new_decoder("replace")
        end = start + length
        text = ""
        for at in range(start, end, _STEP_BYTES):
            text += decoder.decode(self._memory[at : min(at + _STEP_BYTES, end)])
        text += decoder.decode(b"", final=True)
        return text

    def since(self, start: int) -> bytes | None:
        """Give the bytes of the text from `start` on, or None while the child has not begun with its job."""
        (length,) = _LENGTH.unpack_from(self._memory)
        if length == _UNTOUCHED:
            return None
        return self._memory[HEADER_BYTES + start : HEADER_BYTES + min(length, self._text_bytes_max)]

    def errors_since(self, start: int) -> bytes:
        """Give the bytes of standard error from `start` on."""
        begin = HEADER_BYTES + self._text_bytes_max
        return self._memory[begin + start : begin + self.error_length]

    def fill_errors(self, start: int, data: bytes) -> None:
        """Put bytes that a child wrote to standard error elsewhere at `start`; what does not fit is left out."""
        if not 0 <= start <= ERROR_BYTES:
            return
        data = data[: ERROR_BYTES - start]
        self._put(HEADER_BYTES + self._text_bytes_max + start, data)
        _LENGTH.pack_into(self._memory, _ERRORS_AT, start + len(data))

    def fill(self, start: int, data: bytes) -> None:
        """Put bytes that a child printed elsewhere at `start`; what does not fit is left out."""
        room = self._text_bytes_max - start
        if room < 0:
            return
        data = data[:room]
        self._memory[HEADER_BYTES + start : HEADER_BYTES + start + len(data)] = data
        self._set_length(start + len(data))

    def _set_length(self, length: int) -> None:
        _LENGTH.pack_into(self._memory, 0, length)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
