"""Security boundary: what the policy makes of a tool for one caller, beside what `mcp.json` says of its server.

Both have to allow a call, and whichever of the two wants a user asked more often has it its way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....tools_registry.models import Tool
from ...governance.policy.access import NO_CALL, Attributes, Decider, Ruling, call_access, stricter
from .wiring import is_permitted

if TYPE_CHECKING:
    from ....tools_registry.configuration import Configuration, ServerConfig
    from ...base.errors import PolicyRefused
    from ...base.identity import Identity


READ_RESOURCE = "read_resource"
"""What reading a resource counts as: a tool of that name, which only reads."""


def resource_reader(server: str) -> Tool:
    """Return what reading the resources of a server counts as."""
    return Tool(READ_RESOURCE, server, server, annotations={"readOnlyHint": True})


@dataclass(frozen=True, slots=True)
class RuledServer:
    """A server's entry as it holds for one caller and tool; `refusal` says why the policy refuses the call, if so.

    `by` names the rules of the policy that decided, for the audit log; it is empty without a policy.
    """

    server: ServerConfig
    refusal: PolicyRefused | None = None
    by: str = ""


def ruled(
    policy: Decider, who: Identity, tool: Tool, server: ServerConfig, context: Attributes = NO_CALL
) -> RuledServer:
    """Return the server's entry as it holds for this caller, tool and call."""
    if not policy.governs:
        return RuledServer(server)
    ruling = policy.decide(who, call_access(tool, server, context))
    if not ruling.allowed:
        return RuledServer(server, refused(tool, ruling), ruling.named)
    return RuledServer(replace(server, approve=stricter(server.approve, ruling.approval)), by=ruling.named)


def refused(tool: Tool, ruling: Ruling) -> PolicyRefused:
    """Return the error for a call that the policy refuses."""
    return ruling.refusal(f"to call {tool.full_name}", "Use another tool, or ask the operator to change the policy.")


def shows(policy: Decider, who: Identity, tool: Tool, configuration: Configuration) -> bool:
    """Return whether a caller is shown a tool: one that the operator permits, and the policy lets this caller call."""
    if not is_permitted(tool, configuration):
        return False
    if not policy.governs:
        return True
    return policy.decide(who, call_access(tool, configuration.servers.get(tool.server))).allowed
