"""At a signal, calls at work are answered and new ones refused; a call whose caller has gone is ended."""

from __future__ import annotations

import http.client
import itertools
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from ...waiting import wait_until
from ..conftest import HttpServer, http_process, http_server
from .test_shutdown import RawClient, call_of, gone
from .web.raw import HEADERS, MODERN, asked, begun, call, connected, get, opened, plugged, post, read

BEGIN = "write_file('begun', '')\n"
ENDLESS = f"{BEGIN}while True:\n    pass"
UNTIL_GO = f"""{BEGIN}
import time
while "go" not in [each["name"] for each in list_files()]:
    time.sleep(0.05)
6 * 7
"""
LARGE = 30_000_000
"""More than the buffers of a connection take."""
ENDED = "The server is stopping and ended this call after "
STOPPING = "The server is stopping and takes no new work. Call again when it is back."


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HttpServer]:
    """A server that drains for as long as the test's parameter says, else for longer than the test."""
    seconds = getattr(request, "param", "60")
    with http_process(tmp_path, SEALAB_DRAIN_SECONDS=seconds) as server:
        yield server


def headers_in(era: str, url: str) -> dict[str, str]:
    """What a client of the era sends with a call."""
    return {"mcp_session_id": opened(url)} if era == "2025" else MODERN


def begin(home: Path, url: str, code: str, headers: dict[str, str]) -> http.client.HTTPConnection:
    """Send a call and wait until its code runs."""
    (home / "workspace" / "begun").unlink(missing_ok=True)
    connection = begun(url, call(code), **headers)
    wait_until((home / "workspace" / "begun").exists)
    return connection


def text_of(answer: dict[str, Any]) -> str:
    assert answer["result"]["isError"] is True
    return str(answer["result"]["content"][0]["text"])


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_a_call_at_work_is_answered_after_the_signal_and_new_ones_are_refused(
    server: HttpServer, tmp_path: Path, era: str
) -> None:
    headers = headers_in(era, server.url)
    assert get(server.url, "/readyz").status == 200
    running = begin(tmp_path, server.url, UNTIL_GO, headers)
    server.process.terminate()
    wait_until(lambda: get(server.url, "/readyz").status == 503)
    assert "stopping" in get(server.url, "/readyz").message["reason"]
    assert get(server.url, "/healthz").status == 200
    refused = post(server.url, call("1"), **headers)
    assert text_of(refused.message) == STOPPING
    assert post(server.url).status == 503
    assert int(post(server.url).headers["retry-after"]) > 0
    (tmp_path / "workspace" / "go").touch()
    assert read(running).message["result"]["structuredContent"]["result"] == 42
    assert server.process.wait(60) == 0


@pytest.mark.parametrize("server", ["0.5"], indirect=True)
def test_a_call_that_outlasts_the_drain_is_told_that_the_server_ended_it(server: HttpServer, tmp_path: Path) -> None:
    running = begin(tmp_path, server.url, ENDLESS, headers_in("2025", server.url))
    family = psutil.Process(server.process.pid).children(recursive=True)
    server.process.terminate()
    said = text_of(read(running).message)
    assert said.startswith(ENDED)
    assert said.endswith("may stand: look before you call again.")
    assert server.process.wait(60) == 0
    assert gone(family)


def test_a_second_signal_ends_what_is_at_work_at_once(server: HttpServer, tmp_path: Path) -> None:
    running = begin(tmp_path, server.url, ENDLESS, MODERN)
    server.process.terminate()
    wait_until(lambda: get(server.url, "/readyz").status == 503)
    server.process.send_signal(signal.SIGINT)
    assert text_of(read(running).message).startswith(ENDED)
    assert server.process.wait(60) == 0


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
        assert server.process.wait(60) == 0
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
    assert server.process.wait(60) == 0


def cancelled(url: str) -> int:
    message = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {"name": "get_execution_stats", "arguments": {}, "_meta": call("")["params"]["_meta"]},
    }
    statistics = post(url, message, **{**MODERN, "mcp_name": "get_execution_stats"}).message["result"]
    return int(statistics["structuredContent"]["runs"]["by_status"]["cancelled"])


def test_a_run_ends_whose_caller_closed_its_connection_or_deleted_its_session(tmp_path: Path) -> None:
    with http_server(tmp_path) as url:
        begin(tmp_path, url, ENDLESS, MODERN).close()
        wait_until(lambda: cancelled(url) == 1)
        session = headers_in("2025", url)
        for _ in range(8):  # more than there are workers
            begin(tmp_path, url, ENDLESS, session).close()
        wait_until(lambda: cancelled(url) == 9)
        assert post(url, call("6 * 7"), **session).message["result"]["structuredContent"]["result"] == 42
        running = begin(tmp_path, url, ENDLESS, session)
        assert asked(url, "DELETE", **session).status == 200
        wait_until(lambda: cancelled(url) == 10)
        running.close()


def refused(client: RawClient) -> dict[str, Any]:
    """Call until the server has taken note of the signal, and return how it refuses."""
    for number in itertools.count(2):
        client.send({**call_of("1"), "id": number})
        answer = client.receive()
        if answer["result"]["isError"]:
            return answer
    raise AssertionError


def test_over_stdio_too_a_call_at_work_is_answered_after_the_signal_and_new_ones_are_refused(tmp_path: Path) -> None:
    with RawClient(tmp_path, SEALAB_DRAIN_SECONDS="60") as client:
        client.begin(UNTIL_GO)
        client.process.terminate()
        assert text_of(refused(client)) == STOPPING
        (tmp_path / "workspace" / "go").touch()
        assert client.receive()["result"]["structuredContent"]["result"] == 42
        assert client.process.wait(60) == 0


@pytest.mark.parametrize("ends", ["the drain", "a second signal"])
def test_over_stdio_too_a_call_is_told_what_ended_it(tmp_path: Path, ends: str) -> None:
    with RawClient(tmp_path, SEALAB_DRAIN_SECONDS="0.5" if ends == "the drain" else "60") as client:
        client.begin(ENDLESS)
        client.process.terminate()
        if ends == "a second signal":
            refused(client)
            client.process.terminate()
        assert text_of(client.receive()).startswith(ENDED)
        assert client.process.wait(60) == 0


def test_over_stdio_the_end_of_the_input_ends_the_drain(tmp_path: Path) -> None:
    with RawClient(tmp_path, SEALAB_DRAIN_SECONDS="60") as client:
        client.begin(ENDLESS)
        client.process.terminate()
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(60) == 0


def test_a_server_whose_queue_is_full_is_not_ready(tmp_path: Path) -> None:
    with http_server(tmp_path, SEALAB_WORKERS_MAX="1", SEALAB_QUEUE_MAX="1", SEALAB_QUEUE_SECONDS="60") as url:
        running = begin(tmp_path, url, ENDLESS, MODERN)
        waits = begun(url, call("1 + 1"), **MODERN)
        wait_until(lambda: get(url, "/readyz").status == 503)
        assert "wait to begin" in get(url, "/readyz").message["reason"]
        running.close()
        assert read(waits).message["result"]["structuredContent"]["result"] == 2
        assert get(url, "/readyz").status == 200
