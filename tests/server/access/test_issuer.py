"""An issuer: which URLs are taken for it, what clients learn of it, and what it answers that is odd, slow or large."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.auth import ProtectedResourceMetadata
from starlette.responses import PlainTextResponse

from sealab.server.base.secure_urls import fault_of_url, is_loopback
from sealab.server.governance.access.issuer_link import IssuerLink
from sealab.server.governance.access.names import DEFAULT_RIGHTS
from sealab.server.governance.access.verifier import VerifierUnavailable
from sealab.server.interfaces.protocol.web.challenges import MetadataPages, ResourceMetadata

from ...clocks import Clock
from ...identity_provider.running import RESOURCE, SigningKey
from .scripted_issuer import MakeVerifier, ScriptedIssuer, scripted_issuer

METADATA = "/.well-known/oauth-authorization-server"
KEY = SigningKey("first")


@pytest.fixture
def issuer() -> Iterator[ScriptedIssuer]:
    with scripted_issuer() as running:
        running.publish(KEY)
        yield running


def token(issuer: ScriptedIssuer, key: SigningKey = KEY, **header: Any) -> str:
    return key.sign({"iss": issuer.url, "aud": RESOURCE, "sub": "ada", "exp": 2**33}, **header)


async def test_the_metadata_must_be_of_the_issuer_that_was_named(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    for other in ("https://other.example", f"{issuer.url}/", issuer.url.upper(), None, [issuer.url]):
        issuer.answer(METADATA, issuer.metadata(issuer=other))
        with pytest.raises(VerifierUnavailable, match="OAUTH_ISSUER"):
            await verifier_of(issuer.settings()).identity_of(token(issuer))
    assert "/keys" not in issuer.asked
    issuer.answer("/.well-known/openid-configuration", issuer.metadata())
    assert await verifier_of(issuer.settings()).identity_of(token(issuer)) is not None


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/keys", "http://other.example/keys", "file:///etc/passwd", "keys", 7, "https://a@b.example/keys"],
)
async def test_keys_come_from_a_secure_url_only(issuer: ScriptedIssuer, verifier_of: MakeVerifier, url: object) -> None:
    issuer.answer(METADATA, issuer.metadata(jwks_uri=url))
    with pytest.raises(VerifierUnavailable, match="jwks_uri"):
        await verifier_of(issuer.settings()).identity_of(token(issuer))


async def test_a_redirect_is_not_followed(issuer: ScriptedIssuer, verifier_of: MakeVerifier) -> None:
    with scripted_issuer() as elsewhere:
        elsewhere.publish(KEY)
        issuer.answer("/keys", b"", 302, Location=f"{elsewhere.url}/keys")
        with pytest.raises(VerifierUnavailable, match="redirect"):
            await verifier_of(issuer.settings()).identity_of(token(issuer))
        issuer.answer("/introspect", b"", 307, Location=f"{elsewhere.url}/introspect")
        issuer.publish(KEY)
        with pytest.raises(VerifierUnavailable, match="redirect"):
            await verifier_of(issuer.settings()).identity_of("opaque")
        assert not elsewhere.asked


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        (b'{"keys": [' + b" " * 300_000 + b"]}", 200, {}),
        (b"[]", 200, {}),
        (b"[" * 100_000, 200, {}),
        (b"\xff\xfe", 200, {}),
        (b"", 200, {}),
        (b'{"keys": 1}', 200, {}),
        (b'{"keys": []}', 500, {}),
        (b'{"keys": []}', 404, {}),
        (gzip.compress(b" " * 10_000_000), 200, {"Content_Encoding": "gzip"}),
        (b'{"keys": []}', 200, {"Content_Length": "5000"}),
    ],
    ids=range(10),
)
async def test_an_answer_that_is_too_large_or_not_what_it_should_be_lets_nobody_in(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier, body: bytes, status: int, headers: dict[str, str]
) -> None:
    issuer.answer("/keys", body, status, **headers)
    if "Content_Length" in headers:
        issuer.answer("/keys", body, status, **headers, Connection="close")
        link = IssuerLink(0.3)
        with pytest.raises(VerifierUnavailable):
            await link.get(f"{issuer.url}/keys")
        await link.close()
        return
    with pytest.raises(VerifierUnavailable):
        await verifier_of(issuer.settings()).identity_of(token(issuer))


async def test_an_answer_that_does_not_come_is_not_waited_for(issuer: ScriptedIssuer) -> None:
    issuer.held = threading.Event()
    link = IssuerLink(0.2)
    with pytest.raises(VerifierUnavailable, match=r"within 0\.2 seconds"):
        await link.post(f"{issuer.url}/introspect", {})
    issuer.held.set()
    await link.close()


async def test_keys_that_cannot_be_used_are_left_out_and_the_others_serve(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    good = KEY.public_jwk
    odd: list[object] = [
        None,
        [],
        "key",
        {},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "first", "alg": "HS256"},
        {"kty": "RSA", "kid": "first"},
        {"kty": "RSA", "n": 7, "e": "AQAB"},
        {"kty": ["RSA"], "n": "AA", "e": "AQAB"},
        {**good, "n": "A" * 100_000},
        {**good, "e": "AA"},
        {**good, "n": good["n"][:40]},
        {**good, "kid": 7},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"},
    ]
    issuer.answer("/keys", {"keys": [*odd, good]})
    assert await verifier_of(issuer.settings()).identity_of(token(issuer)) is not None


@pytest.mark.parametrize(
    "unfit",
    [{"use": "enc"}, {"key_ops": ["encrypt"]}, {"key_ops": "verify"}, {"alg": "PS256"}, {"kid": "other"}],
    ids=str,
)
async def test_a_key_for_something_else_verifies_nothing(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier, unfit: dict[str, object]
) -> None:
    issuer.answer("/keys", {"keys": [KEY.public_jwk | unfit]})
    assert await verifier_of(issuer.settings()).identity_of(token(issuer)) is None


async def test_a_key_that_is_published_with_its_private_half_verifies_nothing(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    issuer.answer("/keys", {"keys": [KEY.jwk]})
    assert await verifier_of(issuer.settings()).identity_of(token(issuer)) is None


async def test_of_keys_with_one_id_each_is_tried(issuer: ScriptedIssuer, verifier_of: MakeVerifier) -> None:
    twin, curve = SigningKey("first"), SigningKey("first", "ES256")
    issuer.publish(twin, curve, KEY)
    verifier = verifier_of(issuer.settings())
    for key in (twin, curve, KEY):
        assert await verifier.identity_of(token(issuer, key)) is not None
        assert await verifier.identity_of(token(issuer, key, kid=None)) is not None
    assert await verifier.identity_of(token(issuer, SigningKey("first"))) is None


async def test_what_the_issuer_said_is_used_for_ten_minutes(issuer: ScriptedIssuer, verifier_of: MakeVerifier) -> None:
    clock = Clock(1e9)
    verifier = verifier_of(issuer.settings(), clock)
    for _ in range(3):
        assert await verifier.identity_of(token(issuer)) is not None
        clock.now += 299
    assert issuer.asked["/keys"] == 1
    clock.now += 10
    assert await verifier.identity_of(token(issuer)) is not None
    assert issuer.asked["/keys"] == 2


async def test_a_key_that_was_withdrawn_is_not_remembered_by_its_tokens(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    clock = Clock(1e9)
    verifier = verifier_of(issuer.settings(), clock)
    assert await verifier.identity_of(token(issuer)) is not None
    issuer.publish(SigningKey("second"))
    clock.now += 600
    assert await verifier.identity_of(token(issuer)) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://idp.example",
        "https://idp.example/",
        "https://idp.example:8443/realms/team",
        "http://127.0.0.1:8080/realms/team",
        "http://localhost:8080",
        "http://[::1]:8080",
        "https://[2001:db8::1]/a",
    ],
)
def test_https_is_secure_and_http_on_this_machine(url: str) -> None:
    assert fault_of_url(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://idp.example",
        "http://10.0.0.1",
        "http://127.0.0.1.idp.example",
        "http://localhost.idp.example",
        "ftp://idp.example",
        "file:///etc/passwd",
        "idp.example",
        "//idp.example",
        "https://",
        "https:idp.example",
        "https://:443",
        "https://idp.example:",
        "https://idp.example:x",
        "https://idp.example:99999",
        "https://user@idp.example",
        "https://a:b@idp.example",
        "http://127.0.0.1@idp.example",
        "https://idp.example\\@127.0.0.1",
        "https://idp.example#a",
        "https://idp.example?a",
        "https://idp.example/ a",
        "https://idp.example/\n",
        "https://idp.éxample",
        "https://idp.example/" + "a" * 500,
        "https://[::1",
        "",
    ],
)
def test_any_other_url_is_not(url: str) -> None:
    assert fault_of_url(url) is not None


def test_an_endpoint_may_have_a_query_and_need_not_be_of_this_machine() -> None:
    assert fault_of_url("https://idp.example/introspect?realm=a", query=True) is None
    for url in ("https://127.0.0.1/", "https://localhost/", "https://[::ffff:127.0.0.1]/", "https://0.0.0.0/"):
        assert fault_of_url(url, loopback=False) is not None


@given(st.ip_addresses())
def test_addresses_are_of_this_machine_as_the_standard_library_says(address: object) -> None:
    mapped = getattr(address, "ipv4_mapped", None)
    here = address.is_loopback or address.is_unspecified or bool(mapped and mapped.is_loopback)  # type: ignore[attr-defined]
    assert is_loopback(str(address)) is here


URL = "https://sealab.example/mcp"


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
@pytest.mark.parametrize("audience", [URL, "api://sealab", "urn:sealab"])
async def test_the_metadata_is_what_a_client_of_the_sdk_reads(path: str, audience: str) -> None:
    metadata = ResourceMetadata(URL, audience, "https://idp.example")
    assert metadata.url == "https://sealab.example/.well-known/oauth-protected-resource/mcp"
    app = MetadataPages(PlainTextResponse("inner"), metadata)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://sealab.example") as client:
        answer = await client.get(path)
        found = ProtectedResourceMetadata.model_validate_json(answer.text)
        assert str(found.resource) == URL
        assert [str(each).rstrip("/") for each in found.authorization_servers] == ["https://idp.example"]
        assert set(found.scopes_supported or ()) == DEFAULT_RIGHTS
        assert found.bearer_methods_supported == ["header"]
        assert answer.headers["content-type"] == "application/json"
        assert (await client.head(path)).status_code == 200
        assert (await client.post(path)).status_code == 405
        for other in (f"{path}x", f"{path}/", "/mcp", "/"):
            assert (await client.get(other)).text == "inner"


@pytest.mark.parametrize(("audience", "path"), [("https://sealab.example", ""), ("https://sealab.example/a", "/a")])
def test_an_audience_that_is_another_url_is_what_clients_ask_a_token_for(audience: str, path: str) -> None:
    metadata = ResourceMetadata(URL, audience, "https://idp.example")
    assert metadata.content["resource"] == audience
    assert metadata.url == f"https://sealab.example/.well-known/oauth-protected-resource{path}"
    assert metadata.url.removeprefix("https://sealab.example") in metadata.paths
