"""Sign-ins of several tenants of one server: apart from each other, found by their links, and ended with their owners."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcp.types import ElicitResult

from ..tenants.team import command, team_server, token, told
from .accounts import Accounts, User, begun, browser, calling, origin_of

CODE = "await tools.accounts.whoami()"


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


async def test_sign_ins_of_tenants_are_apart_and_end_with_their_principal_and_their_tenant(
    tmp_path: Path, upstream: Accounts
) -> None:
    home = tmp_path / "home"
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
            each["id"] for each in (await asyncio.to_thread(told, home, "tokens", "list", "--tenant", "acme"))["tokens"]
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
