"""The server on its standard streams, whatever they are."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import SEALAB, environment
from .test_shutdown import INITIALIZE, INITIALIZED, call_of

LARGE = "result = 'x' * 19_000"


def served(home: Path) -> list[str]:
    return [*SEALAB, "serve", "--home", str(home)]


def lines_of(*messages: dict[str, object]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def answers_to(output: bytes) -> dict[int, dict[str, object]]:
    told = [json.loads(line) for line in output.splitlines()]
    return {message["id"]: message for message in told if "id" in message}


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
    done = subprocess.run(
        served(tmp_path), input=given, stdout=subprocess.PIPE, env=environment(), timeout=30, check=True
    )
    assert answers_to(done.stdout)[1]["result"]["structuredContent"]["result"] == 42


def test_a_client_that_reads_late_gets_every_answer_whole(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        calls = [{**call_of(LARGE), "id": number} for number in range(1, 11)]
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED, *calls))
        process.stdin.flush()
        time.sleep(2)  # far more than a pipe holds is waiting now
        answers: dict[int, dict[str, object]] = {}
        while len(answers) < 11:
            answers |= answers_to(process.stdout.readline())
        process.stdin.close()
    assert {number: len(answers[number]["result"]["structuredContent"]["result"]) for number in range(1, 11)} == (
        dict.fromkeys(range(1, 11), 19_000)
    )


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_is_not_a_request_is_answered_or_passed_over_and_the_next_is_served(tmp_path: Path, size: int) -> None:
    given = lines_of(INITIALIZE, INITIALIZED) + b"\xff" * size + b"\n" + lines_of(call_of("40 + 2"))
    done = subprocess.run(
        served(tmp_path), input=given, stdout=subprocess.PIPE, env=environment(), timeout=30, check=True
    )
    assert answers_to(done.stdout)[1]["result"]["structuredContent"]["result"] == 42


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
    done = subprocess.run(
        served(tmp_path), input=given, stdout=subprocess.PIPE, env=environment(), timeout=30, check=True
    )
    run_id = answers_to(done.stdout)[1]["result"]["structuredContent"]["run_id"]
    assert (tmp_path / "workspace" / ".runs" / run_id / "code.py").read_text() == "40 + 2"


def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(lines_of(call_of("40 + 2")))
        process.stdin.flush()
        assert process.wait(20) == 0


def test_a_client_that_never_reads_holds_nothing_up_at_the_end(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED))
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.write(lines_of(*({**call_of(LARGE), "id": number} for number in range(1, 11))))
        process.stdin.flush()
        time.sleep(2)
        process.stdin.close()
        assert process.wait(20) == 0
        assert b"messages are lost" in process.stderr.read()
        process.stdout.close()


def test_a_client_that_reads_slowly_gets_the_last_answers_whole(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        calls = [{**call_of(LARGE), "id": number} for number in range(1, 31)]
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED, *calls))
        process.stdin.close()
        read = bytearray()
        while piece := os.read(process.stdout.fileno(), 50_000):
            read += piece
            time.sleep(0.15)  # all of it takes longer than any grace
    assert answers_to(bytes(read)).keys() == set(range(31))


def test_a_signal_ends_a_server_whose_client_does_not_read(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        calls = [{**call_of(LARGE), "id": number} for number in range(1, 31)]
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED, *calls))
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(2)  # the pipe is full now
        process.terminate()
        assert process.wait(20) == 0


def test_a_call_that_is_cancelled_while_its_answer_is_written_spoils_no_other_line(tmp_path: Path) -> None:
    with subprocess.Popen(
        served(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        numbers = range(1, 11)
        calls = [{**call_of(LARGE), "id": number} for number in numbers]
        cancelled = [
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            for number in numbers
        ]
        process.stdin.write(lines_of(INITIALIZE, INITIALIZED, *calls))
        process.stdin.flush()
        time.sleep(2)  # the pipe is full in the middle of an answer now
        process.stdin.write(lines_of(*cancelled, {**call_of("40 + 2"), "id": 99}))
        process.stdin.flush()
        answers: dict[int, dict[str, object]] = {}
        while 99 not in answers:
            answers |= answers_to(process.stdout.readline())
        process.stdin.close()
    assert answers[99]["result"]["structuredContent"]["result"] == 42
