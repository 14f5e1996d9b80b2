"""Rules as they are read from text: each with its name and line, and whatever is wrong with the file and the line."""

from __future__ import annotations

import re

import pytest

from sealab.server.policy import policy_rules
from sealab.server.policy.policy_rules import PolicyFaulty, PolicyRule, rules_of
from sealab.tools_registry.configuration import Approve

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
    assert "of its 2 rules 1 could be told apart" in faults_of("permit(principal, action, resource);" * 2)[0]
