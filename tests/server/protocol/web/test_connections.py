"""Connections that send nothing, or half of something, or read nothing, are closed and keep nobody out."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from sealab.server.interfaces.protocol.web.connections import CONNECTIONS_MAX, HttpBounds, connections_max

from ....waiting import until, wait_until
from ...conftest import HttpServer, http_process, server_over_http
from .raw import MODERN, begun, call, get, plugged, read, run

DESCRIPTORS = 256
MAXIMUM = DESCRIPTORS // 2
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


impatient = server_over_http(SEALAB_HTTP_RECEIVE_SECONDS="1")


def all_of(connection: socket.socket) -> bytes:
    """Return all that is received until the other side closes."""
    received = b""
    while piece := connection.recv(10_000):
        received += piece
    return received


def test_a_connection_over_which_nothing_or_half_a_request_is_sent_is_closed(impatient: str) -> None:
    with plugged(impatient) as silent:
        assert all_of(silent) == b""
    for half in (HEAD[:30], HEAD + b"Content-Length: 10\r\n\r\n{", HEAD + b"Content-Length: 10\r\n\r\n"):
        with plugged(impatient) as connection:
            connection.sendall(half)
            answer = all_of(connection)
        assert answer.startswith(b"HTTP/1.1 408 "), half
        assert b"Send it again" in answer, half


@pytest.mark.parametrize("begin", [b"", HEAD + b"Content-Length: 1000000\r\n\r\n"])
def test_a_request_that_trickles_in_is_not_waited_for_byte_by_byte(impatient: str, begin: bytes) -> None:
    with plugged(impatient) as connection:
        connection.sendall(begin)
        trickle = iter((HEAD[:-2] + b"x" * 1000) if not begin else b" " * 1000)
        connection.settimeout(0.1)
        answer = None
        while answer is None:
            connection.sendall(bytes([next(trickle)]))  # runs out long after the time-out
            try:
                answer = connection.recv(100)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_run_may_take_longer_than_a_request_may_take_to_arrive(impatient: str) -> None:
    report = run(impatient, "import time\ntime.sleep(2)\n6 * 7").message["result"]["structuredContent"]
    assert report["result"] == 42


def test_the_most_connections_are_a_share_of_the_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
        assert connections_max() == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert connections_max() <= CONNECTIONS_MAX


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_process(tmp_path_factory.mktemp("home"), descriptors=DESCRIPTORS) as server:
        yield server


def test_connections_beyond_the_descriptors_are_told_to_come_back_and_those_at_work_go_on(small: HttpServer) -> None:
    answers: list[bytes] = []

    def told() -> bool:
        """Open more connections than there may be, and say whether one of them was told so."""
        with ExitStack() as stack:
            connections = [stack.enter_context(plugged(small.url)) for _ in range(2 * MAXIMUM)]
            for connection in connections:
                with suppress(ConnectionError):  # of one that is closed already
                    connection.sendall(HEAD)  # never its end
            for connection in connections:
                connection.settimeout(0.01)
                with suppress(OSError):
                    answers.append(all_of(connection))
            wait_until(served)  # in the place of the connection that has waited longest
        return any(answer.startswith(b"HTTP/1.1 503 ") for answer in answers)

    def served() -> bool:
        return get_or_none(small) == 200

    working = begun(small.url, call("import time\ntime.sleep(5)\n6 * 7"), **MODERN)
    wait_until(told)
    answer = next(each for each in answers if each.startswith(b"HTTP/1.1 503 "))
    assert b"Retry-After: 1\r\n" in answer
    assert b"Try again in a moment" in answer
    assert read(working).message["result"]["structuredContent"]["result"] == 42


def test_a_burst_of_connections_does_not_use_up_the_descriptors(small: HttpServer) -> None:
    with ExitStack() as stack:
        connections = []
        for _ in range(3 * DESCRIPTORS):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(plugged_address(small))
            connections.append(connection)
        wait_until(lambda: get_or_none(small) == 200)
    small.process.terminate()
    small.process.wait(60)
    assert small.process.stderr is not None
    said = small.process.stderr.read()
    assert "out of system resource" not in said
    assert said.count("turned away") == 1


def plugged_address(server: HttpServer) -> tuple[str, int]:
    with plugged(server.url) as connection:
        address: tuple[str, int] = connection.getpeername()
        return address


def get_or_none(server: HttpServer) -> int | None:
    try:
        return get(server.url, "/healthz").status
    except OSError:
        return None


@asynccontextmanager
async def sending(size: int, bounds: HttpBounds) -> AsyncIterator[tuple[uvicorn.Server, int]]:
    """Serve so many bytes to whoever asks, and give the server and its port."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(size // 100_000):
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    config = uvicorn.Config(app, log_config=None, lifespan="off", http=bounds.protocol(), ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server._serve([listener]))
        await until(lambda: server.started)
        yield server, listener.getsockname()[1]
        server.should_exit = True
        await serving


async def test_who_reads_nothing_of_an_answer_is_cut_off_and_who_reads_slowly_gets_it_all() -> None:
    size = 60_000_000
    bounds = HttpBounds(100, receive_seconds=30, send_seconds=1)
    async with sending(size, bounds) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await until(lambda: server.server_state.connections)
        await until(lambda: not server.server_state.connections)
        writer.close()

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = 0
        while piece := await reader.read(1_000_000):
            received += len(piece)
            await asyncio.sleep(0.005)  # which makes several times the time-out in all
        writer.close()
        assert received > size
