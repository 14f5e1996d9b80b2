"""Everything `sealab.sandbox` raises.

    SandboxError
    ├── Refused           the dialect does not allow the source; nothing of it ran
    ├── LimitRefused      a request above what the operator allows
    ├── LevelMissing      a protective layer that is required cannot be set up
    ├── ContainerMissing  there is no container engine or image, or its limits do not hold
    ├── SessionRefused    a session is busy, or there are too many
    ├── Busy              no turn came in time, or too many wait already; nothing ran
    ├── WorkerLost        the process died or stopped answering before it took the job
    ├── ReadOverran       a reader needed more time or memory than it may have, and was ended
    ├── ReadFailed        what a reader ran raised an exception, or the reader died
    ├── FrameError        a frame from a child was not valid; the child is killed
    └── HostCallError     what a host function answers when it fails; the code may catch it

Each class has a stable `code`, by which `sealab.server.base.errors` finds what a caller sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class SandboxError(Exception):
    """The base of all errors of this folder; `code` is stable, the message is for people."""

    code: ClassVar[str] = "sandbox"


class Refused(SandboxError):
    """The dialect does not allow the source.

    `line` is 1-based in the caller's source, or None where the refusal has no line. `type` is the name a
    report shows (`SecurityError`, `ImportError`, `SyntaxError`). `instead` says what to write instead.
    `module` names the module of a refused import, so that a container may be asked for it. `others` are what else the
    dialect does not allow of the same source. Code may catch one, and the
    report trusts it: so none of it can be changed.
    """

    code = "refused"

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        type: str = "SecurityError",  # noqa: A002 - the report's own key
        instead: str | None = None,
        module: str | None = None,
        others: tuple[Refused, ...] = (),
    ) -> None:
        super().__init__(message)
        self._said = (message, line, type, instead, module, others)

    @property
    def message(self) -> str:
        """What the dialect does not allow."""
        return self._said[0]

    @property
    def line(self) -> int | None:
        """Where it stands."""
        return self._said[1]

    @property
    def type(self) -> str:
        """The name that a report shows."""
        return self._said[2]

    @property
    def instead(self) -> str | None:
        """What to write instead."""
        return self._said[3]

    @property
    def module(self) -> str | None:
        """The module of a refused import."""
        return self._said[4]

    @property
    def others(self) -> tuple[Refused, ...]:
        """What else of the source is refused, in its order."""
        return self._said[5]

    def with_others(self, others: tuple[Refused, ...]) -> Refused:
        """Return the same refusal with what else is refused."""
        message, line, kind, instead, module, _others = self._said
        return Refused(message, line=line, type=kind, instead=instead, module=module, others=others)


class LimitRefused(SandboxError):
    """A request above the operator's maximum is refused, never clamped."""

    code = "limit"


class LevelMissing(SandboxError):
    """The protective level that the operator requires cannot be reached on this machine."""

    code = "level"


class ContainerMissing(SandboxError):
    """Code cannot run in a container here: no engine, no image, or limits that do not hold."""

    code = "container"


class SessionRefused(SandboxError):
    """The session is busy with another call, or as many sessions as allowed are alive."""

    code = "session"


class SessionNotRebuilt(SandboxError):
    """A session without a worker cannot be rebuilt; the text says why, in words that follow `had ended: `."""

    code = "session_not_rebuilt"


class Busy(SandboxError):
    """There was no room to run the job: nothing of the code ran. Trying again after `retry_seconds` is sensible.

    `limit` names the setting that was reached, where it was one.
    """

    code = "busy"

    def __init__(self, reason: str, retry_seconds: float, *, limit: str = "") -> None:
        super().__init__(f"{reason} Nothing of this one ran. Call again in about {retry_seconds:g} seconds.")
        self.retry_seconds = retry_seconds
        self.limit = limit


class WorkerLost(SandboxError):
    """A worker or the zygote went away before it took the job: nothing of the code ran."""

    code = "worker"


class ReadOverran(SandboxError):
    """A reader needed more time or memory than it may have, and was ended."""

    code = "read_overran"


class ReadFailed(SandboxError):
    """What a reader ran raised an exception of the class named `kind`, or the reader died: then `kind` is empty.

    `kind` and `message` are the reader's own words, which may be a stranger's.
    """

    code = "read_failed"

    def __init__(self, text: str, *, kind: str = "", message: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        self.message = message


class FrameError(SandboxError):
    """A frame from a child broke the framing rules."""

    code = "frame"


class HostCallError(SandboxError):
    """A host function failed; `type` names the exception class that the code sees, and `details` its attributes."""

    code = "host_call"

    def __init__(
        self,
        message: str,
        *,
        type: str = "RuntimeError",  # noqa: A002 - as in `Refused`
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.type = type
        self.details = details
