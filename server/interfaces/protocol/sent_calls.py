"""Calls that are sent again: what tells that a call is one that came before, and the answer to one that joined it.

MCP 2026-07-28 cannot resume a stream, so a client sends a call whose stream broke again, under a new id. A call with an
idempotency key joins the run of that key. One without joins only a call whose stream broke, and only where everything
else is the same: two calls that are meant twice stay two.

A security boundary: whoever joins a call is given its report. So a call joins only one of the same scope, by a token
with at least its rights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from ...base.errors import RequestRefused
from ...governance.caller import Caller
from ...governance.scopes import connection_of

IDEMPOTENCY_KEY = "sealab/idempotencyKey"
"""The member of `_meta` that names a call."""
_KEY_CHARS_MAX = 200
_JOINED = "joined: this call was sent before, so nothing was run again; this is the report of the run that began then"


@dataclass(frozen=True, slots=True)
class SentCall:
    """What tells that two calls are the same one.

    `source` is the token and the MCP session, `asked` what the call asks for; of one with a key a digest of it.
    """

    caller: Caller
    source: tuple[str, str]
    asked: object
    key: str | None

    @classmethod
    def of(cls, context: Context[Any, Any], caller: Caller, **asked: object) -> SentCall:
        """Return that of a request. Raises `RequestRefused` for a key that cannot be one."""
        key = (context.request_context.meta or {}).get(IDEMPOTENCY_KEY)
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= _KEY_CHARS_MAX):
            raise RequestRefused(
                f"The {IDEMPOTENCY_KEY} in _meta is no key. Give a text of 1 to {_KEY_CHARS_MAX} characters, another "
                "for each call, and the same one to send a call again."
            )
        connection = connection_of(context.request_context) or ""
        digest = None if key is None else hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()
        return cls(caller, (caller.identity.credential, connection), digest or asked, key)

    def is_again(self, first: SentCall, *, broke: bool) -> bool:
        """Return whether it is the `first` call, sent again; that one `broke` where its stream did.

        Raises `RequestRefused` where it has the key of another call.
        """
        if self.caller.scope != first.caller.scope:
            return False
        if self.key is None:
            same = first.key is None and (self.source, self.asked) == (first.source, first.asked)
            return same and broke and self.caller.identity.stands_for(first.caller.identity)
        if self.key != first.key:
            return False
        if self.asked != first.asked:
            raise RequestRefused(
                f"The {IDEMPOTENCY_KEY} was given before, for a call with another program or other arguments. Give "
                "each call a key of its own, and the same one only to send a call again as it was."
            )
        if not self.caller.identity.stands_for(first.caller.identity):
            raise RequestRefused(
                f"The call of this {IDEMPOTENCY_KEY} was made with more rights than the token has. Send it again with "
                "the token that it was made with."
            )
        return True


def joined(answer: CallToolResult) -> CallToolResult:
    """Return the answer of a call as one that joined it gets it; what asks a user first is left as it is."""
    structured: Mapping[str, object] | None = getattr(answer, "structured_content", None)
    if structured is None:
        return answer
    first, *others = answer.content
    text = TextContent(type="text", text=f"{cast('TextContent', first).text}\n{_JOINED}")
    return answer.model_copy(update={"structured_content": {**structured, "joined": True}, "content": [text, *others]})
