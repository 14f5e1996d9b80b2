"""What the readers of these tests run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO


def readers(options: Mapping[str, str]) -> Mapping[str, Callable[..., object]]:
    """Make the functions; they know the `options`."""
    seen: list[bytes] = []

    def seen_before(data: bytes) -> bytes:
        seen.append(data)
        return b" ".join(seen)

    return {
        "greets": lambda data: options["greeting"].encode() + data,
        "seen": seen_before,
        "pid": lambda _data: str(os.getpid()).encode(),
        "never_ends": lambda _data: _never_ends(),
        "takes_memory": lambda data: bytes(int(data)),
        "fails": _fails,
        "dies": lambda _data: os._exit(3),
        "reads_a_file": lambda data: Path(data.decode()).read_bytes()[:10],
        "lines": lambda file, _data: iter(file),
        "writes": _writes,
        "never_ends_in_a_file": lambda _file, _data: iter(_never_ends, b""),
        "environment": lambda _data: repr(dict(os.environ)).encode(),
    }


def _writes(file: BinaryIO, data: bytes) -> Iterator[bytes]:
    os.write(file.fileno(), data)
    yield b"written"


def _fails(data: bytes) -> bytes:
    raise ValueError(data.decode())


def _never_ends() -> bytes:
    while True:
        time.sleep(0)
