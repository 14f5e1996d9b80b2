"""Security boundary: which calls of upstream tools are made at once, which need a user's yes, which are never made.

The operator's word in `mcp.json` decides: `allow` and `deny` say which tools there are at all, `approve` says which of
them a user is asked about. Whether a tool only reads is what `reads` and `writes` say, else what its server says; a
tool without such a statement counts as one that writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ....tools_registry.configuration import Approve, ServerConfig
from ....tools_registry.models import Tool
from ...base.arguments import shown
from ...base.host_work import checked
from ...base.identity import Right

SHOWN_CHARS_MAX = 4_000
"""Characters of the calls, or of the arguments of one call, in a question."""
_VALUE_CHARS_MAX = 1_000
_NAME_CHARS_MAX = 120
_NAMES_SHOWN = 8
_LINES_SHOWN = 8
_DESTROYING = re.compile(
    "delete|destroy|drop|erase|overwrite|purge|remove|revoke|truncate|uninstall|wipe", re.IGNORECASE
)
_WRITING = re.compile(
    "alter|append|create|edit|execute|insert|merge|modify|move|put|rename|replace|send|set|update|upsert|write",
    re.IGNORECASE,
)
"""Words that put a call first in a question; they decide nothing else."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,150}")

THIS_CALL = "this call"
THIS_RUN = "this tool in this run"
ALWAYS = "this tool always"
EACH_CALL = "ask at each call"
"""What a yes covers, as a user chooses it."""

OF_DRY_RUN = " It is a dry run: it calls nothing else that may write, and after a no it makes up these answers too."
"""Follows the question of a dry run, which is about tools that seem to read."""

COVERS_RUN = " It was asked about before in this run: a yes now holds for each further call of it in this run."
"""Follows a question whose plain yes covers `THIS_RUN`."""


class Decision(Enum):
    """What becomes of a call."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


def decide(tool: Tool, server: ServerConfig) -> Decision:
    """Say what becomes of a call of `tool`, whose server the operator configured as `server`."""
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
    """Say that the operator's patterns leave out the tool of that name."""
    return f"The operator does not allow {server.name}.{tool}. Use another tool."


def why_unasked(tool: Tool, server: ServerConfig, *, may_approve: bool = True) -> str:
    """Say why a call that needs a yes is refused: the client cannot ask its user, or the token may not approve."""
    why = "this client cannot ask one" if may_approve else f"the token lacks the scope {Right.APPROVE}"
    return f"{_tool_named(tool)} {may_write(tool, server)}, so a user has to approve the call, and {why}."


def why_no_more_questions(tool: Tool, server: ServerConfig, asked: int) -> str:
    """Say that the user was asked as often in this run as its client allows, and how to need fewer questions."""
    return (
        f"{_tool_named(tool)} {may_write(tool, server)}, so a user has to approve the call, and this run asked "
        f"{asked} times already, as often as one call may. Name the tools in the program, as "
        "tools.<server>.<tool>(…), so that one question covers them before it starts, or split it into several runs."
    )


def why_not_approved(tool: Tool) -> str:
    """Say that the user did not say yes."""
    return f"The user did not approve the call of {_tool_named(tool)}."


def what_else(reading: Sequence[str], *, in_tests: bool = False) -> str:
    """Say what can be done without a yes; `reading` are tools of the same servers that need none.

    `in_tests` are calls of a skill's tests, of which there is no dry run.
    """
    shown = ", ".join(reading[:_NAMES_SHOWN])
    more = f" and {len(reading) - _NAMES_SHOWN} more" if len(reading) > _NAMES_SHOWN else ""
    need_none = f" These need no yes: {shown}{more}." if reading else ""
    if in_tests:
        return f"Have the tests call no such tool; or save the skill without tests, and run it.{need_none}"
    return f"With dry_run=true such calls are only noted down; or ask the user what to do instead.{need_none}"


@dataclass(frozen=True, slots=True)
class StartQuestion:
    """What a user is asked before a program starts, and the full names of the tools that a yes to it covers."""

    text: str
    covers: frozenset[str]


class ShownCall(NamedTuple):
    """A call as a question shows it: its line, its text, and the name of the stored skill in which it stands."""

    line: int
    text: str
    skill: str | None = None


def question_at_start(
    calls: Sequence[tuple[Tool, ServerConfig, Sequence[ShownCall]]], tools_max: int
) -> StartQuestion | None:
    """Return what a user is asked before a program starts: its tools that need a yes, with the calls of each.

    What destroys comes first. A tool is only covered where each of its calls is shown whole; None where no tool is.
    Of a call that is longer than `SHOWN_CHARS_MAX` that much is enough. Takes CPU time: call it in a thread.
    """
    asked: dict[str, str] = {}
    chars_left = SHOWN_CHARS_MAX
    for tool, server, lines in sorted(checked(calls, every=1), key=_tool_order):
        told = _calls_shown(lines, chars_left)
        if told is not None and len(asked) < tools_max:
            chars_left -= len(told)
            asked[tool.full_name] = f"{_tool_named(tool)}, which {may_write(tool, server)} ({told})"
    if not asked:
        return None
    left = len(calls) - len(asked)
    others = (
        f" There is no room here for the calls of {left} more: each is asked about when it is made." if left else ""
    )
    of_these = "it" if len(asked) == 1 else "these tools"
    text = (
        f"May the running code call {'; '.join(asked.values())}? A yes holds for each call of {of_these} in this run."
    )
    return StartQuestion(text + others, frozenset(asked))


def _tool_order(call: tuple[Tool, ServerConfig, Sequence[ShownCall]]) -> int:
    tool, _, shown_calls = call
    rank = min(_order(each.text) for each in shown_calls)
    return min(rank, 1) if tool.annotations.get("destructiveHint") is True else rank


def _order(text: str) -> int:
    return 0 if _DESTROYING.search(text) else 1 if _WRITING.search(text) else 2


def _calls_shown(calls: Sequence[ShownCall], chars_max: int) -> str | None:
    """Say each distinct call with its lines, quoted so that it cannot be taken for words of the question.

    Returns None where they are longer than `chars_max` together.
    """
    lines: dict[tuple[str | None, str], list[int]] = {}
    for each in calls:
        lines.setdefault((each.skill, each.text), []).append(each.line)
    told = ""
    for skill, text in sorted(lines, key=lambda each: _order(each[1])):
        of_skill = "" if skill is None else f"skill {skill}, "
        told += f"{', ' if told else ''}{of_skill}{_lines(lines[skill, text])}: {_quoted(text, chars_max)}"
        if len(text) >= chars_max or len(told) > chars_max:
            return None  # what is cut is longer than this with its quotes
    return told


def _lines(lines: Sequence[int]) -> str:
    numbers = ", ".join(map(str, lines[:_LINES_SHOWN]))
    more = f" and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    return f"line{'s' * (len(lines) > 1)} {numbers}{more}"


def question(tool: Tool, server: ServerConfig, arguments: Mapping[str, object]) -> str:
    """Return what a user is asked before a call is made: the tool and its arguments, in short.

    It is made in the event loop, and takes no longer however much there is that it does not show.
    """
    told = ""
    for number, (name, value) in enumerate(arguments.items()):
        told += f"{', ' if number else ''}{_named(name)}={_quoted(value, _VALUE_CHARS_MAX)}"
        if len(told) > SHOWN_CHARS_MAX:
            told = f"{told[:SHOWN_CHARS_MAX]}… and more that is not shown, of {len(arguments)} arguments"
            break
    return f"May the running code call {_tool_named(tool)}({told})? The tool {may_write(tool, server)}."


def may_write(tool: Tool, server: ServerConfig) -> str:
    """Say why a call is not one that only reads: why a user is asked, and a dry run does not make it."""
    if server.approve is Approve.ALWAYS:
        return "is one that is always asked about"
    if server.says_reads(tool.name) is False:
        return "is marked in the operator's mcp.json as one that writes"
    if tool.annotations.get("destructiveHint") is True:
        return "says that it may destroy something"
    return "may change something" if "readOnlyHint" in tool.annotations else "does not say that it only reads"


def _tool_named(tool: Tool) -> str:
    """Return the full name of a tool as a question has it: a server may call its tools whatever it likes."""
    return tool.full_name if _PLAIN_NAME.fullmatch(tool.full_name) else _quoted(tool.full_name)


def _named(name: str) -> str:
    """Return the name of an argument so that it cannot be taken for words of the question."""
    return name if name.isidentifier() and len(name) <= _NAME_CHARS_MAX else _quoted(name)


def _quoted(value: object, chars_max: int = _NAME_CHARS_MAX) -> str:
    text = shown(value, chars_max)
    size = f" ({len(value)} characters in all)" if text.endswith("…") and isinstance(value, str) else ""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text) + size
