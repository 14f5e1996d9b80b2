"""One version of a policy, in force as a whole: its rules, and the decisions by them, of which the last are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from ...tools_registry.configuration import Approve
from ..identity import Identity
from .access import Access, Ruling, stricter
from .cedar import PolicySet
from .policy_rules import PolicyRule

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
        self._set = PolicySet({each: rule.policy for each, rule in self._named.items()})
        self._kept = lru_cache(maxsize=DECISIONS_KEPT)(self._decided)

    def decide(self, identity: Identity, access: Access) -> Ruling:
        """Return whether somebody may do something. A rule that fails while it is evaluated has it refused."""
        who = Identity(identity.tenant, identity.principal, identity.rights)
        chars = len(access.name) + sum(len(value) for _, value in access.context if isinstance(value, str))
        return self._kept(who, access) if chars <= _KEPT_CHARS_MAX else self._decided(who, access)

    def explain(self, identity: Identity, access: Access) -> list[Explained]:
        """Return the rules that speak of it by their heads, in their order."""
        permitting = {each: {**rule.policy, "effect": "permit"} for each, rule in self._named.items()}
        heads = {each: {**policy, "conditions": []} for each, policy in permitting.items()}
        speaking = PolicySet(heads).answer(identity, access).by
        applying = PolicySet(permitting).answer(identity, access).by
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
