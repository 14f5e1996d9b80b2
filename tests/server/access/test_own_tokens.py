"""Own tokens: their form, and the verifier that knows those of its database for as long as they count."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.base.database import HomeDatabase
from sealab.server.base.identity import Identity, Right
from sealab.server.governance.access import own_tokens
from sealab.server.governance.access.own_tokens import OwnTokens
from sealab.server.governance.access.token_text import PATTERN, digest_of, is_token, new_token
from sealab.server.governance.access.verifier import VerifierUnavailable
from sealab.skills_db.errors import DatabaseUnavailable
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


def queries(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the digests of each query from now on."""
    asked: list[list[str]] = []
    find_all = TokenStore.find_all

    def counted(self: TokenStore, digests: Sequence[str]) -> dict[str, StoredToken]:
        asked.append(list(digests))
        return find_all(self, digests)

    monkeypatch.setattr(TokenStore, "find_all", counted)
    return asked


async def test_many_requests_at_once_look_a_token_up_once(
    database: HomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token()
    put(database, token)
    asked = queries(monkeypatch)
    verifier = OwnTokens(database)
    found = await asyncio.gather(*(verifier.identity_of(token) for _ in range(50)))
    assert None not in found
    assert asked == [[digest_of(token)]]


async def test_many_tokens_at_once_are_looked_up_in_few_queries_each_for_its_own(
    database: HomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, unknown = [new_token() for _ in range(50)], [new_token() for _ in range(50)]
    made = [put(database, token) for token in tokens]
    asked = queries(monkeypatch)
    verifier = OwnTokens(database)
    found = await asyncio.gather(*(verifier.identity_of(token) for token in [*tokens, *unknown]))
    assert [None if each is None else each.credential for each in found] == [each.id for each in made] + [None] * 50
    assert sorted(itertools.chain(*asked)) == sorted(map(digest_of, [*tokens, *unknown]))
    assert len(asked) <= 2


async def test_what_fails_for_some_tokens_is_raised_for_each_and_the_next_is_looked_up(
    database: HomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token()
    put(database, token)
    verifier = OwnTokens(database)

    def broken(_self: TokenStore, _digests: Sequence[str]) -> dict[str, StoredToken]:
        raise DatabaseUnavailable("The database is locked. Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(TokenStore, "find_all", broken)
        asked = (verifier.identity_of(each) for each in [token, new_token()])
        failed = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in failed] == [VerifierUnavailable] * 2
    assert await verifier.identity_of(token) is not None


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


def test_a_token_has_the_form_that_the_documentation_tells_secret_scanners_and_no_two_are_alike() -> None:
    token = new_token()
    assert re.fullmatch(r"sealab_[0-9A-Za-z]{49}", token)
    assert PATTERN.pattern == r"sealab_[0-9A-Za-z]{49}"
    assert is_token(token)
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == len({digest_of(token) for token in tokens}) == 1000


@given(st.integers(7, 55), st.sampled_from("0123456789abcXYZ"))
def test_a_changed_character_is_told_by_the_checksum(at: int, character: str) -> None:
    token = new_token()
    changed = token[:at] + character + token[at + 1 :]
    assert is_token(changed) == (changed == token)


@given(st.text())
def test_any_other_text_is_no_token(text: str) -> None:
    for looks_like in (text, "sealab_" + text, "", "sealab_", "sealab_" + "0" * 49, "SEALAB_" + "0" * 49):
        assert not is_token(looks_like)
