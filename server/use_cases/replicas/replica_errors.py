"""What this folder raises.

SessionElsewhere   a session is on a server that cannot be reached now, or has just moved; nothing ran
OutcomeUnknown     the server that ran a call went away, and what the call did is not known
"""

from __future__ import annotations

from ...base.errors import ServerError


class SessionElsewhere(ServerError):
    """A session is on another server, which cannot be asked now; the message says when to come back."""

    code = "session_elsewhere"


class OutcomeUnknown(ServerError):
    """A call was at work on a server that is gone. It is not made again: what it did may stand."""

    code = "outcome_unknown"
