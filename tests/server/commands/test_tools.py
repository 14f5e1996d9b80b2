"""`sealab tools`, through the command line's own entry and real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..command_line import Ended, sealab
from ..conftest import environment

BILLING = {
    "tools": [
        {
            "name": "list_invoices",
            "description": "List the invoices of a customer. Newest first.",
            "inputSchema": {
                "type": "object",
                "properties": {"customer_id": {"type": "string"}},
                "required": ["customer_id"],
            },
            "annotations": {"readOnlyHint": True},
        },
        {"name": "send_reminder", "description": "Send a payment reminder", "inputSchema": {"type": "object"}},
    ]
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "tools").mkdir(parents=True)
    (tmp_path / "home" / "tools" / "billing.json").write_text(json.dumps(BILLING))
    return tmp_path / "home"


def tools(home: Path, *arguments: str) -> Ended:
    return sealab("tools", *arguments, "--home", str(home))


def test_tools_are_found_shown_and_counted_from_a_terminal(home: Path) -> None:
    found = tools(home, "search", "invoices", "of", "a", "customer", "--limit", "1", "--json").told
    assert {key: found[key] for key in ("query", "category", "detail_level", "count")} == {
        "query": "invoices of a customer", "category": None, "detail_level": "summary", "count": 1,
    }  # fmt: skip
    (hit,) = found["tools"]
    assert hit.pop("score") > 0
    assert hit == {
        "name": "list_invoices", "server": "billing", "category": "billing",
        "description": "List the invoices of a customer", "arguments": ["customer_id"],
    }  # fmt: skip
    shown = tools(home, "show", "list_invoices", "--json").told
    assert shown["signature"] == "tools.billing.list_invoices(*, customer_id: str) -> unknown"
    assert shown["input_schema"] == BILLING["tools"][0]["inputSchema"]
    counted = tools(home, "categories", "--json").told
    assert counted["categories"]["billing"]["tool_count"] == counted["total_tools"] == 2
    assert counted["servers"] == ["billing"]


def test_what_is_printed_without_json_is_for_people(home: Path) -> None:
    found = tools(home, "search", "reminder", "--detail-level", "signature")
    assert found.stdout.startswith(
        "billing.send_reminder\n    tools.billing.send_reminder() -> unknown\n    Send a payment reminder\n"
    )
    assert "await tools.billing.list_invoices(customer_id=" in tools(home, "show", "billing.list_invoices").stdout
    assert "2 tools of 1 server\n" in tools(home, "categories").stdout


def test_an_unknown_tool_is_answered_with_the_nearest(home: Path) -> None:
    ended = tools(home, "show", "list_invoice")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "sealab: There is no tool 'list_invoice'. Did you mean billing.list_invoices?\n"


def test_stubs_are_written_and_what_is_in_their_way_is_kept_and_said(home: Path, tmp_path: Path) -> None:
    made = tools(home, "generate", str(tmp_path / "stubs"), "--json").told
    assert (made["servers"], made["tools"], made["kept"]) == (1, 2, [])
    module = tmp_path / "stubs" / "billing" / "list_invoices.py"
    assert str(module) in made["written"]
    module.write_text("mine = 1\n")
    refusal = tools(home, "generate", str(tmp_path / "stubs")).refusal(1)
    assert f"{module} was not made here, or was changed since, and is kept" in refusal
    assert module.read_text() == "mine = 1\n"


def test_a_tool_that_no_configured_server_has_cannot_be_called(home: Path) -> None:
    ended = tools(home, "learn", "list_invoices", "--customer_id", "C")
    assert ended.returncode != 0
    assert "sealab servers add" in ended.stderr


@pytest.fixture
def repository(tmp_path: Path, home: Path) -> Path:
    """A git repository, and a home whose `mcp.json` has the public git server."""
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    server = {"command": sys.executable, "args": ["-m", "mcp_server_git"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"git": server}}))
    return folder


def test_learning_calls_a_read_only_tool_and_its_signature_tells_what_it_returns_from_then_on(
    home: Path, repository: Path
) -> None:
    learned = tools(home, "learn", "git.git_status", "--repo_path", str(repository), "--json").told
    assert learned == {
        "name": "git_status", "server": "git", "learned": True, "answers": 1,
        "signature": "tools.git.git_status(*, repo_path: str) -> str  # returns as seen in 1 answer",
    }  # fmt: skip
    shown = tools(home, "show", "git_status", "--json").told
    assert shown["signature"] == learned["signature"]
    assert str(repository) not in (home / "registry" / "learned.json").read_text()


def test_learning_does_not_call_a_tool_that_may_write_unless_forced(home: Path, repository: Path) -> None:
    refusal = tools(home, "learn", "git.git_create_branch", "--repo_path", str(repository), "--branch_name=x").refusal(
        3
    )
    assert "--force" in refusal
    wrong = tools(home, "learn", "git.git_log", "--repo_path", str(repository), "--max_count", "many")
    assert wrong.returncode != 0
    assert "max_count" in wrong.stderr


def test_a_stub_really_calls_its_tool_as_this_user_is_configured(home: Path, repository: Path, tmp_path: Path) -> None:
    assert tools(home, "generate", str(tmp_path / "stubs"), "--server", "git", "--json").told
    program = (
        "import asyncio\n"
        "from stubs.git import git_create_branch, git_status\n"
        f"print(asyncio.run(git_status(repo_path={str(repository)!r})))\n"
        f"asyncio.run(git_create_branch(repo_path={str(repository)!r}, branch_name='x'))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        env=environment(SEALAB_HOME=str(home)),
        check=False,
    )
    assert "No commits yet" in ended.stdout
    assert "RequestRefused" in ended.stderr, "nobody can be asked whether the branch may be made"
