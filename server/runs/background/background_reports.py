"""The reports of runs that nobody waited for: how they are stored, and what is said where there is no full one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json, Status
from ..execute import CodeRequest, Execution
from ..images import Picture
from ..report import ErrorReport, Report
from ..truncation import fit

if TYPE_CHECKING:
    from ....skills_db.journal.records import Journal as RunRecord

_END = 4
CANCELLED = "The run was cancelled. What it had done by then stands; `sealab runs show` says what that was."


@dataclass(frozen=True, slots=True)
class Progress:
    """How far code says that it is: a share from 0 to 1, and a message."""

    fraction: float
    message: str


@dataclass(frozen=True, slots=True)
class Approval:
    """A question that a run waits with; `choices` are what a yes may cover, the first of them a plain one."""

    run_id: str
    number: int
    question: str
    choices: tuple[str, ...]

    @property
    def id(self) -> str:
        """What answers it is given by."""
        return f"{self.run_id}.{self.number}"


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is that nobody waits for. Once it has ended, `execution` is there; times in seconds since 1970."""

    run_id: str
    status: str
    execution: Execution | None = None
    progress: Progress | None = None
    queued: float = 0.0
    changed: float = 0.0
    expires: float | None = None
    approval: Approval | None = None


def request_told(request: CodeRequest) -> Mapping[str, object]:
    """Return a request as JSON."""
    return {
        "code": request.code,
        "context_vars": dict(request.context_vars),
        "timeout_seconds": request.timeout_seconds,
        "memory_mb": request.memory_mb,
        "isolation": request.isolation,
        "dry_run": request.dry_run,
        "scope": request.caller.scope,
    }


def execution_told(execution: Execution) -> Mapping[str, object]:
    """Return a report and its images as JSON."""
    images = [
        {"mime_type": each.mime_type, "content": base64.b64encode(each.content).decode("ascii")}
        for each in execution.images
    ]
    return {"report": execution.report, "images": images}


def execution_of(told: Mapping[str, object]) -> Execution:
    """Return what `execution_told` made JSON of."""
    images = cast("list[dict[str, str]]", told["images"])
    return Execution(
        cast("Report", told["report"]),
        tuple(Picture(each["mime_type"], base64.b64decode(each["content"])) for each in images),
    )


def without_result(run_id: str, status: Status, kind: str, message: str) -> Execution:
    """Return the report of a run of which there is nothing but how it ended."""
    report = Report(
        run_id=run_id,
        success=False,
        status=status.value,
        result=None,
        output="",
        error=ErrorReport(type=kind, message=message, line=None, hint=None, traceback=None),
        execution_time_ms=0.0,
        isolation="restricted",
        layers=[],
    )
    return Execution(report)


def cancelled(run_id: str) -> Execution:
    """Return the report of a run that was cancelled."""
    return without_result(run_id, Status.CANCELLED, "Cancelled", CANCELLED)


def recorded(record: RunRecord, max_chars: int) -> Execution:
    """Return the report of a run of which a journal says how it ended, with at most so many characters of data."""
    run = record.run
    ends = [cast("Mapping[str, object]", each.value) for each in record.records if each.kind == _END]
    if not ends:
        status = Status(run.status) if run.status in {each.value for each in Status} else Status.CRASHED
        message = "The run left no result. `sealab runs show` says what it had done."
        return without_result(run.run_id, status, "RunCut", message)
    end = ends[-1]
    fitted = fit(
        cast("Json", end["result"]),
        cast("str", end["output"]),
        stderr=cast("str", end["stderr"]),
        notes=cast("Mapping[str, str]", end["notes"]),
        max_chars=max_chars,
    )
    report = Report(
        run_id=run.run_id,
        success=end["status"] == Status.OK.value,
        status=cast("str", end["status"]),
        result=fitted.result,
        output=fitted.output,
        error=None
        if end["error"] is None
        else cast("ErrorReport", {"hint": None, **cast("ErrorReport", end["error"])}),
        execution_time_ms=0.0 if run.ended is None else round((run.ended - run.began) * 1000, 3),
        isolation=run.isolation,
        layers=[],
    )
    if fitted.stderr:
        report["stderr"] = fitted.stderr
    if truncated := fitted.truncated():
        report["truncated"] = truncated
    return Execution(report)
