"""However a server ends, nothing of it is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from ...waiting import wait_until
from ..conftest import SEALAB, environment

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
    return not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


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
