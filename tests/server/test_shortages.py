"""A machine that has run out of something is told of as such, and not as a fault of sealab."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from sealab.server.errors import shortage_in

from .protocol.test_shutdown import INITIALIZE, INITIALIZED, RawClient, call_of


def stats() -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get_execution_stats", "arguments": {}},
    }


def test_without_file_descriptors_a_call_says_so_and_later_ones_work(tmp_path: Path) -> None:
    client = RawClient(tmp_path)
    try:
        client.send(INITIALIZE)
        client.receive()
        client.send(INITIALIZED)
        for message in (call_of("1 + 1"), stats()):
            client.send(message)
            assert not client.receive()["result"]["isError"]
        pid = client.process.pid
        was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, was[1]))
        client.send(stats())
        answer = client.receive()["result"]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, was)
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("The server has no file descriptor left. Call again")
        client.send(stats())
        assert not client.receive()["result"]["isError"]
    finally:
        client.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC, errno.ENOMEM])
def test_what_ran_out_is_found_behind_other_errors(number: int) -> None:
    behind = ImportError("half")
    behind.__cause__ = OSError(number, os.strerror(number))
    assert shortage_in(behind)
    assert shortage_in(OSError(errno.EACCES, "no")) is None
