"""Sign-ins are renewed by one process at a time, at a real issuer that rotates refresh tokens and takes none twice."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from sealab.server.base.database import HomeDatabase
from sealab.server.governance.audit import audit_log
from sealab.server.governance.audit.audit_log import AuditLog
from sealab.server.governance.audit.trail import AuditTrail
from sealab.server.governance.caller import Caller
from sealab.server.governance.scopes import of_principal
from sealab.server.governance.sign_ins.sign_ins import SignIns
from sealab.server.governance.sign_ins.signing_in import signed_in_here
from sealab.skills_db.audit.audit_store import AuditStore
from sealab.tools_registry.configuration import ServerConfig, SignInOf, Transport
from sealab.tools_registry.errors import SignInFailed, SignInNeeded
from sealab.tools_registry.sign_in.owners import SignInOwner

from ...waiting import until
from ..audit.test_audited_requests import refuse_lines
from .accounts import Accounts, accounts, browser, renewed_once, token_sent

KEY = bytes(range(32))
BRIEF = 11
"""Seconds that a token lasts which is renewed after one: that is done ten seconds before its end."""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[SignIns]]:
    """The sign-ins of two processes with one database."""
    databases = [HomeDatabase(None, tmp_path) for _ in range(2)]
    yield [SignIns(each, lambda: KEY) for each in databases]
    for each in databases:
        each.close()


@pytest.fixture
def server(server: ServerConfig) -> ServerConfig:
    """The server of the folder's tests, called with each caller's sign-in."""
    return replace(server, sign_in=SignInOf.CALLER)


async def signed_in(sign_ins: SignIns, server: ServerConfig) -> SignInOwner:
    owner = sign_ins.owner(server, Caller(of_principal("ada")))

    async def show(address: str) -> None:
        async with browser("ada") as hers:
            assert "signed in" in (await hers.get(address)).text

    await signed_in_here(sign_ins, server, owner, show)
    return owner


async def test_where_its_line_is_required_and_cannot_be_written_nothing_is_kept_and_the_issuer_revokes(
    upstream: Accounts, server: ServerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "GIVE_UP_SECONDS", 0.1)
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.02)
    database = HomeDatabase(None, tmp_path)
    log = AuditLog(lambda: AuditStore(database(), KEY))
    sign_ins = SignIns(database, lambda: KEY, audit=AuditTrail(log, is_required=True))
    owner = sign_ins.owner(server, Caller(of_principal("ada")))
    await log.stored()
    database()
    refuse_lines(tmp_path)
    with pytest.raises(SignInFailed, match=r"not used\. This was refused, since AUDIT is required"):
        await signed_in(sign_ins, server)
    assert await sign_ins.version(server, owner) is None
    assert upstream.told("revoked")
    with closing(sqlite3.connect(tmp_path / "sealab.db", timeout=30)) as connection:
        connection.execute("DROP TRIGGER no_more")
    await signed_in(sign_ins, server)
    assert await sign_ins.version(server, owner) is not None
    await asyncio.to_thread(log.close)
    database.close()


async def token(sign_ins: SignIns, server: ServerConfig, owner: SignInOwner) -> str | None:
    return await token_sent(server, sign_ins.signs(server, owner))


async def test_of_all_requests_of_all_processes_one_renews(
    upstream: Accounts, server: ServerConfig, processes: list[SignIns]
) -> None:
    upstream.set(lasts=BRIEF)
    owner = await signed_in(processes[0], server)
    new = await renewed_once(upstream, lambda at: token(processes[at % 2], server, owner), 16, "ada")
    assert await token(processes[0], server, owner) == new


async def test_a_sign_in_whose_refresh_token_the_issuer_ended_is_over(
    upstream: Accounts, server: ServerConfig, processes: list[SignIns]
) -> None:
    upstream.set(lasts=1)
    owner = await signed_in(processes[0], server)
    for each in [each for each in upstream.told("secrets") if each.startswith("refresh-")]:
        httpx2.post(f"{upstream.address}/revoke", data={"token": each})
    with pytest.raises(SignInNeeded, match="invalid_grant"):
        await token(processes[0], server, owner)
    assert await processes[1].version(server, owner) is None


async def test_an_issuer_that_cannot_be_reached_ends_no_sign_in(tmp_path: Path, processes: list[SignIns]) -> None:
    with accounts(tmp_path) as upstream:
        server = ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/mcp")
        upstream.set(lasts=1)
        owner = await signed_in(processes[0], server)
    with pytest.raises(httpx2.ConnectError, match="cannot be reached"):
        await token(processes[0], server, owner)
    assert await processes[1].version(server, owner) == 1
    with pytest.raises(httpx2.ConnectError):  # the right to renew was given back, or this would wait for it
        await token(processes[1], server, owner)


async def test_who_signs_out_while_it_is_renewed_has_the_new_tokens_revoked_too(
    upstream: Accounts, server: ServerConfig, processes: list[SignIns]
) -> None:
    upstream.set(lasts=1)
    owner = await signed_in(processes[0], server)
    upstream.set(lasts=3600, late=2)
    renewing = asyncio.create_task(token(processes[0], server, owner))
    await until(lambda: upstream.told("renewed"))
    assert await processes[1].sign_out(server, owner) == (True, True)
    with pytest.raises(SignInNeeded):
        await renewing
    given = [each for each in upstream.told("secrets") if each.startswith(("access-", "refresh-"))]
    assert len(given) == 4
    assert set(upstream.told("revoked")) == set(given)


async def test_a_caller_that_is_cancelled_while_it_is_renewed_loses_nothing(
    upstream: Accounts, server: ServerConfig, processes: list[SignIns]
) -> None:
    upstream.set(lasts=1)
    owner = await signed_in(processes[0], server)
    upstream.set(lasts=3600, slow=0.5)
    request = asyncio.create_task(token(processes[0], server, owner))
    await until(lambda: processes[0].is_renewing)
    request.cancel()

    async def is_renewed() -> bool:
        return await processes[1].version(server, owner) == 2

    await until(is_renewed)
    assert await token(processes[1], server, owner)
    assert upstream.told("reused") == []


async def test_a_sign_in_is_sent_to_no_other_address(
    upstream: Accounts, server: ServerConfig, processes: list[SignIns]
) -> None:
    owner = await signed_in(processes[0], server)
    moved = ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/other", sign_in=SignInOf.CALLER)
    with pytest.raises(SignInNeeded):
        await token(processes[0], moved, owner)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
    async with httpx2.AsyncClient(transport=transport, auth=processes[0].signs(server, owner)) as client:
        with pytest.raises(SignInNeeded, match="another address"):
            await client.post("http://evil.example/mcp")
