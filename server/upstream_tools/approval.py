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

from ...tools_registry.configuration import Approve, ServerConfig
from ...tools_registry.models import Tool
from ..arguments import shown
from ..host_work import checked

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


def runs_dry(tool: Tool, server: ServerConfig) -> bool:
    """Return whether a dry run calls a tool: one that only reads, or is approved and seems to.

    `approve: never` approves every call. It does not turn a write into a read: it counts only for a tool for which
    neither the server nor the operator states what it does.
    """
    if server.only_reads(tool):
        return True
    if server.approve is not Approve.NEVER or server.says_reads(tool.name) is not None:
        return False
    from ...tools_registry.describing.effects import Effect, proposed_effect

    said = isinstance(tool.annotations.get("readOnlyHint"), bool) or tool.annotations.get("destructiveHint") is True
    return not said and proposed_effect(tool.name, tool.description, tool.input_schema) is Effect.READ


def why_refused(tool: str, server: ServerConfig) -> str:
    """Say that the operator's patterns leave out the tool of that name."""
    return f"The operator does not allow {server.name}.{tool}. Use another tool."


def why_unasked(tool: Tool, server: ServerConfig) -> str:
    """Say why a call that needs a yes is refused where the client cannot ask its user."""
    return (
        f"{_tool_named(tool)} {_may_write(tool, server)}, so a user has to approve the call, "
        "and this client cannot ask one."
    )


def why_not_approved(tool: Tool) -> str:
    """Say that the user did not say yes."""
    return f"The user did not approve the call of {_tool_named(tool)}."


def what_else(reading: Sequence[str]) -> str:
    """Say what can be done without a yes; `reading` are tools of the same servers that need none."""
    shown = ", ".join(reading[:_NAMES_SHOWN])
    more = f" and {len(reading) - _NAMES_SHOWN} more" if len(reading) > _NAMES_SHOWN else ""
    need_none = f" These need no yes: {shown}{more}." if reading else ""
    return f"With dry_run=true such calls are only noted down; or ask the user what to do instead.{need_none}"


@dataclass(frozen=True, slots=True)
class StartQuestion:
    """What a user is asked before a program starts, and the full names of the tools that a yes to it covers."""

    text: str
    covers: frozenset[str]


def question_at_start(
    calls: Sequence[tuple[Tool, ServerConfig, Sequence[tuple[int, str]]]], tools_max: int
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
            asked[tool.full_name] = f"{_tool_named(tool)}, which {_may_write(tool, server)} ({told})"
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


def _tool_order(call: tuple[Tool, ServerConfig, Sequence[tuple[int, str]]]) -> int:
    tool, _, lines = call
    rank = min(_order(text) for _, text in lines)
    return min(rank, 1) if tool.annotations.get("destructiveHint") is True else rank


def _order(text: str) -> int:
    return 0 if _DESTROYING.search(text) else 1 if _WRITING.search(text) else 2


def _calls_shown(calls: Sequence[tuple[int, str]], chars_max: int) -> str | None:
    """Say each distinct call with its lines, quoted so that it cannot be taken for words of the question.

    Returns None where they are longer than `chars_max` together.
    """
    lines: dict[str, list[int]] = {}
    for line, text in calls:
        lines.setdefault(text, []).append(line)
    told = ""
    for text in sorted(lines, key=_order):
        told += f"{', ' if told else ''}{_lines(lines[text])}: {_quoted(text, chars_max)}"
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
    return f"May the running code call {_tool_named(tool)}({told})? The tool {_may_write(tool, server)}."


def _may_write(tool: Tool, server: ServerConfig) -> str:
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
