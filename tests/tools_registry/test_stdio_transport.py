"""How the process of a server over stdio ends."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import psutil
import pytest

from sealab.tools_registry.configuration import ServerConfig, Transport
from sealab.tools_registry.json_lines import read_in_thread
from sealab.tools_registry.upstream.stdio_transport import stdio_streams

from ..waiting import has_ended, until

DEAF = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = pathlib.Path(sys.argv[1])
file.with_suffix(".new").write_text(str(os.getpid()))
file.with_suffix(".new").rename(file)
time.sleep(90)
"""
"""A server that ends neither with its input nor by SIGTERM."""


async def test_a_server_whose_end_is_cut_off_is_killed_at_once_and_its_pipes_are_closed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    config = ServerConfig("deaf", Transport.STDIO, command=sys.executable, args=("-c", DEAF, str(file)))

    async def use() -> None:
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_streams(config, stderr=errors, read_large=read_in_thread):
                await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await until(file.exists)
    server = psutil.Process(int(file.read_text()))
    using.cancel()
    await asyncio.sleep(0.1)  # it is in the midst of ending the server, which takes seconds
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    await until(lambda: has_ended(server))
    del using, use
    await asyncio.sleep(0)
    gc.collect()  # an open transport would warn, which pytest makes a failure of this test
