"""The server on its standard streams, whatever they are."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import psutil

from sealab.server.interfaces.protocol.message_bounds import VALUES_MAX
from sealab.server.interfaces.protocol.stdio import MESSAGE_BYTES_MAX

from ...waiting import wait_until
from ..conftest import SEALAB, environment
from .test_shutdown import INITIALIZE, INITIALIZED, RawClient, call_of, lines_of

LARGE = "result = 'x' * 19_000"
MUCH = 40_000
"""More than one such answer, and less than a pipe holds."""


def wait_until_full(client: RawClient) -> None:
    """Wait until the server can write no more: the pipe holds much, and as much as a moment before."""
    held = [-1]

    def is_full() -> bool:
        (waiting,) = struct.unpack("i", fcntl.ioctl(client.process.stdout, termios.FIONREAD, bytes(4)))
        held.append(waiting)
        time.sleep(0.2)
        return waiting >= MUCH and waiting == held[-2]

    wait_until(is_full)


def large_calls(count: int) -> list[dict[str, Any]]:
    return [{**call_of(LARGE), "id": number} for number in range(1, count + 1)]


def large_request(size: int, number: int, *, number_first: bool = True) -> bytes:
    arguments = {"filename": "large.txt", "content": "x" * size}
    asked = {"method": "tools/call", "params": {"name": "write_workspace_file", "arguments": arguments}}
    numbered = {"jsonrpc": "2.0", "id": number}
    return lines_of({**numbered, **asked} if number_first else {**asked, **numbered})


def test_requests_come_from_a_file_whatever_is_wrong_with_some_and_answers_go_to_one(tmp_path: Path) -> None:
    many = list(range(200_000))
    summed = {**call_of("sum(numbers)"), "id": 5}
    summed["params"]["arguments"]["context_vars"] = {"numbers": many}
    too_many = call_of("len(numbers)")
    too_many = {**too_many, "id": 4, "params": {**too_many["params"], "numbers": [[]] * VALUES_MAX}}
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_bytes(
        lines_of(INITIALIZE, INITIALIZED)
        + b"\xff\n"
        + b"\xff" * (1 << 20)
        + b"\n"
        + large_request(MESSAGE_BYTES_MAX, 2)
        + large_request(MESSAGE_BYTES_MAX, 3, number_first=False)
        + lines_of(too_many, summed, call_of("40 + 2")).rstrip(b"\n")  # a last line without an end is one too
    )
    with requests.open("rb") as given, answers.open("wb") as taken:
        command = [*SEALAB, "serve", "--home", str(tmp_path / "home")]
        done = subprocess.run(command, stdin=given, stdout=taken, env=environment(), timeout=200, check=False)
    assert done.returncode == 0
    told = {each["id"]: each for each in map(json.loads, answers.read_bytes().splitlines()) if "id" in each}
    for number, said in (
        (2, "at most 67108864 are taken. Send less at once"),
        (3, "at most 67108864 are taken. Send less at once"),
        (4, f"it holds more than {VALUES_MAX} values"),
    ):
        assert told[number]["error"]["code"] == -32600, number
        assert said in told[number]["error"]["message"], number
    assert told[5]["result"]["structuredContent"]["result"] == sum(many)
    last = told[1]["result"]["structuredContent"]
    assert last["result"] == 42
    kept = tmp_path / "home" / "workspace.runs" / last["run_id"] / "code.py"
    assert kept.read_text() == "40 + 2", "a run is kept even when the input ends with it"


def test_a_client_that_shares_its_descriptors_finds_them_as_they_were(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    answers, answering = os.pipe()
    command = [*SEALAB, "serve", "--home", str(tmp_path)]
    with subprocess.Popen(command, stdin=reading, stdout=answering, env=environment()) as process:
        os.write(writing, lines_of(INITIALIZE))
        assert b'"id":0' in os.read(answers, 1 << 16)
        assert os.get_blocking(reading)
        assert os.get_blocking(answering)
        os.close(writing)
        process.wait(60)
    for descriptor in (reading, answers, answering):
        os.close(descriptor)


def test_a_client_that_reads_late_or_calls_off_gets_every_other_answer_whole_and_ends_the_server_by_reading_no_more(
    tmp_path: Path,
) -> None:
    with RawClient(tmp_path) as client:
        client.send(*large_calls(10))
        wait_until_full(client)
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < 10:
            answer = client.receive()
            answers[answer["id"]] = answer
        lengths = {number: len(each["result"]["structuredContent"]["result"]) for number, each in answers.items()}
        assert lengths == dict.fromkeys(range(1, 11), 19_000)

        calls = large_calls(10)
        client.send(*calls)
        wait_until_full(client)  # in the middle of an answer
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        client.send(
            *({**cancelled, "params": {"requestId": call["id"]}} for call in calls), {**call_of("40 + 2"), "id": 99}
        )
        assert client.receive_until(99)[99]["result"]["structuredContent"]["result"] == 42

        assert client.process.stdout is not None
        client.process.stdout.close()
        client.send(call_of("40 + 2"))
        assert client.process.wait(60) == 0


def test_a_client_that_never_reads_holds_nothing_up_at_the_end(tmp_path: Path) -> None:
    with RawClient(tmp_path, stderr=subprocess.PIPE) as client:
        client.send(*large_calls(10))
        wait_until_full(client)
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(60) == 0
        assert client.process.stderr is not None
        assert b"messages are lost" in client.process.stderr.read()


def test_a_client_that_reads_slowly_gets_the_last_answers_whole(tmp_path: Path) -> None:
    with RawClient(tmp_path) as client:
        client.send(*large_calls(30))
        assert client.process.stdin is not None
        assert client.process.stdout is not None
        client.process.stdin.close()
        read = bytearray()
        while piece := os.read(client.process.stdout.fileno(), 50_000):
            read += piece
            time.sleep(0.15)  # all of it takes longer than any grace
    assert {json.loads(line)["id"] for line in read.splitlines()} == set(range(1, 31))


def test_a_signal_ends_a_server_whose_client_does_not_read(tmp_path: Path) -> None:
    with RawClient(tmp_path) as client:
        client.send(*large_calls(30))
        wait_until_full(client)
        client.process.terminate()
        assert client.process.wait(60) == 0


def test_a_line_far_above_the_bound_is_refused_in_little_memory(tmp_path: Path) -> None:
    """Of a size at which a refusal that costs more than in proportion would not come within the test's time-out."""
    with RawClient(tmp_path) as client:
        assert client.process.stdin is not None
        client.process.stdin.write(large_request(400_000_000, 7))
        client.process.stdin.flush()
        assert client.receive_until(7)[7]["error"]["code"] == -32600
        assert psutil.Process(client.process.pid).memory_info().rss < 600 * 1_000_000
