"""What a profile makes of the arguments of a call, by their sources. A security boundary.

`open` judges nothing. `careful` has a call that writes asked about by itself where a party of it is known only from a
text. `strict` does so too where a call that reads carries such a value out, in a URL or a search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...base.host_work import checked
from ...base.settings import Profile
from ..questions import NAMING_CHARS_MAX, quoted
from .parties import SUMS, VALUE_CHARS_MAX, identifying, parts_of
from .reading import host_of
from .sightings import Conversation, Origin, ProgramTexts, Source, leaves

if TYPE_CHECKING:
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Tool

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LINKED_CHARS_MAX = 100_000
"""Characters of a text in which links and addresses are looked for."""
_AROUND = "<>()[]\"'.,;:!?"
_LINKS_MAX = 20
"""Links in the texts of one call that are looked for, the first ones."""
_SEARCHES = frozenset({"keyword", "keywords", "q", "query", "search", "term", "terms"})


class ValueKind(StrEnum):
    """What an argument names."""

    PARTY = "party"
    """Somebody, a place or a thing."""
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class JudgedArgument:
    """An argument that names a party, a place or a sum, and where its value comes from."""

    name: str
    value: Json
    kind: ValueKind
    origin: Origin
    is_first: bool = False
    is_free: bool = False
    """Whether the operator lets its value come from anywhere."""

    @property
    def source(self) -> Source:
        """The source of the value."""
        return self.origin.source

    @property
    def is_doubtful(self) -> bool:
        """Whether it is a party known only from a text, or one that a text names which gives orders."""
        is_of_text = self.source is Source.TEXT or self.origin.is_ordered
        return is_of_text and self.kind is ValueKind.PARTY and not self.is_free

    @property
    def clause(self) -> str | None:
        """What a question says of it; None where it has nothing to say."""
        return self.origin.clause(self.name, self.value)


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """The arguments of a call that name something, and whether it is asked about by itself."""

    arguments: tuple[JudgedArgument, ...] = ()
    is_alone: bool = False
    conversation: Conversation | None = None
    digests: tuple[int, ...] = ()
    """Of what the arguments name."""
    extra_clauses: Mapping[str, str] = field(default_factory=dict)
    """Clauses that stop no call: of links and addresses within a text, of what came after a text with orders."""

    def answered(self) -> None:
        """Note that the call was answered: what it named is known from then on."""
        if self.conversation is not None:
            self.conversation.named(self.digests)

    @property
    def clauses(self) -> dict[str, str]:
        """What a question says of the arguments, by their names."""
        return {
            **self.extra_clauses,
            **{each.name: each.clause for each in self.arguments if each.clause is not None},
        }

    @property
    def judged_by(self) -> tuple[list[str], list[str], list[str]]:
        """What a policy may judge the call by: its arguments with their values, its sources, and its kinds."""
        named = self.arguments
        return (
            [f"{each.name}={value}" for each in named for value in leaves(each.value)],
            [*{each.source.value: None for each in named}, *(f"{each.name}={each.source}" for each in named)],
            [*{each.kind.value: None for each in named}, *(f"{each.name}={each.kind}" for each in named)],
        )

    @property
    def is_first(self) -> bool:
        """Whether a party is named that was not before."""
        return any(each.is_first and each.kind is ValueKind.PARTY for each in self.arguments)

    @property
    def audited(self) -> str:
        """What the audit log says: kinds, sources and the tools whose texts they are, and no name of an argument."""
        parts = (
            f"{each.kind} {each.source} {each.origin.called.partition('(')[0]}".rstrip() for each in self.arguments
        )
        return "; ".join(dict.fromkeys(parts))

    def journal_entries(self) -> tuple[Mapping[str, str], ...]:
        """Return what the journal has of a call: names, kinds, sources, and the calls whose texts they are."""
        return tuple(
            {"argument": each.name, "kind": each.kind.value, "source": each.source.value}
            | ({"from": each.origin.called} if each.origin.called else {})
            for each in self.arguments
        )


UNJUDGED = JudgedCall()
"""A call of which no sources are looked for."""


def judged(
    conversation: Conversation,
    session: str | None,
    program: ProgramTexts,
    profile: Profile,
    *,
    tool: Tool,
    server: ServerConfig,
    arguments: Mapping[str, Json],
) -> JudgedCall:
    """Return the sources of the arguments of a call that name something, and what the profile makes of them.

    It takes as long as the arguments and the program are large, and so has its checkpoints.
    """
    reads = server.only_reads(tool)
    schema = tool.input_schema
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found: list[JudgedArgument] = []
    for name, value in arguments.items():
        stated = properties.get(name) if isinstance(properties, Mapping) else None
        if not (_carries_out(name, value) if reads else identifying(name, _schema(stated), value)):
            continue
        origin = conversation.origin_of(value, session, program)
        named = [*leaves(value)] if server.known_parties else []
        if named and all(_is_listed(each, server.known_parties) for each in named):
            origin = Origin(Source.OPERATOR)
        is_free = any(fnmatchcase(f"{tool.name}.{name}", pattern) for pattern in server.free_arguments)
        is_first = origin.source is not Source.OPERATOR and conversation.is_first(value, session)
        found.append(JudgedArgument(name, value, _kind_of(name, value), origin, is_first, is_free))
    is_alone = any(each.is_doubtful and _stops(profile, each, reads=reads) for each in found)
    digests = conversation.digests(value for each in found for value in leaves(each.value))
    clauses = {} if reads else _links(conversation, session, program, arguments, found)
    if not reads and profile is not Profile.OPEN:
        clauses |= _after_orders(conversation, program, arguments, found)
    return JudgedCall(tuple(found), is_alone, conversation, tuple(digests), clauses)


def _links(
    conversation: Conversation,
    session: str | None,
    program: ProgramTexts,
    arguments: Mapping[str, Json],
    found: Sequence[JudgedArgument],
) -> dict[str, str]:
    """Return which link or address within a text for people, such as the body of a mail, is known only from a text."""
    named = {each.name for each in found}
    clauses: dict[str, str] = {}
    texts = ((name, text) for name, text in arguments.items() if name not in named and isinstance(text, str))
    words = ((name, word.strip(_AROUND)) for name, text in texts for word in text[:_LINKED_CHARS_MAX].split())
    links = (each for each in checked(words) if each[0] not in clauses and _is_link(each[1]))
    for name, link in checked(islice(links, _LINKS_MAX), every=1):
        origin = conversation.origin(link, session, program) if len(link) <= VALUE_CHARS_MAX else None
        if origin is not None and origin.source is Source.TEXT and origin.is_exact:
            clauses[name] = str(origin.clause(f"in {name},", link))
    return clauses


def _is_link(word: str) -> bool:
    return "@" in word or "://" in word or word[:4].lower() == "www."


def _after_orders(
    conversation: Conversation, program: ProgramTexts, arguments: Mapping[str, Json], found: Sequence[JudgedArgument]
) -> dict[str, str]:
    """Return what a program names for the first time that came after a text with orders: it may be what these ask for.

    That is each party, and where a call names none its first argument.
    """
    ordered = conversation.ordered_before(program.sent)
    if ordered is None:
        return {}
    called, at = ordered
    trusted = {each.name for each in found if each.source is Source.OPERATOR or each.is_free}
    parties = [each.name for each in found if each.kind is ValueKind.PARTY]
    names = parties or [*arguments][:1]
    new = [each for each in names if each not in trusted and not conversation.was_named(arguments[each], at)]
    chars = [NAMING_CHARS_MAX] if parties else []
    said = f"was first named after {called} was read, whose text gives instructions to an assistant"
    return {each: f"{each} {quoted(arguments[each], *chars)} {said}" for each in new}


def _stops(profile: Profile, argument: JudgedArgument, *, reads: bool) -> bool:
    """Return whether a profile stops a doubtful argument; of a read, `careful` only what a text with orders names."""
    if profile is Profile.CAREFUL and reads:
        return argument.origin.is_ordered
    return profile is not Profile.OPEN


def _schema(schema: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", schema) if isinstance(schema, Mapping) else {}


def _words(name: str) -> list[str]:
    return [each.lower() for each in _WORD.findall(name)]


def _kind_of(name: str, value: Json) -> ValueKind:
    says_sum = any(each in SUMS or each.removesuffix("s") in SUMS for each in _words(name))
    is_sum = says_sum and not isinstance(value, Mapping | list)
    return ValueKind.SUM if is_sum else ValueKind.PARTY


def _carries_out(name: str, value: Json) -> bool:
    """Return whether an argument of a call that reads takes what it holds elsewhere: a URL, a search."""
    if not _SEARCHES.isdisjoint(_words(name)):
        return True
    return any(isinstance(each, str) and host_of(each) is not None for each in leaves(value))


def _is_listed(value: Json, patterns: Sequence[str]) -> bool:
    """Return whether the operator vouches for a value as it stands, or for each part of it where it is a list."""
    text, folded = str(value), [each.casefold() for each in patterns]
    if len(text) > VALUE_CHARS_MAX:
        return False
    parts = parts_of(text.casefold())
    return text.casefold() in folded or (
        bool(parts) and all(any(_fits(part, pattern) for pattern in folded) for part in parts)
    )


def _fits(part: str, pattern: str) -> bool:
    """Return whether a part is of a pattern; `*@corp.example` is no URL, and no address with another one before it."""
    if ("@" in pattern or pattern.startswith("*.")) and any(part.count(each) > pattern.count(each) for each in "@/"):
        return False
    return fnmatchcase(part, pattern)
