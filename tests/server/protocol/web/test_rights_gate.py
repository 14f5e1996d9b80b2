"""What the scopes of a token allow: requests, as the SDK reads them whatever the body, and calls of upstream tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pydantic_core
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.jsonrpc import JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from sealab.server.base.identity import IDENTITY, Identity, Right
from sealab.server.governance.rights import METHODS, TOOLS, needed_by, needed_to_answer
from sealab.server.interfaces.protocol.web.admission import Admission, needed_in

from ...conftest import http_server
from ...journal.test_journaled_runs import NOTES
from ...tenants.team import Member
from ...upstream_tools.test_registry import configure
from .asgi import Passed, asked_of
from .raw import HEADERS, INITIALIZE, METADATA, PING, asked, begun, call, opened, post, run
from .tokens import made

MODERN = b"2026-07-28"
VERSIONS = (None, b"2025-11-25", MODERN)

YES = {"action": "accept", "content": {"approve": True, "covers": "such calls always"}}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
methods = st.sampled_from([*METHODS, "tools/Call", ""]) | values
params = (
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from([*TOOLS]) | values,
            "arguments": st.fixed_dictionaries({}, optional={"isolation": st.sampled_from(["process", "auto", 7])}),
            "uri": st.sampled_from(["skill://a/SKILL.md", "resource://sealab/capabilities"]) | values,
        },
    )
    | values
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers() | st.text(max_size=3) | values,
        "method": methods,
        "params": params,
        "result": st.sampled_from([YES]) | values,
        "error": values,
    },
)


def pairs_written(pairs: list[tuple[str, object]]) -> bytes:
    """An object in which names may stand twice."""
    return ("{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs) + "}").encode()


bodies = (
    st.one_of(messages, st.lists(messages, max_size=3), values).map(lambda value: json.dumps(value).encode())
    | st.lists(
        st.tuples(st.just("method"), methods)
        | st.tuples(st.just("params"), params)
        | st.tuples(st.sampled_from(["id", "jsonrpc", "result"]), st.sampled_from([1, "2.0"])),
        max_size=8,
    ).map(pairs_written)
    | st.binary(max_size=60)
)


def messages_of_the_sdk(body: bytes, version: bytes | None) -> list[JSONRPCRequest | JSONRPCResponse]:
    """Return what the SDK works on, as its two transports read a body."""
    try:
        if version == MODERN:
            return [JSONRPCRequest.model_validate(json.loads(body))]
        read = jsonrpc_message_adapter.validate_python(pydantic_core.from_json(body), by_name=False)
    except (ValueError, ValidationError, RecursionError):
        return []
    return [read] if isinstance(read, JSONRPCRequest | JSONRPCResponse) else []


@given(bodies, st.sampled_from(VERSIONS))
def test_whatever_the_sdk_works_on_is_judged(body: bytes, version: bytes | None) -> None:
    judged = set(needed_in(body, version))
    for message in messages_of_the_sdk(body, version):
        if isinstance(message, JSONRPCRequest):
            assert judged >= set(needed_by(message.method, message.params))
        else:
            assert judged >= set(needed_to_answer(message.result))


ANSWER = {"jsonrpc": "2.0", "id": 1, "result": YES}
ANSWERED = {"name": "execute_code", "requestState": "s", "inputResponses": {"approve_1": YES}}


@pytest.mark.parametrize(
    "message", [ANSWER, [ANSWER], ANSWER | {"method": 1}, ANSWER | {"method": "ping", "params": 1}]
)
def test_a_yes_needs_the_right_to_approve_however_it_is_written(message: object) -> None:
    assert needed_in(json.dumps(message).encode(), b"2025-11-25") == (Right.APPROVE,)


def test_a_yes_that_a_call_brings_needs_it_too_and_what_approves_nothing_needs_no_right() -> None:
    again = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ANSWERED}
    assert needed_in(json.dumps(again).encode(), MODERN) == (Right.RUN, Right.APPROVE)
    for result in ({"action": "decline"}, {"action": "accept"}, {"roots": []}, {"content": {"approve": True}}):
        assert needed_in(json.dumps(ANSWER | {"result": result}).encode(), None) == ()


CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_code","arguments":{}}}'


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "body",
    [
        CALL,
        b"[" + CALL + b"]",
        CALL.replace(b'"method"', b'"result":1,"method"'),
        CALL.replace(b'"method"', b'"method":"ping","method"'),
        CALL.replace(b'"method"', b'"m\\u0065thod"'),
        b" \n" + CALL,
    ],
)
def test_a_call_is_found_however_it_is_written(body: bytes, version: bytes | None) -> None:
    assert needed_in(body, version) == (Right.RUN,)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32-be"])
def test_a_body_in_another_encoding_is_read_where_the_sdk_reads_it(encoding: str) -> None:
    body = CALL.decode().encode(encoding)
    assert bool(messages_of_the_sdk(body, MODERN)) == bool(needed_in(body, MODERN))


async def test_a_call_without_its_right_is_answered_403_with_the_scope() -> None:
    reader, behind = Identity("default", "reader", frozenset({Right.FILES})), Passed()
    answer = await asked_of(Admission(behind, 1_000_000), parts=(CALL[:20], CALL[20:]), **{IDENTITY: reader})
    assert (answer.status, behind.body) == (403, b"")
    assert answer.headers["www-authenticate"] == 'Bearer realm="sealab", error="insufficient_scope", scope="run"'


@pytest.mark.parametrize("identity", [None, Identity("default", "runner", frozenset({Right.RUN}))])
async def test_a_call_with_its_right_comes_through_as_it_was_sent(identity: Identity | None) -> None:
    behind = Passed()
    answer = await asked_of(Admission(behind, 1_000_000), parts=(CALL[:20], CALL[20:]), **{IDENTITY: identity})
    assert (answer.status, answer.headers, behind.body) == (200, {}, CALL)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "notes.py").write_text(NOTES)
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")], "reads": ["put"]}
    configure(home, notes={**command, "approve": "never"}, asking={**command, "approve": "writes"})
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    with http_server(home, SEALAB_AUTH="tokens") as url:
        yield url


def reported(server: str, code: str, headers: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = run(server, code, **headers).message["result"]["structuredContent"]
    return report


COMPUTED = """
name = 'notes.' + 'send'
try:
    result = await call_tool(name, {'text': 'x'})
except PermissionError as error:
    result = str(error)
"""


def test_a_token_that_may_only_read_calls_what_reads_and_nothing_else(server: str, home: Path) -> None:
    token = made(home, "reader", "--scope", "run,tools:read")
    assert reported(server, "await tools.notes.put(text='x')", token.header)["status"] == "ok"
    named = reported(server, "await tools.notes.send(text='x')", token.header)
    assert named["status"] != "ok"
    assert "lacks the scope tools:write" in named["error"]["message"]
    computed = reported(server, COMPUTED, token.header)
    assert computed["result"].startswith("This needs the scope tools:write")
    assert not (home / "sent.txt").exists()


def test_a_list_of_tools_has_those_alone_that_the_token_may_call(server: str, home: Path) -> None:
    runs = made(home, "runs", "--scope", "run")
    listing = {"jsonrpc": "2.0", "id": 8, "method": "tools/list", "params": {"_meta": METADATA}}
    answer = post(server, listing, mcp_protocol_version="2026-07-28", mcp_method="tools/list", **runs.header)
    names = {tool["name"] for tool in answer.message["result"]["tools"]}
    assert "execute_code" in names
    assert {name for name in names if TOOLS[name] not in ((Right.RUN,), ())} == set()  # `run_skill` needs another too


def test_a_token_that_may_write_does_and_is_told_why_it_cannot_say_yes(server: str, home: Path) -> None:
    token = made(home, "writer", "--scope", "run,tools:read,tools:write")
    assert reported(server, COMPUTED, token.header)["status"] == "ok"
    asking = reported(server, "await tools.asking.send(text='y')", token.header)
    assert asking["status"] != "ok"
    assert "the token lacks the scope approve" in asking["error"]["message"]


def test_a_token_that_may_write_skills_alone_saves_one_and_its_next_version(server: str, home: Path) -> None:
    author = Member(server, made(home, "acme", "--scope", "skills:write").token)
    saving = {"name": "acme_only", "code": "def acme_only() -> int:\n    return 1", "tests": "assert acme_only() == 1"}
    for more in ({}, {"code": f"{saving['code']}  # again", "tests": ""}):
        saved = author.call("save_skill", **{**saving, **more})
        assert not saved.failed, saved.text
    reads = author.call("save_skill", **{**saving, "tests": "skills.tides('x')"})
    assert "needs the scope skills:read" in reads.text
    writes = author.call("save_skill", **{**saving, "tests": "open('x', 'w')"})
    assert "needs the scope files" in writes.text
    assert not author.call("review_skills").failed


@pytest.mark.parametrize(("scope", "finds"), [("run,tools:read,skills:read", True), ("run,tools:read", False)])
def test_skills_are_found_beside_tools_by_who_may_read_them(server: str, home: Path, scope: str, finds: bool) -> None:
    author = Member(server, made(home, "author", "--scope", "default").token)
    code = "def tides(port: str) -> str:\n    'Give the tides of Zanzibar.'\n    return port"
    assert not author.call("save_skill", name="tides", code=code).failed
    finder = Member(server, made(home, "finder", "--scope", scope).token)
    for tool, arguments, shown in (
        ("search_tools", {"query": "tides of zanzibar"}, "of Zanzibar"),
        ("search_tools", {"query": "", "category": "skills"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "tides"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "skills.tides"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "tidez"}, "skills.tides"),
        ("list_tool_categories", {}, "Saved functions"),
        ("execute_code", {"code": "search_tools('tides of zanzibar')"}, "of Zanzibar"),
        ("execute_code", {"code": "get_tool_definition('tides')"}, "of Zanzibar"),
    ):
        reply = finder.call(tool, **arguments)
        assert (tool, arguments, shown in reply.text) == (tool, arguments, finds), reply.text


ASKABLE = INITIALIZE | {"params": INITIALIZE["params"] | {"capabilities": {"elicitation": {}}}}


def question_of(stream: HTTPResponse) -> int:
    """Return the id of the question that a call's answer begins with."""
    for line in stream:
        if line.startswith(b"data: {") and (said := json.loads(line[6:]))["method"] == "elicitation/create":
            return int(said["id"])
    raise AssertionError("nothing was asked")


def test_a_token_answers_and_cancels_nothing_that_another_token_of_its_principal_asked_for(
    server: str, home: Path
) -> None:
    scopes = {
        "asks": "run,tools:read,tools:write,approve",
        "runs": "run,tools:read,tools:write",
        "reads": "skills:read",
    }
    asks, *lesser = (made(home, name, "--principal", "ada", "--scope", scopes[name]).header for name in scopes)
    session = {"mcp_session_id": post(server, ASKABLE, **asks).session}
    calling = call("await tools.asking.send(text='z')")
    asking = begun(server, calling, **session, **asks)
    stream = asking.getresponse()
    number = question_of(stream)
    answer = ANSWER | {"id": number}
    decline = answer | {"result": {"action": "decline"}}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": calling["id"]}}
    for token in lesser:
        refused = post(server, answer, **session, **token)
        assert refused.status == 403
        assert 'scope="approve"' in refused.headers["www-authenticate"]
        others = (decline, cancel, PING | {"id": calling["id"]}, INITIALIZE)
        assert [post(server, each, **session, **token).status for each in others] == [404] * 4
        assert [asked(server, method, **HEADERS, **session, **token).status for method in ("GET", "DELETE")] == [
            404
        ] * 2
    assert post(server, answer, **session, **asks).status == 202
    report = json.loads(stream.read().rpartition(b"data: ")[2])["result"]["structuredContent"]
    asking.close()
    assert (report["status"], report["result"]) == ("ok", "sent z")


def test_a_token_with_more_rights_goes_on_in_the_session_of_its_principals_last_and_that_one_no_more(
    server: str, home: Path
) -> None:
    first, more = (
        made(home, f"bo-{len(scope)}", "--principal", "bo", "--scope", scope).header for scope in ("run", "run,files")
    )
    session = {"mcp_session_id": opened(server, **first)}
    assert [post(server, PING, **session, **token).status for token in (first, more, first)] == [200, 200, 404]
