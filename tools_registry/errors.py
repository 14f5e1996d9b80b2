"""Everything `sealab.tools_registry` raises.

    RegistryError
    ├── ToolUnknown          no tool has this name; the message names the nearest
    ├── ToolAmbiguous        several tools have this name; the message names them
    ├── CategoryUnknown      no category has this name; the message names those there are
    ├── DefinitionRefused    what should define a tool does not; it is reported and the rest load
    ├── StubsRefused         typed stubs cannot be written there
    ├── ConfigurationRefused a file of MCP servers cannot be read or written, or says what cannot be
    ├── StateUnavailable     what servers share of upstream servers cannot be read or written now
    ├── ServerUnknown        `mcp.json` has no server of this name; the message names the nearest
    ├── ServerUnusable       the server is disabled, or its entry in `mcp.json` is wrong
    ├── Quarantined          the server's descriptions changed since they were pinned
    ├── ConnectFailed        the server could not be started or reached in time: nothing was called
    │   ├── SignInNeeded     … since it wants a user to sign in
    │   └── SignInFailed     … since its issuer refused the sign-in, or cannot be asked
    ├── Refusal              the server answered that it failed, in its own words
    │   ├── CallRefused      … the request itself: no such tool, wrong arguments
    │   └── ToolFailed       … the tool, which ran
    ├── AnswerRefused        the server answered something that is not a valid answer; the tool may have done its work
    └── OutcomeUnknown       no answer came: the tool may or may not have done its work
        ├── CallTimedOut     … within the time for calls
        └── ConnectionLost   … before the connection ended

Each class has a stable `code`. A message says what was wrong, then what to do, to whoever calls: it names a server and
never what the operator configured for it, nor what it wrote. `for_operator` says that too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from .models import Json

_ENDED = re.compile(r"[.!?…][\"'”]*$")


def sentence(text: str) -> str:
    """Return a text that others wrote, or that quotes them, as a sentence that ends once; nothing of nothing."""
    text = text.rstrip().rstrip(":,;")
    return text if not text or _ENDED.search(text) else f"{text}."


class RegistryError(Exception):
    """The base of all errors of this folder; `code` is stable, the message is for people.

    `for_operator` is the message for the terminal and the log of the operator, by default the same.
    """

    code: ClassVar[str] = "registry"

    def __init__(self, message: str, *, for_operator: str = "") -> None:
        super().__init__(message)
        self.for_operator = for_operator or message


class ToolUnknown(RegistryError):
    """No tool has this name, or the operator leaves it out: then `left_out_of` is its server, which may not have it."""

    code = "tool_unknown"

    def __init__(self, message: str, nearest: Sequence[str] = (), *, left_out_of: str | None = None) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)
        self.left_out_of = left_out_of


class ToolAmbiguous(RegistryError):
    """Several tools have this name; `candidates` are their full names."""

    code = "tool_ambiguous"

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class CategoryUnknown(RegistryError):
    """No category has this name."""

    code = "category_unknown"


class DefinitionRefused(RegistryError):
    """What should define a tool does not."""

    code = "definition"


class StubsRefused(RegistryError):
    """Typed stubs cannot be written where they should be."""

    code = "stubs"


class ConfigurationRefused(RegistryError):
    """A file of MCP servers cannot be read or written, or says what cannot be."""

    code = "configuration"


class StateUnavailable(RegistryError, OSError):
    """What several servers share of upstream servers cannot be read or written now."""

    code = "state_unavailable"


class ServerUnknown(RegistryError):
    """`mcp.json` has no server of this name."""

    code = "server_unknown"


class ServerUnusable(RegistryError):
    """The server is disabled, or its entry in `mcp.json` is wrong."""

    code = "server_unusable"


class Quarantined(RegistryError):
    """What the server says about its tools changed since it was pinned: none is called until a user accepts that."""

    code = "quarantined"


class ConnectFailed(RegistryError):
    """The server could not be started or reached in time: nothing was called."""

    code = "connect"


class SignInNeeded(ConnectFailed):
    """The server wants a user to sign in; `scope` is what it asks for that the sign-in had not."""

    code = "sign_in"

    def __init__(self, message: str, *, for_operator: str = "", scope: str | None = None) -> None:
        super().__init__(message, for_operator=for_operator)
        self.scope = scope


class SignInFailed(ConnectFailed):
    """The issuer of a server's tokens refused to give one, cannot be reached, or answered what cannot be used."""

    code = "sign_in_failed"


class Refusal(RegistryError):
    """The server answered that it failed; the message is its own.

    `structured` is the structured content of its answer or the data of its error, None where it has none, and `content`
    are its texts.
    """

    code = "refusal"

    def __init__(self, message: str, *, structured: Json = None, content: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.structured = structured
        self.content = tuple(content)


class CallRefused(Refusal):
    """The server refused the request itself: no such tool, wrong arguments."""

    code = "call_refused"


class ToolFailed(Refusal):
    """The tool ran and says that it failed."""

    code = "tool_failed"


class AnswerRefused(RegistryError):
    """The server answered something that is not a valid answer; the tool may have done its work."""

    code = "answer"


class OutcomeUnknown(RegistryError):
    """No answer came: the tool may or may not have done its work, so the call is never repeated."""

    code = "outcome_unknown"


class CallTimedOut(OutcomeUnknown):
    """No answer came within the time for calls; the server was sent a cancellation."""

    code = "call_timeout"


class ConnectionLost(OutcomeUnknown):
    """The connection ended while the call was under way."""

    code = "connection_lost"
