"""What a server does to its own process before it serves."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import subprocess
import sys

import pytest

from sealab.server.base.startup import process_setup
from sealab.server.base.startup.process_setup import LoopErrors, OncePerMinute
from tests.clocks import Clock
from tests.waiting import until

RAISING = (
    "import resource;resource.setrlimit(resource.RLIMIT_NOFILE,({soft},{hard}));"
    "from sealab.server.base.startup.process_setup import raise_descriptor_limit as r;r();r();"
    "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
)


@pytest.mark.parametrize(("soft", "hard"), [(256, 256), (256, 900)])
def test_the_soft_limit_of_descriptors_goes_up_to_the_hard_one(soft: int, hard: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", RAISING.format(soft=soft, hard=hard)], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == [str(hard), str(hard)]


def test_the_soft_limit_is_never_lowered_and_never_beyond_what_is_wanted() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = hard if hard != resource.RLIM_INFINITY else 1 << 20
    told = subprocess.run(
        [sys.executable, "-c", RAISING.format(soft=most, hard=most)], capture_output=True, text=True, check=True
    )
    assert told.stdout.split()[0] == str(most)


def test_a_process_that_may_set_no_limit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_limit: int, _values: tuple[int, int]) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", lambda _limit: (256, 900))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    process_setup.raise_descriptor_limit()


def record(line: int, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("a", level, "file.py", line, "no %s left", ("descriptors",), None)


def test_a_warning_of_one_kind_is_shown_once_a_minute_and_says_how_many_were_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(process_setup.time, "monotonic", clock)
    log = OncePerMinute()
    assert [log.filter(record(1)) for _ in range(5)] == [True, False, False, False, False]
    assert log.filter(record(2))
    assert all(log.filter(record(1, logging.INFO)) for _ in range(3))
    clock.now += 61
    again = record(1)
    assert log.filter(again)
    assert again.getMessage() == "no descriptors left (4 more of this kind were left out in between.)"
    clock.now += 61
    last = record(1)
    assert log.filter(last)
    assert last.getMessage() == "no descriptors left"


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
    for handler in logging.getLogger().handlers:
        handler.filters.clear()  # a server that serves several tests in this process takes values out of its log
    with caplog.at_level(logging.ERROR):
        LoopErrors()(asyncio.get_running_loop(), {"message": "A task failed.", "exception": ValueError("x")})
    [record] = caplog.records
    assert record.message == "A task failed."
    assert record.exc_info is not None
    assert repr(record.exc_info[1]) == "ValueError('x')"
