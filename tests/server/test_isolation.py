"""Which isolation a run gets: what the operator allows, what the caller asks for, and where a session lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from .conftest import Caller, stdio
from .test_cli import run


async def schema_of(caller: Caller) -> object:
    (tool,) = (tool for tool in (await caller.client.list_tools()).tools if tool.name == "execute_code")
    return tool.input_schema["properties"]["isolation"]


@pytest.fixture(scope="module")
async def only_restricted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = tmp_path_factory.mktemp("home")
    allowed = {"SEALAB_ALLOWED_ISOLATION": "restricted"}
    async with Client(stdio(home, **allowed), read_timeout_seconds=50) as client:
        yield Caller(client, home)


async def test_the_schema_shows_only_what_the_operator_allows(only_restricted: Caller) -> None:
    assert await schema_of(only_restricted) == {"enum": ["auto", "restricted"], "default": "auto"}


@pytest.mark.parametrize("asked", ["process", "container"])
async def test_an_isolation_that_is_not_allowed_is_refused_by_the_settings_name(
    only_restricted: Caller, asked: str
) -> None:
    answer = await only_restricted.call("execute_code", code="1", isolation=asked)
    assert answer.is_error
    said = answer.content[0].text  # type: ignore[union-attr]
    assert f"isolation='{asked}' is not allowed here: ALLOWED_ISOLATION is restricted." in said
    assert f"ask the operator to add {asked}" in said


async def test_auto_is_restricted(only_restricted: Caller) -> None:
    assert (await only_restricted.run("1"))["isolation"] == "restricted"
    assert (await only_restricted.run("1", isolation="restricted"))["isolation"] == "restricted"


def test_the_command_line_refuses_what_is_not_allowed_with_3_and_what_there_is_not_with_2(tmp_path: Path) -> None:
    refused = run(tmp_path, "1", "--isolation", "process")
    assert refused.returncode == 3
    assert "ALLOWED_ISOLATION" in refused.stderr
    assert run(tmp_path, "1", "--isolation", "none").returncode == 2
    assert run(tmp_path, "1", "--isolation", "restricted").returncode == 0
