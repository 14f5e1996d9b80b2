"""`sealab policy` as a security team uses it: check, explain, test, and the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..command_line import Ended, sealab

POLICY = """\
@id("short")
permit(principal in Tenant::"default", action == Action::"run", resource == Isolation::"restricted")
when { context.timeout_seconds <= 60 };

@id("reads") @approval("writes")
permit(principal, action == Action::"call", resource in Server::"crm");

@id("no-delete") forbid(principal, action == Action::"call", resource) when { resource.name like "delete_*" };
@id("cards") permit(principal == Principal::"acme/alice", action == Action::"restore", resource)
when { context.destination == "file" };
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "p.cedar").write_text(POLICY)
    (tmp_path / "sealab.toml").write_text('POLICY = "p.cedar"\n')
    return tmp_path


def policy(home: Path, command: str, *arguments: str) -> Ended:
    return sealab("policy", command, "--home", str(home), *arguments)


def test_check_names_what_is_wrong_with_file_and_line_and_fails(home: Path) -> None:
    good = policy(home, "check")
    assert (good.returncode, good.stderr) == (0, "")
    assert "3 permit and 1 forbid rules, and nothing wrong with them" in good.stdout
    (home / "bad.cedar").write_text("\npermit(principal, action, resource)\n  when { principal.team };\n")
    bad = policy(home, "check", str(home / "bad.cedar"))
    assert bad.returncode == 1
    assert bad.stdout == "bad.cedar:2: attribute `team` on entity type `Principal` not found\n"
    told = json.loads(policy(home, "check", str(home), "--json").stdout)
    assert told["ok"] is False
    assert told["faults"] == [
        {"file": "bad.cedar", "line": 2, "message": "attribute `team` on entity type `Principal` not found"}
    ]


def test_check_without_a_policy_is_wrong_usage(tmp_path: Path) -> None:
    assert "POLICY is not set" in policy(tmp_path, "check").stderr
    gone = policy(tmp_path, "check", str(tmp_path / "gone"))
    assert (gone.returncode, "is no file" in gone.stderr) == (2, True)


def test_explain_says_what_becomes_of_a_request_and_by_which_rules(home: Path) -> None:
    run = json.loads(policy(home, "explain", "local", "run", "restricted", "--json").stdout)
    assert run["allowed"] is True
    assert run["by"] == [{"id": "short", "file": "p.cedar", "line": 1, "effect": "permit"}]
    long = policy(home, "explain", "local", "run", "restricted", "--context", '{"timeout_seconds": 61}')
    assert long.returncode == 3
    assert "no rule permits it" in long.stdout
    assert "permit short (p.cedar:1) would apply but for a condition" in long.stdout
    call = json.loads(policy(home, "explain", "bob", "call", "crm.delete_all", "--json").stdout)
    assert (call["allowed"], [rule["id"] for rule in call["by"]]) == (False, ["no-delete"])
    read = json.loads(policy(home, "explain", "bob", "call", 'Tool::"crm.get"', "--json").stdout)
    assert (read["approval"], [rule["id"] for rule in read["unmet"]]) == ("writes", ["no-delete"])


@pytest.mark.parametrize(
    ("who", "code"),
    [(["acme/alice"], 0), (["alice", "--tenant", "acme"], 0), (['Principal::"acme/alice"'], 0), (["alice"], 3)],
)
def test_explain_takes_a_principal_of_a_tenant(home: Path, who: list[str], code: int) -> None:
    name, *options = who
    arguments = (name, "restore", "CARD", "--context", '{"destination": "file"}', *options)
    assert policy(home, "explain", *arguments).returncode == code


def test_explain_knows_tools_by_their_definitions(home: Path) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"up": {"command": "/no/such", "reads": ["get"]}}}))
    (home / "tools").mkdir()
    tools = [{"name": name, "description": "x", "inputSchema": {"type": "object"}} for name in ("get", "put")]
    (home / "tools" / "up.json").write_text(json.dumps({"tools": tools}))
    (home / "p.cedar").write_text(
        'permit(principal, action == Action::"call", resource in Server::"up") when { !resource.writes };'
    )
    assert policy(home, "explain", "bob", "call", "up.get").returncode == 0
    assert policy(home, "explain", "bob", "call", "up.put").returncode == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bob", "walk", "restricted"], "There is no action 'walk'. Give one of run, call, restore."),
        (["bob", "run", "nowhere"], "There is no isolation 'nowhere'"),
        (["bob", "call", "crm"], "crm is no tool. Give SERVER.TOOL."),
        (["bob", "run", "restricted", "--right", "fly"], "There is no right 'fly'"),
        (["a/bob", "run", "restricted", "--tenant", "b"], "a/bob is of the tenant a, not b"),
        (["bob", "run", "restricted", "--context", "[1"], "--context is no JSON object"),
        (["bob", "run", "restricted", "--context", '{"seconds": 1}'], "has no 'seconds'. It has timeout_seconds"),
        (["bob", "run", "restricted", "--context", '{"memory_mb": "1"}'], "memory_mb in the context is '1'"),
        (["bob", "call", "crm.x", "--context", '{"a": 1}'], "has no 'a'. It has arguments, sources, kinds, first_time"),
    ],
)
def test_a_request_that_makes_no_sense_is_wrong_usage(home: Path, arguments: list[str], said: str) -> None:
    assert said in policy(home, "explain", *arguments).refusal()


def test_expectations_are_met_or_named(home: Path) -> None:
    file = home / "expected.yaml"
    file.write_text(
        "- {principal: local, action: run, resource: restricted, expect: allow}\n"
        "- {principal: bob, action: call, resource: crm.get, expect: allow, approval: writes}\n"
        "- {principal: bob, action: call, resource: crm.delete_all, expect: refuse}\n"
    )
    met = policy(home, "test", str(file))
    assert (met.returncode, met.stdout) == (0, "3 of 3 expectations are met\n")
    file.write_text(
        "- {principal: bob, action: call, resource: crm.delete_all, expect: allow}\n"
        "- {principal: bob, action: call, resource: crm.get, expect: allow, approval: always}\n"
    )
    failed = policy(home, "test", str(file), "--json")
    assert failed.returncode == 1
    assert [each["wrong"] for each in json.loads(failed.stdout)["expectations"]] == [
        "default/bob call crm.delete_all is refused, by no-delete",
        "default/bob call crm.get has the approval writes, not always",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no YAML"),
        ("a: b", "is no list of expectations"),
        ("- {principal: a}", "number 1, action: Field required"),
        (
            "- {principal: a, action: run, resource: process, expect: maybe}",
            "expect: Input should be 'allow' or 'refuse'",
        ),
        (
            "- {principal: a, action: run, resource: process, expect: allow, who: b}",
            "number 1, who: Extra inputs are not permitted",
        ),
    ],
)
def test_a_file_of_expectations_that_is_none_is_wrong_usage(home: Path, text: str, said: str) -> None:
    (home / "e.yaml").write_text(text)
    ended = policy(home, "test", str(home / "e.yaml"))
    assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr


def test_the_schema_is_printed_as_rules_are_checked_by_it(home: Path) -> None:
    printed = policy(home, "schema").stdout
    assert "entity Principal in [Tenant]" in printed
    assert json.loads(policy(home, "schema", "--json").stdout)["schema"] == printed
