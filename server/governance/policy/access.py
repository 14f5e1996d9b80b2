"""What somebody asks to do, and what the policy says of it: the same words for every place that asks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from ....tools_registry.configuration import Approve
from ...base.errors import PolicyRefused
from ...base.identity import Identity

if TYPE_CHECKING:
    from ....sandbox.job import Isolation
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Tool

Attributes = tuple[tuple[str, str | bool | int | tuple[str, ...]], ...]
_STRICTNESS = (Approve.NEVER, Approve.WRITES, Approve.ALWAYS)


class Action(StrEnum):
    """What can be asked for, as the schema calls it."""

    RUN = "run"
    CALL = "call"
    RESTORE = "restore"


RESOURCE_OF = {Action.RUN: "Isolation", Action.CALL: "Tool", Action.RESTORE: "PersonalDataType"}
"""The entity type of what each action is done to."""


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that somebody asks to do: `name` is the id of the resource, of which the action says the type.

    `attributes` are those of a tool, and `server` its parent; `context` is as the schema says for the action.
    """

    action: Action
    name: str
    attributes: Attributes = ()
    server: str | None = None
    context: Attributes = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether something is allowed, and by which rules; `approval` says when a user is to be asked before a call.

    `by` names the rules that decided: those that forbid it, or all that permit it. It is empty where none permits it.
    `problem` says why no rule could decide, where that is so.
    """

    allowed: bool
    approval: Approve = Approve.NEVER
    by: tuple[str, ...] = ()
    problem: str = ""

    @property
    def named(self) -> str:
        """The rules that decided, in one line for the audit log."""
        return f"policy: {', '.join(self.by) or self.problem or 'no rule'}"

    def why(self) -> str:
        """Return in a few words why it is refused: by which rules, never what they say."""
        if self.problem:
            return self.problem
        if not self.by:
            return "no rule permits it"
        return f"by the rule{'s' * (len(self.by) > 1)} {', '.join(self.by)}"

    def refusal(self, what: str, do: str = "Do without it, or ask the operator to change the policy.") -> PolicyRefused:
        """Return the error for what is refused."""
        return PolicyRefused(f"The policy refuses {what}: {self.why()}. {do}", rule=self.named)


ALLOWED = Ruling(allowed=True)


class Decider(Protocol):
    """What says of everything whether it is allowed."""

    governs: bool
    """Whether there is a policy. Without one everything is allowed that `mcp.json` and the settings allow."""

    @property
    def version(self) -> object:
        """What is another object once another version is in force."""
        ...

    def decide(self, identity: Identity, access: Access) -> Ruling:
        """Return whether somebody may do something; from any thread, in well under a millisecond."""
        ...


class NoPolicy:
    """Stands where POLICY is not set."""

    governs = False
    version = None

    def decide(self, _identity: Identity, _access: Access) -> Ruling:
        """Allow it: the settings and `mcp.json` decide alone."""
        return ALLOWED


NO_POLICY = NoPolicy()


def stricter(one: Approve, other: Approve) -> Approve:
    """Return the one of two that has a user asked more often."""
    return max(one, other, key=_STRICTNESS.index)


def run_access(
    isolation: Isolation, *, timeout_seconds: float, memory_mb: int, background: bool, session: bool
) -> Access:
    """Return the access of a run. Cedar has no fractions: seconds are rounded up, so that no limit is passed."""
    context: Attributes = (
        ("timeout_seconds", math.ceil(timeout_seconds)),
        ("memory_mb", memory_mb),
        ("background", background),
        ("session", session),
    )
    return Access(Action.RUN, isolation.value, context=context)


def call_context(
    arguments: Sequence[str] = (), sources: Sequence[str] = (), kinds: Sequence[str] = (), *, first_time: bool = False
) -> Attributes:
    """Return the context of a call; before its arguments are known that has nothing."""
    sets = ("arguments", arguments), ("sources", sources), ("kinds", kinds)
    return (*((name, tuple(values)) for name, values in sets), ("first_time", first_time))


NO_CALL = call_context()


def call_access(tool: Tool, server: ServerConfig | None, context: Attributes = NO_CALL) -> Access:
    """Return the access of a call of a tool; `server` is what `mcp.json` says of its server, if it has that."""
    reads = tool.read_only if server is None else server.only_reads(tool)
    attributes: Attributes = (
        ("name", tool.name),
        ("category", tool.category),
        ("writes", not reads),
        ("destructive", not reads and tool.annotations.get("destructiveHint") is True),
    )
    return Access(Action.CALL, tool.full_name, attributes, tool.server, context)


def restore_access(kind: str, destination: str, *, server: str = "", tool: str = "", argument: str = "") -> Access:
    """Return the access of putting a value of a type in for its token, somewhere."""
    context: Attributes = (
        ("destination", destination),
        ("server", server),
        ("tool", tool),
        ("argument", argument),
    )
    return Access(Action.RESTORE, kind, context=context)
