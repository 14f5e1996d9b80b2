"""Sign-ins of several tenants of one server: apart from each other, found by their links, and ended with their owners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from sealab.tools_registry.authorizing.authorization import begin, finish
from sealab.tools_registry.authorizing.kept_sign_ins import kept_requests
from sealab.tools_registry.authorizing.token_endpoint import issuer_client
from sealab.tools_registry.configuration import ServerConfig, Transport
from sealab.tools_registry.errors import SignInNeeded

from ...waiting import until
from ..conftest import Caller
from ..tenants.team import command, team_server, token, told
from .accounts import Accounts, User, accounts, begun, browser, origin_of

CODE = "await tools.accounts.whoami()"


@asynccontextmanager
async def calling(url: str, bearer: str, user: Any = None) -> AsyncIterator[Caller]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}, timeout=55) as http,
        Client(
            streamable_http_client(url, http_client=http), read_timeout_seconds=200, elicitation_callback=user
        ) as client,
    ):
        yield Caller(client, Path())


class Wrong(User):
    """A user who tries the link as that of other tenants first, and what comes back from the issuer too."""

    async def __call__(self, _context: object, question: Any) -> ElicitResult:
        async with browser(self.account) as client:
            link = question.url
            for place in ("", "beta/", "no-such/", "default/", "../"):
                shown = await client.get(link.replace("/sign-in/acme/", f"/sign-in/{place}"))
                assert (place, shown.status_code in {401, 404}) == (place, True)
            to_issuer = (await begun(client, link, follow=False)).headers["location"]
            back = (await client.get(to_issuer, follow_redirects=False)).headers["location"]
            assert back.startswith(f"{origin_of(link)}/sign-in/acme/callback?")
            for place in ("", "beta/", "no-such/"):
                shown = await client.get(back.replace("/sign-in/acme/", f"/sign-in/{place}"))
                assert (place, shown.status_code) == (place, 403)
            assert "You are signed in" in (await client.get(back)).text
        return ElicitResult(action="accept")


async def test_sign_ins_of_tenants_are_apart_and_end_with_their_principal_and_their_tenant(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with accounts(tmp_path) as upstream:
        upstream.configure(home)
        tokens = {each: await asyncio.to_thread(token, home, each, "alice", "default") for each in ("acme", "beta")}
        with team_server(home) as url:
            async with calling(url, tokens["acme"], Wrong("alice@acme")) as caller:
                assert (await caller.run(CODE))["result"] == "alice@acme"
            async with calling(url, tokens["beta"]) as caller:
                assert "cannot have its user open a link" in (await caller.run(CODE))["error"]["message"]
            async with calling(url, tokens["beta"], User("alice@beta")) as caller:
                assert (await caller.run(CODE))["result"] == "alice@beta"
            second = await asyncio.to_thread(told, home, "tokens", "create", "alice", "--tenant", "acme")
            assert upstream.told("revoked") == []
            ids = [
                each["id"]
                for each in (await asyncio.to_thread(told, home, "tokens", "list", "--tenant", "acme"))["tokens"]
            ]
            first = await asyncio.to_thread(told, home, "tokens", "revoke", ids[0])
            assert first["sign_ins"] == {"ended": 0, "revoked": 0}  # another token of the principal still counts
            async with calling(url, second["token"]) as caller:
                assert (await caller.run(CODE))["result"] == "alice@acme"
            last = await asyncio.to_thread(told, home, "tokens", "revoke", ids[1])
            assert last["sign_ins"] == {"ended": 1, "revoked": 1}
            assert len(upstream.told("revoked")) == 2
            async with calling(url, tokens["beta"]) as caller:
                assert (await caller.run(CODE))["result"] == "alice@beta"
            proof = await asyncio.to_thread(told, home, "tenants", "delete", "beta", "--yes")
            assert proof["sign_ins"] == {"ended": 1, "revoked": 1}
            assert len(upstream.told("revoked")) == 4
        log = await asyncio.to_thread(command, home, "audit", "list", "--limit", "9999", "--json")
        assert log.stdout.count("upstream.signed_in") == 2, log
        assert log.stdout.count("upstream.signed_out") == 2
        assert not [each for each in upstream.told("secrets") if each in log.stdout]


async def kept(folder: Path, upstream: Accounts) -> ServerConfig:
    """Have the operator signed in to the server."""
    config = ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/mcp")
    async with issuer_client() as client, browser("operator") as theirs:
        begun_there = await begin(client, config, "http://127.0.0.1:9/callback", "a state")
        back = httpx2.URL((await theirs.get(begun_there.address, follow_redirects=False)).headers["location"])
        granted = await finish(client, begun_there.pending, back.params["code"], back.params["iss"])
    folder.joinpath("accounts.json").write_text(granted.model_dump_json(exclude={"resource"}, exclude_none=True))
    return config


async def test_the_operators_sign_in_is_renewed_once_for_all_tenants(tmp_path: Path) -> None:
    with accounts(tmp_path) as upstream:
        upstream.set(lasts=11)
        config = await kept(tmp_path, upstream)
        tenants = [kept_requests(config, tmp_path) for _ in range(4)]
        old = upstream.told("secrets")
        upstream.set(lasts=3600, slow=0.3)
        found: set[str] = set()

        async def is_renewed() -> bool:
            found.update(await asyncio.gather(*(token_sent(config, each) for each in tenants * 4)))
            return bool(upstream.told("renewed"))

        await until(is_renewed)
        assert upstream.told("renewed") == ["operator"]
        assert upstream.told("reused") == []
        assert len(found - set(old)) == 1
        (tmp_path / "accounts.json").unlink()
        with pytest.raises(SignInNeeded, match="is over"):
            await token_sent(config, tenants[0])


async def token_sent(config: ServerConfig, auth: httpx2.Auth | None) -> str:
    """Return with which token a request is signed."""
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text=request.headers["authorization"]))
    async with httpx2.AsyncClient(transport=transport, auth=auth) as client:
        return (await client.post(config.url)).text.removeprefix("Bearer ")
