"""The guard between its two ends: what it does when a message cannot be looked through, is slow, or one end goes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ...waiting import wait_until
from ..command_line import sealab
from .guarded import Guarded, guarded

MAIL = "jane.doe@corp.example"
TOO_MUCH = 8_000_001
SLOW = "Dear Jane Doe, write to jane.doe@corp.example or call +49 30 1234567 before Friday. "


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guard"), stderr=subprocess.DEVNULL) as running:
        yield running


def test_an_answer_above_the_bound_of_the_filter_is_an_error_and_the_next_is_an_answer(guard: Guarded) -> None:
    failed = guard.answer(script={"repeated": ["x", TOO_MUCH]})
    assert failed["error"]["code"] == -32603
    assert "in pieces" in failed["error"]["message"]
    assert len(str(failed)) < 1000
    assert guard.result({"a": 1}) == {"a": 1}


def test_a_notification_above_the_bound_comes_without_its_texts(guard: Guarded) -> None:
    params = {"level": "error", "logger": "crm", "data": f"{MAIL} " + "x" * TOO_MUCH}
    guard.seen.clear()
    guard.ask(script={"before": [{"jsonrpc": "2.0", "method": "notifications/message", "params": params}]})
    wait_until(lambda: guard.seen.append(guard.read()) or any("method" in each for each in guard.seen))
    (told,) = [each for each in guard.seen if "method" in each]
    assert told["params"] == {
        "level": "error",
        "logger": "crm",
        "data": "(withheld: personal data could not be looked for here)",
    }


def test_what_is_no_message_is_left_out(guard: Guarded) -> None:
    lines = [
        f"Starting for {MAIL}",
        f'["{MAIL}"]',
        f'{{"jsonrpc": "2.0", "method": "notifications/message", "params": {{"data": "{MAIL}", "data": "a"}}}}',
        "\\xff",
        f'{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"{MAIL}": {"[" * 101}1{"]" * 101}}}}}',
    ]
    guard.seen.clear()
    assert guard.answer(script={"lines": lines})["result"] == {}
    assert guard.seen == []


def test_an_answer_that_cannot_be_read_is_an_error_for_its_request(guard: Guarded) -> None:
    number = guard.ask(script={"answer": None, "lines": []})
    line = f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"a": "{MAIL}", "a": 1}}}}'
    guard.ask(script={"lines": [line], "answer": None})
    failed = guard.answer_to(number)
    assert failed["error"]["code"] == -32603
    assert MAIL not in str(failed)


def test_a_question_that_cannot_be_shown_is_answered_to_the_server(guard: Guarded) -> None:
    question = {"jsonrpc": "2.0", "id": 900, "method": "elicitation/create", "params": {"message": "x" * TOO_MUCH}}
    guard.answer(script={"before": [question]})
    wait_until(lambda: any(each.get("id") == 900 for each in guard.received("")))
    (answer,) = [each for each in guard.received("") if each["id"] == 900]
    assert answer["error"]["code"] == -32603


def test_a_client_is_told_which_line_was_no_message(guard: Guarded) -> None:
    assert guard.process.stdin is not None
    for line in (b"not JSON", b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', b'{"a": 1, "a": 2}'):
        guard.process.stdin.write(line + b"\n")
        guard.process.stdin.flush()
        failed = guard.read()
        assert (line, failed["id"], failed["error"]["code"]) == (line, None, -32700)
    assert guard.result({"a": 1}) == {"a": 1}


def test_guesses_of_tokens_end_in_an_error(tmp_path: Path) -> None:
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    tokens = [f"[EMAIL_00000000{a}{b}]" for a in digits for b in digits]
    with guarded(tmp_path, stderr=subprocess.DEVNULL) as guard:
        failed = guard.answer(name="send", arguments={"to": " ".join(tokens)})
        assert "Wait a minute" in failed["error"]["message"]
        assert guard.received("tools/call") == []


def test_a_slow_answer_or_request_delays_no_other_message(guard: Guarded) -> None:
    token = guard.text(MAIL)
    guard.seen.clear()
    slow = guard.ask(script={"repeated": [SLOW, 6_000]})
    for number in [guard.ask(script={"answer": {"result": {"boss": MAIL}}}) for _ in range(20)]:
        guard.answer_to(number)
    guard.answer("ping")
    assert [each for each in guard.seen if each["id"] == slow] == []
    assert "jane.doe" not in str(guard.answer_to(slow))

    guard.seen.clear()
    slow = guard.ask(name="write", arguments={"text": f"{token} and more, " * 40_000})
    for number in [guard.ask("ping") for _ in range(20)]:
        guard.answer_to(number)
    assert guard.seen == []
    guard.answer_to(slow)
    assert guard.last_received()["params"]["arguments"] == {"text": f"{MAIL} and more, " * 40_000}


def test_a_cancellation_comes_after_its_request(guard: Guarded) -> None:
    token = guard.text("john@roe.example")
    guard.answer("ping")
    numbers = []
    for _ in range(10):
        numbers.append(guard.ask(name="send", arguments={"to": token}, script={"answer": None}))
        guard.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": numbers[-1], "reason": "x"}}
        )
    wait_until(lambda: len(guard.received("notifications/cancelled")) == 10)
    guard.answer("ping")
    lines = [json.loads(line) for line in guard._received.read_text().splitlines()]
    for number in numbers:
        sent = next(at for at, each in enumerate(lines) if each.get("id") == number)
        left = next(at for at, each in enumerate(lines) if each.get("params", {}).get("requestId") == number)
        assert sent < left
    cancelled = sorted((each["params"] for each in guard.received("notifications/cancelled")), key=str)
    assert cancelled == sorted(({"requestId": number, "reason": "x"} for number in numbers), key=str)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, None])
def test_a_signal_or_the_end_of_the_client_ends_both_and_what_waits_is_answered(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    with guarded(tmp_path) as guard:
        guard.answer("ping")
        child = guard.server()
        if number is None:
            assert guard.close() == 0
        elif number == signal.SIGKILL:
            guard.process.kill()
            psutil.wait_procs([child], timeout=30)
        else:
            waiting = guard.ask(script={"answer": None})
            wait_until(lambda: len(guard.received("tools/call")) == 1)
            guard.process.send_signal(number)
            assert guard.answer_to(waiting)["error"]["code"] == -32000
            assert guard.process.wait(60) == 0
        assert not child.is_running()


def test_the_server_gets_the_variables_that_were_given_and_its_end_is_an_error_for_what_waits_and_for_the_command(
    tmp_path: Path,
) -> None:
    more = {"API_KEY": "k", "OTHER": "o", "SEALAB_VAULT_KEY": "x" * 30}
    with guarded(tmp_path, "--env", "API_KEY", "--env", "MODE=test", env=more, stderr=subprocess.PIPE) as guard:
        given = set(guard.result({}, script={"environment": True})["content"][0]["text"].split())
        assert {"API_KEY", "MODE", "PATH"} <= given
        assert not {"OTHER", "SEALAB_VAULT_KEY", "SEALAB_VAULT_KEYRING", "SEALAB_HOME"} & given
        token = guard.text(MAIL)
        guard.answer(script={"stderr": f"asked by {MAIL}\nsecond line"})
        waiting = guard.ask(script={"answer": None})
        guard.ask(script={"lines": [], "exit": 3})
        failed = guard.answer_to(waiting)
        assert failed["error"]["code"] == -32000
        assert "exit code 3" in failed["error"]["message"]
        assert guard.process.wait(60) == 1
        assert guard.process.stderr is not None
        told = guard.process.stderr.read().decode()
    assert "ended with the exit code 3" in told
    assert f"asked by {token}\nsecond line\n" in told
    assert MAIL not in told


def test_answers_are_given_to_one_who_pipes_its_requests_in(tmp_path: Path) -> None:
    with guarded(tmp_path) as guard:
        guard.text(MAIL)
        number = guard.ask(script={"answer": {"result": {"boss": MAIL}}})
        assert guard.process.stdin is not None
        guard.process.stdin.close()
        assert guard.answer_to(number)["result"]["boss"].startswith("[EMAIL_")
        assert guard.process.wait(60) == 0


UNUSABLE: list[tuple[list[str], str]] = [
    (["--restore", "{", "--url", "http://127.0.0.1:9/sse"], "not JSON"),
    ([], "Give either"),
    (["--url", "http://127.0.0.1:1/mcp", "--", "a"], "Give either"),
    (["--", "/nonexistent/server"], "cannot be started: No such file"),
    (["--restore", "{", "--", "a"], "not JSON"),
    (["--restore", "5", "--", "a"], "'restore' of the server"),
    (["--env", "SURELY_NOT_SET", "--", "a"], "not set here"),
    (["--header", "A: b", "--", "a"], "Headers are sent"),
    (["--url", "file:///etc"], "'url' of the server"),
    (["--mode", "slow", "--", "a"], "not a value of"),
]


def test_a_command_line_that_cannot_be_used_and_an_address_that_cannot_be_reached_are_told_in_a_sentence(
    tmp_path: Path,
) -> None:
    lines = [(2, *each) for each in UNUSABLE] + [(1, ["--url", "http://127.0.0.1:9/sse"], "cannot be reached")]
    for code, arguments, told in lines:
        done = sealab("guard", "--home", str(tmp_path), *arguments, SEALAB_VAULT_KEYRING="false")
        assert (arguments, done.returncode) == (arguments, code)
        assert told in done.stderr, arguments
        assert "Traceback" not in done.stderr, arguments
        assert done.stdout == "", arguments


def test_a_vault_that_cannot_be_used_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sealab.db").write_bytes(b"no database at all" * 100)
    with guarded(tmp_path, stderr=subprocess.DEVNULL) as guard:
        failed = guard.answer(script={"answer": {"result": {"boss": MAIL}}})
        assert failed["error"]["code"] == -32603
        assert MAIL not in str(failed)
