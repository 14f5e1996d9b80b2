"""What a run did with upstream tools: the calls it made, and those that a dry run only noted down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ...privacy.gates.tool_gate import LeftInCall

BYTES_MAX = 256 * 1024 * 1024
"""What one run may send to upstream tools and get from them in all, in bytes of JSON."""

DRY_CALLS_MAX = 20_000
"""Calls that one dry run notes down."""
DRY_CHARS_MAX = 8_000_000
"""Characters of their arguments together, as JSON."""

RETURNS_MAX = 5
"""Tools of which one run reports what they return."""

_NAME_CHARS_MAX = 200


@dataclass(slots=True)
class LoggedCall:
    """One call; `seconds` is None until it has ended. The name of a tool that was not found is what the code said."""

    tool: str
    found: bool = False
    ok: bool = False
    began: float = field(default_factory=time.perf_counter)
    seconds: float | None = None

    @property
    def ms(self) -> float:
        """How long it took, or has taken so far, in milliseconds."""
        seconds = time.perf_counter() - self.began if self.seconds is None else self.seconds
        return round(seconds * 1000, 3)


@dataclass(slots=True)
class LeftInCalls:
    """What calls of a tool were not given, see `LeftInCall`; `refused` of them were not made."""

    refused: int = 0
    withheld: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    values: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class CallLog:
    """The calls of one run in the order in which they began, and the bytes they moved."""

    entries: list[LoggedCall] = field(default_factory=list)
    dry: list[dict[str, Json]] = field(default_factory=list)
    made_up: dict[str, str] = field(default_factory=dict)
    """The tools that a dry run did not call, by their full names, and why: it made up their answers."""
    returns: dict[str, str] = field(default_factory=dict)
    """What tools return that was not reported to the caller before, as a Python type, by their full names."""
    left: dict[str, LeftInCalls] = field(default_factory=dict)
    """Of tools that were not given all that their calls held, by their full names."""
    nulled: dict[str, None] = field(default_factory=dict)
    """The tools in whose answers null stands for numbers that JSON does not have, by their full names."""
    broken: dict[str, str] = field(default_factory=dict)
    """The tools whose answers break their own output schemas, and where the first one of each does."""
    moved_bytes: int = 0
    called_chars: int = 0
    """Of the arguments and answers of calls of upstream tools that were made."""
    definitions: dict[str, int] = field(default_factory=dict)
    """How long the definitions of the servers are whose tools were called."""
    dry_chars: int = 0

    @contextmanager
    def call(self, tool: str) -> Iterator[LoggedCall]:
        """Note a call while the context lasts; it went well if nothing is raised."""
        # Whole or not at all: what is cut cannot be recognized, and hidden, any more.
        entry = LoggedCall(tool if len(tool) <= _NAME_CHARS_MAX else f"(a name of {len(tool)} characters)")
        self.entries.append(entry)
        try:
            yield entry
            entry.ok = True
        finally:
            entry.seconds = time.perf_counter() - entry.began

    def note_dry(self, tool: str, arguments: Mapping[str, Json], chars: int | None = None) -> None:
        """Note a call that a dry run did not make; `tool` may be a function that changes the workspace.

        `chars` are those of the arguments as JSON; without them these are a few texts and numbers. Raises
        `HostCallError` where it would be more than a dry run notes down: it is held until the run ends.
        """
        self.dry_chars += sum(len(str(each)) for each in arguments.values()) if chars is None else chars
        if len(self.dry) >= DRY_CALLS_MAX or self.dry_chars > DRY_CHARS_MAX:
            raise HostCallError(
                f"This dry run has noted down {len(self.dry)} calls; {DRY_CALLS_MAX} calls with {DRY_CHARS_MAX} "
                "characters of arguments are the most. Try it with less data.",
                type="RuntimeError",
            )
        self.dry.append({"tool": tool, "arguments": dict(arguments)})

    def note_left(self, tool: str, call: LeftInCall) -> None:
        """Note what a call was not given. How many unknown tokens there may be is bounded before."""
        left = self.left.setdefault(tool, LeftInCalls())
        left.refused += call.refused
        left.withheld.update(dict.fromkeys(call.withheld))
        left.unknown.update(dict.fromkeys(call.unknown))
        left.values.update(call.values)

    def forget(self, entry: LoggedCall) -> None:
        """Leave out a call that was not made after all."""
        self.entries = [each for each in self.entries if each is not entry]

    def move(self, count: int) -> bool:
        """Count bytes, and return whether the run may still move more."""
        self.moved_bytes += count
        return self.moved_bytes <= BYTES_MAX
