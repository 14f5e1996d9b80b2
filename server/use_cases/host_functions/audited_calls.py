"""The line of the audit log about one call of an upstream tool: what was decided, by which rule, and how it ended.

The name of a tool that was not found is the code's own text, and is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....sandbox.errors import HostCallError
from ....tools_registry.errors import ToolUnknown
from ...base.errors import AuditUnwritten
from ...governance.audit.trail import ToolCallLine
from ..journal.replaying import OUTCOME_UNKNOWN
from ..upstream_tools.approval import Decision, decide, why_refused
from .broker import failed

if TYPE_CHECKING:
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Tool
    from ..upstream_tools.tool_rules import RuledServer
    from .broker import Calls
    from .call_log import LoggedCall

_DECIDED = {Decision.RUN: "allowed", Decision.ASK: "declined", Decision.REFUSE: "refused"}
"""What is decided where nothing more happens: a call that a user is asked about is declined until there is a yes."""


@dataclass(slots=True)
class AuditedCall:
    """A call while it is made; the sizes are those of its arguments and its answer as JSON."""

    calls: Calls
    entry: LoggedCall
    decision: str = ""
    rule: str = ""
    chars_in: int = 0
    chars_out: int = 0
    outcome: str = ""
    sources: str = ""
    left_out_of: str | None = None
    """The server of which the operator's patterns leave out a tool of that name, whether or not there is one."""

    hidden: tuple[str, str] | None = None
    """The tool that the policy hides from the caller, whose error says that there is none, and the rules."""

    def judged(self, ruled: RuledServer, tool: Tool) -> tuple[ServerConfig, Decision]:
        """Take what policy and configuration say of the call, and return the server's entry and what becomes of it.

        Raises `PolicyRefused` or `HostCallError` where that is nothing.
        """
        if ruled.refusal is not None:
            self.decision, self.rule = "refused", ruled.by
            raise ruled.refusal
        server = ruled.server
        decision = decide(tool, server)
        self.decision = _DECIDED[decision]
        rule = f"approve={server.approve.value}" if decision is not Decision.REFUSE else "allow, deny"
        self.rule = f"{rule}; {ruled.by}" if ruled.by else rule
        if decision is Decision.REFUSE:
            raise failed(why_refused(tool.name, server))
        return server, decision

    def approved(self) -> None:
        """Take that a user said yes, now or before."""
        self.decision = "approved"

    def dry(self) -> None:
        """Take that a dry run only noted the call down."""
        self.decision, self.rule, self.outcome = "noted", "dry_run", "not sent"

    async def sent(self) -> None:
        """Note that the call is about to be sent, where its line is required. Raises `HostCallError`."""
        try:
            with self.calls.waits.for_server():
                await self.calls.audit.tool_sent(self.calls.caller, self.calls.run_id, self._line())
        except AuditUnwritten as error:
            self.decision, self.rule = "refused", "audit"
            raise failed(str(error)) from error

    def ended(self) -> None:
        """Note what became of the call."""
        self.calls.audit.tool_called(self.calls.caller, self.calls.run_id, self._line())

    def _line(self) -> ToolCallLine:
        entry = self.entry
        ms = entry.ms if self.outcome else 0.0
        if not entry.found and self.hidden is not None:
            tool, rule = self.hidden
            return ToolCallLine(tool, "refused", rule, outcome=self.outcome)
        if not entry.found:
            return ToolCallLine.of_unfound(self.left_out_of, self.outcome)
        sizes = self.chars_in, self.chars_out
        return ToolCallLine(entry.tool, self.decision, self.rule, *sizes, self.outcome, ms, self.sources)


@contextmanager
def audited(calls: Calls, entry: LoggedCall) -> Iterator[AuditedCall]:
    """Note the call of an entry when the block ends."""
    line = AuditedCall(calls, entry)
    try:
        yield line
    except HostCallError as error:
        line.outcome = "unknown" if error.type == OUTCOME_UNKNOWN else "error"
        if isinstance(error.__cause__, ToolUnknown):
            line.left_out_of = error.__cause__.left_out_of
        raise
    except BaseException:
        line.outcome = "broken off"
        raise
    else:
        line.outcome = line.outcome or "ok"
    finally:
        line.ended()
