"""A server with AUTH=tokens works for those who have a token, in both protocol eras, and for nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sealab.server.governance.access.guesses import GUESSES_MAX
from sealab.server.governance.access.token_text import new_token
from sealab.server.interfaces.protocol.web.tenant_apps import TenantApps

from ....waiting import wait_until
from ...conftest import http_server
from .asgi import asked_of
from .raw import HEADERS, INITIALIZE, MODERN, PING, Answer, asked, begun, call, connected, get, opened, post, read, run
from .tokens import made, revoked, tokens

AUTH = {"SEALAB_AUTH": "tokens"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    with http_server(home, **AUTH) as url:
        yield url


def tool_call(name: str, **arguments: object) -> dict[str, Any]:
    message = call("")
    return {**message, "params": {**message["params"], "name": name, "arguments": arguments}}


def called(server: str, name: str, headers: dict[str, str], **arguments: object) -> Answer:
    return post(server, tool_call(name, **arguments), **{**MODERN, "mcp_name": name}, **headers)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_of_each_era_works_with_a_token(server: str, home: Path, mode: Any) -> None:
    token = made(home, f"client-{mode}")
    async with (
        httpx2.AsyncClient(headers=token.header, timeout=50) as http,
        Client(streamable_http_client(server, http_client=http), mode=mode, read_timeout_seconds=200) as client,
    ):
        answer = await client.call_tool("execute_code", {"code": "6 * 7"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == 42
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"execute_code", "restore_pii", "save_skill"} <= listed


async def test_what_came_past_authentication_reaches_no_tenant() -> None:
    app = TenantApps(cast("Any", None), authenticates=True)
    assert (await asked_of(app)).status == 401


def test_who_has_no_valid_token_gets_401_and_a_challenge_at_any_path_but_those_of_health_and_no_body_is_read(
    server: str,
) -> None:
    for credentials in (
        None,
        f"Bearer {new_token()}",
        "Bearer x",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        f"Bearer {new_token()} {new_token()}",
        f"Bearer {'x' * 9000}",
    ):
        headers = {} if credentials is None else {"authorization": credentials}
        for version in ({}, MODERN):
            answer = post(server, call("1"), **version, **headers)
            assert (credentials, answer.status) == (credentials, 401)
            error = ', error="invalid_token"' if headers else ""
            assert answer.headers["www-authenticate"] == f'Bearer realm="sealab"{error}', credentials
    for path in ("/mcp", "/", "/healthz/", "/healthz2", "/.env", "//mcp", "/approvals"):
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            assert (path, method, asked(server, method, path).status) == (path, method, 401)
    for path in ("/.well-known/x", "/.well-known/../mcp", "/.well-known/%2e%2e/mcp", "/approvals/../mcp"):
        connection = connected(server)
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", "4000000")
        connection.endheaders()  # and no byte of it is sent
        assert (path, read(connection).status) == (path, 404)
    assert get(server, "/healthz").status == 200
    assert get(server, "/readyz").status == 200


def test_the_scheme_is_read_in_any_case_and_a_token_in_any_other_place_is_not(server: str, home: Path) -> None:
    token = made(home, "scheme").token
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert run(server, "1", authorization=f"{scheme} {token}").status == 200
    in_query = asked(server, "GET", f"/mcp?access_token={token}", authorization=f"Bearer {token}")
    assert in_query.status == 400
    assert b"logs" in in_query.body
    connection = connected(server)
    connection.putrequest("POST", "/mcp")
    for _ in range(2):
        connection.putheader("Authorization", f"Bearer {token}")
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    assert read(connection).status == 400


def test_a_token_does_what_its_scopes_say_and_is_told_which_one_it_lacks(server: str, home: Path) -> None:
    token = made(home, "files", "--scope", "files")
    assert called(server, "list_workspace_files", token.header).status == 200
    for name, scope in (("execute_code", "run"), ("restore_pii", "privacy:restore"), ("search_tools", "tools:read")):
        answer = called(server, name, token.header)
        assert answer.status == 403
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="sealab", error="insufficient_scope", scope="{scope}"'
        )
    listed = post(
        server,
        {**tool_call("x"), "method": "tools/list", "params": {"_meta": call("")["params"]["_meta"]}},
        mcp_protocol_version="2026-07-28",
        mcp_method="tools/list",
        **token.header,
    ).message["result"]["tools"]
    assert {each["name"] for each in listed} == {
        "write_workspace_file",
        "read_workspace_file",
        "list_workspace_files",
        "delete_workspace_file",
    }


def test_code_is_refused_what_its_token_does_not_allow(server: str, home: Path) -> None:
    token = made(home, "runs", "--scope", "run")
    code = """
result = {}
def tried(name, call):
    try:
        result[name] = call()
    except Exception as error:
        result[name] = [type(error).__name__, str(error).split(",")[0]]
async def waited(name, call):
    try:
        result[name] = await call()
    except Exception as error:
        result[name] = [type(error).__name__, str(error).split(",")[0]]
tried("write", lambda: write_file("a", "b"))
tried("open", lambda: open("a", "w").write("b"))
tried("list", lambda: list_files())
tried("restore", lambda: restore_pii("[EMAIL_AAAAAAAAAA]"))
tried("save", lambda: save_skill("f", "def f(): return 1"))
tried("skills", lambda: list_skills())
tried("search", lambda: search_tools("mail"))
await waited("call", lambda: call_tool("a.b", {}))
tried("math", lambda: 1 + 1)
"""
    report = run(server, code, **token.header).message["result"]["structuredContent"]
    found = report["result"]
    assert found.pop("math") == 2
    for name, scope in {
        "write": "files",
        "open": "files",
        "list": "files",
        "restore": "privacy:restore",
        "save": "skills:write",
        "skills": "skills:read",
        "search": "tools:read",
        "call": "tools:read",
    }.items():
        assert found[name] == ["PermissionError", f"This needs the scope {scope}"], name


def test_a_background_run_has_the_rights_of_who_began_it(server: str, home: Path) -> None:
    token = made(home, "background", "--scope", "run")
    code = "try:\n    result = write_file('a', 'b')\nexcept PermissionError as error:\n    result = str(error)"
    began = called(server, "execute_code", token.header, code=code, background=True)
    run_id = began.message["result"]["structuredContent"]["run_id"]

    def told() -> Answer:
        return called(server, "get_run", token.header, run_id=run_id, wait_seconds=1)

    wait_until(lambda: told().message["result"]["structuredContent"]["status"] == "ok")
    assert "needs the scope files" in told().message["result"]["structuredContent"]["result"]


def test_a_principals_next_token_goes_on_in_its_session_and_anothers_gets_404(server: str, home: Path) -> None:
    first, second = made(home, "ada-1", "--principal", "ada"), made(home, "ada-2", "--principal", "ada")
    other = made(home, "eve")
    session = opened(server, **first.header)
    assert post(server, PING, mcp_session_id=session, **second.header).status == 200
    assert post(server, PING, mcp_session_id=session, **other.header).status == 404
    assert post(server, PING, mcp_session_id=session).status == 401


def test_a_stream_and_a_call_end_when_their_token_is_revoked(server: str, home: Path) -> None:
    token = made(home, "streams")
    session = opened(server, **token.header)
    stream = connected(server)
    stream.request("GET", "/mcp", headers={**HEADERS, **token.header, "mcp-session-id": session})
    listening = stream.getresponse()
    assert listening.status == 200
    running = begun(server, call("import time\ntime.sleep(55)"), **MODERN, **token.header)
    revoked(home, token)
    assert listening.read() is not None  # it ends
    ended = read(running)
    assert ended.status == 401 or b"result" not in ended.body
    wait_until(lambda: run(server, "1", **token.header).status == 401)
    stream.close()


def guess(server: str) -> Answer:
    return post(server, INITIALIZE, authorization=f"Bearer {new_token()}")


def test_an_address_that_guesses_is_slowed_down_while_known_tokens_go_on(tmp_path: Path) -> None:
    token = made(tmp_path, "known")
    with http_server(tmp_path, **AUTH) as server:
        assert run(server, "1", **token.header).status == 200
        late = guess(server)
        for _ in range(10 * GUESSES_MAX):  # those that a busy machine was slow with are forgotten meanwhile
            if late.status != 401:
                break
            late = guess(server)
        assert late.status == 429
        assert int(late.headers["retry-after"]) >= 1
        assert run(server, "1", **token.header).status == 200


async def test_the_command_line_tells_what_there_is_and_never_a_token(home: Path) -> None:
    token = made(home, "listed", "--expires", "never", "--scope", "run,files")
    listed = await asyncio.to_thread(tokens, home, "list", "--json")
    assert token.token not in listed.stdout
    assert token.told["id"] in listed.stdout
    assert token.told["scopes"] == ["run", "files"]
    assert token.told["expires"] is None
    for arguments, said in (
        (("create", "x", "--tenant", "Acme"), "Write it as acme"),
        (("create", "x", "--scope", "fly"), "There is no scope"),
        (("create", "x", "--expires", "soon"), "soon is no time"),
        (("create", ""), "cannot be a name"),
        (("revoke", "tok_0"), "There is no token tok_0"),
    ):
        ended = await asyncio.to_thread(tokens, home, *arguments)
        assert ended.returncode in {2, 3}
        assert said in ended.stderr
        assert ended.stderr.count("\n") == 1
