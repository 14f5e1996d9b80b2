"""However a server ends, nothing of it is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from ..conftest import SEALAB, environment

pytestmark = pytest.mark.slow

BUSY_SECONDS = 1.0
LOOP = "print('begun')\nwhile True:\n    pass"


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


class RawClient:
    """A client that writes JSON-RPC lines itself, so that the server can be treated as no library would."""

    def __init__(self, home: Path, **env: str) -> None:
        self.process = subprocess.Popen(
            [*SEALAB, "serve", "--home", str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(**env),
        )

    def greet(self) -> None:
        """Initialize the connection."""
        self.send(INITIALIZE)
        self.receive()
        self.send(INITIALIZED)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def begin_loop(self) -> list[psutil.Process]:
        """Start an endless loop and return the server's processes once it burns processor time."""
        self.send(call_of(LOOP))
        return busy_family_of(psutil.Process(self.process.pid))

    def close(self) -> None:
        """End the server hard and let go of its pipes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(10)
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RawClient]:
    client = RawClient(tmp_path, SEALAB_DRAIN_SECONDS="0.2")
    try:
        client.greet()
        yield client
    finally:
        client.close()


def busy_family_of(server: psutil.Process) -> list[psutil.Process]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        family = server.children(recursive=True)
        if any(_cpu_seconds(each) > BUSY_SECONDS for each in family):
            return family
        time.sleep(0.05)
    raise AssertionError("no worker got busy")


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        return float(process.cpu_times().user)
    except psutil.Error:
        return 0.0


def gone(processes: list[psutil.Process], seconds: float = 10) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_run_ends_everything_in_order(client: RawClient, number: signal.Signals) -> None:
    family = client.begin_loop()
    client.process.send_signal(number)
    assert client.process.wait(10) == 0
    assert gone(family)


def test_a_client_that_closes_stdin_in_the_middle_of_a_run_leaves_nothing(client: RawClient) -> None:
    family = client.begin_loop()
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(10) == 0
    assert gone(family)


def test_a_server_that_is_killed_takes_its_workers_with_it(client: RawClient) -> None:
    family = client.begin_loop()
    client.process.kill()
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
    lines = "".join(json.dumps(message) + "\n" for message in (INITIALIZE, INITIALIZED, call_of(LOOP)))
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, lines, *SEALAB, "serve", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as client:
        assert client.stdout is not None
        server = psutil.Process(int(client.stdout.readline()))
        family = busy_family_of(server)
        client.kill()
    assert len(family) >= 2
    assert gone([server, *family])


def test_a_killed_worker_is_reported_as_crashed_and_the_next_call_is_answered(client: RawClient) -> None:
    busiest = max(client.begin_loop(), key=_cpu_seconds)
    busiest.kill()
    report = client.receive()["result"]["structuredContent"]
    assert (report["status"], report["success"]) == ("crashed", False)
    client.send(call_of("6 * 7"))
    assert client.receive()["result"]["structuredContent"]["result"] == 42


def test_a_killed_zygote_is_replaced_and_no_run_is_told_to_be_ok_that_was_not(client: RawClient) -> None:
    client.begin_loop()
    for zygote in psutil.Process(client.process.pid).children():
        zygote.kill()
    report = client.receive()["result"]["structuredContent"]
    assert report["status"] == "crashed"
    client.send(call_of("6 * 7"))
    assert client.receive()["result"]["structuredContent"]["result"] == 42


def test_nothing_but_protocol_reaches_stdout(client: RawClient) -> None:
    for code in ("print('stray')", "import sys\nsys.stdout.write('stray')", "1 / 0", "import os"):
        client.send(call_of(code))
        assert client.receive()["result"]["structuredContent"]["run_id"]
    assert client.process.stdin is not None
    assert client.process.stdout is not None
    client.process.stdin.close()
    assert client.process.stdout.read() == b""
    assert client.process.wait(10) == 0


def test_requests_that_are_piped_in_are_answered_before_the_server_ends(tmp_path: Path) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in (INITIALIZE, INITIALIZED, call_of("6 * 7")))
    ended = subprocess.run(
        [*SEALAB, "--home", str(tmp_path)],
        input=lines.encode(),
        capture_output=True,
        timeout=30,
        env=environment(),
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answers[1]["result"]["structuredContent"]["result"] == 42


def test_lines_that_are_no_protocol_do_not_end_the_server(client: RawClient) -> None:
    assert client.process.stdin is not None
    client.process.stdin.write(b"not json\n\xff\xfe\n[]\n{}\n\n")
    client.send(call_of("6 * 7"))
    answer = client.receive()
    while "result" not in answer:
        answer = client.receive()
    assert answer["result"]["structuredContent"]["result"] == 42


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
    assert subprocess.run(served, env=environment(), timeout=60, check=False).returncode == 0
