"""Who asks for a run, taken from the connection and never from what was sent over it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ...workspace.names import HOME_OWNER
from ..base.identity import LOCAL_IDENTITY, Identity

if TYPE_CHECKING:
    from .questions import Question, Reply

Ask: TypeAlias = "Callable[[Question], Awaitable[Reply]]"
"""Asks the user one question; the first of its choices stands for a plain yes.

Raises `NoMoreQuestions` where the client takes no further one, and `NobodyAnswers` where the user gives no answer.
"""

OpenLink = Callable[[str, str], Awaitable[bool]]
"""Asks the user to open a link, with a sentence that says why; returns whether they agreed.

Raises `NoMoreQuestions` and `NobodyAnswers` as `Ask` does.
"""

OnProgress = Callable[[float, float, str], Awaitable[None]]
"""Called with `(elapsed_seconds, timeout_seconds, what is going on)`."""

RUNNING = "running"
"""The progress message of a run that reports nothing else."""


class NobodyAnswers(Exception):
    """The user gave no answer in time, neither yes nor no."""


class NoMoreQuestions(Exception):
    """The client takes no more questions in this call; it was `asked` so many times."""

    def __init__(self, asked: int) -> None:
        super().__init__(f"The client was asked {asked} times in this call, and takes no more questions in it.")
        self.asked = asked


def or_no(ask: Ask) -> Ask:
    """Return what asks and takes no answer for a no."""

    async def asked(question: Question) -> Reply:
        try:
            return await ask(question)
        except NobodyAnswers:
            from .questions import NO  # it brings pydantic, and commands that list things ask nobody

            return NO

    return asked


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. `scope` owns its tokens and its runs; `ask` is None where no user can be asked.

    `identity` says what it may do, `client` what its program calls itself. `open_link` is None where no user can be
    asked to open a link, `origin` is the address at which its requests reach this server by HTTP, as
    `http://host:port`, and `bearer` the token that it sent, where the server has others exchange it. Neither outlives
    the request.
    """

    scope: str = HOME_OWNER
    ask: Ask | None = None
    identity: Identity = LOCAL_IDENTITY
    client: str = ""
    open_link: OpenLink | None = None
    origin: str = ""
    bearer: str = field(default="", repr=False)


LOCAL = Caller()
"""The one who started this process: the command line, or the one client on the standard streams."""
