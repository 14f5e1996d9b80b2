"""The reports of runs that nobody waited for: how they are stored, and what is said where there is no full one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from .....sandbox.job import Failure, Isolation, Outcome, Status
from ....base.errors import UsageError
from ....governance.questions import Question, Reply, reply_of
from ..cancelled_runs import LeftFiles
from ..images import Picture
from ..report import Report, plain_report
from ..request import Execution
from ..truncation import Cut, Fitted

if TYPE_CHECKING:
    from .....skills_db.journal.background_store import BackgroundState

PATH = "/approvals/"
"""Where the pages of parked questions are; a link's token follows."""
_MCP_PATH = "/mcp"
CANCELLED = "The run was cancelled. What it had done by then stands; `sealab runs show` says what that was."


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far code says that it is: a share from 0 to 1, and a message."""

    fraction: float
    message: str


@dataclass(frozen=True, slots=True)
class Approval:
    """A question that a run waits with."""

    run_id: str
    number: int
    asked: Question
    scope: str

    @property
    def question(self) -> str:
        """The question as it is put to a user."""
        return self.asked.text

    def reply(self, *, approves: bool, reason: str = "", refused: str = "", covers: str | None = None) -> Reply:
        """Return an answer that is given without a client: a yes covers the least, unless it `covers` more.

        Raises `UsageError` where the question has no such choice.
        """
        choices = self.asked.choices
        if covers is not None and covers not in choices:
            raise UsageError(f"A yes to it cannot cover {covers!r}. Give one of {', '.join(map(repr, choices))}.")
        choice = next(iter(choices), "") if covers is None else covers
        return reply_of(approves=approves, choice=choice, reason=reason, refused=refused)

    @property
    def id(self) -> str:
        """What answers it is given by."""
        return f"{self.run_id}.{self.number}"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question that counts: whether it was a yes, and when, in seconds since 1970."""

    number: int
    approves: bool
    at: float

    def __str__(self) -> str:
        """Return it in words, as what follows `it was`."""
        word = "approved" if self.approves else "denied"
        return f"{word} at {datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is that nobody waits for. Once it has ended, `execution` is there; times in seconds since 1970."""

    run_id: str
    status: str
    execution: Execution | None = None
    progress: RunProgress | None = None
    queued: float = 0.0
    changed: float = 0.0
    expires: float | None = None
    approval: Approval | None = None
    answers: tuple[Answered, ...] = ()

    def answer_to(self, number: int) -> Answered | None:
        """Return the answer to the question of that number, if it has one."""
        return next((each for each in self.answers if each.number == number), None)


def pages_at(address: str) -> str:
    """Return what the links at a server's address begin with, as an operator gives it. Raises `UsageError`."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"http", "https"} and parts.hostname and not parts.query and not parts.fragment
        _ = parts.port  # it is judged as it is read
    except ValueError:
        good = None
    if not good:
        raise UsageError(f"{address} is not the address of a server. Give one such as http://127.0.0.1:8000.")
    return address.rstrip("/").removesuffix(_MCP_PATH) + PATH


def question_json(question: Question) -> dict[str, object]:
    """Return a question as JSON."""
    return {"question": question.text, "asked": question.as_json()}


def question_of(encoded: Mapping[str, object]) -> Question:
    """Return what `question_json` made JSON of, or an earlier version, which kept the text alone."""
    asked = encoded.get("asked")
    if isinstance(asked, dict):
        return Question.model_validate(asked)
    return Question(plain=str(encoded["question"]), choices=tuple(cast("list[str]", encoded.get("choices", ()))))


def answer_json(question: Question, reply: Reply) -> dict[str, object]:
    """Return an answer as JSON, with the question that it answers."""
    return question_json(question) | reply.as_json()


def execution_json(execution: Execution) -> Mapping[str, object]:
    """Return a report and its images as JSON."""
    images = [
        {"mime_type": each.mime_type, "content": base64.b64encode(each.content).decode("ascii")}
        for each in execution.images
    ]
    return {"report": execution.report, "images": images}


def execution_of(encoded: Mapping[str, object]) -> Execution:
    """Return what `execution_json` made JSON of."""
    images = cast("list[dict[str, str]]", encoded["images"])
    return Execution(
        cast("Report", encoded["report"]),
        tuple(Picture(each["mime_type"], base64.b64decode(each["content"])) for each in images),
    )


def run_state(found: BackgroundState) -> RunState:
    """Return the state of a background run, of what is stored of it."""
    progress = found.progress
    return RunState(
        found.run_id,
        found.status,
        None if found.report is None else execution_of(found.report),
        None if progress is None else RunProgress(float(str(progress["fraction"])), str(progress["message"])),
        found.queued,
        found.changed,
        found.expires,
        _approval(found),
        tuple(Answered(each.number, each.choice is not None, each.at) for each in found.answers),
    )


def _approval(found: BackgroundState) -> Approval | None:
    question = found.question
    if question is None:
        return None
    return Approval(found.run_id, found.questions, question_of(question), str(question["scope"]))


def without_result(run_id: str, status: Status, kind: str, message: str) -> Execution:
    """Return the report of a run of which there is nothing but how it ended."""
    outcome = Outcome(status, error=Failure(kind, message))
    return Execution(plain_report(run_id, outcome, Fitted(None, "", {})))


def cancelled(run_id: str, left: LeftFiles | None = None) -> Execution:
    """Return the report of a run that was cancelled; `left` is what is known of the files that it had written."""
    execution = without_result(run_id, Status.CANCELLED, "Cancelled", CANCELLED)
    if left is None:
        return execution
    report = execution.report
    report["isolation"] = Isolation.PROCESS.value
    if left.changes:
        report["files"] = left.changes
    named = len(left.changes.get("kept", ()))
    if named < left.kept:
        report["truncated"] = {"files": Cut(named, left.kept, "list_files() in code", left.note).to_json()}
    elif left.note is not None:
        report["truncated"] = {"files": Cut(note=left.note).to_json()}
    return execution
