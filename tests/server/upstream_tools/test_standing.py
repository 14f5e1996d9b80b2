"""How servers stand, wherever they are named: in searches, in code and in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ...tools_registry.test_lenient import odd_server
from ..command_line import sealab
from ..conftest import Caller, in_this_process

SCHEMA = {"type": "object", "properties": {"when": {"type": "string", "format": "date-time"}}}
LISTED = [
    {"name": "good", "inputSchema": SCHEMA},
    {"name": "worse", "inputSchema": 3},
    {"name": "", "description": "?"},
]
LEFT_OUT = [
    {"tool": "worse", "reason": "its input schema is a number, and not an object"},
    {"tool": "(no name)", "reason": "it has no name that is a text"},
]
SERVERS = {
    "odd": {
        **odd_server(tools_list={"result": {"tools": LISTED}}, tools_call={"error": {"code": -1, "message": "bad"}}),
        "approve": "never",
    },
    "pages": {"command": "/no/such/command"},
    "typo": {"command": "x", "aprove": "never"},
    "off": {"command": "x", "disabled": True},
}
MOMENT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def configure(home: Path) -> Path:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": SERVERS}))
    return home


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = configure(tmp_path_factory.mktemp("home"))
    async with in_this_process(home, {"SEALAB_WORKERS_SPARE": "1"}) as caller:
        yield caller


def by_name(servers: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert all(MOMENT.fullmatch(each["since"]) for each in servers)
    return {each["name"]: each for each in servers}


async def test_a_search_says_which_servers_fail_and_which_tools_are_left_out(caller) -> None:
    answer = await caller.call("search_tools", query="good")
    standing = by_name(answer.structured_content["servers"])
    assert {name: each["state"] for name, each in standing.items()} == {
        "odd": "ready",
        "pages": "failing",
        "typo": "failing",
    }
    assert standing["odd"]["left_out"] == LEFT_OUT
    assert "cannot be started" in standing["pages"]["last_error"]
    assert "left out: odd.worse: its input schema is a number" in answer.content[0].text
    assert [each["name"] for each in answer.structured_content["tools"]] == ["good"]


@pytest.mark.parametrize(
    ("category", "why"), [("pages", "cannot be started"), ("typo", "cannot be used"), ("off", "disabled")]
)
async def test_the_category_of_a_server_that_cannot_be_used_says_why(caller, category: str, why: str) -> None:
    answer = await caller.call("search_tools", query="read", category=category)
    assert not answer.is_error
    assert answer.structured_content["count"] == 0
    assert why in answer.content[0].text
    defined = await caller.call("get_tool_definition", tool_name="read", category=category)
    assert why in defined.content[0].text
    assert "There is no category" not in defined.content[0].text
    unknown = await caller.call("search_tools", query="read", category="nowhere")
    assert "There is no category 'nowhere'" in unknown.content[0].text


async def test_code_sees_how_each_server_stands(caller) -> None:
    await caller.call("search_tools", query="good")
    standing = by_name((await caller.run("list_servers()"))["result"])
    assert {name: each["state"] for name, each in standing.items()} == {
        "odd": "ready",
        "pages": "failing",
        "typo": "failing",
        "off": "disabled",
    }
    assert standing["odd"]["left_out"] == LEFT_OUT
    assert standing["odd"]["last_error"] is None
    for name, why in {"off": "is disabled", "typo": "cannot be used"}.items():
        described = await caller.run(f"from mcp import runtime\nruntime.describe_server({name!r})")
        assert why in described["error"]["message"]


def test_the_terminal_says_how_each_server_stands(tmp_path: Path) -> None:
    home = str(configure(tmp_path))
    tested = json.loads(sealab("servers", "test", "--home", home, "--json").stdout)["servers"]
    standing = by_name(tested)
    assert {name: each["state"] for name, each in standing.items()} == {
        "odd": "ready",
        "pages": "failing",
        "typo": "failing",
    }
    assert standing["odd"]["left_out"] == LEFT_OUT
    assert "/no/such/command" in standing["pages"]["last_error"]
    listed = by_name(json.loads(sealab("servers", "list", "--home", home, "--json").stdout)["servers"])
    assert (listed["odd"]["state"], listed["odd"]["left_out"]) == ("ready", LEFT_OUT)
    assert (listed["typo"]["state"], listed["off"]["state"]) == ("failing", "disabled")
    assert "aprove" in listed["typo"]["last_error"]
    for command in (["test", "odd"], ["list"]):
        assert "left out: worse: its input schema is a number" in sealab("servers", *command, "--home", home).stdout


async def test_a_refusal_says_which_argument_has_not_its_format(caller) -> None:
    error = (await caller.run("await tools.odd.good(when='2026-01-02 10:00')"))["error"]
    assert "refused the tool 'good': bad" in error["message"]
    assert error["message"].endswith('Did you mean "2026-01-02T10:00:00Z"?')
