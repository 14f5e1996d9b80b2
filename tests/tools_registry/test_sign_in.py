from __future__ import annotations

import httpx2
import pytest

from sealab.tools_registry.configuration import ServerConfig, Transport
from sealab.tools_registry.errors import ConnectFailed, SignInNeeded
from sealab.tools_registry.sign_in.authorization import begin
from sealab.tools_registry.sign_in.browsers import Show, coming_back
from sealab.tools_registry.sign_in.token_endpoint import SignedRequests, issuer_client
from sealab.tools_registry.upstream.upstreams import Upstreams

from ..server.sign_ins.accounts import Accounts, accounts
from .upstream_servers import configured


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    with accounts(tmp_path_factory.mktemp("accounts")) as running:
        yield running


def upstreams(folder, url: str, **more: object) -> Upstreams:
    return Upstreams(configured(folder, {"s": {"url": url, **more}}))


async def test_a_call_without_a_sign_in_says_how_to_sign_in(tmp_path, upstream: Accounts):
    async with upstreams(tmp_path, f"{upstream.address}/mcp") as running:
        with pytest.raises(SignInNeeded, match="Run `sealab servers test s`"):
            await running.call("s", "whoami", {})


async def test_a_wrong_header_is_named_instead_of_a_sign_in(tmp_path, upstream: Accounts):
    headers = {"Authorization": "Bearer wrong"}
    async with upstreams(tmp_path, f"{upstream.address}/mcp", headers=headers) as running:
        with pytest.raises(ConnectFailed, match="Authorization header") as raised:
            await running.call("s", "whoami", {})
    assert not isinstance(raised.value, SignInNeeded)


async def sign_in(upstream: Accounts, show: Show, wait_seconds: float = 20) -> None:
    config = ServerConfig("s", Transport.HTTP, url=f"{upstream.address}/mcp")
    async with coming_back(config, show, wait_seconds) as browsers, issuer_client() as client:
        await browsers.show((await begin(client, config, browsers.redirect_uri, "a state")).address)
        await browsers.answered()


async def test_nobody_who_signs_in_is_an_error_that_says_so(upstream: Accounts):
    async def ignore(_: str) -> None:
        return

    with pytest.raises(SignInNeeded, match=r"within 0\.2 seconds"):
        await sign_in(upstream, ignore, 0.2)


async def test_a_user_who_refuses_is_an_error_that_says_so(upstream: Accounts):
    async def refuse(shown: str) -> None:
        back = dict(httpx2.URL(shown).params)["redirect_uri"]
        async with httpx2.AsyncClient() as browser:
            state = httpx2.URL(shown).params["state"]
            await browser.get(f"{back}?error=access_denied&state={state}")
            assert (await browser.get(back.replace("callback", "else"))).status_code == 404

    with pytest.raises(SignInNeeded, match="access_denied"):
        await sign_in(upstream, refuse)


async def token() -> str:
    return "token"


SIGNED = SignedRequests(ServerConfig("s", Transport.HTTP, url="http://x/mcp"), token, "The sign-in is over.")


@pytest.mark.parametrize(
    ("status", "challenge", "scope"),
    [
        (401, 'Bearer resource_metadata="http://127.0.0.1:9/there"', None),
        (403, 'Bearer error="insufficient_scope", scope="files"', "files"),
    ],
)
async def test_a_server_that_refuses_a_sign_in_has_nothing_fetched(status: int, challenge: str, scope: str | None):
    asked = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(status, headers={"www-authenticate": challenge})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse), auth=SIGNED) as client:
        with pytest.raises(SignInNeeded, match="The sign-in is over") as raised:
            await client.post("http://x/mcp")
    assert asked == ["http://x/mcp"]
    assert raised.value.scope == scope


async def test_what_is_forbidden_for_another_reason_is_no_refusal_of_the_sign_in():
    def forbid(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == "Bearer token"
        return httpx2.Response(403)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(forbid), auth=SIGNED) as client:
        assert (await client.post("http://x/mcp")).status_code == 403
