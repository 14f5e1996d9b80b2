"""What holds of every policy: what forbids wins, less is never more, and what is kept is what would be decided."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sealab.sandbox.job import Isolation
from sealab.server.base.identity import ALL_RIGHTS, LOCAL_IDENTITY, Identity, Right
from sealab.server.governance.policy.access import Access, Ruling, restore_access, run_access
from sealab.server.governance.policy.policy_rules import Rulebook, rules_of
from sealab.tools_registry.configuration import Approve

PEOPLE = [
    Identity("acme", "alice", ALL_RIGHTS),
    Identity("acme", "bob", frozenset({Right.RUN})),
    Identity("evil", "alice", ALL_RIGHTS),
    LOCAL_IDENTITY,
]
TOOLS = ["crm.get_one", "crm.delete_one", "mail.send"]
PRINCIPALS = ["principal", 'principal == Principal::"acme/alice"', 'principal in Tenant::"acme"']
HEADS = [
    "action, resource",
    'action == Action::"run", resource',
    'action == Action::"run", resource == Isolation::"process"',
    'action == Action::"call", resource',
    'action == Action::"call", resource in Server::"crm"',
    'action == Action::"restore", resource == PersonalDataType::"EMAIL"',
]
CONDITIONS = {
    "run": ["context.timeout_seconds <= 60", 'principal.rights.contains("run:process")'],
    "call": ['resource.name like "get_*"', "!resource.writes"],
    "restore": ['context.destination == "tool"', 'context.tool like "send*"'],
}


def call(name: str, *, writes: bool) -> Access:
    from sealab.server.governance.policy.access import Action

    server, _, own = name.partition(".")
    attributes = (("name", own), ("category", server), ("writes", writes), ("destructive", False))
    return Access(Action.CALL, name, attributes, server)


ACCESSES = [
    *(
        run_access(isolation, timeout_seconds=seconds, memory_mb=500, background=False, session=False)
        for isolation in Isolation
        for seconds in (30, 60.5, 90)
    ),
    *(call(name, writes=writes) for name in TOOLS for writes in (True, False)),
    *(restore_access(kind, where, tool="send") for kind in ("EMAIL", "CARD") for where in ("model", "tool")),
]


@st.composite
def rule(draw: st.DrawFn) -> tuple[bool, str]:
    permits = draw(st.booleans())
    head = draw(st.sampled_from(HEADS))
    action = next((each for each in CONDITIONS if f'"{each}"' in head), None)
    condition = draw(st.sampled_from([None, *CONDITIONS.get(action or "", [])]))
    when = "" if condition is None else f" when {{ {condition} }}"
    approval = draw(st.sampled_from([None, *Approve])) if permits and action in {None, "call"} else None
    noted = "" if approval is None else f'@approval("{approval.value}") '
    return permits, f"{noted}{'permit' if permits else 'forbid'}({draw(st.sampled_from(PRINCIPALS))}, {head}){when};"


rules = st.lists(rule(), max_size=6)


def book(texts: list[tuple[bool, str]]) -> Rulebook:
    return Rulebook(rules_of({"a.cedar": "\n".join(text for _, text in texts)}))


def all_of(rulebook: Rulebook) -> list[Ruling]:
    return [rulebook.decide(who, access) for who in PEOPLE for access in ACCESSES]


@settings(max_examples=20)
@given(rules, st.data())
def test_without_one_of_its_permits_a_policy_allows_nothing_more(
    texts: list[tuple[bool, str]], data: st.DataObject
) -> None:
    permits = [number for number, (permits, _) in enumerate(texts) if permits]
    if not permits:
        assert not any(ruling.allowed for ruling in all_of(book(texts)))
        return
    left_out = data.draw(st.sampled_from(permits))
    fewer = texts[:left_out] + texts[left_out + 1 :]
    for before, after in zip(all_of(book(texts)), all_of(book(fewer)), strict=True):
        assert before.allowed or not after.allowed


@settings(max_examples=20)
@given(rules, rule())
def test_one_more_rule_that_forbids_allows_nothing_more_and_wins(
    texts: list[tuple[bool, str]], more: tuple[bool, str]
) -> None:
    forbids = re.sub(r"^(@approval\S+ )?permit", "forbid", more[1])
    book_before, book_after = book(texts), book([*texts, (False, forbids)])
    alone = Rulebook(rules_of({"a.cedar": forbids.replace("forbid(", "permit(", 1)}))
    for who in PEOPLE:
        for access in ACCESSES:
            after = book_after.decide(who, access)
            if alone.decide(who, access).allowed:
                assert not after.allowed
            else:
                assert after.allowed == book_before.decide(who, access).allowed


@settings(max_examples=20)
@given(rules)
def test_what_is_kept_of_decisions_is_what_is_decided(texts: list[tuple[bool, str]]) -> None:
    kept, fresh = book(texts), book(texts)
    all_of(kept)
    assert all_of(kept) == [fresh._decided(who, access) for who in PEOPLE for access in ACCESSES]


@settings(max_examples=20)
@given(rules)
def test_the_strictest_approval_of_the_rules_that_permit_holds(texts: list[tuple[bool, str]]) -> None:
    rulebook = book(texts)
    by_name = {each.name: each for each in rulebook.rules}
    order = [Approve.NEVER, Approve.WRITES, Approve.ALWAYS]
    for ruling in all_of(rulebook):
        if ruling.allowed:
            assert ruling.by
            assert ruling.approval is max((by_name[each].approval for each in ruling.by), key=order.index)


def test_names_of_two_tenants_do_not_meet() -> None:
    rulebook = book([(True, 'permit(principal == Principal::"acme/alice", action, resource);')])
    allowed = [who for who in PEOPLE if rulebook.decide(who, ACCESSES[0]).allowed]
    assert allowed == [PEOPLE[0]]
    odd = Identity("acme/alice", "", ALL_RIGHTS)
    assert rulebook.decide(odd, ACCESSES[0]).problem == "the name of the tenant has a slash"
    assert not rulebook.decide(Identity('acme/alice"', "x", ALL_RIGHTS), ACCESSES[0]).allowed


def test_a_credential_makes_no_difference_and_a_right_does() -> None:
    rulebook = book(
        [(True, 'permit(principal, action == Action::"run", resource) when { principal.rights.contains("run") };')]
    )
    one = Identity("acme", "alice", frozenset({Right.RUN}), "token-1")
    assert rulebook.decide(one, ACCESSES[0]) is rulebook.decide(
        Identity("acme", "alice", frozenset({Right.RUN}), "token-2"), ACCESSES[0]
    )
    assert not rulebook.decide(Identity("acme", "alice", frozenset()), ACCESSES[0]).allowed


def test_a_rule_that_fails_while_it_is_evaluated_has_all_refused_that_it_may_speak_of() -> None:
    big = "9223372036854775807"
    rulebook = book(
        [
            (True, "permit(principal, action, resource);"),
            (False, f'forbid(principal, action == Action::"run", resource) when {{ context.memory_mb + {big} > 1 }};'),
        ]
    )
    assert rulebook.decide(LOCAL_IDENTITY, ACCESSES[0]) == Ruling(
        allowed=False, problem="a rule could not be evaluated"
    )
    assert rulebook.decide(LOCAL_IDENTITY, call("crm.get_one", writes=False)).allowed


def test_explaining_names_the_rules_that_a_condition_keeps_from_applying() -> None:
    rulebook = book(
        [
            (
                True,
                '@id("short") permit(principal, action == Action::"run", resource) when { context.timeout_seconds <= 60 };',
            ),
            (False, '@id("big") forbid(principal, action == Action::"run", resource) when { context.memory_mb > 9 };'),
            (True, '@id("other") permit(principal, action == Action::"call", resource);'),
        ]
    )
    long = run_access(Isolation.RESTRICTED, timeout_seconds=60.5, memory_mb=5, background=False, session=False)
    assert [(each.rule.name, each.applies) for each in rulebook.explain(LOCAL_IDENTITY, long)] == [
        ("short", False),
        ("big", False),
    ]
    assert rulebook.decide(LOCAL_IDENTITY, long).why() == "no rule permits it"
