"""What a call of an upstream tool is given under `PRIVACY=auto`: values where policy allows them, and no stray token.

A security boundary. The operator's `restore` is judged on what the tool would get: on tokens, and on values that the
code has in hand, whether a tool or a file gave them to it or `restore_pii` did. A value counts that the scope knows,
wherever it stands in an argument. Only what a tool itself gave the run may go back to it, such as where to read on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby, islice
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...base.errors import RequestRefused
from ...governance.caller import Caller
from ...governance.policy.restore_rulings import TOOL, RestoreRulings
from ..privacy import Privacy, some, stand

if TYPE_CHECKING:
    from ..tokens.restoring import LeftToken
    from ..tokens.sanitizer import KnownPlace


SECRETS = frozenset({"SECRET"})
"""Types that go nowhere unless the argument is named."""
_MONEY = "bank account payment pay transfer payee beneficiary remittance payout sepa debit money"
_PAPERS = "passport identity document identification id_number kyc"
ASKED_FOR: Mapping[str, frozenset[str]] = {
    kind: frozenset(words.split())
    for kind, words in {
        "CARD": "card pan credit payment pay checkout charge",
        "IBAN": f"iban {_MONEY}",
        "BANK": f"iban routing swift bic sort_code {_MONEY}",
        "CRYPTO": "wallet crypto bitcoin ethereum btc eth coin",
        "SSN": "ssn social_security tax tin national_id",
        "TAX_ID": "tax vat tin fiscal nif",
        "NATIONAL_ID": f"national_id ssn personal_number citizen {_PAPERS}",
        "PASSPORT": _PAPERS,
        "DL": f"licence license driver driving {_PAPERS}",
        "MEDICAL": "medical patient health insurance mrn npi",
    }.items()
}
"""Types that go only to tools that ask for such a thing, and the words by which one asks."""
_WORD = re.compile(r"(?<![A-Z])[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SCHEMA_TEXTS_MAX = 200


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """What one server may be given; `schema` is that of the arguments of the tool, where it is known."""

    rule: object = None
    schema: object = None

    def allows(self, tool: str, path: Sequence[str], kind: str) -> bool:
        """Return whether a value of that type may go to a tool at that path of its arguments."""
        argument = path[0] if path else ""
        rule = self.rule
        is_guarded = kind in ASKED_FOR and not self._asks(tool, path, kind)
        if kind in SECRETS:
            return isinstance(rule, Mapping) and f"{tool}.{argument}" in _places(rule.get(kind))
        if rule is None or isinstance(rule, bool):
            return rule is True or (rule is None and not is_guarded)
        if isinstance(rule, str | list):
            return any(_fits(place, tool, argument) for place in _places(rule))
        if isinstance(rule, Mapping):
            return any(
                (kind == str(kinds).upper() if is_guarded else fnmatchcase(kind, str(kinds).upper()))
                and any(_fits(place, tool, argument) for place in _places(places))
                for kinds, places in rule.items()
            )
        return False

    def why_not(self, tool: str, argument: str, kind: str) -> str:
        """Return what the operator would write for a value of that type to go there."""
        others = {} if isinstance(self.rule, Mapping) or self.rule is False else {"*": True}
        return f'"restore": {json.dumps(others | {kind: [f"{tool}.{argument}" if argument else tool]})}'

    def _asks(self, tool: str, path: Sequence[str], kind: str) -> bool:
        """Return whether the name of the tool, or what its schema says of the argument, names such a thing."""
        properties = self.schema.get("properties") if isinstance(self.schema, Mapping) else None
        schema = properties.get(path[0]) if isinstance(properties, Mapping) and path else None
        said = [tool, *path, *_texts_of(schema)]
        words = " ".join(word.lower() for text in said for word in _WORD.findall(text))
        return any(f" {word.replace('_', ' ')} " in f" {words} " for word in ASKED_FOR[kind])


def _texts_of(schema: object) -> Iterator[str]:
    """Yield the names and descriptions in the schema of one argument; of very many, the first."""
    waiting, left = [schema], _SCHEMA_TEXTS_MAX
    while waiting and left:
        left -= 1
        match waiting.pop(0):
            case Mapping() as inner:
                yield from (
                    text for key in ("title", "description", "format") if isinstance(text := inner.get(key), str)
                )
                properties = inner.get("properties")
                if isinstance(properties, Mapping):
                    yield from islice(map(str, properties), left)
                    waiting += islice(properties.values(), left)
                waiting += (inner.get(key) for key in ("items", "anyOf", "oneOf", "allOf"))
            case list() as several:
                waiting += islice(several, left)


def _places(places: object) -> list[str]:
    if isinstance(places, bool):
        return ["*"] if places else []
    if isinstance(places, str):
        return [places]
    return [str(place) for place in places] if isinstance(places, list) else []


def _fits(place: str, tool: str, argument: str) -> bool:
    return fnmatchcase(tool, place) or fnmatchcase(f"{tool}.{argument}", place)


NOT_GIVEN = "the operator's `restore` does not give it"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A tool that is to be called: `rule` is its server's `restore`, and `takes_tokens` whether it may have tokens."""

    server: str
    tool: str
    rule: object = None
    takes_tokens: bool = False
    schema: object = None
    """The schema of its arguments, where it is known: it says which numbers of people the tool asks for."""

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


async def kinds_sent(
    privacy: Privacy, caller: Caller, arguments: Mapping[str, Json]
) -> Mapping[str, Mapping[str, int]]:
    """Return how many values of which types each argument of a call has, as the tool would get them.

    For the question to a user: `{"to": {"EMAIL": 1}}`. Tokens that stay tokens are no values.
    """
    if not privacy.filters:
        return {}
    kinds: dict[str, Counter[str]] = {}
    for place in await privacy.known_in(caller.scope, arguments):
        kinds.setdefault(place.path[0] if place.path else "", Counter())[place.span.type] += 1
    return kinds


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
    a known value of a type that `restore` or the policy does not give to it. `note` is called with these, and
    with tokens that are let through.
    """
    if not privacy.filters:
        return arguments
    scope, rule = caller.scope, RestorePolicy(to.rule, to.schema)
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
        wrong.append(f"{some(unknown)} {stand(unknown)} for no value here")
        do.append("Give tokens letter by letter as they were shown.")
    if withheld:
        wrong.append(f"{'it may not have' if by_policy else NOT_GIVEN} {some(withheld)}")
        if by_policy:
            wrong.append(f"the policy refuses {by_policy}")
            do.append("Leave that out, or ask the operator to change the policy.")
        else:
            kinds = [(each.argument, each.token[1:].rpartition("_")[0]) for each in left if each.is_known]
            kinds += [(place.path[0] if place.path else "", place.span.type) for place in refused]
            rule = RestorePolicy(to.rule).why_not(to.tool, *kinds[0])
            do.append(f"Leave that out, or ask the user to change `restore` of this server in mcp.json: {rule}.")
    if left:
        do.append("With allow_tokens=True a call passes tokens as they are.")
    return f"{to.name} was not called: {', and '.join(wrong)}. {' '.join(do)}"


def _in(argument: str) -> str:
    return f" in {argument!r}" if argument else ""
