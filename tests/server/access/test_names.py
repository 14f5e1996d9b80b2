"""A name that two tenants could both seem to have is refused, never folded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.access.names import DEFAULT_RIGHTS, known_rights, principal_name, rights_of, tenant_name
from sealab.server.errors import RequestRefused
from sealab.server.identity import Right


@pytest.mark.parametrize("name", ["a", "acme", "acme-2", "0", "a" * 63])
def test_plain_names_are_taken_as_they_are(name: str) -> None:
    assert tenant_name(name) == name


@pytest.mark.parametrize(
    ("name", "meant"), [("Acme", "acme"), ("ACME", "acme"), ("ａｃｍｅ", "acme"), ("acmeⅡ", "acmeii")]
)
def test_a_name_that_would_be_folded_is_refused_with_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(RequestRefused, match=f"Write it as {meant}"):
        tenant_name(name)


@pytest.mark.parametrize("name", ["", "-a", "a_b", "a/b", "..", "a.b", "a" * 64, "acmé", "a\n", "а", "a\0"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(RequestRefused, match="is not the name of a tenant"):
        tenant_name(name)


@given(st.text())
def test_what_is_taken_can_stand_in_a_path_a_url_and_a_schema(name: str) -> None:
    try:
        taken = tenant_name(name)
    except RequestRefused:
        return
    assert taken == name
    assert taken.isascii()
    assert taken == taken.lower()
    assert not set(taken) & set("/.\\ \0'\"")


@pytest.mark.parametrize("name", ["", " ada", "ada/x", "a\n", "é", "x" * 129])
def test_a_principal_with_other_characters_is_refused(name: str) -> None:
    with pytest.raises(RequestRefused, match="cannot be a name"):
        principal_name(name)
    assert principal_name("ada@laptop-1.example") == "ada@laptop-1.example"


def test_scopes_are_the_rights_and_default() -> None:
    assert rights_of([each.value for each in Right]) == frozenset(Right)
    assert rights_of(["default", "approve"]) == DEFAULT_RIGHTS | {Right.APPROVE}
    assert not DEFAULT_RIGHTS & {Right.ADMIN, Right.APPROVE, Right.RUN_PROCESS}
    with pytest.raises(RequestRefused, match="There is no scope 'run:all'"):
        rights_of(["run", "run:all"])


def test_a_scope_that_this_version_does_not_know_gives_nothing() -> None:
    assert known_rights(["run", "fly"]) == {Right.RUN}
