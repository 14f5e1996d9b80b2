"""The run report as callers get it: its keys, and the same in a few lines of text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple, NotRequired, cast

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ....sandbox.job import Isolation, Json, Outcome, Status
from ...base.settings import OutputFormat
from .compact import shortened, written
from .tables.table_reports import TableReport, table_line
from .truncation import FIRST_OF, SHOWN_CHARS, Fitted, fit

_NEW_LINE = "\n"
_TRACE_LINES_MAX = 24
_DRY_CALLS_SHOWN = 5
"""Calls of one tool that the text of a dry run shows."""
WHOLE_FROM_MS = 10


class CallCounts(TypedDict):
    """How many calls of a tool were done and how many failed before a run failed."""

    done: int
    failed: int


class ErrorReport(TypedDict):
    """Why a run did not end well; `line` and `traceback` speak of the caller's own code only.

    `calls` says of each tool how many of its calls were done and failed; it is left out where there were none.
    """

    type: str
    message: str
    line: NotRequired[int | None]
    hint: NotRequired[str | None]
    traceback: NotRequired[str | None]
    calls: NotRequired[dict[str, CallCounts]]


class ToolCall(TypedDict):
    """One call of an upstream tool; with `count`, so many of them that ended alike, and the `ms` of all together."""

    tool: str
    ok: bool
    ms: float
    count: NotRequired[int]


class DryCall(TypedDict):
    """A call that a dry run noted down and did not make: of a tool that may write, or what changes files or skills.

    Of `write_file` the arguments are `filename` and `size`, in bytes, and `tokens` where it was asked for.
    """

    tool: str
    arguments: Mapping[str, object]


class WrittenFile(TypedDict):
    """A file that the run wrote in the workspace; `size` in bytes."""

    name: str
    size: int


class FileChanges(TypedDict):
    """What a run of full Python changed in the workspace. Keys that would be empty are left out.

    `new` and `changed` are files that it wrote, `deleted` the names of those that it removed. `kept` are files of a
    failed run, which are not in the workspace: they are read below `.runs/<run_id>/files/`.
    """

    new: NotRequired[list[WrittenFile]]
    changed: NotRequired[list[WrittenFile]]
    deleted: NotRequired[list[str]]
    kept: NotRequired[list[WrittenFile]]


class Image(TypedDict):
    """A figure of the run, or an image of its result: `size` in bytes. Over MCP the images follow as content.

    `shows` says of a figure in words what it shows.
    """

    mime_type: str
    size: int
    shows: NotRequired[str]


PRIVACY_MS_LEAST = 100.0
"""How long personal data must have been looked for until a report says so."""


class TokensLeft(TypedDict):
    """What a tool was not given: tokens that `restore` of its server withheld or that are unknown, and values by type.

    `refused` says how many calls were not made for that; without it the tool was given the tokens as they are.
    """

    tool: str
    refused: NotRequired[int]
    withheld: NotRequired[list[str]]
    unknown: NotRequired[list[str]]
    values: NotRequired[Mapping[str, int]]


class PrivacyReport(TypedDict):
    """What was done with personal data.

    `hidden` says how many different values of each type stand in this report as tokens; `files` what became of the
    tokens that the run wrote to files: so many were `restored` to values or `kept`, and so many are `unknown`. So many
    tokens in the program and its variables became `values`; those that are `unknown` stand for none, and stayed. The
    policy `withheld` so many of each type from the code, which stayed too.
    `ms` is how long personal data was looked for in what the code was given, while it ran or waited for that, and in
    what this report shows; it is left out below `PRIVACY_MS_LEAST`.
    """

    values: NotRequired[int]
    withheld: NotRequired[Mapping[str, int]]
    unknown: NotRequired[list[str]]
    hidden: NotRequired[Mapping[str, int]]
    files: NotRequired[Mapping[str, int]]
    left: NotRequired[list[TokensLeft]]
    ms: NotRequired[float]


class SessionReport(TypedDict):
    """That the session of a run had lost its process and was rebuilt: so many `programs` were run again, in `ms`."""

    name: str
    rebuilt: bool
    programs: int
    ms: float


class SourcedArgument(TypedDict):
    """An argument of a call that writes and names a party, a place or a sum, and the `source` of its value.

    `operator`: it is in the operator's list. `field`: it stood in a field of its own in what was read. `text`: it stood
    only in free text. `program`: the program has it. `computed`: the program made it.
    """

    tool: str
    argument: str
    source: str


class Notes(TypedDict):
    """What there is to say of a run. `instructions`: what was read gives orders to an assistant, and is data."""

    instructions: NotRequired[str]


class Report(TypedDict):
    """One execution, as its caller sees it. Keys that would be empty are left out where they may be.

    The host's own reports have all keys that stand first; `brief` leaves out what callers over MCP do not need.

    `displayed` are the values that the code showed with `display`, in order; one that is `{"image": n}` is the n-th of
    `images`. `tables` says what the tables in these and in the result are.
    `returns` says what tools return that the code called, where the caller has not seen it before. A dry run has
    `dry_run`, even where there was nothing to note down; `made_up` says of which tools the code was given made-up
    answers, and why. `joined` says that the call was sent before, and that this is the report of the run of then.
    """

    run_id: str
    joined: NotRequired[bool]
    success: bool
    status: str
    result: object
    displayed: NotRequired[list[object]]
    tables: NotRequired[list[TableReport]]
    output: NotRequired[str]
    stderr: NotRequired[str]
    error: NotRequired[ErrorReport | None]
    execution_time_ms: float
    queued_ms: NotRequired[float]
    tool_calls: NotRequired[list[ToolCall]]
    returns: NotRequired[Mapping[str, str]]
    dry_run: NotRequired[list[DryCall]]
    made_up: NotRequired[Mapping[str, str]]
    truncated: NotRequired[Mapping[str, object]]
    isolation: NotRequired[str]
    layers: NotRequired[list[str]]
    files: NotRequired[list[WrittenFile] | FileChanges]
    images: NotRequired[list[Image]]
    session: NotRequired[SessionReport]
    session_ended: NotRequired[str]
    hint: NotRequired[str]
    privacy: NotRequired[PrivacyReport]
    writes: NotRequired[list[SourcedArgument]]
    notes: NotRequired[Notes]


def there(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the keys that a report has: those of values that are not empty."""
    return {key: value for key, value in fields.items() if value}


def plain_report(run_id: str, outcome: Outcome, fitted: Fitted) -> Report:
    """Return the report of a run that has nothing to say but what came of it."""
    report = Report(
        run_id=run_id,
        success=outcome.status is Status.OK,
        status=outcome.status.value,
        result=fitted.result,
        output=fitted.output,
        error=None if outcome.error is None else cast("ErrorReport", asdict(outcome.error)),
        execution_time_ms=round(outcome.duration_ms, 3),
        isolation=outcome.isolation.value,
        layers=list(outcome.layers),
    )
    if fitted.stderr:
        report["stderr"] = fitted.stderr
    return report


_DEFAULTS: Mapping[str, object] = {"output": "", "error": None, "isolation": Isolation.RESTRICTED.value}


def brief(report: Report, *, layers: bool) -> dict[str, object]:
    """Return a report without what is at its default, and with its layers where they are asked for.

    The defaults are an empty output, no error, and the isolation `restricted`.
    """
    shown = {key: value for key, value in report.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}
    if report["error"] is not None:
        shown["error"] = {key: value for key, value in report["error"].items() if value is not None}
    if not layers:
        shown.pop("layers", None)
    return shown


def as_text(report: Report, form: OutputFormat = OutputFormat.AUTO, *, of_skill: bool = False) -> str:
    """Format the report as lines: how it ended, the result, the error, the output, and what was cut.

    The result stands in the form that takes the fewest tokens, or was asked for. Of a long result or output only
    `SHOWN_CHARS` are shown: the structured content has more. The run is named, so that a skill can be made of it,
    but not where it was `of_skill` already and ended well.
    """
    failed = report["error"]
    named = "" if of_skill and failed is None else f" (run {report['run_id']})"
    lines = [f"{report['status']} in {_brief_ms(report['execution_time_ms'])} ms{named}"]
    shown = _shown(report, form)
    if shown.result is not None:
        lines.append(f"result:{_NEW_LINE if _NEW_LINE in shown.result else ' '}{shown.result}")
    lines += [f"displayed:{_NEW_LINE if _NEW_LINE in text else ' '}{text}" for text in shown.displayed]
    lines += map(table_line, report.get("tables", []))
    if failed is not None:
        lines += _failure(failed)
    if shown.output:
        lines += ["output:", shown.output.rstrip(_NEW_LINE)]
    if shown.stderr:
        lines += ["stderr:", shown.stderr.rstrip(_NEW_LINE)]
    lines += [f"{what}: {_said_of(note)}" for what, note in shown.notes.items()]
    lines += _files_said(report.get("files", []))
    for tool, shape in report.get("returns", {}).items():
        lines.append(f"{tool} returns {shape}")
    if "dry_run" in report:
        left_out = "what is named here was not done."
        lines.append(f"This was a dry run: {left_out if report['dry_run'] else 'nothing had to be left out.'}")
    if "made_up" in report:
        tools = ", ".join(f"{tool} ({why})" for tool, why in report["made_up"].items())
        lines.append(f"The code was given made-up answers of these tools, and so was what it made of them: {tools}.")
    lines += _not_done(report.get("dry_run", []))
    for image in report.get("images", []):
        lines.append(f"image ({image['mime_type']}, {image['size']} bytes){_shows(image)}")
    if "session" in report:
        session = report["session"]
        lines.append(f"session: {session['name']} was rebuilt from its {session['programs']} programs")
    lines += [
        f"{each['tool']} was given {each['argument']} out of a text that was read"
        for each in report.get("writes", [])
        if each["source"] == "text"
    ]
    lines += [str(note) for note in report.get("notes", {}).values()]
    if "session_ended" in report:
        lines.append(f"session: {report['session_ended']}")
    if "hint" in report:
        lines.append(f"hint: {report['hint']}")
    return _NEW_LINE.join([*lines, *_privacy_said(report.get("privacy", {}))])


def _privacy_said(privacy: PrivacyReport) -> list[str]:
    lines = []
    if "hidden" in privacy:
        lines.append(f"hidden behind tokens: {_listed(privacy['hidden'])}")
    if "unknown" in privacy:
        lines.append(f"tokens in the code that stand for no value here: {', '.join(privacy['unknown'])}")
    if "files" in privacy:
        lines.append(f"tokens written to files: {_listed(privacy['files'])}")
    if "ms" in privacy:
        lines.append(f"looked for personal data for {privacy['ms'] / 1000:.1f} seconds")
    for left in privacy.get("left", []):
        withheld = [f"withheld {', '.join(left['withheld'])}"] if "withheld" in left else []
        unknown = [f"unknown {', '.join(left['unknown'])}"] if "unknown" in left else []
        values = [f"withheld values: {_listed(left['values'])}"] if "values" in left else []
        refused = left.get("refused", 0)
        done = f"{refused} call{'s were' if refused > 1 else ' was'} refused" if refused else "given tokens as they are"
        lines.append(f"{left['tool']}: {done}: {'; '.join(withheld + unknown + values)}")
    return lines


def _files_said(files: list[WrittenFile] | FileChanges) -> Iterator[str]:
    changes = files if isinstance(files, dict) else FileChanges(new=files)
    for word, files_of_word in (("wrote", changes.get("new", [])), ("changed", changes.get("changed", []))):
        for file in files_of_word:
            yield f"{word} {file['name']} ({file['size']} bytes)"
    for name in changes.get("deleted", []):
        yield f"deleted {name}"
    for file in changes.get("kept", []):
        yield f"not in the workspace: {file['name']} ({file['size']} bytes)"


def _shows(image: Image) -> str:
    return f": {image['shows']}" if "shows" in image else ""


def _not_done(calls: Sequence[DryCall]) -> Iterator[str]:
    """Format as lines what a dry run did not do; of each tool a few calls, and how many more there are."""
    counts: Counter[str] = Counter()
    for call in calls:
        counts[call["tool"]] += 1
        if counts[call["tool"]] <= _DRY_CALLS_SHOWN:
            yield f"not done: {call['tool']}({json.dumps(call['arguments'], ensure_ascii=False)})"
    for tool, count in counts.items():
        if count > _DRY_CALLS_SHOWN:
            yield f"not done: {count - _DRY_CALLS_SHOWN} more calls of {tool}, see the structured content"


class _Shown(NamedTuple):
    """What a text shows of a report. `notes` say what was cut, and of values what they were."""

    result: str | None
    output: str
    stderr: str
    notes: Mapping[str, object]
    displayed: Sequence[str]


def _brief_ms(ms: float) -> str:
    """Return milliseconds for a text; a fraction is shown where it counts, since a model pays for each digit."""
    return f"{ms:.1f}" if ms < WHOLE_FROM_MS else f"{ms:.0f}"


def _shown(report: Report, form: OutputFormat) -> _Shown:
    result, output, stderr = cast("Json", report["result"]), report["output"], report.get("stderr", "")
    displayed = cast("Sequence[Json]", report.get("displayed", ()))
    notes: dict[str, object] = dict(report.get("truncated", {}))
    text, own = written(result, form), [written(each, form) for each in displayed]
    beside = len(output) + len(stderr) + sum(map(len, own))
    if len(text) + beside > SHOWN_CHARS and len(text) > SHOWN_CHARS // 2:
        result = shortened(result)
        text = written(result, form)
    if len(text) + beside > SHOWN_CHARS:
        kept = None if "run" in notes else report["run_id"]
        before = cast("Json", report["result"])
        fitted = fit(
            result, output, stderr=stderr, max_chars=SHOWN_CHARS, run_id=kept, before=before, displayed=displayed
        )
        text, output, stderr = written(fitted.result, form), fitted.output, fitted.stderr
        own = [written(each, form) for each in fitted.displayed]
        for what, cut in fitted.cuts.items():
            notes[what] = _of_whole(cut.to_json(), notes.get(what))
    elif result != report["result"]:
        notes.setdefault("result", {"note": "long texts are shortened here; the structured content has them whole"})
    return _Shown(text if result is not None or report["success"] else None, output, stderr, notes, own)


def _said_of(cut: object) -> str:
    if not isinstance(cut, Mapping):
        return str(cut)
    note = str(cut.get("note", ""))
    if "total" not in cut:
        return note
    read_with = f"; to read on: {cut['read_with']}" if cut["read_with"] else ""
    return f"{cut['shown']} of {cut['total']} shown{f' ({note})' if note else ''}{read_with}"


def _of_whole(cut: Mapping[str, object], before: object) -> Mapping[str, object]:
    """Return what is said of a cut, in the figures of the whole where what is cut was cut before."""
    if not isinstance(before, Mapping) or "total" not in before:
        return cut
    merged = {**cut, "total": before["total"]}
    whole = FIRST_OF.search(str(before.get("note", "")))
    if whole is not None and "note" in cut:
        merged["note"] = FIRST_OF.sub(lambda part: f"{part[1]}{whole[2]}", str(cut["note"]), count=1)
    return merged


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def _failure(error: ErrorReport) -> Iterator[str]:
    """Format as lines what went wrong, where the code was, and which calls it had made."""
    where = "" if error["line"] is None else f" (line {error['line']})"
    yield f"{error['type']}{where}: {error['message']}"
    trace = (error["traceback"] or "").split(_NEW_LINE)
    yield from [line for line in trace if line.startswith(("  File ", "    "))][:_TRACE_LINES_MAX]
    if error["hint"]:
        yield f"hint: {error['hint']}"
    if "calls" in error:
        counts = (f"{tool} {_counted(each)}" for tool, each in error["calls"].items())
        yield f"calls made: {'; '.join(counts)}"


def _counted(counts: CallCounts) -> str:
    return ", ".join(f"{counts[key]} {key}" for key in ("done", "failed") if counts[key])
