"""Which upstream tools code may call follows from the scopes of its token, whatever `mcp.json` approves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ...conftest import http_server
from ...journal.test_journaled_runs import NOTES
from ...tenants.team import Member
from ...upstream_tools.test_registry import configure
from .raw import run
from .tokens import made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "notes.py").write_text(NOTES)
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")], "reads": ["put"]}
    configure(home, notes={**command, "approve": "never"}, asking={**command, "approve": "writes"})
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    with http_server(home, SEALAB_AUTH="tokens") as url:
        yield url


def reported(server: str, code: str, headers: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = run(server, code, **headers).message["result"]["structuredContent"]
    return report


COMPUTED = """
name = 'notes.' + 'send'
try:
    result = await call_tool(name, {'text': 'x'})
except PermissionError as error:
    result = str(error)
"""


def test_a_token_that_may_only_read_calls_what_reads_and_nothing_else(server: str, home: Path) -> None:
    token = made(home, "reader", "--scope", "run,tools:read")
    assert reported(server, "await tools.notes.put(text='x')", token.header)["status"] == "ok"
    named = reported(server, "await tools.notes.send(text='x')", token.header)
    assert named["status"] != "ok"
    assert "lacks the scope tools:write" in named["error"]["message"]
    computed = reported(server, COMPUTED, token.header)
    assert computed["result"].startswith("This needs the scope tools:write")
    assert not (home / "sent.txt").exists()


def test_a_token_that_may_write_does_and_is_told_why_it_cannot_say_yes(server: str, home: Path) -> None:
    token = made(home, "writer", "--scope", "run,tools:read,tools:write")
    assert reported(server, COMPUTED, token.header)["status"] == "ok"
    asking = reported(server, "await tools.asking.send(text='y')", token.header)
    assert asking["status"] != "ok"
    assert "the token lacks the scope approve" in asking["error"]["message"]


@pytest.mark.parametrize(("scope", "finds"), [("run,tools:read,skills:read", True), ("run,tools:read", False)])
def test_skills_are_found_beside_tools_by_who_may_read_them(server: str, home: Path, scope: str, finds: bool) -> None:
    author = Member(server, made(home, "author", "--scope", "default").token)
    code = "def tides(port: str) -> str:\n    'Give the tides of Zanzibar.'\n    return port"
    assert not author.call("save_skill", name="tides", code=code).failed
    finder = Member(server, made(home, "finder", "--scope", scope).token)
    for tool, arguments, shown in (
        ("search_tools", {"query": "tides of zanzibar"}, "of Zanzibar"),
        ("search_tools", {"query": "", "category": "skills"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "tides"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "skills.tides"}, "of Zanzibar"),
        ("get_tool_definition", {"tool_name": "tidez"}, "skills.tides"),
        ("list_tool_categories", {}, "Saved functions"),
        ("execute_code", {"code": "search_tools('tides of zanzibar')"}, "of Zanzibar"),
        ("execute_code", {"code": "get_tool_definition('tides')"}, "of Zanzibar"),
    ):
        reply = finder.call(tool, **arguments)
        assert (tool, arguments, shown in reply.text) == (tool, arguments, finds), reply.text
