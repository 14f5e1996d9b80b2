"""The policy in force: rules read from text, faults told with file and line, and never none where there was one."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest

from sealab.server.base.errors import SettingsError
from sealab.server.base.identity import LOCAL_IDENTITY
from sealab.server.governance.policy import policy_rules
from sealab.server.governance.policy.policy_file import PolicyFile
from sealab.server.governance.policy.policy_rules import PolicyFaulty, PolicyRule, rules_of
from sealab.tools_registry.configuration import Approve

from .test_decisions import call

GET = call("crm.get_one", writes=False)
PERMIT = '@id("all") permit(principal, action, resource);'
FORBID = '@id("none") forbid(principal, action, resource);'


def written(file: Path, text: str) -> PolicyFile:
    file.write_text(text)
    return PolicyFile(file)


def allows(policy: PolicyFile) -> bool:
    return policy.decide(LOCAL_IDENTITY, GET).allowed


def looked(policy: PolicyFile) -> PolicyFile:
    """Let it look as often as it takes for a version that stays the same."""
    policy.refresh()
    policy.refresh()
    return policy


def test_a_new_version_is_in_force_once_it_has_stayed_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    assert allows(policy)
    policy.path.write_text(FORBID)
    policy.refresh()
    assert allows(policy)  # it could be half written
    with caplog.at_level(logging.WARNING):
        policy.refresh()
    assert not allows(policy)
    assert "A new version of the policy is in force: 1 rules." in caplog.text


def test_the_same_time_and_size_do_not_hide_a_change(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT.replace("all", "one"))
    before = policy.path.stat()
    with policy.path.open("r+") as file:
        file.write(FORBID.replace('@id("none")', '@id("x")')[: before.st_size].ljust(before.st_size))
    os.utime(policy.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert policy.path.stat().st_size == before.st_size
    assert not allows(looked(policy))


def test_a_version_that_cannot_be_used_leaves_the_one_before_in_force_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = written(tmp_path / "p.cedar", f"{PERMIT}\n")
    policy.path.write_text(f"{FORBID}\n\npermit(;")
    with caplog.at_level(logging.ERROR):
        looked(policy)
        looked(policy)
    assert allows(policy)
    assert caplog.text.count("p.cedar:3: this is no rule") == 1
    assert policy.problem == "The new version of the policy cannot be used; the one before stays in force."
    policy.path.write_text(FORBID)
    assert not allows(looked(policy))
    assert policy.problem is None


def test_bytes_that_are_no_text_leave_the_one_before_in_force(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    policy.path.write_bytes(b"\n\xff\xfe")
    assert allows(looked(policy))
    assert policy.problem is not None


def test_without_its_file_everything_is_refused_until_it_is_back(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    policy.path.unlink()
    policy.refresh()
    ruling = policy.decide(LOCAL_IDENTITY, GET)
    assert (ruling.allowed, ruling.why()) == (False, "the file or folder of the policy is not there")
    assert policy.is_missing
    policy.path.write_text(PERMIT)
    assert allows(looked(policy))
    assert not policy.is_missing


def test_a_folder_is_one_policy_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(PERMIT)
    (tmp_path / "notes.txt").write_text("no rule")
    policy = PolicyFile(tmp_path)
    assert allows(policy)
    (tmp_path / "b.cedar").write_text(FORBID)
    assert not allows(looked(policy))
    (tmp_path / "b.cedar").unlink()
    assert allows(looked(policy))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"permit(principal, action, resource)", "p.cedar:1: this is no rule"),
        (b"// ok\n\n\xff", "p.cedar:3: it is not UTF-8 text (byte 7)"),
        (None, "where there is no file and no folder"),
    ],
)
def test_a_policy_that_cannot_be_used_at_the_start_is_an_error(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "p.cedar").write_bytes(content)
    with pytest.raises(SettingsError, match="POLICY") as caught:
        PolicyFile(tmp_path / "p.cedar")
    assert said in str(caught.value)


def test_an_empty_policy_permits_nothing(tmp_path: Path) -> None:
    assert not allows(written(tmp_path / "p.cedar", ""))


TEXT = """\
// A comment; with a semicolon and a "quote.
@id("reads") @approval("writes") @description("a; b")
permit (principal, action == Action::"call", resource)
when { resource.name like "get_*;" || resource.name == "say \\"hi\\"; //no" }; // and on

forbid (principal, action, resource in Server::"crm");
"""


def faults_of(text: str) -> list[str]:
    with pytest.raises(PolicyFaulty) as caught:
        rules_of({"team.cedar": text})
    return [str(each) for each in caught.value.faults]


def test_a_rule_has_its_id_and_its_line_whatever_stands_in_strings_and_comments() -> None:
    first, second = rules_of({"team.cedar": TEXT})
    assert (first.name, first.line, first.permits, first.approval) == ("reads", 2, True, Approve.WRITES)
    assert (second.name, second.line, second.permits) == ("team.cedar:6", 6, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\npermit(principal, action resource);", "team.cedar:3: this is no rule: unexpected token `resource`"),
        ("permit(principal, action, resource)", "team.cedar:1: this is no rule: unexpected end of input"),
        ('permit(principal, action, resource) when { "abc };', "team.cedar:1: this is no rule: invalid token"),
        ("permit(principal == ?principal, action, resource);", "team.cedar:1: this is no rule: a template"),
        ("permit(principal, action, resource);;", "team.cedar:1: this is no rule"),
        ("permit(principal, action, resource) when { principal.team };", "attribute `team` on entity type `Principal`"),
        ('permit(principal, action == Action::"cal", resource);', 'unrecognized action `Action::"cal"`'),
        ('permit(principal, action, resource == Tol::"a");', "`Tol`"),
        (
            'permit(principal, action == Action::"run", resource) when { context.timeout_seconds < "60" };',
            "unexpected type",
        ),
        ('@aproval("always") permit(principal, action, resource);', "there is no annotation @aproval"),
        ('@approval("often") permit(principal, action, resource);', "@approval takes one of never, writes, always"),
        ('@approval("always") forbid(principal, action, resource);', "@approval stands at a permit"),
        ('@approval("always") permit(principal, action == Action::"run", resource);', "for the action call"),
        ('@id("") permit(principal, action, resource);', "@id takes 1 to 80 letters"),
        ("@id permit(principal, action, resource);", "@id takes 1 to 80 letters"),
    ],
)
def test_what_cannot_be_used_is_said_with_file_and_line(text: str, said: str) -> None:
    assert said in faults_of(text)[0]
    assert faults_of(text)[0].startswith("team.cedar:")


def test_all_faults_are_told_at_once_and_an_id_is_given_once() -> None:
    rule = '@id("one")\npermit(principal, action, resource);\n'
    first, second = faults_of(f"{rule}{rule}nonsense;")
    assert first.startswith("team.cedar:5: this is no rule")
    assert second == "team.cedar:3: the id 'one' is that of the rule in team.cedar:1 too"


def test_a_text_without_rules_has_none() -> None:
    assert rules_of({"a.cedar": "", "b.cedar": "// nothing\n"}) == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_rule_behind_a_comment_counts_however_lines_end(end: str) -> None:
    text = end.join(("permit(principal, action, resource);", "// not these", "forbid(principal, action, resource);"))
    assert [rule.permits for rule in rules_of({"a.cedar": text})] == [True, False]


def test_a_file_in_which_cedar_finds_more_rules_than_were_told_apart_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_rules, "_PIECE", re.compile(r"(?s).\Z|;(?=\Z)"))
    monkeypatch.setattr(
        policy_rules, "_read", lambda file, line, _text: PolicyRule("x", file, line, True, Approve.NEVER, {})
    )
    assert "of its 2 rules 1 could be separated" in faults_of("permit(principal, action, resource);" * 2)[0]
