"""What a call of an upstream tool is given under `PRIVACY=auto`: values where policy allows them, and no stray token.

A security boundary. The operator's `restore` is judged on what the tool would get: on tokens, and on values that the
code has in hand, whether a tool or a file gave them to it or `restore_pii` did. A value counts that the scope knows,
wherever it stands in an argument. Only what a tool itself gave the run may go back to it, such as where to read on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...base.errors import RequestRefused
from ...governance.caller import Caller
from ...governance.policy.restore_rulings import TOOL, RestoreRulings
from ..privacy import Privacy

if TYPE_CHECKING:
    from ..tokens.restoring import LeftToken
    from ..tokens.sanitizer import KnownPlace


SECRETS = frozenset({"SECRET"})
"""Types that go nowhere unless the argument is named."""


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """What one server may be given."""

    rule: object = None

    def allows(self, tool: str, path: Sequence[str], kind: str) -> bool:
        """Return whether a value of that type may go to a tool at that path of its arguments."""
        argument = path[0] if path else ""
        rule = self.rule
        if kind in SECRETS:
            return isinstance(rule, Mapping) and f"{tool}.{argument}" in _places(rule.get(kind))
        if rule is None or isinstance(rule, bool):
            return rule is not False
        if isinstance(rule, str | list):
            return any(_fits(place, tool, argument) for place in _places(rule))
        if isinstance(rule, Mapping):
            return any(
                fnmatchcase(kind, str(kinds).upper()) and any(_fits(place, tool, argument) for place in _places(places))
                for kinds, places in rule.items()
            )
        return False


def _places(places: object) -> list[str]:
    if isinstance(places, bool):
        return ["*"] if places else []
    if isinstance(places, str):
        return [places]
    return [str(place) for place in places] if isinstance(places, list) else []


def _fits(place: str, tool: str, argument: str) -> bool:
    return fnmatchcase(tool, place) or fnmatchcase(f"{tool}.{argument}", place)


_TOLD_MAX = 5
NOT_GIVEN = "the operator's `restore` does not give it"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A tool that is to be called: `rule` is its server's `restore`, and `takes_tokens` whether it may have tokens."""

    server: str
    tool: str
    rule: object = None
    takes_tokens: bool = False

    @property
    def name(self) -> str:
        """What the audit and errors call it."""
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True, slots=True)
class LeftInCall:
    """What a call was not given: tokens that policy `withheld` or that are `unknown`, and values by type.

    Where `refused` the call was not made; else the tool got the tokens as they are.
    """

    refused: bool
    withheld: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict)


async def given_to(
    privacy: Privacy,
    caller: Caller,
    to: Recipient,
    arguments: Mapping[str, Json],
    *,
    given: Collection[str] = (),
    run: str = "",
    note: Callable[[LeftInCall], None] = lambda _left: None,
) -> Mapping[str, Json]:
    """Return the arguments as the tool gets them; they stay as they are unless everything is filtered.

    `given` are the values that the tool gave the run before.
    Raises `RequestRefused` where a token would be left in them that the tool may not have as it is, or where they hold
    a known value of a type that `restore` or the policy does not give to it. `note` is told of these, and of tokens
    that are let through.
    """
    if not privacy.filters:
        return arguments
    scope, rule = caller.scope, RestorePolicy(to.rule)
    rulings = RestoreRulings(privacy.policy, caller.identity, TOOL, server=to.server, tool=to.tool)

    def allows(path: tuple[str, ...], kind: str) -> bool:
        return rule.allows(to.tool, path, kind) and rulings(path, kind)

    places = await privacy.known_in(scope, arguments)
    refused = [place for place in _refused(places, allows) if place.text not in given]
    restored = await privacy.restored_where(scope, arguments, to.name, allows, run=run)
    left = restored.left
    stops = bool(refused) or (bool(left) and not to.takes_tokens)
    if left or refused:
        note(
            LeftInCall(
                stops,
                tuple(dict.fromkeys(each.token for each in left if each.is_known)),
                restored.unknown,
                Counter(place.span.type for place in refused),
            )
        )
    withheld = Counter(place.span.type for place in refused)
    if stops:
        withheld.update(restored.kept)
    privacy.note("refuse", to.name, withheld, scope=scope, run=run, rule=_rule(withheld, rulings))
    if stops:
        raise RequestRefused(_why(to, () if to.takes_tokens else left, refused, by_policy=rulings.why()))
    privacy.note("send", to.name, Counter(place.span.type for place in places), scope=scope, run=run)
    return cast("Mapping[str, Json]", restored.content)


def _rule(withheld: Collection[str], rulings: RestoreRulings) -> str:
    """Return what withheld values of these types: `restore` of the server's entry, rules of the policy, or both."""
    return "; ".join(each for each in ("restore" * bool(set(withheld) - rulings.refused.keys()), rulings.named) if each)


def _refused(places: Sequence[KnownPlace], allows: Callable[[tuple[str, ...], str], bool]) -> Iterator[KnownPlace]:
    """Give the places of values that are not allowed there; a name within an address that is allowed goes with it."""
    for path, of_leaf in groupby(places, key=lambda place: place.path):
        some = list(of_leaf)
        allowed = [place.span for place in some if allows(path, place.span.type)]
        for place in some:
            span = place.span
            if not allows(path, span.type) and not any(
                each.start <= span.start and span.end <= each.end and each.type != span.type for each in allowed
            ):
                yield place


def _why(to: Recipient, left: Sequence[LeftToken], refused: Sequence[KnownPlace], *, by_policy: str) -> str:
    unknown = [f"{each.token}{_in(each.argument)}" for each in left if not each.is_known]
    withheld = [f"{each.token}{_in(each.argument)}" for each in left if each.is_known]
    withheld += dict.fromkeys(
        f"a value of the type {place.span.type}{_in(place.path[0] if place.path else '')}" for place in refused
    )
    wrong, do = [], []
    if unknown:
        wrong.append(f"{_some(unknown)} {_stand(unknown)} for no value here")
        do.append("Give tokens letter by letter as they were shown.")
    if withheld:
        wrong.append(f"{'it may not have' if by_policy else NOT_GIVEN} {_some(withheld)}")
        if by_policy:
            wrong.append(f"the policy refuses {by_policy}")
            do.append("Leave that out, or ask the operator to change the policy.")
        else:
            do.append("Leave that out, or ask the user to change `restore` of this server in mcp.json.")
    if left:
        do.append('A tool that is to get tokens as they are needs "allow_tokens" there.')
    return f"{to.name} was not called: {', and '.join(wrong)}. {' '.join(do)}"


def _in(argument: str) -> str:
    return f" in {argument!r}" if argument else ""


def _stand(tokens: Sequence[str]) -> str:
    return "stands" if len(tokens) == 1 else "stand"


def _some(things: Sequence[str]) -> str:
    more = len(things) - _TOLD_MAX
    return ", ".join([*things[:_TOLD_MAX], *([f"{more} more"] if more > 0 else [])])
