"""However a server ends, calls at work are answered and nothing of it is left; and it outlives a shortage."""

from __future__ import annotations

import errno
import http.client
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from sealab.server.base.errors import shortage_in
from sealab.server.interfaces.protocol import draining

from ...waiting import has_ended, wait_until
from ..conftest import SEALAB, HttpServer, environment, http_process, http_server
from .web.raw import HEADERS, MODERN, asked, begun, call, connected, get, opened, plugged, post, read

BUSY_SECONDS = 0.3
LOOP = "write_file('begun', '')\nwhile True:\n    pass"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call_of(code: str) -> dict[str, Any]:
    arguments = {"code": code, "timeout_seconds": 50}
    params = {"name": "execute_code", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def lines_of(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


class RawClient:
    """A client that writes JSON-RPC lines itself, so that the server can be treated as no library would."""

    def __init__(self, home: Path, stderr: int | None = None, **env: str) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [*SEALAB, "serve", "--home", str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(**env),
        )

    def __enter__(self) -> Self:
        self.greet()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def greet(self) -> None:
        """Initialize the connection."""
        self.send(INITIALIZE)
        self.receive()
        self.send(INITIALIZED)

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(lines_of(*messages))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def receive_until(self, number: int) -> dict[int, dict[str, Any]]:
        """Read answers up to that one, and give those that came by their numbers."""
        answers: dict[int, dict[str, Any]] = {}
        while number not in answers:
            answer = self.receive()
            if "id" in answer:
                answers[answer["id"]] = answer
        return answers

    def begin(self, code: str) -> list[psutil.Process]:
        """Start code that writes a file `begun`, and return the server's processes once it has."""
        begun = self.home / "workspace" / "begun"
        begun.unlink(missing_ok=True)
        self.send(call_of(code))
        wait_until(begun.exists)
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        """End the server hard and let go of its pipes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RawClient]:
    with RawClient(tmp_path, SEALAB_DRAIN_SECONDS="0.2") as client:
        yield client


def gone(processes: list[psutil.Process], seconds: float = 60) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return all(map(has_ended, alive))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_a_signal_or_the_end_of_stdin_in_the_middle_of_a_run_ends_everything_in_order(
    client: RawClient, number: signal.Signals | None
) -> None:
    family = client.begin(LOOP)
    assert client.process.stdin is not None
    if number is None:
        client.process.stdin.close()
    else:
        client.process.send_signal(number)
    assert client.process.wait(60) == 0
    assert gone(family)


CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
server.stdin.write(sys.argv[1].encode())
server.stdin.flush()
print(server.pid, flush=True)
time.sleep(60)
"""


def test_a_client_process_that_is_killed_in_the_middle_of_a_run_leaves_nothing(tmp_path: Path) -> None:
    lines = lines_of(INITIALIZE, INITIALIZED, call_of(LOOP)).decode()
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, lines, *SEALAB, "serve", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as client:
        assert client.stdout is not None
        server = psutil.Process(int(client.stdout.readline()))
        wait_until((tmp_path / "workspace" / "begun").exists)
        family = server.children(recursive=True)
        client.kill()
    assert len(family) >= 2
    assert gone([server, *family])


def _burning(server: psutil.Process) -> psutil.Process | None:
    """Return the worker that has run its code for a while: neither a zygote nor one that waits for a job."""
    zygotes = server.children()
    workers = [each for each in server.children(recursive=True) if each not in zygotes]
    return next((each for each in workers if each.cpu_times().user > BUSY_SECONDS and each.nice() == 0), None)


def test_a_server_outlives_its_workers_its_zygote_and_its_clients_mistakes_and_takes_all_with_it(
    client: RawClient,
) -> None:
    assert client.process.stdin is not None
    client.process.stdin.write(b"not json\n\xff\xfe\n[]\n{}\n\n")
    for code in ("print('stray')", "import sys\nsys.stdout.write('stray')", "1 / 0", "import os"):
        client.send(call_of(code))
        assert client.receive_until(1)[1]["result"]["structuredContent"]["run_id"], code
    server = psutil.Process(client.process.pid)
    for killed in ("worker", "zygotes"):
        client.begin(LOOP)
        wait_until(lambda: _burning(server))
        for process in [_burning(server)] if killed == "worker" else server.children():
            assert process is not None
            process.kill()
        report = client.receive()["result"]["structuredContent"]
        assert (killed, report["status"], report["success"]) == (killed, "crashed", False)
        client.send(call_of("6 * 7"))
        assert client.receive()["result"]["structuredContent"]["result"] == 42, killed
    family = client.begin(LOOP)
    client.process.kill()
    assert gone(family)


TERMINATED_WHEN_IT_SAYS_THAT_IT_SERVES = """
import os, signal, sys
from sealab.server.cli import main

class Told:
    def write(self, text):
        if "serves MCP" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return len(text)

    def flush(self):
        pass

sys.stderr = Told()
sys.exit(main())
"""


def test_a_server_that_says_that_it_serves_ends_in_order_from_then_on(tmp_path: Path) -> None:
    program = [sys.executable, "-P", "-c", TERMINATED_WHEN_IT_SAYS_THAT_IT_SERVES]
    served = [*program, "serve", "--http", "127.0.0.1:0", "--home", str(tmp_path)]
    assert subprocess.run(served, env=environment(), timeout=200, check=False).returncode == 0


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


def test_a_run_ends_whose_caller_closed_its_connection_or_deleted_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "LASTING_SECONDS", 0.1)
    with http_server(tmp_path) as url:
        begin(tmp_path, url, ENDLESS, MODERN).close()
        wait_until(lambda: cancelled(url) == 1)
        session = headers_in("2025", url)
        for number in range(8):  # more than there are workers
            begin(tmp_path, url, f"{ENDLESS}  # {number}", session).close()
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
