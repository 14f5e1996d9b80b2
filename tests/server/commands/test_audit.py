"""`sealab audit` and the commands that leave a line in the audit log."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sealab.server.governance.audit.trail import AuditKind
from sealab.server.privacy.tokens.keys import master_key
from sealab.skills_db.audit.audit_store import AuditStore
from sealab.skills_db.audit.chain import AuditEvent
from sealab.skills_db.engine import open_database

from ..command_line import sealab


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def add(home: Path, *events: AuditEvent) -> None:
    home.mkdir(exist_ok=True)
    with open_database(None, home) as database:
        AuditStore(database, master_key(None, home, keyring=False)).add(events)


def audit(home: Path, *arguments: str, **env: str) -> Any:
    return sealab("audit", *arguments, "--home", str(home), SEALAB_VAULT_KEYRING="false", **env)


def told(home: Path, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in audit(home, *arguments, "--json").stdout.splitlines()]


def test_a_command_that_changes_what_may_be_done_leaves_a_line_and_others_leave_none(home: Path) -> None:
    env = {"SEALAB_VAULT_KEYRING": "false"}
    at = ("--home", str(home))
    assert sealab("servers", "list", *at, **env).returncode == 0
    assert sealab("servers", "remove", "absent", *at, **env).returncode == 2
    assert not (home / "sealab.db").exists()
    added = sealab("servers", "add", "up", *at, "--env", "TOKEN=canary7f3a", "--", "run", "canary7f3a", **env)
    assert (added.returncode, added.stderr) == (0, "")
    assert sealab("servers", "remove", "up", *at, **env, SEALAB_AUDIT="off").returncode == 0
    assert sealab("servers", "remove", "up", *at, **env, SEALAB_AUDIT="required").returncode == 2
    *lines, head = told(home)
    assert [(each["event"], each["outcome"], each["details"]) for each in lines] == [
        ("administered", "ok", {"command": "servers add", "name": "up"}),
        ("administered", "begins", {"command": "servers remove", "name": "up"}),
        ("administered", "usage", {"command": "servers remove", "name": "up"}),
    ]
    assert head["head"]["number"] == 3
    assert "canary7f3a" not in json.dumps(lines)


def test_where_lines_are_required_a_command_is_refused_that_cannot_leave_one(home: Path) -> None:
    home.mkdir()
    (home / "sealab.db").write_text("no database" * 1000)
    command = ("servers", "add", "up", "--home", str(home), "--", "cat")
    refused = sealab(*command, SEALAB_AUDIT="required", SEALAB_VAULT_KEYRING="false")
    assert refused.returncode != 0
    assert "audit log cannot be written" in refused.stderr
    assert not (home / "mcp.json").exists()
    done = sealab(*command, SEALAB_VAULT_KEYRING="false")
    assert done.returncode == 0
    assert "The audit log has no line of this." in done.stderr
    assert (home / "mcp.json").exists()


def test_lines_are_chosen_by_what_is_asked_for_the_newest_last(home: Path) -> None:
    add(home, *(AuditEvent(event="run.began", at_us=number, principal=f"p{number}", run="r") for number in range(9)))
    assert [each["principal"] for each in told(home, "--limit", "2")[:-1]] == ["p7", "p8"]
    assert [each["number"] for each in told(home, "--who", "p3")[:-1]] == [4]
    assert told(home, "--who", "p")[:-1] == []
    assert told(home, "--since", "1h")[:-1] == []
    assert [each["number"] for each in told(home, "--until", "1h", "--limit", "1")[:-1]] == [9]
    assert "There are no lines that fit." in audit(home, "--tenant", "acme").stdout


def test_what_others_named_moves_nothing_on_a_terminal(home: Path) -> None:
    add(
        home,
        AuditEvent(event="tool.called", at_us=1, tool="up.\x1b[2Jx\r\ny", principal="\u202ea", details={"\x07": 1}),
    )
    shown = audit(home).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\x07" not in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("verify", "--limit", "3"), "`sealab audit verify` takes no --limit"),
        (("--expect-head", "0" * 64), "`sealab audit list` takes no --expect-head"),
        (("verify", "--expect-head", "beef"), "--expect-head is no head"),
        (("--limit", "0"), "--limit cannot be 0"),
        (("--since", "yesterday"), "--since cannot be yesterday"),
        (("--event", "none.such"), "--event cannot be none.such"),
        (("trim",), "Give --before TIME"),
        (("trim", "--before", "1d"), "then say --yes"),
        (("burn",), "burn"),
    ],
)
def test_what_cannot_be_used_is_said(home: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in audit(home, *arguments).refusal()


def test_verify_says_which_line_was_changed_and_ends_with_1(home: Path) -> None:
    add(home, *(AuditEvent(event=AuditKind.RUN_BEGAN, at_us=number) for number in range(5)))
    whole = audit(home, "verify")
    assert whole.returncode == 0
    head = whole.stdout.split()[-1]
    assert audit(home, "verify", "--expect-head", head).returncode == 0
    with closing(sqlite3.connect(home / "sealab.db", isolation_level=None)) as database:
        database.execute("DROP TRIGGER sealab_audit_line_kept")
        database.execute("UPDATE sealab_audit_line SET principal = 'another' WHERE number = 3")
    changed = audit(home, "verify")
    assert changed.returncode == 1
    assert changed.stdout == "The log was changed. Line 3: it was changed. The 2 before it hold.\n"
    assert json.loads(audit(home, "verify", "--json").stdout)["bad"] == {"line": 3, "why": "it was changed"}
    assert "changed at line 3" in audit(home, "trim", "--before", "1d", "--yes").refusal()


def test_trimming_leaves_a_log_that_can_be_checked(home: Path) -> None:
    add(home, *(AuditEvent(event=AuditKind.RUN_BEGAN, at_us=number) for number in range(5)))
    assert json.loads(audit(home, "trim", "--before", "1d", "--yes", "--json").stdout)["trimmed"] == 5
    assert [each["event"] for each in told(home)[:-1]] == ["audit.trimmed"]
    assert "Lines 1 to 5 were trimmed." in audit(home, "verify").stdout


def test_lines_of_one_run_stand_together_below_its_first_one(home: Path) -> None:
    kinds = (("run.began", "a"), ("run.began", "b"), ("tool.called", "a"), ("limit.set", ""), ("run.ended", "a"))
    add(
        home,
        *(AuditEvent(event=event, at_us=n, tenant="t", principal="p", run=run) for n, (event, run) in enumerate(kinds)),
    )
    shown = audit(home).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["1", "3", "5", "2", "4"]
    indents = [len(line) - len(line.lstrip()) for line in shown]
    assert [indent - indents[0] for indent in indents] == [0, 2, 2, 0, 0]
    assert [line["number"] for line in told(home)[:-1]] == [1, 2, 3, 4, 5]
