"""Where an upstream server may have requests sent by what it says of its issuer (server-side request forgery)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

from sealab.tools_registry.configuration import ServerConfig, Transport
from sealab.tools_registry.errors import SignInFailed
from sealab.tools_registry.sign_in.authorization import begin
from sealab.tools_registry.sign_in.reach import AddressReach, reach_of, reach_of_server
from sealab.tools_registry.sign_in.token_endpoint import Granted, issuer_client, renewed, revoked

NEVER = None
LINK = "http://169.254.169.254"


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        ("93.184.216.34", AddressReach.PUBLIC),
        ("2606:2800:220:1::1", AddressReach.PUBLIC),
        ("10.0.0.7", AddressReach.PRIVATE),
        ("192.168.1.1", AddressReach.PRIVATE),
        ("100.64.0.1", AddressReach.PRIVATE),
        ("fd00:ec2::254", AddressReach.PRIVATE),
        ("127.0.0.1", AddressReach.LOOPBACK),
        ("127.9.9.9", AddressReach.LOOPBACK),
        ("0.0.0.0", AddressReach.LOOPBACK),  # Linux connects it to this machine
        ("::1", AddressReach.LOOPBACK),
        ("::", AddressReach.LOOPBACK),
        ("::ffff:127.0.0.1", AddressReach.LOOPBACK),
        ("2002:7f00:1::", AddressReach.LOOPBACK),
        ("64:ff9b::7f00:1", AddressReach.LOOPBACK),
        ("64:ff9b::5db8:d822", AddressReach.PUBLIC),
        ("169.254.169.254", NEVER),
        ("fe80::1%eth0", NEVER),
        ("224.0.0.1", NEVER),
        ("240.0.0.1", NEVER),
        ("255.255.255.255", NEVER),
    ],
)
def test_how_near_an_address_leads(address: str, reach: AddressReach | None) -> None:
    assert reach_of(address) == reach


@given(st.ip_addresses(v=4))
def test_an_address_that_is_not_global_is_never_public_in_whatever_form_it_is_written(address: Any) -> None:
    forms = [str(address), f"::ffff:{address}", f"64:ff9b::{address}"]
    assert len({reach_of(form) for form in forms}) == 1
    if not address.is_global:
        assert reach_of(str(address)) != AddressReach.PUBLIC


@dataclass
class Service:
    """An HTTP service on the loopback address, which keeps the paths that it was asked for."""

    url: str = ""
    answers: dict[str, tuple[int, dict[str, str], object]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        self.asked.append(path)
        status, headers, body = self.answers.get(path, (404, {}, {}))
        text = json.dumps(body)
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(text)}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join([*lines, "connection: close"]) + "\r\n\r\n" + text).encode())
        await writer.drain()
        writer.close()

    def says(self, **endpoints: str) -> None:
        """Be a server that wants a sign-in, and its own issuer."""
        issuer = {"issuer": self.url, "response_types_supported": ["code"]}
        own = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "token_endpoint")}
        own["registration_endpoint"] = f"{self.url}/register"
        self.answers["/mcp"] = (401, {"www-authenticate": "Bearer"}, {})
        self.answers["/.well-known/oauth-authorization-server"] = (200, {}, issuer | own | endpoints)
        self.answers["/register"] = (201, {}, {"client_id": "c", "redirect_uris": ["http://127.0.0.1/back"]})


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    made = Service()
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as listening:
        made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        made.says()
        yield made


def granted_far_away(token_endpoint: str, **more: Any) -> Granted:
    """What a server gave that was reached at a public address, whose issuer has its endpoints elsewhere."""
    metadata = OAuthMetadata(
        issuer="http://far.example",  # type: ignore[arg-type]  # pydantic reads it
        authorization_endpoint="http://far.example/authorize",  # type: ignore[arg-type]
        token_endpoint=token_endpoint,  # type: ignore[arg-type]
        revocation_endpoint=token_endpoint,  # type: ignore[arg-type]
    )
    tokens = OAuthToken(access_token="a", refresh_token="r")
    client = OAuthClientInformationFull(client_id="c", redirect_uris=None)
    return Granted(url="http://far.example/mcp", tokens=tokens, client=client, metadata=metadata, **more)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0"])
async def test_a_server_far_away_has_nothing_posted_to_this_machine(host: str) -> None:
    async with service() as here, issuer_client() as client:
        granted = granted_far_away(f"http://{host}:{here.url.rpartition(':')[2]}/token", reach=AddressReach.PUBLIC)
        with pytest.raises(SignInFailed):
            await renewed(client, granted)
        assert not await revoked(client, granted)
        assert here.asked == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> Callable[[], int]:
    """Let names stand for one address after another, the last one ever again, as who holds them may say."""
    waiting, asked = list(answers), []

    async def answer(host: str, port: int, **_options: Any) -> list[Any]:
        asked.append(host)
        address = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answer)
    return lambda: len(asked)


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async with service() as here, issuer_client() as client:
        port = here.url.rpartition(":")[2]
        count = resolving(monkeypatch, "93.184.216.34", "127.0.0.1")
        granted = granted_far_away(f"http://far.example:{port}/token")
        with pytest.raises(SignInFailed, match="not public"):  # far when it is looked at, and here when it is asked
            await renewed(client, granted)
        assert count() == 2
        with pytest.raises(SignInFailed, match="HTTP status 404"):
            await renewed(client, granted.model_copy(update={"reach": AddressReach.LOOPBACK}))
        assert here.asked == ["/token"]
        assert count() == 3, "the name was not resolved again for the connection"


async def test_of_several_addresses_of_a_server_the_farthest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "93.184.216.34")
    assert await reach_of_server("https://far.example/mcp") == AddressReach.PUBLIC
    resolving(monkeypatch, "10.0.0.1")
    assert await reach_of_server("https://near.example/mcp") == AddressReach.PRIVATE


def config(here: Service) -> ServerConfig:
    return ServerConfig(name="w", type=Transport.HTTP, url=f"{here.url}/mcp")


async def test_a_server_on_this_machine_names_what_is_there() -> None:
    async with service() as here, issuer_client() as client:
        begun = await begin(client, config(here), "http://127.0.0.1/back", "state")
        assert begun.address.startswith(f"{here.url}/authorization_endpoint?")
        assert begun.pending.reach == AddressReach.LOOPBACK


@pytest.mark.parametrize(
    "endpoint", ["authorization_endpoint", "registration_endpoint", "token_endpoint", "revocation_endpoint"]
)
async def test_an_endpoint_without_a_safe_address_ends_the_sign_in(endpoint: str) -> None:
    async with service() as here, issuer_client() as client:
        here.says(**{endpoint: "ftp://far.example/x"})
        with pytest.raises(SignInFailed):
            await begin(client, config(here), "http://127.0.0.1/back", "state")
        assert "/register" not in here.asked


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "registration_endpoint"])
async def test_nobody_names_the_addresses_of_a_link(endpoint: str) -> None:
    async with service() as here, issuer_client() as client:
        here.says(**{endpoint: f"{LINK}/latest"})
        with pytest.raises(SignInFailed, match="not public") as raised:
            await begin(client, config(here), "http://127.0.0.1/back", "state")
        assert "169.254" not in str(raised.value)
        assert "169.254" in raised.value.for_operator


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"www-authenticate": f'Bearer resource_metadata="{LINK}/latest"'}, "not public"),
        ({"www-authenticate": 'Bearer resource_metadata="gopher://far.example/"'}, "without https"),
    ],
)
async def test_where_a_challenge_leads_is_judged_alike(answer: dict[str, str], said: str) -> None:
    async with service() as here, issuer_client() as client:
        here.answers["/mcp"] = (401, answer, {})
        with pytest.raises(SignInFailed, match=said):
            await begin(client, config(here), "http://127.0.0.1/back", "state")
        assert here.asked == ["/mcp"]


async def test_an_issuer_without_metadata_has_its_endpoints_where_the_specification_of_2025_03_put_them() -> None:
    async with service() as here, issuer_client() as client:
        del here.answers["/.well-known/oauth-authorization-server"]
        begun = await begin(client, config(here), "http://127.0.0.1/back", "state", scope="files")
        assert begun.address.startswith(f"{here.url}/authorize?")
        assert httpx2.URL(begun.address).params["scope"] == "files"
        del here.answers["/register"]
        with pytest.raises(SignInFailed, match='If it takes a key instead, give it one in "headers"'):
            await begin(client, config(here), "http://127.0.0.1/back", "state")


async def test_a_redirect_of_an_issuer_is_not_followed() -> None:
    async with service() as here, service() as other, issuer_client() as client:
        here.answers["/.well-known/oauth-authorization-server"] = (302, {"location": f"{other.url}/inside"}, {})
        with pytest.raises(SignInFailed):
            await begin(client, config(here), "http://127.0.0.1/back", "state")
        assert other.asked == []
