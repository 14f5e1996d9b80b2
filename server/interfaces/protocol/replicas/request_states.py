"""`requestState` of MCP 2026-07-28 where several servers are one sealab: sealed by a key that all of them have.

What it stands for waits in the memory of one server, whose id stands in front, in clear: `<server>.<sealed>`. That says
where to send it, and nothing depends on it: the server that gets it opens the seal.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState, RequestStateSecurity

if TYPE_CHECKING:
    from ....use_cases.replicas.replicas import Replicas

TTL_SECONDS = 600.0
"""How long a state can be answered, as by the SDK's default; a user has less (`elicitation.ANSWER_SECONDS`)."""
_STATE = re.compile(r"([0-9a-f]{16})\.(.+)")
_FIELD = b'"requestState"'


class _Codec:
    """The SDK's seal, with the server in front."""

    def __init__(self, replica: str, key: bytes) -> None:
        self._replica = replica
        self._inner = AESGCMRequestStateCodec([key])

    def seal(self, payload: bytes) -> str:
        """Return the state as a client gets it."""
        return f"{self._replica}.{self._inner.seal(payload)}"

    def unseal(self, token: str) -> bytes:
        """Return what was sealed. Raises `InvalidRequestState`."""
        found = _STATE.fullmatch(token)
        if found is None:
            raise InvalidRequestState("malformed")
        return self._inner.unseal(found[2])


def security_of(replicas: Replicas, tenant: str) -> RequestStateSecurity:
    """Return how the states of a tenant are sealed."""
    return RequestStateSecurity(codec=_Codec(replicas.membership.id, replicas.keys.state_key(tenant)), ttl=TTL_SECONDS)


def replica_in(body: bytes) -> str | None:
    """Return which server a message came from whose state it brings back; None where it brings none.

    It is looked for as JSON text first, so that a body without one is not parsed. A client that writes the name of the
    field with escapes is not sent on, and gets the answer of a state that is not known.
    """
    if _FIELD not in body:
        return None
    try:
        read = json.loads(body)
        state = read["params"]["requestState"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    found = _STATE.fullmatch(state) if isinstance(state, str) else None
    return None if found is None else found[1]
