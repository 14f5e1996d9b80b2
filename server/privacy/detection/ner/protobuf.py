"""Protocol Buffers at the level of bytes: enough to read and write ONNX files without the `onnx` package.

`onnx_bert` says what that earns.

The format: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _EIGHT_BYTES, _LENGTH_PREFIXED, _FOUR_BYTES = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class WireField:
    """One field of a message: its number, its value (an int for varints, else the bytes), and itself as encoded."""

    number: int
    value: int | memoryview
    encoded: memoryview

    @property
    def message(self) -> memoryview:
        """The value of a field that holds bytes, text or a message."""
        if isinstance(self.value, int):
            raise TypeError(f"field {self.number} is a number")
        return self.value

    @property
    def text(self) -> str:
        """The value of a field that holds text."""
        return bytes(self.message).decode()


def read(message: memoryview) -> Iterator[WireField]:
    """Yield the fields of an encoded message. Raises `ValueError` or `IndexError` when it is none."""
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = _read_varint(message, at)
        else:
            if kind == _LENGTH_PREFIXED:
                size, at = _read_varint(message, at)
            elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
                size = 4 if kind == _FOUR_BYTES else 8
            else:
                raise ValueError(f"wire type {kind} is not known")
            value, at = message[at : at + size], at + size
        yield WireField(key >> 3, value, message[start:at])


def number(field: int, value: int) -> bytes:
    """Encode a field that holds a number."""
    return _varint(field << 3 | _VARINT) + _varint(value)


def float32(field: int, value: float) -> bytes:
    """Encode a field that holds a floating-point number of four bytes."""
    return _varint(field << 3 | _FOUR_BYTES) + struct.pack("<f", value)


def varints(field: WireField) -> list[int]:
    """Return the numbers of a field that repeats: by itself, or packed into one."""
    if isinstance(field.value, int):
        return [field.value]
    numbers: list[int] = []
    at = 0
    while at < len(field.value):
        value, at = _read_varint(field.value, at)
        numbers.append(value)
    return numbers


def chunk(field: int, value: bytes | bytearray | memoryview | str) -> bytes:
    """Encode a field that holds bytes, text or a message."""
    content = value.encode() if isinstance(value, str) else bytes(value)
    return _varint(field << 3 | _LENGTH_PREFIXED) + _varint(len(content)) + content


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the high bit says that another byte follows
            return value, at


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits to a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
