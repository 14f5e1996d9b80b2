from __future__ import annotations

import asyncio
import logging
import resource
import socket

import pytest

from sealab.server.startup.loop_errors import LoopErrors
from tests.waiting import until


async def test_connections_that_cannot_be_accepted_are_spoken_of_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    reports: list[str] = []
    handler = LoopErrors()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        reports.append(str(context["message"]))
        handler(loop, context)

    loop.set_exception_handler(handle)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    client = socket.socket()
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, was[1]))
        client.connect(server.sockets[0].getsockname())
        await until(lambda: len(reports) >= 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, was)
        client.close()
        server.close()
        loop.set_exception_handler(None)
    assert len(caplog.records) == 1
    assert "Too many open files" in caplog.text
    assert "Traceback" not in caplog.text


async def test_other_reports_are_logged_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        LoopErrors()(asyncio.get_running_loop(), {"message": "A task failed.", "exception": ValueError("x")})
    assert "A task failed." in caplog.text
    assert "ValueError: x" in caplog.text
