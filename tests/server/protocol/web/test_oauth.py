"""A server under `AUTH=oauth`: the whole way from a first request without a token, with the SDK's own client."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from sealab.server.base.errors import SettingsError

from ....identity_provider.running import (
    SERVER,
    IdentityProvider,
    SigningKey,
    identity_provider,
    needs_identity_provider,
    unsigned,
)
from ....waiting import wait_until
from ...conftest import http_process, http_server
from .raw import INITIALIZE, Answer, asked, post
from .test_http import MODERN, MODERN_HEADERS

pytestmark = needs_identity_provider
CALLBACK = "http://127.0.0.1:9/callback"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider(claims={"signed": {"tenant": "default"}}) as running:
        yield running


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "SEALAB_AUTH": "oauth",
        "SEALAB_OAUTH_ISSUER": provider.issuer,
        "SEALAB_OAUTH_AUDIENCE": f"http://127.0.0.1:{port}/mcp",
        "SEALAB_OAUTH_CLIENT_ID": SERVER[0],
        "SEALAB_OAUTH_CLIENT_SECRET": SERVER[1],
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    }
    with http_process(home, "--http", f"127.0.0.1:{port}", **settings) as server:
        yield server.url


def send(url: str, token: str | None = None, message: dict[str, Any] = INITIALIZE, method: str = "POST") -> Answer:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if method != "POST":
        return asked(url, method, urlsplit(url).path, **headers)
    if message is not INITIALIZE:
        headers |= {**MODERN_HEADERS, "Mcp-Method": message["method"]}
        if "name" in message["params"]:
            headers["Mcp-Name"] = message["params"]["name"]
    return post(url, message, **headers)


def challenge(answer: Answer) -> str:
    return answer.headers.get("www-authenticate", "")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {**MODERN, "method": "tools/call", "params": {**MODERN["params"], "name": tool, "arguments": arguments}}


@pytest.mark.parametrize("message", [INITIALIZE, MODERN], ids=["2025", "2026"])
def test_without_a_token_the_answer_says_where_to_learn_of_the_issuer(
    url: str, provider: IdentityProvider, message: dict[str, Any]
) -> None:
    answer = send(url, message=message)
    assert answer.status == 401
    metadata = urljoin(url, "/.well-known/oauth-protected-resource/mcp")
    assert f'resource_metadata="{metadata}"' in challenge(answer)
    assert challenge(answer).startswith("Bearer ")
    assert "error=" not in challenge(answer)
    assert 'scope="run run:container ' in challenge(answer)
    for path in (metadata, metadata.removesuffix("/mcp")):
        found = json.loads(send(path, method="GET").body)
        assert (found["resource"], found["authorization_servers"]) == (url, [provider.issuer])


@pytest.mark.parametrize("message", [INITIALIZE, MODERN], ids=["2025", "2026"])
@pytest.mark.parametrize("client", ["signed", "opaque"])
def test_a_token_for_this_server_is_served(
    url: str, provider: IdentityProvider, client: str, message: dict[str, Any]
) -> None:
    assert send(url, provider.token(client, resource=url), message).status == 200


@pytest.mark.parametrize("message", [INITIALIZE, MODERN], ids=["2025", "2026"])
def test_any_other_token_is_told_to_be_invalid(url: str, provider: IdentityProvider, message: dict[str, Any]) -> None:
    key = provider.keys[0]
    good = provider.claims(aud=url)
    assert send(url, key.sign(good), message).status == 200
    refused = [
        unsigned(good),
        key.sign(good | {"exp": time.time() - 61}),
        key.sign(good | {"aud": "https://other.example/mcp"}),
        key.sign(good | {"iss": "https://other.example"}),
        SigningKey("first").sign(good),
        provider.token(resource="https://other.example/mcp"),
        "invented",
    ]
    for token in refused:
        answer = send(url, token, message)
        assert answer.status == 401
        assert 'error="invalid_token"' in challenge(answer)
        assert "resource_metadata=" in challenge(answer)


def test_a_revoked_token_is_refused_within_the_time_that_its_introspection_counts(
    url: str, provider: IdentityProvider
) -> None:
    token = provider.token("opaque", resource=url)
    assert send(url, token).status == 200
    provider.revoke(token, "opaque")
    wait_until(lambda: send(url, token).status == 401)


def test_a_call_beyond_the_scope_names_the_scope(url: str, provider: IdentityProvider) -> None:
    token = provider.token(resource=url, scope="files")
    answer = send(url, token, call("execute_code", code="1 + 1"))
    assert answer.status == 403
    assert 'error="insufficient_scope"' in challenge(answer)
    assert 'scope="run"' in challenge(answer)
    assert "resource_metadata=" in challenge(answer)
    assert send(url, token, call("list_workspace_files")).status == 200


class Storage:
    """Where a client keeps its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Follows where the user is sent, until the client's own address; the provider signs its user in on the way."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self._came_back = ""

    async def open(self, address: str) -> None:
        self.asked.append(parse_qs(urlsplit(address).query))
        async with httpx2.AsyncClient() as client:
            while not address.startswith(CALLBACK):
                response = await client.get(address)
                assert response.has_redirect_location, response.text
                address = urljoin(address, response.headers["location"])
        self._came_back = address

    async def result(self) -> AuthorizationCodeResult:
        found = {name: values[0] for name, values in parse_qs(urlsplit(self._came_back).query).items()}
        assert "error" not in found, found
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))


@asynccontextmanager
async def signed_in(url: str, mode: str, storage: Storage, browser: Browser) -> AsyncIterator[Client]:
    auth = OAuthClientProvider(
        url,
        OAuthClientMetadata(redirect_uris=[CALLBACK], token_endpoint_auth_method="none", client_name="a test"),
        storage,
        browser.open,
        browser.result,
    )
    async with (
        httpx2.AsyncClient(auth=auth, timeout=50) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode, read_timeout_seconds=200) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_signs_its_user_in_and_widens_its_scope_when_asked_to(
    url: str, provider: IdentityProvider, mode: str
) -> None:
    storage, browser = Storage(), Browser()
    async with signed_in(url, mode, storage, browser) as client:
        answer = await client.call_tool("execute_code", {"code": "6 * 7"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == 42
        (first,) = browser.asked
        assert first["resource"] == [url]
        assert first["code_challenge_method"] == ["S256"]
        assert "run" in first["scope"][0].split()
        assert "run:process" not in first["scope"][0].split()
        answer = await client.call_tool("execute_code", {"code": "6 * 7", "isolation": "process"})
        assert answer.structured_content is not None
        assert answer.structured_content["isolation"] == "process"
        assert len(browser.asked) == 2
        assert {"run", "run:process"} <= set(browser.asked[1]["scope"][0].split())
    assert storage.tokens is not None
    assert send(url, storage.tokens.access_token).status == 200


def test_without_an_issuer_the_server_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingsError, match="Set OAUTH_ISSUER and OAUTH_AUDIENCE"),
        http_server(tmp_path, SEALAB_AUTH="oauth"),
    ):
        pass


def test_an_issuer_that_is_down_is_said_to_be_so_and_lets_nobody_in(tmp_path: Path) -> None:
    settings = {
        "SEALAB_AUTH": "oauth",
        "SEALAB_OAUTH_ISSUER": "http://127.0.0.1:9",
        "SEALAB_OAUTH_AUDIENCE": "urn:sealab",
    }
    with http_server(tmp_path, **settings) as url:
        token = SigningKey("first").sign({"iss": "http://127.0.0.1:9", "aud": "urn:sealab", "sub": "a", "exp": 2**33})
        answer = send(url, token)
        assert answer.status == 503
        assert b"does not answer" in answer.body
        assert send(url.replace("/mcp", "/readyz"), method="GET").status == 200
