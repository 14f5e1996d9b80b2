"""Tokens of a real identity provider, and those that somebody made to look like them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from sealab.server.base.identity import Right
from sealab.server.base.settings import Settings
from sealab.server.governance.access.issuer import FRESH_SECONDS, KEPT_SECONDS, RETRY_SECONDS
from sealab.server.governance.access.oauth_verifier import OAuthVerifier
from sealab.server.governance.access.verifier import VerifierUnavailable

from ...clocks import Clock
from ...identity_provider.running import (
    RESOURCE,
    SERVER,
    IdentityProvider,
    SigningKey,
    identity_provider,
    needs_identity_provider,
    unsigned,
)
from .scripted_issuer import MakeVerifier, scripted_issuer

pytestmark = needs_identity_provider
CLAIMS = {"signed": {"org": {"name": "acme"}, "https://sealab.example/tenant": "beta"}}


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider(claims=CLAIMS, keys=[SigningKey("first"), SigningKey("curve", "ES256")]) as running:
        yield running


def settings(provider: IdentityProvider, **more: Any) -> Settings:
    return Settings(oauth_issuer=provider.issuer, oauth_audience=RESOURCE, **more)


@pytest.fixture
def verifier(provider: IdentityProvider, verifier_of: MakeVerifier) -> OAuthVerifier:
    return verifier_of(settings(provider, oauth_client_id=SERVER[0], oauth_client_secret=SERVER[1]))


async def test_a_token_of_the_issuer_stands_for_its_subject_with_the_rights_of_its_scope(
    provider: IdentityProvider, verifier: OAuthVerifier
) -> None:
    identity = await verifier.identity_of(provider.token(scope="run files run:process"))
    assert identity is not None
    assert (identity.tenant, identity.principal) == ("default", f"{provider.issuer}#signed")
    assert identity.rights == {Right.RUN, Right.FILES, Right.RUN_PROCESS}
    assert identity.credential


async def test_the_same_token_is_judged_anew_each_time(provider: IdentityProvider, verifier_of: MakeVerifier) -> None:
    clock = Clock(time.time())
    verifier = verifier_of(settings(provider), clock)
    token = provider.token()
    for _ in range(3):
        assert await verifier.identity_of(token) is not None
    clock.now += 300 + 61
    assert await verifier.identity_of(token) is None


@pytest.mark.parametrize(
    ("claim", "tenant"), [("org.name", "acme"), ("https://sealab.example/tenant", "beta"), ("org", None), ("no", None)]
)
async def test_the_tenant_is_that_of_the_claim_and_without_one_nobody_is_let_in(
    provider: IdentityProvider, claim: str, tenant: str | None, verifier_of: MakeVerifier
) -> None:
    verifier = verifier_of(settings(provider, oauth_tenant_claim=claim))
    identity = await verifier.identity_of(provider.token())
    assert (identity and identity.tenant) == tenant


async def test_a_token_for_another_server_is_refused(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    for client in ("signed", "opaque"):
        assert await verifier.identity_of(provider.token(client)) is not None
        assert await verifier.identity_of(provider.token(client, resource="https://other.example/mcp")) is None
    several = provider.claims(aud=["https://other.example/mcp", RESOURCE])
    assert await verifier.identity_of(provider.keys[0].sign(several)) is not None


@pytest.mark.parametrize(
    "changed",
    [
        *({"aud": each} for each in (None, [], RESOURCE + "/", [RESOURCE, 1], {RESOURCE: True})),
        *({"iss": each} for each in ("https://other.example", None, 1)),
        *({"exp": each} for each in (None, "9999999999", True, 10**40, -1, [9999999999])),
        *({"nbf": "0"}, {"iat": "0"}, {"sub": None, "client_id": None}),
        *({"sub": each} for each in ("", 7, "a\nb", "a\u202eb", "\ud800", " ada", "a" * 256)),
        *({"scope": each} for each in (1, ["run", 1], "x" * 10_001)),
        *({"typ": "ID"}, {"typ": "Refresh"}, {"at_hash": "x"}, {"events": {}}),
        *({"cnf": {"jkt": "x"}}, {"token_type": "DPoP"}),
    ],
    ids=str,
)
async def test_a_token_whose_claims_are_missing_or_odd_is_refused(
    provider: IdentityProvider, verifier: OAuthVerifier, changed: dict[str, Any]
) -> None:
    key = provider.keys[0]
    assert await verifier.identity_of(key.sign(provider.claims())) is not None
    assert await verifier.identity_of(key.sign(provider.claims(**changed))) is None


@pytest.mark.parametrize(
    ("changed", "allowed"),
    [
        ({"exp": -59}, True),
        ({"exp": -61}, False),
        ({"nbf": 59}, True),
        ({"nbf": 61}, False),
        ({"iat": 59}, True),
        ({"iat": 61}, False),
    ],
    ids=str,
)
async def test_clocks_may_be_a_minute_apart(
    provider: IdentityProvider, changed: dict[str, float], allowed: bool, verifier_of: MakeVerifier
) -> None:
    now = float(int(time.time()))
    verifier = verifier_of(settings(provider), Clock(now))
    token = provider.keys[0].sign(
        provider.claims(iat=now, exp=now + 300) | {name: now + off for name, off in changed.items()}
    )
    assert (await verifier.identity_of(token) is not None) is allowed


def signed_by_secret(claims: dict[str, Any], secret: bytes, **header: Any) -> str:
    """Make the token that the confusion of algorithms takes (CVE-2015-9235): PyJWT itself would refuse to."""
    parts = ({"alg": "HS256", "typ": "at+jwt", **header}, claims)
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    mac = base64.urlsafe_b64encode(hmac.digest(secret, text, hashlib.sha256)).rstrip(b"=")
    return (text + b"." + mac).decode()


async def test_a_token_without_a_signature_is_refused(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    for alg in ("none", "None", "NONE", "", None, ["RS256"], {"RS256": 1}):
        assert await verifier.identity_of(unsigned(provider.claims(), alg=alg, kid="first")) is None
    assert await verifier.identity_of(unsigned(provider.claims(), alg="RS256", kid="first")) is None


async def test_the_public_key_is_no_secret_to_sign_with(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    public = provider.keys[0].private.public_key()
    forms = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        json.dumps(provider.keys[0].public_jwk).encode(),
        provider.keys[0].public_jwk["n"].encode(),
        b"",
    ]
    for secret in forms:
        for header in ({"kid": "first"}, {}, {"alg": "HS512", "kid": "first"}):
            assert await verifier.identity_of(signed_by_secret(provider.claims(), secret, **header)) is None


async def test_a_key_that_the_token_brings_is_not_used(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    own = SigningKey("first")
    with scripted_issuer() as elsewhere:
        elsewhere.publish(own)
        for header in (
            {"jwk": own.public_jwk},
            {"jku": f"{elsewhere.url}/keys"},
            {"x5u": f"{elsewhere.url}/keys"},
            {"kid": f"{elsewhere.url}/keys"},
            {"kid": "../../../../dev/null"},
            {},
        ):
            assert await verifier.identity_of(own.sign(provider.claims(), **header)) is None
        assert not elsewhere.asked


async def test_a_header_says_an_algorithm_of_the_key_and_a_type_of_access_tokens(
    provider: IdentityProvider, verifier: OAuthVerifier
) -> None:
    first, curve = provider.keys
    claims = provider.claims()
    for typ in ("at+jwt", "JWT", "application/at+jwt", "AT+JWT"):
        assert await verifier.identity_of(first.sign(claims, typ=typ)) is not None
    assert await verifier.identity_of(curve.sign(claims)) is not None
    for header in ({"typ": "logout+jwt"}, {"typ": "dpop+jwt"}, {"crit": ["exp"]}, {"kid": "curve"}, {"kid": "x" * 300}):
        assert await verifier.identity_of(first.sign(claims, **header)) is None
    # The key is published for RS256 alone.
    assert await verifier.identity_of(first.sign(claims, alg="PS256")) is None


async def test_what_is_no_token_is_refused(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    good = provider.token()
    head, body, signature = good.split(".")
    deep = base64.urlsafe_b64encode(b"[" * 8000).decode().rstrip("=")
    for token in (
        "",
        ".",
        "..",
        "...",
        good + ".",
        good + "=",
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body[:-2]}AA.{signature}",
        f"{deep}.{body}.{signature}",
        f"{head}.{deep}.{signature}",
        good + "A" * 20_000,
        "é" + good,
        "\ud800",
        "\0",
    ):
        assert await verifier.identity_of(token) is None, token[:40]


async def test_a_member_that_is_there_twice_is_not_taken(provider: IdentityProvider, verifier: OAuthVerifier) -> None:
    key = provider.keys[0]
    claims = json.dumps(provider.claims())
    assert await verifier.identity_of(key.sign_text(claims)) is not None
    assert await verifier.identity_of(key.sign_text(claims[:-1] + ', "sub": "eve"}')) is None
    header = '{"alg": "RS256", "typ": "at+jwt", "kid": "first", "alg": "RS256"}'
    part = base64.urlsafe_b64encode(header.encode()).decode().rstrip("=")
    text = f"{part}.{key.sign_text(claims).split('.')[1]}"
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(text.encode(), key.private)
    assert await verifier.identity_of(f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}") is None


async def test_an_opaque_token_is_introspected_and_refused_once_it_is_revoked(
    provider: IdentityProvider, verifier_of: MakeVerifier
) -> None:
    clock = Clock(time.time())
    verifier = verifier_of(settings(provider, oauth_client_id=SERVER[0], oauth_client_secret=SERVER[1]), clock)
    token, other = provider.token("opaque"), provider.token("opaque-other")
    identity = await verifier.identity_of(token)
    assert identity is not None
    assert identity.principal == f"{provider.issuer}?client_id=opaque"
    assert identity.rights == {Right.RUN, Right.FILES}
    provider.revoke(token, "opaque")
    clock.now += 10
    assert await verifier.identity_of(token) is None
    assert await verifier.identity_of(other) is not None
    assert await verifier.identity_of("invented") is None


async def test_without_a_client_opaque_tokens_are_refused(
    provider: IdentityProvider, verifier_of: MakeVerifier
) -> None:
    verifier = verifier_of(settings(provider))
    assert await verifier.identity_of(provider.token("opaque")) is None


async def test_a_wrong_secret_is_said_to_be_wrong_and_lets_nobody_in(
    provider: IdentityProvider, verifier_of: MakeVerifier
) -> None:
    verifier = verifier_of(settings(provider, oauth_client_id=SERVER[0], oauth_client_secret="wrong"))
    with pytest.raises(VerifierUnavailable, match="OAUTH_CLIENT_SECRET"):
        await verifier.identity_of(provider.token("opaque"))


async def test_keys_are_rotated_without_a_refusal_and_old_ones_end(verifier_of: MakeVerifier) -> None:
    first, second = SigningKey("one"), SigningKey("two", "ES256")
    clock = Clock(time.time())
    with identity_provider(keys=[first], seconds=9000) as provider:
        verifier = verifier_of(settings(provider), clock)
        old = provider.token()
        assert await verifier.identity_of(old) is not None
        provider.rotate(second)
        clock.now += RETRY_SECONDS
        new = provider.token()
        assert await verifier.identity_of(new) is not None  # its kid was not known
        assert await verifier.identity_of(old) is None  # what was fetched for it no longer has the old one
        provider.rotate(SigningKey("two", "ES256"))  # the id again, and another key
        clock.now += FRESH_SECONDS
        assert await verifier.identity_of(new) is None
        assert await verifier.identity_of(provider.token()) is not None


async def test_a_flood_of_unknown_keys_makes_one_fetch(provider: IdentityProvider, verifier_of: MakeVerifier) -> None:
    clock = Clock(time.time())
    verifier = verifier_of(settings(provider), clock)
    good = provider.token()
    assert await verifier.identity_of(good) is not None
    clock.now += RETRY_SECONDS
    stranger = SigningKey("x")
    forged = [stranger.sign(provider.claims(), kid=f"key-{number}") for number in range(300)]
    before = verifier.fetches
    answers = await asyncio.gather(*(verifier.identity_of(token) for token in forged))
    assert set(answers) == {None}
    assert verifier.fetches == before + 1
    assert await verifier.identity_of(good) is not None


async def test_an_issuer_that_is_down_at_first_is_asked_again(verifier_of: MakeVerifier) -> None:
    key = SigningKey("first")
    with identity_provider(keys=[key]) as provider:
        port, issuer, token = int(provider.issuer.rpartition(":")[2]), provider.issuer, provider.token()
    clock = Clock(time.time())
    verifier = verifier_of(Settings(oauth_issuer=issuer, oauth_audience=RESOURCE), clock)
    for _ in range(20):
        with pytest.raises(VerifierUnavailable, match="does not answer"):
            await verifier.identity_of(token)
    assert verifier.fetches == 1
    with identity_provider(port=port, keys=[key]):
        clock.now += RETRY_SECONDS
        assert await verifier.identity_of(token) is not None


async def test_an_issuer_that_goes_down_later_is_done_without_for_an_hour(verifier_of: MakeVerifier) -> None:
    key = SigningKey("first")
    clock = Clock(time.time())
    with identity_provider(keys=[key]) as provider:
        verifier = verifier_of(settings(provider, oauth_client_id=SERVER[0], oauth_client_secret=SERVER[1]), clock)
        token = key.sign(provider.claims(exp=time.time() + 9999))
        opaque = provider.token("opaque")
        assert await verifier.identity_of(token) is not None
        assert await verifier.identity_of(opaque) is not None
    clock.now += FRESH_SECONDS
    assert await verifier.identity_of(token) is not None
    with pytest.raises(VerifierUnavailable):
        await verifier.identity_of(opaque)  # which may have been revoked
    with pytest.raises(VerifierUnavailable):
        await verifier.identity_of(SigningKey("second").sign(provider.claims()))  # which may be a new key's
    clock.now += KEPT_SECONDS
    with pytest.raises(VerifierUnavailable):
        await verifier.identity_of(token)


async def test_an_issuer_with_a_path_is_discovered(verifier_of: MakeVerifier) -> None:
    with identity_provider(path="/realms/team") as provider:
        verifier = verifier_of(settings(provider))
        identity = await verifier.identity_of(provider.token())
        assert identity is not None
        assert identity.principal == f"{provider.issuer}#signed"
