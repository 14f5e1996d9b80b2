"""The verifier of own tokens knows those of its database, for as long as they count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.server.access import own_tokens
from sealab.server.access.own_tokens import OwnTokens
from sealab.server.access.token_text import digest_of, new_token
from sealab.server.access.verifier import VerifierUnavailable
from sealab.server.database import HomeDatabase
from sealab.server.identity import Identity, Right
from sealab.skills_db.tokens import StoredToken, TokenStore


@pytest.fixture
def database(tmp_path: Path) -> Iterator[HomeDatabase]:
    database = HomeDatabase(None, tmp_path)
    yield database
    database.close()


def put(database: HomeDatabase, token: str, *, expires: float | None = None) -> StoredToken:
    return TokenStore(database()).put(
        digest_of(token),
        name="ci",
        tenant="acme",
        principal="ada",
        scopes=["run", "fly"],
        now=time.time(),
        expires=expires,
    )


async def test_a_token_stands_for_its_principal_with_the_rights_that_there_are(database: HomeDatabase) -> None:
    token = new_token()
    made = put(database, token)
    verifier = OwnTokens(database)
    assert await verifier.identity_of(token) == Identity("acme", "ada", frozenset({Right.RUN}), made.id)
    assert await verifier.identity_of(new_token()) is None
    assert await verifier.identity_of("x") is None


async def test_a_token_that_expires_or_is_revoked_is_known_no_more(
    database: HomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_tokens, "TRUSTED_SECONDS", 0.0)
    expired, revoked = new_token(), new_token()
    put(database, expired, expires=time.time() - 1)
    made = put(database, revoked)
    verifier = OwnTokens(database)
    assert await verifier.identity_of(expired) is None
    assert await verifier.identity_of(revoked) is not None
    TokenStore(database()).revoke(made.id, time.time())
    assert await verifier.identity_of(revoked) is None


async def test_many_requests_at_once_look_a_token_up_once(
    database: HomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token()
    put(database, token)
    asked: list[str] = []
    find = TokenStore.find

    def counted(self: TokenStore, digest: str) -> StoredToken | None:
        asked.append(digest)
        return find(self, digest)

    monkeypatch.setattr(TokenStore, "find", counted)
    verifier = OwnTokens(database)
    found = await asyncio.gather(*(verifier.identity_of(token) for _ in range(50)))
    assert None not in found
    assert len(asked) == 1


async def test_a_database_that_does_not_answer_lets_nobody_in(
    database: HomeDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_tokens, "TRUSTED_SECONDS", 0.0)
    token = new_token()
    put(database, token)
    verifier = OwnTokens(database)
    assert await verifier.identity_of(token) is not None
    (tmp_path / "sealab.db").rename(tmp_path / "gone.db")
    with pytest.raises(VerifierUnavailable, match="cannot be told now"):
        await verifier.identity_of(token)


async def test_that_a_token_was_used_is_noted(database: HomeDatabase) -> None:
    token = new_token()
    put(database, token)
    verifier = OwnTokens(database)
    await verifier.identity_of(token)
    await asyncio.gather(*verifier._noting)
    assert TokenStore(database()).listed()[0].used == pytest.approx(time.time(), abs=60)
