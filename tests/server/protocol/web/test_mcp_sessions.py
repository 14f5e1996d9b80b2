"""Sessions that nobody closes lock out nobody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ....waiting import wait_until
from ...conftest import HttpServer, http_process
from .raw import HEADERS, INITIALIZE, MODERN, PING, asked, begun, call, connected, opened, post, read, run

MAXIMUM = 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    with http_process(tmp_path, SEALAB_HTTP_SESSIONS_MAX=str(MAXIMUM)) as server:
        yield server


def status_in(server: HttpServer, session: str, **headers: str) -> int:
    return post(server.url, PING, mcp_session_id=session, **headers).status


def test_the_idlest_sessions_of_a_caller_end_when_it_opens_more_and_are_answered_404(server: HttpServer) -> None:
    sessions = [opened(server.url) for _ in range(MAXIMUM)]
    assert status_in(server, sessions[0]) == 200
    more = [opened(server.url) for _ in range(MAXIMUM // 2)]
    ended = post(server.url, PING, mcp_session_id=sessions[1])
    assert ended.status == 404
    assert ended.message["error"]["message"] == "Session not found. Initialize a new one."
    assert [status_in(server, each) for each in sessions[1:6]] == [404] * 5
    assert [status_in(server, each) for each in (sessions[0], *sessions[6:], *more)] == [200] * MAXIMUM


def test_hundreds_of_sessions_that_nobody_closes_leave_the_server_open_to_all(server: HttpServer) -> None:
    for _ in range(300):
        assert post(server.url).status == 200
    report = post(server.url, call("6 * 7"), mcp_session_id=opened(server.url)).message["result"]["structuredContent"]
    assert report["result"] == 42


def test_a_session_with_a_run_at_work_never_ends_for_another(server: HttpServer) -> None:
    busy = opened(server.url)
    running = begun(server.url, call("import time\ntime.sleep(3)\n6 * 7"), mcp_session_id=busy)
    for _ in range(3 * MAXIMUM):
        opened(server.url)
    assert read(running).message["result"]["structuredContent"]["result"] == 42
    assert status_in(server, busy) == 200


def test_a_session_whose_client_listens_outlives_those_with_no_client(server: HttpServer) -> None:
    listening = opened(server.url)
    stream = connected(server.url)
    stream.request("GET", "/mcp", headers={**HEADERS, "mcp-session-id": listening})
    answer = stream.getresponse()
    assert answer.status == 200
    for _ in range(3 * MAXIMUM):
        opened(server.url)
    assert status_in(server, listening) == 200
    answer.close()
    stream.close()


def test_a_caller_with_many_sessions_ends_none_of_another(server: HttpServer) -> None:
    polite = opened(server.url, authorization="Bearer polite")
    others = [f"Bearer {name}" for name in ("first", "second")]
    for _ in range(2 * MAXIMUM):
        for other in others:
            opened(server.url, authorization=other)
    assert status_in(server, polite, authorization="Bearer polite") == 200


def test_where_all_sessions_are_at_work_one_more_is_told_when_to_come_back(server: HttpServer) -> None:
    at_work = "import time\ntime.sleep(30)"
    running = [begun(server.url, call(at_work), mcp_session_id=opened(server.url)) for _ in range(MAXIMUM)]
    refused = post(server.url, INITIALIZE)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    assert "Try again in a moment" in refused.message["error"]["message"]
    for connection in running:
        connection.close()


def test_what_opens_no_session_ends_none(server: HttpServer) -> None:
    sessions = [opened(server.url) for _ in range(MAXIMUM)]
    for _ in range(MAXIMUM):
        assert asked(server.url, "GET", **HEADERS).status == 400
    assert run(server.url, "1").status == 200
    assert [status_in(server, each) for each in sessions] == [200] * MAXIMUM
    assert asked(server.url, "DELETE", mcp_session_id=sessions[3]).status == 200
    assert status_in(server, sessions[3]) == 404
    opened(server.url)
    assert [status_in(server, each) for each in sessions[:3]] == [200] * 3


def values_kept(server: HttpServer, session: str) -> int:
    asked_for = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "get_execution_stats"}}
    statistics = post(server.url, asked_for, mcp_session_id=session).message["result"]["structuredContent"]
    return int(statistics["vault"]["values"])


def test_the_values_of_a_session_that_has_ended_leave_the_vault(server: HttpServer) -> None:
    sessions = [opened(server.url) for _ in range(3)]
    for number, session in enumerate(sessions):
        text = f"Write to mary.{number}@corp.example today."
        asked_for = {"name": "sanitize_pii", "arguments": {"text": text}}
        told = post(
            server.url,
            {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": asked_for},
            mcp_session_id=session,
        )
        assert "corp.example" not in told.message["result"]["structuredContent"]["sanitized_text"]
    assert values_kept(server, sessions[2]) == 3
    for session in sessions[:2]:
        assert asked(server.url, "DELETE", "/mcp", mcp_session_id=session).status == 200
    wait_until(lambda: values_kept(server, sessions[2]) == 1)


@pytest.mark.parametrize("other", [{}, {"authorization": "Bearer B"}], ids=["none", "others"])
def test_a_session_is_unknown_to_who_has_not_its_credentials(server: HttpServer, other: dict[str, str]) -> None:
    mine = {"authorization": "Bearer A"}
    session = opened(server.url, **mine)
    for method in ("POST", "GET", "DELETE"):
        headers = {**HEADERS, "mcp-session-id": session, **other}
        if method == "POST":
            answer = post(server.url, PING, mcp_session_id=session, **other)
        else:
            answer = asked(server.url, method, **headers)
        assert answer.status == 404, method
        assert answer.message == post(server.url, PING, mcp_session_id="unknown", **other).message
    assert status_in(server, session, **mine) == 200
    without = opened(server.url)
    assert status_in(server, without, **mine) == 404
    assert status_in(server, without) == 200


def test_a_request_without_sessions_has_the_scope_of_none_that_it_makes_up(server: HttpServer) -> None:
    def token_of(**headers: str) -> str:
        code = "sanitize_pii('mary@corp.example')"
        report = run(server.url, code, **headers).message["result"]["structuredContent"]
        return str(report["result"])

    shared = token_of()
    assert token_of(mcp_session_id="made-up") == shared
    assert token_of(mcp_session_id=opened(server.url, authorization="Bearer A")) == shared
    assert token_of(mcp_session_id=opened(server.url)) != shared


def test_code_ends_no_session_of_a_caller_with_other_credentials(server: HttpServer) -> None:
    mine = {"authorization": "Bearer A"}

    def result(code: str, **headers: str) -> Any:
        return post(server.url, call(code, session="main"), **MODERN, **headers).message["result"]["structuredContent"]

    assert result("kept = 7\nkept", **mine)["result"] == 7
    name = f"{hashlib.sha256(b'Bearer A').hexdigest()}/main"
    refused = run(server.url, f"close_session({name!r})").message["result"]["structuredContent"]["error"]
    assert (refused["type"], refused["message"][:34]) == ("ValueError", "The session's name cannot be used.")
    assert result("kept", **mine)["result"] == 7
