"""The rules of a policy, each with its name, its file and its line: read from the text of files, and how they decide.

A security boundary: what cannot be read for certain is a fault, never a rule that is left out. Cedar ignores
annotations that it does not know; here one that is misspelt would drop a demand for approval, so it is a fault too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any

from ....tools_registry.configuration import Approve
from ...base.identity import Identity
from . import cedar
from .access import Access, Action, Ruling, stricter

KNOWN_ANNOTATIONS = frozenset({"id", "approval", "description"})
_NAME = re.compile(r"[\w.:/-]{1,80}")
_PIECE = re.compile(r'(?<!\\)"(?:[^"\\]|\\.)*"|//[^\r\n]*|;|"', re.DOTALL)
"""What is looked for while a text is split: a string, a comment, the end of a policy, a string without its end.

A lone carriage return ends a comment for Cedar too.
"""
_BLANK = re.compile(r"(?:\s|//[^\r\n]*)*")


@dataclass(frozen=True, slots=True)
class PolicyFault:
    """What is wrong with a policy, and where."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class PolicyFaulty(Exception):
    """A policy cannot be used; `faults` are all that was found."""

    def __init__(self, faults: Sequence[PolicyFault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule: `name` is its `@id`, else its file and line. `policy` is what Cedar made of it."""

    name: str
    file: str
    line: int
    permits: bool
    approval: Approve
    policy: Mapping[str, Any] = field(repr=False, compare=False)


def rules_of(texts: Mapping[str, str]) -> tuple[PolicyRule, ...]:
    """Return the rules of texts by the names of their files. Takes time: call it in a thread.

    Raises `PolicyFaulty` with everything that is wrong, and `SettingsError` where Cedar is not installed.
    """
    rules: list[PolicyRule] = []
    found: list[PolicyFault] = []
    for file, text in texts.items():
        read: list[tuple[PolicyRule, str]] = []
        before = len(found)
        for line, statement in _statements(text):
            try:
                read.append((_read(file, line, statement), statement))
            except PolicyFaulty as faulty:
                found += faulty.faults
        # All at once, and one by one where that fails: Cedar names no lines, and a thousand rules would take seconds.
        is_read = len(found) == before
        whole = _faults_of_whole(text, len(read)) if is_read else []
        if whole or not is_read:
            each_alone = [
                PolicyFault(file, rule.line, each) for rule, statement in read for each in cedar.faults(statement)
            ]
            found += each_alone or [PolicyFault(file, 1, each) for each in whole]
        rules += [rule for rule, _ in read]
    named: dict[str, PolicyRule] = {}
    for rule in rules:
        other = named.setdefault(rule.name, rule)
        if other is not rule:
            message = f"the id {rule.name!r} is that of the rule in {other.file}:{other.line} too"
            found.append(PolicyFault(rule.file, rule.line, message))
    if found:
        raise PolicyFaulty(found)
    return tuple(rules)


def _faults_of_whole(text: str, read: int) -> list[str]:
    """Return what is wrong with a text of which so many rules were read: Cedar has to find as many in it."""
    found = cedar.faults(text)
    if found or not text.strip():
        return found
    count = len(cedar.parsed(text))
    if count != read:
        return [f"of its {count} rules {read} could be separated. Write each on lines of its own that end as usual"]
    return []


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each policy of a text with the line on which it begins; the last may be a rest that is none."""
    start = 0
    for piece in _PIECE.finditer(text):
        if piece[0] == ";":
            yield _placed(text, start, piece.end())
            start = piece.end()
    line, rest = _placed(text, start, len(text))
    if rest:
        yield line, rest


def _placed(text: str, start: int, end: int) -> tuple[int, str]:
    blank = _BLANK.match(text, start, end)
    begin = start if blank is None else blank.end()
    ends = text.count("\n", 0, begin) + text.count("\r", 0, begin) - text.count("\r\n", 0, begin)
    return ends + 1, text[begin:end]


def _read(file: str, line: int, statement: str) -> PolicyRule:
    """Return the rule that a statement is, before it is checked by the schema. Raises `PolicyFaulty`."""
    try:
        policies = cedar.parsed(statement)
    except ValueError as error:
        raise PolicyFaulty([PolicyFault(file, line, f"this is no rule: {error}")]) from None
    if len(policies) != 1:
        raise PolicyFaulty(
            [PolicyFault(file, line, "this is no rule: it has to be one permit or forbid up to a semicolon")]
        )
    [policy] = policies
    annotations: Mapping[str, str | None] = policy.get("annotations", {})
    permits = policy["effect"] == "permit"
    wrong = [PolicyFault(file, line, each) for each in _wrong_annotations(annotations, policy, permits=permits)]
    if wrong:
        raise PolicyFaulty(wrong)
    said = annotations.get("approval")
    return PolicyRule(
        name=annotations.get("id") or f"{file}:{line}",
        file=file,
        line=line,
        permits=permits,
        approval=Approve.NEVER if said is None else Approve(said),
        policy=policy,
    )


def _wrong_annotations(
    annotations: Mapping[str, str | None], policy: Mapping[str, Any], *, permits: bool
) -> Iterator[str]:
    for name in sorted(annotations.keys() - KNOWN_ANNOTATIONS):
        yield f"there is no annotation @{name}; there are {', '.join(f'@{each}' for each in sorted(KNOWN_ANNOTATIONS))}"
    if "id" in annotations and not _NAME.fullmatch(annotations["id"] or ""):
        yield "@id takes 1 to 80 letters, digits and any of . : / _ -"
    if "approval" not in annotations:
        return
    if annotations["approval"] not in set(Approve):
        yield f"@approval takes one of {', '.join(Approve)}"
    if not permits:
        yield "@approval stands at a permit: what is forbidden is not asked about"
    if not _is_of_calls(policy["action"]):
        yield "@approval stands at a permit for the action call: nothing else is asked about"


def _is_of_calls(scope: Mapping[str, Any]) -> bool:
    entities = [scope["entity"]] if "entity" in scope else scope.get("entities", [])
    return scope["op"] == "All" or any(each["id"] == Action.CALL for each in entities)


DECISIONS_KEPT = 16_384
_KEPT_CHARS_MAX = 512
"""The longest request whose decision is kept: the names of arguments are the code's own."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One rule that speaks of somebody, an action and a resource; it `applies` unless a condition of it fails."""

    rule: PolicyRule
    applies: bool


class Rulebook:
    """The rules of one version; safe to use from several threads."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = tuple(rules)
        self._named = {str(number): rule for number, rule in enumerate(self.rules)}
        self._set = cedar.PolicySet({each: rule.policy for each, rule in self._named.items()})
        self._kept = lru_cache(maxsize=DECISIONS_KEPT)(self._decided)

    def decide(self, identity: Identity, access: Access) -> Ruling:
        """Return whether somebody may do something. A rule that fails while it is evaluated has it refused."""
        who = Identity(identity.tenant, identity.principal, identity.rights)
        texts = (value if isinstance(value, tuple) else (value,) for _, value in access.context)
        chars = len(access.name) + sum(len(each) for text in texts for each in text if isinstance(each, str))
        return self._kept(who, access) if chars <= _KEPT_CHARS_MAX else self._decided(who, access)

    def explain(self, identity: Identity, access: Access) -> list[Explained]:
        """Return the rules that speak of it by their heads, in their order."""
        permitting = {each: {**rule.policy, "effect": "permit"} for each, rule in self._named.items()}
        heads = {each: {**policy, "conditions": []} for each, policy in permitting.items()}
        speaking = cedar.PolicySet(heads).answer(identity, access).by
        applying = cedar.PolicySet(permitting).answer(identity, access).by
        return [Explained(self._named[each], each in applying) for each in sorted(speaking, key=int)]

    def _decided(self, identity: Identity, access: Access) -> Ruling:
        if "/" in identity.tenant:
            return Ruling(allowed=False, problem="the name of the tenant has a slash")
        answer = self._set.answer(identity, access)
        by = [self._named[each] for each in sorted(answer.by, key=int)]
        if answer.failed:  # Cedar leaves such a rule out, be it one that forbids
            return Ruling(allowed=False, problem="a rule could not be evaluated")
        approval = reduce(stricter, (rule.approval for rule in by if rule.permits), Approve.NEVER)
        return Ruling(answer.allowed, approval if answer.allowed else Approve.NEVER, tuple(rule.name for rule in by))
