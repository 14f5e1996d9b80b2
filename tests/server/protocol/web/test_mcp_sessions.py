"""Sessions that nobody closes lock out nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ....waiting import wait_until
from ...conftest import server_over_http
from . import raw
from .raw import HEADERS, INITIALIZE, MODERN, PING, asked, begun, call, connected, post, read, run

MAXIMUM = 10


server = server_over_http(SEALAB_HTTP_SESSIONS_MAX=str(MAXIMUM), SEALAB_PRIVACY_MODE="fast")


_OPENED: list[tuple[str, dict[str, str]]] = []


def opened(url: str, **headers: str) -> str:
    """Open a session that ends with the test."""
    session = raw.opened(url, **headers)
    _OPENED.append((session, headers))
    return session


@pytest.fixture(autouse=True)
def none_left(server: str) -> Iterator[None]:
    yield
    while _OPENED:
        session, headers = _OPENED.pop()
        asked(server, "DELETE", mcp_session_id=session, **headers)


def status_in(server: str, session: str, **headers: str) -> int:
    return post(server, PING, mcp_session_id=session, **headers).status


def test_the_idlest_sessions_of_a_caller_end_when_it_opens_ever_more_and_are_answered_404(server: str) -> None:
    sessions = [opened(server) for _ in range(MAXIMUM)]
    assert status_in(server, sessions[0]) == 200
    more = [opened(server) for _ in range(MAXIMUM // 2)]
    ended = post(server, PING, mcp_session_id=sessions[1])
    assert ended.status == 404
    assert ended.message["error"]["message"] == "Session not found. Initialize a new one."
    assert [status_in(server, each) for each in sessions[1:6]] == [404] * 5
    assert [status_in(server, each) for each in (sessions[0], *sessions[6:], *more)] == [200] * MAXIMUM
    for _ in range(6 * MAXIMUM):
        session = opened(server)
    report = post(server, call("6 * 7"), mcp_session_id=session).message["result"]["structuredContent"]
    assert report["result"] == 42


def test_a_session_with_a_run_at_work_or_a_client_that_listens_never_ends_for_another(server: str) -> None:
    busy, listening = opened(server), opened(server)
    running = begun(server, call("import time\ntime.sleep(3)\n6 * 7"), mcp_session_id=busy)
    stream = connected(server)
    stream.request("GET", "/mcp", headers={**HEADERS, "mcp-session-id": listening})
    answer = stream.getresponse()
    assert answer.status == 200
    for _ in range(3 * MAXIMUM):
        opened(server)
    assert read(running).message["result"]["structuredContent"]["result"] == 42
    assert [status_in(server, each) for each in (busy, listening)] == [200, 200]
    answer.close()
    stream.close()


def test_a_caller_with_many_sessions_ends_none_of_another(server: str) -> None:
    polite = opened(server, authorization="Bearer polite")
    others = [f"Bearer {name}" for name in ("first", "second")]
    for _ in range(2 * MAXIMUM):
        for other in others:
            opened(server, authorization=other)
    assert status_in(server, polite, authorization="Bearer polite") == 200


def test_what_opens_no_session_ends_none(server: str) -> None:
    sessions = [opened(server) for _ in range(MAXIMUM)]
    for _ in range(MAXIMUM):
        refused = asked(server, "GET", **HEADERS)  # the status that clients take for "there is no stream"
        assert (refused.status, refused.headers["allow"]) == (405, "POST")
        assert "mcp-session-id" not in refused.headers
    assert run(server, "1").status == 200
    assert [status_in(server, each) for each in sessions] == [200] * MAXIMUM
    assert asked(server, "DELETE", mcp_session_id=sessions[3]).status == 200
    assert status_in(server, sessions[3]) == 404
    opened(server)
    assert [status_in(server, each) for each in sessions[:3]] == [200] * 3


def test_the_address_with_a_slash_at_its_end_is_served_without_a_redirect(server: str) -> None:
    connection = connected(server)
    connection.request("POST", "/mcp/", json.dumps(INITIALIZE), HEADERS)
    answer = read(connection)
    assert (answer.status, answer.message["result"]["serverInfo"]["name"]) == (200, "sealab")
    assert asked(server, "DELETE", "/mcp/", mcp_session_id=answer.session).status == 200


def values_kept(server: str, session: str) -> int:
    asked_for = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "get_execution_stats"}}
    statistics = post(server, asked_for, mcp_session_id=session).message["result"]["structuredContent"]
    return int(statistics["vault"]["values"])


def test_the_values_of_a_session_that_has_ended_leave_the_vault(server: str) -> None:
    sessions = [opened(server) for _ in range(3)]
    before = values_kept(server, sessions[2])
    for number, session in enumerate(sessions):
        text = f"Write to mary.{number}@corp.example today."
        asked_for = {"name": "sanitize_pii", "arguments": {"text": text}}
        told = post(
            server,
            {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": asked_for},
            mcp_session_id=session,
        )
        assert "corp.example" not in told.message["result"]["structuredContent"]["sanitized_text"]
    assert values_kept(server, sessions[2]) == before + 3
    for session in sessions[:2]:
        assert asked(server, "DELETE", "/mcp", mcp_session_id=session).status == 200
    wait_until(lambda: values_kept(server, sessions[2]) <= before + 1)


def test_a_session_is_unknown_to_who_has_not_its_credentials(server: str) -> None:
    mine: dict[str, str] = {"authorization": "Bearer A"}
    session = opened(server, **mine)
    for other in ({}, {"authorization": "Bearer B"}):
        unknown = post(server, PING, mcp_session_id="unknown", **other).message
        for answer in (
            post(server, PING, mcp_session_id=session, **other),
            *(asked(server, method, **{**HEADERS, "mcp-session-id": session, **other}) for method in ("GET", "DELETE")),
        ):
            assert (answer.status, answer.message) == (404, unknown), other
    assert status_in(server, session, **mine) == 200
    without = opened(server)
    assert status_in(server, without, **mine) == 404
    assert status_in(server, without) == 200


def test_a_request_without_sessions_has_the_scope_of_none_that_it_makes_up(server: str) -> None:
    def token_of(**headers: str) -> str:
        code = "sanitize_pii('mary@corp.example')"
        report = run(server, code, **headers).message["result"]["structuredContent"]
        return str(report["result"])

    shared = token_of()
    assert token_of(mcp_session_id="made-up") == shared
    assert token_of(mcp_session_id=opened(server, authorization="Bearer A")) == shared
    assert token_of(mcp_session_id=opened(server)) != shared


def test_code_ends_no_session_of_a_caller_with_other_credentials(server: str) -> None:
    mine = {"authorization": "Bearer A"}

    def result(code: str, **headers: str) -> Any:
        return post(server, call(code, session="main"), **MODERN, **headers).message["result"]["structuredContent"]

    assert result("kept = 7\nkept", **mine)["result"] == 7
    name = f"{hashlib.sha256(b'Bearer A').hexdigest()}/main"
    refused = run(server, f"close_session({name!r})").message["result"]["structuredContent"]["error"]
    assert (refused["type"], refused["message"][:34]) == ("ValueError", "The session's name cannot be used.")
    assert result("kept", **mine)["result"] == 7


def test_where_all_sessions_are_at_work_one_more_is_told_when_to_come_back(server: str) -> None:
    at_work = "import time\ntime.sleep(30)"
    running = [begun(server, call(at_work), mcp_session_id=opened(server)) for _ in range(MAXIMUM)]
    refused = post(server, INITIALIZE)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    assert "Try again in a moment" in refused.message["error"]["message"]
    for connection in running:
        connection.close()
