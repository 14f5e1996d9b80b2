"""The server on its standard streams, whatever they are."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
import pytest

from sealab.server.protocol.message_bounds import VALUES_MAX
from sealab.server.protocol.stdio import MESSAGE_BYTES_MAX

from ..conftest import SEALAB, environment
from .test_shutdown import INITIALIZE, INITIALIZED, call_of

LARGE = "result = 'x' * 19_000"
MUCH = 40_000
"""More than one such answer, and less than a pipe holds."""


def served(home: Path) -> list[str]:
    return [*SEALAB, "serve", "--home", str(home)]


def lines_of(*messages: dict[str, object]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def answers_to(output: bytes) -> dict[int, dict[str, object]]:
    told = [json.loads(line) for line in output.splitlines()]
    return {message["id"]: message for message in told if "id" in message}


@dataclass(frozen=True)
class Served:
    """A server on two pipes, which has been greeted."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    answers: IO[bytes]

    def send(self, *messages: dict[str, object]) -> None:
        self.requests.write(lines_of(*messages))
        self.requests.flush()

    def read_until(self, number: int) -> dict[int, dict[str, object]]:
        """Read answers up to that one, and give those that came."""
        answers: dict[int, dict[str, object]] = {}
        while number not in answers:
            answers |= answers_to(self.answers.readline())
        return answers

    def wait_until_full(self) -> None:
        """Wait until the server can write no more: the pipe holds much, and as much as a moment before."""
        before, held = -1, 0
        deadline = time.monotonic() + 20
        while held < MUCH or held != before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
            (waiting,) = struct.unpack("i", fcntl.ioctl(self.answers, termios.FIONREAD, bytes(4)))
            before, held = held, waiting


@contextmanager
def serving(home: Path, stderr: int | None = None) -> Iterator[Served]:
    with subprocess.Popen(
        served(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = Served(process, process.stdin, process.stdout)
        server.send(INITIALIZE, INITIALIZED)
        server.read_until(0)
        yield server


def answers_of_one_going(home: Path, given: bytes) -> dict[int, dict[str, object]]:
    """What a server answers that is given all its input at once."""
    done = subprocess.run(served(home), input=given, stdout=subprocess.PIPE, env=environment(), timeout=30, check=True)
    return answers_to(done.stdout)


def large_calls(count: int) -> list[dict[str, object]]:
    return [{**call_of(LARGE), "id": number} for number in range(1, count + 1)]


def test_requests_come_from_a_file_and_answers_go_to_one(tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_bytes(lines_of(INITIALIZE, INITIALIZED, call_of("40 + 2")))
    with requests.open("rb") as given, answers.open("wb") as taken:
        done = subprocess.run(
            served(tmp_path / "home"), stdin=given, stdout=taken, env=environment(), timeout=30, check=False
        )
    assert done.returncode == 0
    assert answers_to(answers.read_bytes())[1]["result"]["structuredContent"]["result"] == 42


def test_a_last_line_without_an_end_is_a_request_too(tmp_path: Path) -> None:
    given = lines_of(INITIALIZE, INITIALIZED, call_of("40 + 2")).rstrip(b"\n")
    assert answers_of_one_going(tmp_path, given)[1]["result"]["structuredContent"]["result"] == 42


def test_a_client_that_reads_late_gets_every_answer_whole(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.send(*large_calls(10))
        server.wait_until_full()
        answers: dict[int, dict[str, object]] = {}
        while len(answers) < 10:
            answers |= answers_to(server.answers.readline())
        server.requests.close()
    assert {number: len(answers[number]["result"]["structuredContent"]["result"]) for number in range(1, 11)} == (
        dict.fromkeys(range(1, 11), 19_000)
    )


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_is_not_a_request_is_answered_or_passed_over_and_the_next_is_served(tmp_path: Path, size: int) -> None:
    given = lines_of(INITIALIZE, INITIALIZED) + b"\xff" * size + b"\n" + lines_of(call_of("40 + 2"))
    assert answers_of_one_going(tmp_path, given)[1]["result"]["structuredContent"]["result"] == 42


def test_a_client_that_shares_its_descriptors_finds_them_as_they_were(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    answers, answering = os.pipe()
    with subprocess.Popen(served(tmp_path), stdin=reading, stdout=answering, env=environment()) as process:
        os.write(writing, lines_of(INITIALIZE))
        assert b'"id":0' in os.read(answers, 1 << 16)
        assert os.get_blocking(reading)
        assert os.get_blocking(answering)
        os.close(writing)
        process.wait(20)
    for descriptor in (reading, answers, answering):
        os.close(descriptor)


def test_a_run_is_kept_even_when_the_input_ends_with_it(tmp_path: Path) -> None:
    given = lines_of(INITIALIZE, INITIALIZED, call_of("40 + 2"))
    run_id = answers_of_one_going(tmp_path, given)[1]["result"]["structuredContent"]["run_id"]
    assert (tmp_path / "workspace.runs" / run_id / "code.py").read_text() == "40 + 2"


def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.answers.close()
        server.send(call_of("40 + 2"))
        assert server.process.wait(20) == 0


def test_a_client_that_never_reads_holds_nothing_up_at_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, stderr=subprocess.PIPE) as server:
        server.send(*large_calls(10))
        server.wait_until_full()
        server.requests.close()
        assert server.process.wait(20) == 0
        assert server.process.stderr is not None
        assert b"messages are lost" in server.process.stderr.read()


def test_a_client_that_reads_slowly_gets_the_last_answers_whole(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.send(*large_calls(30))
        server.requests.close()
        read = bytearray()
        while piece := os.read(server.answers.fileno(), 50_000):
            read += piece
            time.sleep(0.15)  # all of it takes longer than any grace
    assert answers_to(bytes(read)).keys() == set(range(1, 31))


def test_a_signal_ends_a_server_whose_client_does_not_read(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.send(*large_calls(30))
        server.wait_until_full()
        server.process.terminate()
        assert server.process.wait(20) == 0


def test_a_call_that_is_cancelled_while_its_answer_is_written_spoils_no_other_line(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        calls = large_calls(10)
        server.send(*calls)
        server.wait_until_full()  # in the middle of an answer
        server.send(
            *(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call["id"]}}
                for call in calls
            ),
            {**call_of("40 + 2"), "id": 99},
        )
        answers = server.read_until(99)
        server.requests.close()
    assert answers[99]["result"]["structuredContent"]["result"] == 42


def large_request(size: int, *, number_first: bool) -> bytes:
    arguments = {"filename": "large.txt", "content": "x" * size}
    asked = {"method": "tools/call", "params": {"name": "write_workspace_file", "arguments": arguments}}
    number: dict[str, object] = {"jsonrpc": "2.0", "id": 7}
    return lines_of({**number, **asked} if number_first else {**asked, **number})


@pytest.mark.parametrize("number_first", [True, False])
def test_a_request_above_the_bound_is_refused_and_the_next_is_served(tmp_path: Path, number_first: bool) -> None:
    given = lines_of(INITIALIZE, INITIALIZED)
    given += large_request(MESSAGE_BYTES_MAX, number_first=number_first) + lines_of(call_of("40 + 2"))
    answers = answers_of_one_going(tmp_path, given)
    assert answers[7]["error"]["code"] == -32600
    assert "at most 67108864 are taken. Send less at once" in answers[7]["error"]["message"]
    assert answers[1]["result"]["structuredContent"]["result"] == 42


def test_a_large_request_of_many_values_is_read_whole(tmp_path: Path) -> None:
    numbers = list(range(200_000))
    asked = call_of("sum(numbers)")
    asked["params"]["arguments"]["context_vars"] = {"numbers": numbers}
    given = lines_of(INITIALIZE, INITIALIZED, asked)
    assert answers_of_one_going(tmp_path, given)[1]["result"]["structuredContent"]["result"] == sum(numbers)


def test_a_request_of_too_many_values_is_refused_and_the_next_is_served(tmp_path: Path) -> None:
    asked = call_of("len(numbers)")
    asked = {**asked, "id": 7, "params": {**asked["params"], "numbers": [[]] * VALUES_MAX}}
    answers = answers_of_one_going(tmp_path, lines_of(INITIALIZE, INITIALIZED, asked, call_of("40 + 2")))
    assert answers[7]["error"]["code"] == -32600
    assert f"it holds more than {VALUES_MAX} values" in answers[7]["error"]["message"]
    assert answers[1]["result"]["structuredContent"]["result"] == 42


def test_what_a_line_above_the_bound_costs_is_in_proportion_to_its_length(tmp_path: Path) -> None:
    def seconds(size: int) -> float:
        with serving(tmp_path) as server:
            process = psutil.Process(server.process.pid)
            before = process.cpu_times()
            server.requests.write(large_request(size, number_first=True))
            server.requests.flush()
            assert server.read_until(7)[7]
            after = process.cpu_times()
            assert process.memory_info().rss < 600 * 1_000_000
            server.requests.close()
        return after.user + after.system - before.user - before.system

    assert seconds(400_000_000) < 30 * max(seconds(80_000_000), 0.05)
