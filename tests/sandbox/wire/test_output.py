"""The memory that a worker prints into: the host reads no more than there is, whatever the worker wrote there."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator

import pytest

from sealab.sandbox.wire import output
from sealab.sandbox.wire.output import ERROR_BYTES, HEADER_BYTES, OutputBuffer, OutputFull

TEXT_BYTES = 1000


@pytest.fixture
def ends() -> Iterator[tuple[OutputBuffer, int]]:
    """The output as the host has it, and a descriptor of the same memory, as a worker has it."""
    descriptor = output.create(TEXT_BYTES)
    worker = os.dup(descriptor)
    host = OutputBuffer(descriptor)
    yield host, worker
    host.close()
    os.close(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="memory can be sealed on Linux only")
@pytest.mark.parametrize("size", [0, HEADER_BYTES, output.buffer_bytes(TEXT_BYTES) + 1])
def test_a_worker_cannot_change_its_size(ends: tuple[OutputBuffer, int], size: int) -> None:
    _, worker = ends
    with pytest.raises(PermissionError):
        os.ftruncate(worker, size)


@pytest.mark.parametrize("length", [TEXT_BYTES, TEXT_BYTES + 1, 1 << 30, (1 << 64) - 2])
def test_a_length_that_a_worker_wrote_counts_up_to_what_there_is(ends: tuple[OutputBuffer, int], length: int) -> None:
    host, worker = ends
    os.pwrite(worker, struct.pack("<QQ", length, length + ERROR_BYTES if length < 1 << 31 else length), 0)
    os.pwrite(worker, b"o" * TEXT_BYTES + b"e" * ERROR_BYTES, HEADER_BYTES)
    assert host.read() == "o" * TEXT_BYTES
    assert host.since(990) == b"o" * 10
    assert host.read_errors() == "e" * ERROR_BYTES
    assert host.errors_since(ERROR_BYTES - 1) == b"e"


def test_what_does_not_fit_is_an_error_and_what_fits_is_kept(ends: tuple[OutputBuffer, int]) -> None:
    host, _ = ends
    host.clear(10)
    with pytest.raises(OutputFull, match="10 bytes"):
        host.write("a" * 11)
    assert host.read() == "a" * 10
