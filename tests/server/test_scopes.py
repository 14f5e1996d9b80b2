"""Whose a request is, by what the connection says and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sealab.server.errors import RequestRefused
from sealab.server.identity import ALL_RIGHTS, IDENTITY, Identity
from sealab.server.scopes import is_brief, of_principal, scope_of, session_of, tokens_of


def context_of(headers: dict[str, str], identity: Identity | None = None) -> Any:
    """What the SDK gives for a request over HTTP, as far as it is looked at."""
    scope = {} if identity is None else {IDENTITY: identity}
    return SimpleNamespace(request=SimpleNamespace(headers=headers, scope=scope))


ALICE, BOB = ({"authorization": f"Bearer of-{name}"} for name in ("alice", "bob"))
CREDENTIALS = scope_of(context_of(ALICE))


def test_each_credentials_session_and_principal_has_a_scope_of_its_own() -> None:
    ada, eve = (Identity("acme", name, ALL_RIGHTS) for name in ("ada", "eve"))
    scopes = [
        scope_of(context_of(headers, identity))
        for headers, identity in ((ALICE, None), (BOB, None), (ALICE, ada), (ALICE, eve), ({}, None))
    ]
    sessions = [scope_of(context_of({"mcp-session-id": name})) for name in ("1", "2")]
    assert len({"home", *scopes, *sessions}) == 8
    assert all(map(is_brief, sessions))
    assert not any(map(is_brief, scopes))
    assert "alice" not in scopes[0]


def test_the_principals_of_a_tenant_have_its_tokens_and_all_others_their_own() -> None:
    assert tokens_of(of_principal("ada")) == tokens_of(of_principal("eve")) == "home"
    others = [CREDENTIALS, scope_of(context_of({"mcp-session-id": "1"})), "http"]
    assert [tokens_of(scope) for scope in others] == others


@pytest.mark.parametrize("name", ["", "a/b", "x" * 65, "a\0b", f"{CREDENTIALS.rpartition(' ')[2]}/s"])
def test_no_name_that_a_caller_gives_stands_for_a_session_of_other_credentials(name: str) -> None:
    assert session_of(CREDENTIALS, "s") != session_of("http", "s") == "s"
    with pytest.raises(RequestRefused, match="letters, digits"):
        session_of("http", name)
