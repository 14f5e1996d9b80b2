"""Where sessions of code are, where several servers are one sealab; see `replicas`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..caller import Progress

if TYPE_CHECKING:
    from ...sandbox.job import Json
    from .execute import CodeRequest, Execution
    from .executor import Executor

Here = Callable[[], Awaitable["Execution"]]
"""Runs a program on this server."""


class Places(Protocol):
    """The sessions of one tenant on all servers. A session is named as the sandbox names it, with its owner."""

    async def execute(
        self, executor: Executor, request: CodeRequest, here: Here, progress: Progress | None
    ) -> Execution:
        """Run a program where its session is, and return its report."""
        ...

    async def confirm(self, session: str) -> None:
        """Raise `SessionElsewhere` unless this server still has the session in which it has run a program."""

    async def listed(self, scope: str) -> Sequence[Mapping[str, Json]]:
        """Return the sessions that the callers of a scope have on the other servers. Raises `SessionElsewhere`."""
        ...

    async def close(self, session: str) -> bool:
        """End a session that another server may have; return whether one had it. Raises `SessionElsewhere`."""
        ...

    async def store_journals(self) -> None:
        """Have the other servers write down what they have recorded of runs, as far as they can be reached."""

    async def last_run(self, scope: str) -> tuple[str, float] | None:
        """Return the last run of a scope on the other servers, and how many seconds ago it ended."""
        ...
