from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys

import httpx2
import pytest

from sealab.tools_registry.errors import ConnectFailed, SignInNeeded
from sealab.tools_registry.sign_in.browsers import kept_sign_in, signing_in
from sealab.tools_registry.upstream.upstreams import SIGN_INS, Upstreams

from ..waiting import wait_until
from .upstream_servers import SERVERS, configured


def serving(folder, lasts: int):
    file = folder / "address"
    server = subprocess.Popen([sys.executable, str(SERVERS / "signed.py"), "0", str(file), str(lasts)])
    wait_until(lambda: file.exists() or server.poll() is not None)
    assert server.poll() is None, "the server ended before it listened"
    return server, file.read_text()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    server, address = serving(tmp_path_factory.mktemp("signed"), 3600)
    yield address
    server.kill()
    server.wait()


@pytest.fixture
def brief_address(tmp_path):
    """Where tokens last two seconds."""
    server, address = serving(tmp_path, 2)
    yield address
    server.kill()
    server.wait()


async def agree(address: str) -> None:
    """Do what a browser does whose user agrees: open the address, and follow it back to the listener."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        assert "signed in" in (await browser.get(address)).text


async def sign_in(folder, url: str, show=agree, wait_seconds: float = 20) -> None:
    configuration = configured(folder, {"s": {"url": url, "connect_timeout_seconds": 30}})
    config = configuration.servers["s"]
    async with (
        signing_in(config, folder / "state" / SIGN_INS, show, wait_seconds) as auth,
        Upstreams(configuration, state=folder / "state", sign_in=lambda _: auth) as upstreams,
    ):
        await upstreams.inspect("s")


def upstreams(folder, url: str, **more: object) -> Upstreams:
    return Upstreams(configured(folder, {"s": {"url": url, **more}}), state=folder / "state")


async def test_a_call_without_a_sign_in_says_how_to_sign_in(tmp_path, address):
    async with upstreams(tmp_path, f"{address}/mcp") as running:
        with pytest.raises(SignInNeeded, match="Run `sealab servers test s`"):
            await running.call("s", "whoami", {})


async def test_a_wrong_header_is_named_instead_of_a_sign_in(tmp_path, address):
    headers = {"Authorization": "Bearer wrong"}
    async with upstreams(tmp_path, f"{address}/mcp", headers=headers) as running:
        with pytest.raises(ConnectFailed, match="Authorization header") as raised:
            await running.call("s", "whoami", {})
    assert not isinstance(raised.value, SignInNeeded)


async def test_a_sign_in_is_kept_for_later_calls_and_read_by_its_owner_alone(tmp_path, address):
    await sign_in(tmp_path, f"{address}/mcp")
    async with upstreams(tmp_path, f"{address}/mcp") as running:
        assert (await running.call("s", "whoami", {})).value == 0
    kept = tmp_path / "state" / SIGN_INS / "s.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


async def test_a_sign_in_is_not_sent_to_another_address(tmp_path, address):
    await sign_in(tmp_path, f"{address}/mcp")
    async with upstreams(tmp_path, f"{address}/mcp?other") as running:
        with pytest.raises(SignInNeeded):
            await running.call("s", "whoami", {})


async def test_a_token_that_ended_is_renewed_by_a_later_process(tmp_path, brief_address):
    await sign_in(tmp_path, f"{brief_address}/mcp")
    await asyncio.sleep(2.2)
    async with upstreams(tmp_path, f"{brief_address}/mcp") as running:
        assert (await running.call("s", "whoami", {})).value >= 1


async def test_nobody_who_signs_in_is_an_error_that_says_so(tmp_path, address):
    async def ignore(_: str) -> None:
        return

    with pytest.raises(SignInNeeded, match=r"within 0\.2 seconds"):
        await sign_in(tmp_path, f"{address}/mcp", ignore, 0.2)
    assert not (tmp_path / "state" / SIGN_INS).exists()


async def test_a_user_who_refuses_is_an_error_that_says_so(tmp_path, address):
    async def refuse(shown: str) -> None:
        back = dict(httpx2.URL(shown).params)["redirect_uri"]
        async with httpx2.AsyncClient() as browser:
            state = httpx2.URL(shown).params["state"]
            await browser.get(f"{back}?error=access_denied&state={state}")
            assert (await browser.get(back.replace("callback", "else"))).status_code == 404

    with pytest.raises(SignInNeeded, match="access_denied"):
        await sign_in(tmp_path, f"{address}/mcp", refuse)


@pytest.mark.parametrize(
    ("status", "challenge"),
    [(401, 'Bearer resource_metadata="http://127.0.0.1:9/there"'), (403, 'Bearer error="insufficient_scope"')],
)
async def test_a_server_that_refuses_a_kept_sign_in_has_nothing_fetched(tmp_path, status, challenge):
    asked = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(status, headers={"www-authenticate": challenge})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse), auth=kept(tmp_path)) as client:
        with pytest.raises(SignInNeeded, match="sign-in to the server 's' is over"):
            await client.post("http://x/mcp")
    assert asked == ["http://x/mcp"]


async def test_what_is_forbidden_for_another_reason_is_no_refusal_of_the_sign_in(tmp_path):
    def forbid(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == "Bearer token"
        return httpx2.Response(403)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(forbid), auth=kept(tmp_path)) as client:
        assert (await client.post("http://x/mcp")).status_code == 403


def kept(folder) -> httpx2.Auth:
    """Return what signs by a sign-in that was kept for a server at `http://x/mcp`."""
    folder.joinpath("s.json").write_text(
        json.dumps({"url": "http://x/mcp", "tokens": {"access_token": "token", "token_type": "Bearer"}})
    )
    auth = kept_sign_in(configured(folder, {"s": {"url": "http://x/mcp"}}).servers["s"], folder)
    assert auth is not None
    return auth
