"""Security boundary: which calls of upstream tools are made at once, which need a user's yes, which are never made.

The operator's word in `mcp.json` decides: `allow` and `deny` say which tools there are at all, `approve` says which of
them a user is asked about. Whether a tool only reads is what `reads` and `writes` say, else what its server says; a
tool without such a statement counts as one that writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from ....sandbox.job import Json
from ....tools_registry.configuration import Approve, ServerConfig
from ....tools_registry.models import Tool
from ....tools_registry.upstream.pins import StandingApproval
from ...base.host_work import checked
from ...base.identity import Right
from ...governance.provenance.parties import identifying, is_sum, names_sum
from ...governance.questions import (
    EACH_CALL,
    NAMING_CHARS_MAX,
    REASON_CHARS_MAX,
    REST,
    SAMPLES,
    THIS_CALL,
    THIS_RUN,
    AskedArgument,
    AskedCall,
    named,
    quoted,
)

_NAME_CHARS_MAX = 120
_TITLE_SOUGHT_CHARS = 10_000
_IMPORT = re.compile(r"import\s|from\s+[\w.]+\s+import\s")
_NAMES_SHOWN = 8
_PLACES_SHOWN = 8
_DESTROYING = re.compile(
    "delete|destroy|drop|erase|overwrite|purge|remove|revoke|truncate|uninstall|wipe", re.IGNORECASE
)
_WRITING = re.compile(
    "alter|append|create|edit|execute|insert|merge|modify|move|put|rename|replace|send|set|update|upsert|write",
    re.IGNORECASE,
)
"""Words that put a call first in a question; they decide nothing else."""
COVERS_SHOWN = (
    "A yes covers the numbered calls, as often as shown. Their parties, places and sums stay as shown; other values "
    "may change."
)
AFTER_NO = "After a no the program gets an error in place of an answer, and may go on."
COVERS_CALL = (
    "A yes covers the numbered calls, and no other.\n"
    f'"{THIS_RUN}" covers each further call in this run that names the same parties, places and sums.\n{AFTER_NO}'
)
COVERS_ALONE = (
    "This call is asked about by itself, since somebody else may have written that text.\n"
    f"A yes covers this call and no other.\n{AFTER_NO}"
)
COVERS_RUN = (
    "This run asked about such a call before. A yes now covers each further call in this run that names the same "
    f'parties, places and sums, any number of times. "{THIS_CALL}" covers the numbered calls alone.\n{AFTER_NO}'
)
_OF_EACH = f'"{EACH_CALL}" approves nothing yet: you are asked when each call is made.'
OF_START = f"{_OF_EACH}\nA no ends the program before it starts."
OF_START_CAUGHT = f"{_OF_EACH}\nAfter a no the program runs without these calls."
OF_DRY_RUN = (
    "This is a dry run: other calls that may write are not made. They are noted down, and the program gets made-up "
    "answers. After a no it gets such answers to these calls too."
)
"""Follows the question of a dry run, which is about tools that seem to read."""
HIDDEN_CALLS = (
    "The program may also make calls that it does not name. Each that needs a yes is asked about when it is made."
)


class Decision(Enum):
    """What becomes of a call."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


def decide(tool: Tool, server: ServerConfig) -> Decision:
    """Return what becomes of a call of `tool`, whose server the operator configured as `server`."""
    if not server.permits(tool.name):
        return Decision.REFUSE
    match server.approve:
        case Approve.NEVER:
            return Decision.RUN
        case Approve.WRITES:
            return Decision.RUN if server.only_reads(tool) else Decision.ASK
        case Approve.ALWAYS:
            return Decision.ASK


def runs_dry(tool: Tool, server: ServerConfig, *, is_granted: bool = False) -> bool:
    """Return whether a dry run calls a tool: one that only reads, or is approved and seems to.

    What only reads, the operator says, else its server; a name alone says nothing. `approve: never` approves every
    call, and so does a user who said yes, which `is_granted` tells. That does not turn a write into a read: it
    counts only for a tool for which neither the server nor the operator states what it does.
    """
    if server.only_reads(tool):
        return True
    approved = is_granted or server.approve is Approve.NEVER
    if not approved or server.says_reads(tool.name) is not None:
        return False
    from ....tools_registry.describing.effects import Effect, proposed_effect

    said = isinstance(tool.annotations.get("readOnlyHint"), bool) or tool.annotations.get("destructiveHint") is True
    return not said and proposed_effect(tool.name, tool.description, tool.input_schema) is Effect.READ


def why_refused(tool: str, server: ServerConfig) -> str:
    """Return the refusal of a tool that the operator's patterns leave out."""
    return f"The operator does not allow {server.name}.{tool}. Leave the call out."


def why_unasked(tool: Tool, server: ServerConfig, *, may_approve: bool = True) -> str:
    """Return why a call that needs a yes is refused: the client cannot ask its user, or the token may not approve."""
    why = "this client cannot ask one" if may_approve else f"the token lacks the scope {Right.APPROVE}"
    return f"{named(tool.full_name)} {may_write(tool, server)}, so a user has to approve the call, and {why}."


def why_no_more_questions(tool: Tool, server: ServerConfig, asked: int) -> str:
    """Return the refusal of a call where the client allows no more questions, and how to need fewer."""
    return (
        f"{named(tool.full_name)} {may_write(tool, server)}, so a user has to approve the call, and this run asked "
        f"{asked} times already, as often as one call may. Make such calls at once, with asyncio.gather, or with "
        "values that stand in the program, so that one question shows them all; or split it into several runs."
    )


def why_not_approved(tool: Tool, reason: str = "") -> str:
    """Return the refusal of a call that the user declined, with the reason that they gave."""
    said = f" Their reason: {quoted(reason, REASON_CHARS_MAX)}." if reason else ""
    return f"The user did not approve the call of {named(tool.full_name)}.{said}"


def why_too_long(tool: Tool) -> str:
    """Return the refusal of a call whose arguments cannot be shown to a user whole."""
    return (
        f"The call of {named(tool.full_name)} names more than the {NAMING_CHARS_MAX} characters of parties, places and "
        "sums that a user can be shown, so nobody can approve it. Split it into several calls."
    )


def what_else(reading: Sequence[str], *, in_tests: bool = False) -> str:
    """Return what can be done without a yes; `reading` are tools of the same servers that need none.

    `in_tests` are calls of a skill's tests, of which there is no dry run.
    """
    shown = ", ".join(reading[:_NAMES_SHOWN])
    more = f" and {len(reading) - _NAMES_SHOWN} more" if len(reading) > _NAMES_SHOWN else ""
    need_none = f" These need no yes: {shown}{more}." if reading else ""
    if in_tests:
        return f"Have the tests call no such tool; or save the skill without tests, and run it.{need_none}"
    return f"With dry_run=true such calls are only noted down; or ask the user what to do instead.{need_none}"


def asked_call(tool: Tool, arguments: Mapping[str, Json]) -> AskedCall:
    """Return a call as a user is asked about it. Takes CPU time: call it in a thread."""
    schemas = _schemas(tool)
    asked = (
        AskedArgument(
            name=name, value=value, identifying=identifying(name, schemas(name), value), counts=names_sum(name)
        )
        for name, value in checked(arguments.items(), every=1)
    )
    return AskedCall(server=tool.server, tool=tool.name, arguments=tuple(asked))


def asked_before(tool: Tool, arguments: Mapping[str, Json], computed: Mapping[str, str]) -> AskedCall:
    """Return a call as a user is asked about it before the program starts; `computed` says from what the others are."""
    schemas = _schemas(tool)
    others = (
        AskedArgument(name=name, computed=text, identifying=name == REST or identifying(name, schemas(name), "?"))
        for name, text in checked(computed.items(), every=1)
    )
    call = asked_call(tool, arguments)
    return call.changed(arguments=(*call.arguments, *others))


def _schemas(tool: Tool) -> Callable[[str], Mapping[str, object]]:
    schema = tool.input_schema
    properties = schema.get("properties") if isinstance(schema, Mapping) else None

    def of(name: str) -> Mapping[str, object]:
        found = properties.get(name) if isinstance(properties, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    return of


def as_one(calls: Sequence[AskedCall]) -> AskedCall:
    """Return calls that name the same as one: what differs in them, where they stand and how often they are made."""
    first = calls[0]
    if len(calls) == 1:
        return first
    names = dict.fromkeys(each.name for call in calls for each in call.arguments)
    by_name = [{each.name: each for each in call.arguments} for call in calls]
    arguments: list[AskedArgument] = []
    for name in names:
        found = [each[name] for each in by_name if name in each]
        different: list[AskedArgument] = []
        for each in found:
            if each not in different and len(different) <= SAMPLES:
                different.append(each)
        one = next((each for each in found if each.computed is not None), found[0])
        if len(different) > 1 and one.computed is None:
            one = one.changed(others=tuple(each.value for each in different[1:]))
        arguments.append(one)
    places = list(dict.fromkeys(each.place for each in calls if each.place))
    more = f" and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else ""
    times = None if any(each.times is None for each in calls) else sum(each.times or 0 for each in calls)
    return AskedCall(
        server=first.server,
        tool=first.tool,
        arguments=tuple(arguments),
        place=f"{', '.join(places[:_PLACES_SHOWN])}{more}",
        times=times,
    )


def order(tool: Tool) -> int:
    """Return where a tool stands in a question: what destroys something first, then what is called a change of it."""
    rank = 0 if _DESTROYING.search(tool.name) else 1 if _WRITING.search(tool.name) else 2
    return min(rank, 1) if tool.annotations.get("destructiveHint") is True else rank


def effects(tools: Iterable[tuple[Tool, ServerConfig]]) -> tuple[str, ...]:
    """Return why a user is asked about tools, in a sentence for each."""
    return tuple(dict.fromkeys(f"{named(tool.full_name)} {may_write(tool, server)}." for tool, server in tools))


def rule_of(call: AskedCall) -> StandingApproval:
    """Return the rule that allows calls as this one from then on: the same parties and places, and no larger sums."""
    limits = {name: value for name, value in call.naming.items() if is_sum(name, value)}
    return StandingApproval({name: value for name, value in call.naming.items() if name not in limits}, limits)


def title_of(source: str) -> str:
    """Return what a program says that it does: its first line, without the marks of a comment or a docstring.

    What it imports says nothing.
    """
    lines = (line.strip() for line in source[:_TITLE_SOUGHT_CHARS].splitlines() if not _IMPORT.match(line))
    first = next((line for each in lines if (line := each.strip("#\"'! ").strip())), "")
    return first if len(first) <= _NAME_CHARS_MAX else f"{first[: _NAME_CHARS_MAX - 1]}…"


def may_write(tool: Tool, server: ServerConfig) -> str:
    """Return why a user is asked about a call: it is not one that only reads, or carries out what it is given."""
    if server.approve is Approve.ALWAYS:
        return "is one that is always asked about"
    if server.only_reads(tool):
        return "only reads, but can carry data out in what it is given"
    if server.says_reads(tool.name) is False:
        return "is marked in the operator's mcp.json as one that writes"
    if tool.annotations.get("destructiveHint") is True:
        return "says that it may destroy something"
    return "may change something" if "readOnlyHint" in tool.annotations else "does not say that it only reads"
