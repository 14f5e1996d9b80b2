"""What an issuer says of tokens that are no JWTs, and how long that counts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from sealab.server.governance.access import introspection
from sealab.server.governance.access.verifier import VerifierUnavailable

from ...clocks import Clock
from ...identity_provider.running import RESOURCE, SERVER
from ...waiting import until
from .scripted_issuer import MakeVerifier, ScriptedIssuer, scripted_issuer

METADATA = "/.well-known/oauth-authorization-server"
ACTIVE = {"active": True, "aud": RESOURCE, "sub": "ada", "scope": "run"}


@pytest.fixture
def issuer() -> Iterator[ScriptedIssuer]:
    with scripted_issuer() as running:
        running.publish()
        running.answer("/introspect", ACTIVE)
        yield running


async def test_an_answer_counts_for_ten_seconds_and_no_longer_than_the_token(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    clock = Clock(1e9)
    verifier = verifier_of(issuer.settings(), clock)
    for second in (0, 9, 1):
        clock.now += second
        assert await verifier.identity_of("token") is not None
    assert issuer.asked["/introspect"] == 2
    issuer.answer("/introspect", {"active": False})
    clock.now += 9
    assert await verifier.identity_of("token") is not None
    clock.now += 1
    assert await verifier.identity_of("token") is None
    assert await verifier.identity_of("token") is None
    assert issuer.asked["/introspect"] == 3
    issuer.answer("/introspect", ACTIVE | {"exp": clock.now - 57})
    assert await verifier.identity_of("late") is not None
    clock.now += 3
    assert await verifier.identity_of("late") is None


@pytest.mark.parametrize(
    "changed",
    [
        *({"active": each} for each in ("true", 1, None)),
        *({"aud": None}, {"aud": "https://other.example/mcp"}, {"iss": "https://other.example"}, {"nbf": 2**33}),
        *({"exp": each} for each in (1, "soon", None)),
        *({"sub": None}, {"sub": "a\tb"}, {"token_type": "DPoP"}, {"typ": "Refresh"}, {"cnf": {}}),
    ],
    ids=str,
)
async def test_an_answer_that_is_missing_something_or_odd_lets_nobody_in(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier, changed: dict[str, Any]
) -> None:
    issuer.answer("/introspect", ACTIVE | changed)
    assert await verifier_of(issuer.settings()).identity_of("token") is None


async def test_the_server_signs_in_as_the_metadata_says(issuer: ScriptedIssuer, verifier_of: MakeVerifier) -> None:
    await verifier_of(issuer.settings()).identity_of("token")
    headers, body = issuer.forms.pop()
    assert headers["Authorization"].startswith("Basic ")
    assert parse_qs(body.decode()) == {"token": ["token"], "token_type_hint": ["access_token"]}
    issuer.answer(METADATA, issuer.metadata(token_endpoint_auth_methods_supported=["client_secret_post"]))
    await verifier_of(issuer.settings()).identity_of("token")
    headers, body = issuer.forms.pop()
    assert "Authorization" not in headers
    form = parse_qs(body.decode())
    assert (form["client_id"], form["client_secret"]) == ([SERVER[0]], [SERVER[1]])
    issuer.answer("/elsewhere", ACTIVE)
    url = f"{issuer.url}/elsewhere?realm=a"
    issuer.answer("/elsewhere?realm=a", ACTIVE)
    assert await verifier_of(issuer.settings(oauth_introspection_url=url)).identity_of("token") is not None


async def test_many_requests_with_one_token_make_one_question(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    verifier = verifier_of(issuer.settings())
    found = await asyncio.gather(*(verifier.identity_of("token") for _ in range(100)))
    assert None not in found
    assert issuer.asked["/introspect"] == 1


async def test_a_question_goes_on_when_one_of_those_who_wait_goes_away(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    verifier = verifier_of(issuer.settings())
    issuer.held = threading.Event()
    first = asyncio.create_task(verifier.identity_of("token"))
    second = asyncio.create_task(verifier.identity_of("token"))
    await until(lambda: bool(issuer.forms))
    first.cancel()
    issuer.held.set()
    assert await second is not None
    assert issuer.asked["/introspect"] == 1


async def test_a_flood_of_invented_tokens_takes_no_place_of_one_that_is_known(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier
) -> None:
    clock = Clock(1e9)
    verifier = verifier_of(issuer.settings(), clock)
    assert await verifier.identity_of("known") is not None
    clock.now += 20
    issuer.held = threading.Event()
    flood = [asyncio.create_task(verifier.identity_of(f"invented-{number}")) for number in range(200)]
    await until(lambda: len(issuer.forms) > introspection.QUESTIONS_MAX)
    known = asyncio.create_task(verifier.identity_of("known"))
    await until(lambda: len(issuer.forms) > introspection.QUESTIONS_MAX + 1)
    refused = [task for task in flood if task.done()]
    assert len(refused) == 200 - introspection.QUESTIONS_MAX
    assert all(isinstance(task.exception(), VerifierUnavailable) for task in refused)
    issuer.held.set()
    assert await known is not None
    await asyncio.gather(*flood, return_exceptions=True)


async def test_places_are_bounded_in_all_and_for_one_principal(
    issuer: ScriptedIssuer, verifier_of: MakeVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introspection, "TOKENS_MAX", 6)
    monkeypatch.setattr(introspection, "TOKENS_OF_ONE_MAX", 3)
    verifier = verifier_of(issuer.settings(), Clock(1e9))
    issuer.answer("/introspect", ACTIVE | {"sub": "bob"})
    assert await verifier.identity_of("of bob".replace(" ", "-")) is not None
    issuer.answer("/introspect", ACTIVE)
    for number in range(20):
        assert await verifier.identity_of(f"token-{number}") is not None
    asked = issuer.asked["/introspect"]
    for kept in ("of-bob", "token-17", "token-18", "token-19"):
        assert await verifier.identity_of(kept) is not None
    assert issuer.asked["/introspect"] == asked
    issuer.answer("/introspect", {"active": False})
    for number in range(20):
        assert await verifier.identity_of(f"invented-{number}") is None
    assert await verifier.identity_of("of-bob") is not None
    found = verifier._introspection
    assert found is not None
    assert len(found._active) <= 6
    assert len(found._inactive) <= 6
