"""Names that two tenants could both seem to have are refused; and what can be asked for stands in the table of rights."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.job import Isolation
from sealab.server.app import running
from sealab.server.base.errors import RequestRefused, RightMissing
from sealab.server.base.home import Home
from sealab.server.base.identity import ALL_RIGHTS, LOCAL_IDENTITY, Identity, Right
from sealab.server.base.settings import Settings, Surface
from sealab.server.governance.access.names import DEFAULT_RIGHTS, known_rights, principal_name, rights_of, tenant_name
from sealab.server.governance.rights import (
    HOST_FUNCTIONS,
    ISOLATIONS,
    METHODS,
    PROMPTS,
    RESOURCES,
    TOOLS,
    missing,
    needed_by,
    require,
)
from sealab.server.interfaces.protocol.serving import mcp_server
from sealab.server.interfaces.protocol.tools import tools_of


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


NOBODY = Identity("default", "nobody", frozenset())


@pytest.mark.parametrize("surface", list(Surface))
async def test_every_tool_host_function_method_resource_and_prompt_has_an_entry(
    tmp_path: Path, surface: Surface
) -> None:
    async with running(Settings(workers_spare=0, surface=surface), Home(tmp_path)) as app:
        server = mcp_server(app)
        methods = set(server._lowlevel_server._request_handlers)
        assert {tool.name for tool in tools_of(app)} <= set(TOOLS)
        assert set(app.executor.host_functions) == set(HOST_FUNCTIONS)
        assert methods - set(METHODS) == set()
        for resource in await server.list_resources():
            assert any(str(resource.uri).startswith(beginning) for beginning in RESOURCES)
        assert {prompt.name for prompt in await server.list_prompts()} <= set(PROMPTS)
    assert {isolation.value for isolation in Isolation} == set(ISOLATIONS)


async def test_the_full_surface_has_every_tool_of_the_table_but_the_bridges(tmp_path: Path) -> None:
    async with running(Settings(workers_spare=0), Home(tmp_path)) as app:
        assert {tool.name for tool in tools_of(app)} == set(TOOLS) - {"run_python"}


def test_what_has_no_entry_is_for_nobody_but_who_has_every_right() -> None:
    require(LOCAL_IDENTITY, HOST_FUNCTIONS, "new_function")
    almost = Identity("default", "almost", ALL_RIGHTS - {Right.ADMIN})
    with pytest.raises(RightMissing, match="Nothing says which scope"):
        require(almost, HOST_FUNCTIONS, "new_function")


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_tool_may_be_called_without_any_right(name: str) -> None:
    with pytest.raises(RightMissing, match="This needs the scope"):
        require(NOBODY, TOOLS, name)
    assert list(missing(NOBODY, needed_by("tools/call", {"name": name})))


@pytest.mark.parametrize(
    ("method", "params", "needed"),
    [
        (
            "tools/call",
            {"name": "execute_code", "arguments": {"isolation": "process"}},
            {"run", "run:process", "files"},
        ),
        ("tools/call", {"name": "execute_code", "arguments": {"isolation": "auto"}}, {"run"}),
        ("tools/call", {"name": "execute_code", "arguments": [1]}, {"run"}),
        ("tools/call", {"name": ["execute_code"]}, set()),
        ("tools/call", None, set()),
        ("tasks/update", {}, {"run", "approve"}),
        ("resources/read", {"uri": "resource://sealab/capabilities"}, set()),
        ("resources/read", {"uri": "skill://a/SKILL.md"}, {"skills:read"}),
        ("resources/read", {"uri": " SKILL://a/SKILL.md"}, {"skills:read"}),
        ("ping", None, set()),
        (["tools/call"], {"name": "execute_code"}, set()),
        (None, None, set()),
    ],
)
def test_a_message_needs_what_its_method_and_what_it_names_need(
    method: object, params: object, needed: set[str]
) -> None:
    assert set(needed_by(method, params)) == needed
