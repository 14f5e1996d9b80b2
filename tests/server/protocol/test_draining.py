"""At a signal, calls at work are answered and new ones refused; a call whose caller has gone is ended."""

from __future__ import annotations

import http.client
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from ...waiting import wait_until
from ..conftest import HttpServer, http_process
from .test_shutdown import RawClient, call_of, gone
from .web.raw import HEADERS, MODERN, asked, begun, call, connected, get, opened, plugged, post, read, run

pytestmark = pytest.mark.slow

BEGIN = "write_file('begun', '')\n"
ENDLESS = f"{BEGIN}while True:\n    pass"
SHORT = f"{BEGIN}import time\ntime.sleep(3)\n6 * 7"
LARGE = 30_000_000
"""More than the buffers of a connection take."""
ENDED = "The server is stopping and ended this call after "


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HttpServer]:
    """A server that drains for as long as the test's parameter says, else for longer than the test."""
    seconds = getattr(request, "param", "60")
    with http_process(tmp_path, SEALAB_DRAIN_SECONDS=seconds) as server:
        yield server


@pytest.fixture(params=["2025", "2026"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def headers_in(era: str, url: str) -> dict[str, str]:
    """What a client of the era sends with a call."""
    return {"mcp_session_id": opened(url)} if era == "2025" else MODERN


def begin(home: Path, url: str, code: str, headers: dict[str, str]) -> http.client.HTTPConnection:
    """Send a call and wait until its code runs."""
    connection = begun(url, call(code), **headers)
    wait_until((home / "workspace" / "begun").exists)
    return connection


def text_of(answer: dict[str, Any]) -> str:
    assert answer["result"]["isError"] is True
    return str(answer["result"]["content"][0]["text"])


def test_a_call_at_work_is_answered_after_the_signal_and_new_ones_are_refused(
    server: HttpServer, tmp_path: Path, era: str
) -> None:
    headers = headers_in(era, server.url)
    assert get(server.url, "/readyz").status == 200
    running = begin(tmp_path, server.url, SHORT, headers)
    server.process.terminate()
    wait_until(lambda: get(server.url, "/readyz").status == 503)
    assert "stopping" in get(server.url, "/readyz").message["reason"]
    assert get(server.url, "/healthz").status == 200
    refused = post(server.url, call("1"), **headers)
    assert text_of(refused.message) == "The server is stopping and takes no new work. Call again when it is back."
    assert post(server.url).status == 503
    assert int(post(server.url).headers["retry-after"]) > 0
    assert read(running).message["result"]["structuredContent"]["result"] == 42
    assert server.process.wait(20) == 0


@pytest.mark.parametrize("server", ["0.5"], indirect=True)
def test_a_call_that_outlasts_the_drain_is_told_that_the_server_ended_it(
    server: HttpServer, tmp_path: Path, era: str
) -> None:
    running = begin(tmp_path, server.url, ENDLESS, headers_in(era, server.url))
    family = psutil.Process(server.process.pid).children(recursive=True)
    server.process.terminate()
    said = text_of(read(running).message)
    assert said.startswith(ENDED)
    assert said.endswith("may stand: look before you call again.")
    assert server.process.wait(20) == 0
    assert gone(family)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_what_is_at_work_at_once(
    server: HttpServer, tmp_path: Path, number: signal.Signals
) -> None:
    running = begin(tmp_path, server.url, ENDLESS, MODERN)
    server.process.terminate()
    wait_until(lambda: get(server.url, "/readyz").status == 503)
    server.process.send_signal(number)
    assert text_of(read(running).message).startswith(ENDED)
    assert server.process.wait(20) == 0


def test_nothing_that_only_waits_holds_the_end(server: HttpServer) -> None:
    with ExitStack() as stack:
        session = opened(server.url)
        stream = connected(server.url)
        stack.callback(stream.close)
        stream.request("GET", "/mcp", headers={**HEADERS, "mcp-session-id": session})
        events = stream.getresponse()
        stack.callback(events.close)
        silent = stack.enter_context(plugged(server.url))
        half = stack.enter_context(plugged(server.url))
        half.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        wait_until(lambda: get(server.url, "/healthz").status == 200)
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert events.read() == b""  # ended, not cut off
        assert silent.recv(100) == b""
        assert half.recv(100).startswith(b"HTTP/1.1 503 ")
    assert server.process.stderr is not None
    assert "Traceback" not in server.process.stderr.read()


def test_a_large_answer_is_read_to_its_end_after_the_signal(server: HttpServer, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir(exist_ok=True)
    (tmp_path / "workspace" / "large.txt").write_text("x" * LARGE)
    message = call("")
    message["params"] |= {"name": "read_workspace_file", "arguments": {"filename": "large.txt", "limit": LARGE}}
    connection = begun(server.url, message, **{**MODERN, "mcp_name": "read_workspace_file"})
    answer = connection.getresponse()  # its head has come, and what the sockets take of the rest
    server.process.terminate()
    threading.Event().wait(3)  # longer than anything waits that is not read
    assert answer.read().count(b"x") >= LARGE
    answer.close()
    connection.close()
    assert server.process.wait(20) == 0


def cancelled(url: str) -> int:
    message = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {"name": "get_execution_stats", "arguments": {}, "_meta": call("")["params"]["_meta"]},
    }
    statistics = post(url, message, **{**MODERN, "mcp_name": "get_execution_stats"}).message["result"]
    return int(statistics["structuredContent"]["runs"]["by_status"]["cancelled"])


def test_a_run_whose_caller_closed_the_connection_is_ended(server: HttpServer, tmp_path: Path, era: str) -> None:
    running = begin(tmp_path, server.url, ENDLESS, headers_in(era, server.url))
    assert cancelled(server.url) == 0
    running.close()
    wait_until(lambda: cancelled(server.url) == 1)


def test_a_run_whose_session_was_deleted_is_ended(server: HttpServer, tmp_path: Path) -> None:
    headers = headers_in("2025", server.url)
    running = begin(tmp_path, server.url, ENDLESS, headers)
    assert asked(server.url, "DELETE", **headers).status == 200
    wait_until(lambda: cancelled(server.url) == 1)
    running.close()


def test_a_session_goes_on_after_one_of_its_connections_was_closed(server: HttpServer, tmp_path: Path) -> None:
    headers = headers_in("2025", server.url)
    begin(tmp_path, server.url, ENDLESS, headers).close()
    wait_until(lambda: cancelled(server.url) == 1)
    assert post(server.url, call("6 * 7"), **headers).message["result"]["structuredContent"]["result"] == 42


def test_runs_that_nobody_awaits_hold_no_worker(server: HttpServer, tmp_path: Path) -> None:
    headers = headers_in("2025", server.url)
    for _ in range(8):
        (tmp_path / "workspace" / "begun").unlink(missing_ok=True)
        begin(tmp_path, server.url, ENDLESS, headers).close()
    wait_until(lambda: cancelled(server.url) == 8)
    assert run(server.url, "6 * 7").message["result"]["structuredContent"]["result"] == 42


@pytest.fixture
def stdio_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    client = RawClient(tmp_path, SEALAB_DRAIN_SECONDS=getattr(request, "param", "60"))
    try:
        client.greet()
        yield client
    finally:
        client.close()


def start(client: RawClient, home: Path, code: str) -> None:
    client.send(call_of(code))
    wait_until((home / "workspace" / "begun").exists)


def test_over_stdio_too_a_call_at_work_is_answered_after_the_signal_and_new_ones_are_refused(
    stdio_server: RawClient, tmp_path: Path
) -> None:
    start(stdio_server, tmp_path, SHORT)
    stdio_server.process.terminate()
    threading.Event().wait(0.5)
    stdio_server.send({**call_of("1"), "id": 2})
    assert "takes no new work" in text_of(stdio_server.receive())
    assert stdio_server.receive()["result"]["structuredContent"]["result"] == 42
    assert stdio_server.process.wait(20) == 0


@pytest.mark.parametrize("stdio_server", ["0.5"], indirect=True)
def test_over_stdio_too_a_call_that_outlasts_the_drain_is_told_so(stdio_server: RawClient, tmp_path: Path) -> None:
    start(stdio_server, tmp_path, ENDLESS)
    stdio_server.process.terminate()
    assert text_of(stdio_server.receive()).startswith(ENDED)
    assert stdio_server.process.wait(20) == 0


def test_over_stdio_too_a_second_signal_ends_what_is_at_work_at_once(stdio_server: RawClient, tmp_path: Path) -> None:
    start(stdio_server, tmp_path, ENDLESS)
    stdio_server.process.terminate()
    threading.Event().wait(0.5)
    stdio_server.process.terminate()
    assert text_of(stdio_server.receive()).startswith(ENDED)
    assert stdio_server.process.wait(20) == 0


def test_over_stdio_the_end_of_the_input_ends_the_drain(stdio_server: RawClient, tmp_path: Path) -> None:
    start(stdio_server, tmp_path, ENDLESS)
    stdio_server.process.terminate()
    assert stdio_server.process.stdin is not None
    stdio_server.process.stdin.close()
    assert stdio_server.process.wait(20) == 0


def test_a_server_whose_queue_is_full_is_not_ready(tmp_path: Path) -> None:
    with http_process(tmp_path, SEALAB_WORKERS_MAX="1", SEALAB_QUEUE_MAX="1", SEALAB_QUEUE_SECONDS="60") as server:
        running = begin(tmp_path, server.url, ENDLESS, MODERN)
        waits = begun(server.url, call("1 + 1"), **MODERN)
        wait_until(lambda: get(server.url, "/readyz").status == 503)
        assert "wait to begin" in get(server.url, "/readyz").message["reason"]
        running.close()
        assert read(waits).message["result"]["structuredContent"]["result"] == 2
        assert get(server.url, "/readyz").status == 200
