"""The rules of a policy: read from the text of files, checked one by one, each with its name, its file and its line.

A security boundary: what cannot be read for certain is a fault, never a rule that is left out. Cedar ignores
annotations that it does not know; here one that is misspelt would drop a demand for approval, so it is a fault too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tools_registry.configuration import Approve
from . import cedar
from .access import Action

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
        return [f"of its {count} rules {read} could be told apart. Write each on lines of its own that end as usual"]
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
    """Return whether the action of a rule may be a call."""
    entities = [scope["entity"]] if "entity" in scope else scope.get("entities", [])
    return scope["op"] == "All" or any(each["id"] == Action.CALL for each in entities)
