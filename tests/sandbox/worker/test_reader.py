"""What a reader does between two pieces of a file: nothing, until the host says so."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sealab.sandbox.wire import reader_frames
from sealab.sandbox.worker.reader import _answers


def test_a_piece_is_computed_when_it_is_asked_for_and_none_once_the_host_has_ended(tmp_path: Path) -> None:
    computed: list[int] = []

    def count(_file: BinaryIO, _data: bytes) -> Iterator[bytes]:
        for number in range(9):
            computed.append(number)
            yield str(number).encode()

    (tmp_path / "file").touch()
    file_fd = os.open(tmp_path / "file", os.O_RDONLY)
    host, channel = socket.socketpair()
    with channel:
        answers = _answers(count, channel.fileno(), file_fd, b"")
        assert reader_frames.read_reply(b"".join(next(answers))) == reader_frames.ReaderReply(b"0", is_last=False)
        assert computed == [0]
        with host:
            host.send(reader_frames.GO_ON)
            assert reader_frames.read_reply(b"".join(next(answers))) == reader_frames.ReaderReply(b"1", is_last=False)
        assert list(answers) == []
    assert computed == [0, 1]
    os.close(file_fd)
