"""Whose sign-in a call uses, and what of a caller's own token is exchanged, revoked or refused."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import App, running
from sealab.server.base.errors import RequestRefused
from sealab.server.base.home import Home
from sealab.server.base.identity import ALL_RIGHTS, LOCAL_IDENTITY, Identity, Right
from sealab.server.base.settings import Settings
from sealab.server.governance.caller import Caller
from sealab.server.governance.scopes import of_mcp_session, of_principal
from sealab.server.governance.sign_ins.sign_ins import SignIns
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.server.use_cases.tenants.sign_outs import principal_signed_out
from sealab.tools_registry.configuration import ServerConfig, SignInOf, TokenExchange, Transport
from sealab.tools_registry.sign_in.owners import OPERATOR

from ...identity_provider.running import identity_provider, needs_identity_provider
from ..command_line import sealab
from ..conftest import http_process
from .accounts import Accounts, User, calling

CODE = "await tools.accounts.whoami()"
EXCHANGE = {"audience": "accounts", "client_id": "sealab"}


@asynccontextmanager
async def app_of(folder: Path) -> AsyncIterator[App]:
    home = Home(folder / "home")
    async with running(Settings(), home, serves=True) as app:
        yield app


def caller(principal: str, *, user: Any = None, bearer: str = "", rights: frozenset[Right] = ALL_RIGHTS) -> Caller:
    """Return a caller as a server with authentication makes one."""

    async def open_link(_text: str, link: str) -> bool:
        question = type("Question", (), {"url": link})
        return (await user(None, question)).action == "accept"

    return Caller(
        of_principal(principal),
        identity=Identity("default", principal, rights),
        open_link=None if user is None else open_link,
        bearer=bearer,
    )


async def said(app: App, who: Caller, code: str = CODE) -> Any:
    report = (await execute(app.executor, CodeRequest(code, caller=who))).report
    return report["result"] if report["success"] else (report["error"] or {})["message"]


def server(**more: Any) -> ServerConfig:
    return ServerConfig("s", Transport.HTTP, url="http://x/mcp", **{"sign_in": SignInOf.CALLER, **more})


def test_the_owner_follows_from_the_entry_and_the_connection() -> None:
    sign_ins = SignIns(None, bytes, tenant="acme")  # type: ignore[arg-type]  # no database is asked
    ada, bob = (Caller(of_principal(who), identity=Identity("acme", who, ALL_RIGHTS)) for who in ("ada", "bob"))
    assert sign_ins.owner(server(sign_in=SignInOf.OPERATOR), ada) == OPERATOR
    assert sign_ins.owner(server(), ada) != sign_ins.owner(server(), bob)
    assert sign_ins.owner(server(), ada) == sign_ins.owner(server(), replace(ada, bearer="x"))
    shared = server(sign_in=SignInOf.TENANT)
    assert sign_ins.owner(shared, ada) == sign_ins.owner(shared, bob)
    assert sign_ins.owner(shared, ada) not in {sign_ins.owner(server(), ada), OPERATOR}
    other = SignIns(None, bytes, tenant="other")  # type: ignore[arg-type]  # no database is asked
    for each in (server(), shared):
        with pytest.raises(RequestRefused, match="another tenant's"):
            other.owner(each, ada)
        local = Caller(identity=LOCAL_IDENTITY)
        assert other.owner(each, local) != sign_ins.owner(each, local)
    with pytest.raises(RequestRefused, match="cannot be known again"):
        sign_ins.owner(server(), Caller(of_mcp_session("x")))


def test_what_a_token_is_exchanged_for_is_that_tokens_own() -> None:
    sign_ins = SignIns(None, bytes)  # type: ignore[arg-type]  # no database is asked
    exchanging = server(token_exchange=TokenExchange("http://x/token", "a"))
    strong, weak = (sign_ins.owner(exchanging, caller("ada", bearer=each)) for each in ("strong", "weak"))
    assert strong != weak
    assert "strong" not in strong


async def test_the_callers_token_is_exchanged_at_its_issuer_alone_and_once(tmp_path: Path, upstream: Accounts) -> None:
    upstream.configure(tmp_path / "home", token_exchange={"token_endpoint": f"{upstream.address}/token", **EXCHANGE})
    async with app_of(tmp_path) as app:
        ada, bob = caller("ada", bearer="subject-ada-1"), caller("bob", bearer="subject-bob-1")
        for _ in range(2):
            assert await asyncio.gather(said(app, ada), said(app, bob)) == ["ada", "bob"]
        assert sorted(upstream.told("subjects")) == ["subject-ada-1", "subject-bob-1"]
        upstream.set(end_access=True)
        assert await said(app, ada) == "ada"  # refused once, exchanged anew, sent again
        assert sorted(upstream.told("subjects")) == ["subject-ada-1", "subject-ada-1", "subject-bob-1"]
        assert "a background run does not keep it" in await said(app, caller("ada"))
        assert "gave no token" in await said(app, caller("eve", bearer="unknown-eve"))
    assert not [each for each in upstream.told("seen") if "subject-" in each]
    assert "subject-ada-1" not in repr(ada)


async def test_a_tenants_sign_in_is_made_by_its_administrator_and_used_by_all(
    tmp_path: Path, upstream: Accounts
) -> None:
    upstream.configure(tmp_path / "home", sign_in="tenant")
    plain = frozenset(Right) - {Right.ADMIN}
    async with app_of(tmp_path) as app:
        refused = await said(app, caller("bob", user=User("bob"), rights=plain))
        assert "scope admin" in refused
        assert await said(app, caller("ada", user=User("team@accounts"))) == "team@accounts"
        assert await said(app, caller("bob", rights=plain)) == "team@accounts"


async def test_all_sign_ins_of_a_principal_are_revoked_and_no_others(tmp_path: Path, upstream: Accounts) -> None:
    upstream.configure(tmp_path / "home")
    async with app_of(tmp_path) as app:
        for who in ("ada", "bob"):
            assert await said(app, caller(who, user=User(who))) == who
        settings, home = app.settings, app.home
        ended = await asyncio.to_thread(principal_signed_out, settings, home, app.database(), "ada")
        assert (ended.sign_ins, ended.revoked) == (1, 1)
        assert len(upstream.told("revoked")) == 2
        assert "cannot have its user open a link" in await said(app, caller("ada"))
        assert await said(app, caller("bob")) == "bob"
        ended = await asyncio.to_thread(principal_signed_out, settings, home, app.database(), "ada")
        assert ended.sign_ins == 0


async def test_a_dry_run_and_a_denied_tool_ask_nobody_to_sign_in(tmp_path: Path, upstream: Accounts) -> None:
    upstream.configure(tmp_path / "home", deny=["whoami"])
    user = User("ada")
    async with app_of(tmp_path) as app:
        assert "does not allow" in await said(app, caller("ada", user=user))
    assert user.asked == []


def test_sign_out_says_where_there_is_nothing_and_what_does_not_fit(tmp_path: Path, upstream: Accounts) -> None:
    home = str(tmp_path / "home")
    upstream.configure(tmp_path / "home")
    ended = sealab("servers", "sign-out", "accounts", "--who", "ada", "--home", home)
    assert (ended.returncode, "Nobody is signed in" in ended.stderr) == (1, True)
    upstream.configure(tmp_path / "home", sign_in="tenant")
    ended = sealab("servers", "sign-out", "accounts", "--who", "ada", "--home", home)
    assert (ended.returncode, "Leave it out" in ended.stderr) == (2, True)
    upstream.configure(tmp_path / "home", sign_in="operator")
    ended = sealab("servers", "sign-out", "accounts", "--json", "--home", home)
    assert (ended.returncode, '"signed_out": false' in ended.stdout) == (1, True)


WHO_TWICE = "[await tools.accounts.whoami() for _ in range(2)]"


@needs_identity_provider
@pytest.mark.timeout(300)
async def test_a_token_of_a_real_issuer_is_exchanged_and_seen_by_no_server_file_or_log(
    tmp_path: Path, upstream: Accounts
) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    resource = f"http://127.0.0.1:{port}/mcp"
    with identity_provider() as issuer:
        exchange = {"token_endpoint": f"{upstream.address}/token", "audience": "accounts", "client_id": "sealab"}
        upstream.configure(home, token_exchange=exchange)
        token = issuer.token(resource=resource, scope="run tools:read tools:write")
        settings = {
            "SEALAB_AUTH": "oauth",
            "SEALAB_OAUTH_ISSUER": issuer.issuer,
            "SEALAB_OAUTH_AUDIENCE": resource,
            "SEALAB_LOG_LEVEL": "debug",
        }
        with http_process(home, "--http", f"127.0.0.1:{port}", **settings) as server:
            async with calling(server.url, token) as caller:
                report = await caller.run(WHO_TWICE)
            server.process.terminate()
            assert server.process.stderr is not None
            log = server.process.stderr.read()
        assert report["result"] == ["exchanged for signed"] * 2, report
        assert upstream.told("subjects") == [token]  # once for both calls
        exchanged = [each for each in upstream.told("secrets") if each.startswith("access-")]
        assert set(upstream.told("seen")) - {""} == {f"Bearer {exchanged[0]}"}  # the list is asked for without one
    signature = token.rpartition(".")[2]
    kept = b"".join(each.read_bytes() for each in sorted(home.rglob("*")) if each.is_file())
    for secret in (token, signature, exchanged[0]):
        assert secret not in str(report)
        assert secret not in log
        assert secret.encode() not in kept
