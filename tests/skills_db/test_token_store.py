"""Bearer tokens are kept as digests, found by the whole of one, and count no more once revoked or expired."""

from __future__ import annotations

import hashlib

import pytest
import sqlalchemy as sa

from sealab.skills_db.engine import Database
from sealab.skills_db.token_store import MARK_CHARS, USED_SECONDS, StoredToken, TokenStore

from .conftest import Place

NOW = 1_000_000.0


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def store(database: Database) -> TokenStore:
    return TokenStore(database)


def put(store: TokenStore, text: str, **more: object) -> StoredToken:
    given = {"name": "ci", "tenant": "default", "principal": "ci", "scopes": ["run", "files"], "expires": None}
    return store.put(digest_of(text), now=NOW, **{**given, **more})  # type: ignore[arg-type]  # each test gives its own


def test_a_token_is_found_by_its_digest_with_all_that_was_stored(store: TokenStore) -> None:
    made = put(store, "a", tenant="acme", principal="ada", expires=NOW + 60)
    assert store.find(digest_of("a")) == made
    assert made.scopes == ("run", "files")
    assert (made.tenant, made.principal, made.used) == ("acme", "ada", None)
    assert made.is_valid(NOW + 59)
    assert not made.is_valid(NOW + 60)


def test_a_digest_that_begins_alike_finds_nothing(store: TokenStore) -> None:
    put(store, "a")
    near = digest_of("a")[:MARK_CHARS] + digest_of("b")[MARK_CHARS:]
    assert store.find(near) is None
    assert store.find(digest_of("b")) is None


def test_the_token_itself_is_nowhere_in_the_database(place: Place) -> None:
    with place.open() as database:
        put(TokenStore(database), "a very secret token")
        with database.read() as session:
            rows = session.connection().execute(sa.text("SELECT * FROM sealab_token")).all()
    assert "secret" not in str(rows)


def test_a_revoked_token_counts_no_more_for_another_program_on_the_same_database(place: Place) -> None:
    with place.open() as one, place.open() as other:
        made = put(TokenStore(one), "a")
        found = TokenStore(other).find(digest_of("a"))
        assert found is not None
        assert found.is_valid(NOW)
        assert TokenStore(one).revoke(made.id, NOW + 1)
        found = TokenStore(other).find(digest_of("a"))
        assert found is not None
        assert not found.is_valid(NOW + 1)
        assert not TokenStore(other).revoke(made.id, NOW + 2)


def test_a_name_stands_for_those_of_its_tokens_that_count(store: TokenStore) -> None:
    first, second = put(store, "a"), put(store, "b", expires=NOW + 5)
    third = put(store, "c", name="other")
    assert store.named("ci", NOW) == (first, second)
    assert store.named("ci", NOW + 5) == (first,)
    assert store.named(third.id, NOW) == (third,)
    assert store.named("nobody", NOW) == ()


def test_tokens_are_listed_by_tenant(store: TokenStore) -> None:
    first, second = put(store, "a"), put(store, "b", tenant="acme")
    assert store.listed() == (first, second)
    assert store.listed("acme") == (second,)


def test_every_token_of_a_tenant_is_revoked_at_once_and_none_of_another(store: TokenStore) -> None:
    put(store, "a")
    put(store, "b", tenant="acme")
    put(store, "c", tenant="acme")
    assert store.revoke_tenant("acme", NOW) == 2
    assert [each.is_valid(NOW) for each in store.listed()] == [True, False, False]


def test_a_use_is_noted_at_most_every_few_minutes(store: TokenStore) -> None:
    made = put(store, "a")
    for seconds in (0.0, USED_SECONDS - 1):
        store.note_use(made.id, NOW + seconds)
        assert store.listed()[0].used == NOW
    store.note_use(made.id, NOW + USED_SECONDS)
    assert store.listed()[0].used == NOW + USED_SECONDS


def test_ids_are_not_counted_up(store: TokenStore) -> None:
    assert len({put(store, str(number)).id[:8] for number in range(20)}) > 10
