"""`sealab runs`: which runs were journaled, what each did, and whether it does the same again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...base.errors import Exit, UsageError
from ...base.settings import Settings
from ...base.terminal_escaping import one_line
from ...use_cases.runs.background.background_listing import (
    STATUSES,
    ListedRun,
    RunFilter,
    cancel,
    check_replayable,
    check_resumable,
    listed_runs,
    recorded_run,
)
from ...use_cases.runs.hidden_transcripts import hidden_list, hidden_transcript
from .command import AuditedAs, Group
from .opened import OpenedHome, home_of_run, opened_homes, running_with
from .terminal import Here, Output, moment_of, print_error, read_source, report_output

if TYPE_CHECKING:
    from ....skills_db.journal.records import StoredJournal
    from ...governance.questions import Question, Reply
    from ...use_cases.journal.transcript import Transcript

_SHOWN_CHARS = 500
"""Characters of an argument, an answer, a result or an output that are shown; `--json` has them whole."""


runs = Group(of_all_tenants=True)


@runs.command()
def list_(
    here: Here,
    *,
    who: str | None = None,
    tool: str | None = None,
    outcome: str | None = None,
    status: str | None = None,
    failed: bool = False,
    since: str | None = None,
    limit: int = 50,
) -> Output:
    """List the runs that were journaled, the newest first.

    who P: those of this principal
    tool: those that called this tool, such as crm.send, or any of a server, such as crm
    outcome: those that ended so, or are queued, running, waiting or cut
    status: the same as --outcome
    failed: those that ended badly, or were cut
    since TIME: those that began since: 30m, 12h, 7d or 2026-11-25T14:00
    limit N: the newest N (50)
    """
    if limit < 1:
        raise UsageError(f"--limit cannot be {limit}. Give a number from 1 up.")
    for option, given in (("--outcome", outcome), ("--status", status)):
        if given not in (None, *STATUSES):
            raise UsageError(f"{option} cannot be {given}. Give one of {', '.join(STATUSES)}.")
    began = 0.0 if since is None else moment_of(since, "--since")
    listed = hidden_runs(here, RunFilter(who, tool, outcome or status, failed=failed, since=began, limit=limit))
    return Output({"count": len(listed), "runs": listed}, run_lines(listed))


def hidden_runs(here: Here, wanted: RunFilter) -> list[Transcript]:
    """Return what a list says of the runs of the homes that a command looks at, the newest first."""
    found = [each for home in opened_homes(here) for each in runs_in(home, wanted)]
    found.sort(key=lambda run: run.began, reverse=True)
    return [run.summary for run in found[: wanted.limit]]


def runs_in(home: OpenedHome, wanted: RunFilter) -> list[ListedRun]:
    """Return what a list says of the runs of one home, newest first, with tokens in place of personal data."""
    listed = listed_runs(home.journal.store(), home.journal.background(), wanted)
    hidden = asyncio.run(hidden_list(home.privacy, listed)) if listed else []
    return [
        run._replace(summary={"tenant": home.home.tenant, **each}) for run, each in zip(listed, hidden, strict=True)
    ]


@runs.command()
def show(here: Here, run: str) -> Output:
    """Show what a run did: its code, where its time went, each call, its output and its result.

    run: the run_id of a report or of `sealab runs list`
    """
    with home_of_run(here, run) as home:
        transcript = hidden_run(home, run)
    return Output(transcript, _lines(transcript))


@runs.command(audit=AuditedAs("exported", run="run"))
def export(here: Here, run: str, *, output: Path | None = None) -> int:
    """Write what a run did to one file, with tokens in place of personal data.

    run: the run_id of a report or of `sealab runs list`
    output FILE: write to this file instead of stdout
    """
    with home_of_run(here, run) as home:
        transcript = hidden_run(home, run)
    text = json.dumps(transcript, ensure_ascii=False, indent=None if here.json else 2)
    if output is None:
        print(text)
        return Exit.OK
    try:
        output.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}. Name a file in a folder that you may write to."
        ) from None
    return Exit.OK


@runs.command()
async def replay(here: Here, run: str, *, edit: str | None = None) -> Output:
    """Run it again from its journal, send nothing, and say whether it does the same.

    run: the run_id of a report or of `sealab runs list`
    edit FILE: run this code instead, - for stdin; from its first new call on, calls are made
    """
    from ...governance.caller import Caller
    from ...use_cases.runs import replay as use_case

    code = None if edit is None else read_source(edit)
    with home_of_run(here, run) as home:
        check_replayable(home.journal.store(), home.journal.background(), run)
        journals = home.journal.store()
        settings = _with_limits(here.settings, map(journals.journal, journals.session_until(run)))
        if code is not None:
            caller = Caller(ask=_ask if edit != "-" and sys.stdin.isatty() else None)
            async with running_with(settings, home.home) as app:
                report, answers = await use_case.replay_edited(app.executor, run, code, caller=caller)
            made = f"{len(answers.sent)} made" if answers.sent else "none made"
            calls = f"Calls: {answers.answered} answered from the journal, {made}."
            data = {"report": report, "answered": answers.answered, "made": answers.sent}
            return report_output(report, data, note=calls)
        async with running_with(settings, home.home) as app:
            replayed = await use_case.replay(app.pools, app.journal, run)
        difference = None
        if replayed.difference is not None:
            scope = journals.journal(replayed.run_id).scope
            difference = await home.privacy.hide_text(scope, replayed.difference)
    same = difference is None
    return Output(
        {"run_id": replayed.run_id, "same": same, "answered": replayed.answered, "difference": difference},
        f"The same: {replayed.answered} calls were answered from the journal, and the run ended as it had."
        if same
        else f"Different in {replayed.run_id}: {difference}.",
        Exit.OK if same else Exit.FAILED,
    )


@runs.command()
async def resume(here: Here, run: str) -> Output:
    """Go on with a run that was cut, from where its journal ends.

    run: the run_id of a report or of `sealab runs list`
    """
    from ...use_cases.runs import resume as use_case

    with home_of_run(here, run) as home:
        journal = check_resumable(home.journal.store(), home.journal.background(), run)
        async with running_with(_with_limits(here.settings, [journal]), home.home) as app:
            ask = _ask if sys.stdin.isatty() else None
            return report_output((await use_case.resume(app.executor, run, ask=ask)).report)


@runs.command(audit=AuditedAs(run="run"))
def cancel_(here: Here, run: str) -> Output:
    """End a run, whether it waits or runs, and whoever waits for it.

    run: the run_id of a report or of `sealab runs list`
    """
    with home_of_run(here, run) as home:
        status, sentence = cancel(home.journal.store(), home.journal.background(), run)
    return Output({"run_id": run, "status": status}, sentence)


async def _ask(question: Question) -> Reply:
    """Ask on the terminal; only a plain yes is one, and it covers the least."""
    from ...governance.questions import reply_of

    print_error(f"{question.text}\nApprove? [y/N]")
    answer = await asyncio.to_thread(sys.stdin.readline)
    return reply_of(approves=answer.strip().lower() in {"y", "yes"}, choice=next(iter(question.choices), ""))


def _with_limits(settings: Settings, journals: Iterable[StoredJournal]) -> Settings:
    """Return the settings to run something again under: no maximum is below what it was allowed then.

    A background run has limits of its own, and the operator may have lowered the others since.
    """
    seconds, memory_mb = settings.max_timeout_seconds, settings.max_memory_mb
    for each in journals:
        seconds = max(seconds, cast("float", each.header["timeout_seconds"]))
        memory_mb = max(memory_mb, cast("int", each.header["memory_mb"]))
    return replace(settings, max_timeout_seconds=seconds, max_memory_mb=memory_mb)


def hidden_run(home: OpenedHome, run_id: str) -> Transcript:
    """Return what a run did, with tokens of its owner in place of personal data."""
    from ....skills_db.runs import RunStore
    from ...use_cases.runs.ledger import use_tokens

    found = recorded_run(home.journal.store(), home.journal.background(), run_id)
    transcript = {"tenant": home.home.tenant, **asyncio.run(hidden_transcript(home.privacy, found))}
    for use in RunStore(home.database()).uses(run_id=run_id).values():
        transcript |= use_tokens(use)
    return transcript


def run_lines(runs: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Give the lines of a list of runs: of each one, and below it how its code begins and why it failed."""
    if not runs:
        yield "There are no runs that fit."
    for run in runs:
        tools = cast("Mapping[str, Mapping[str, int]]", run["tools"])
        called = ", ".join(f"{name} {sum(counts.values())}" for name, counts in tools.items())
        session = cast("Mapping[str, Json] | None", run.get("session"))
        place = (
            "  in the background"
            if run.get("background")
            else ""
            if session is None
            else f"  session {session['name']}{_numbered(session['number'])}"
        )
        parts = (f"{run['run_id']}  {run['began']}  {run['status']:<9}", f"{run['elapsed_ms']} ms", _owner(run), called)
        yield one_line("  ".join(filter(None, parts)) + place)
        yield from (one_line(f"    {run[name]}") for name in ("code", "reason") if run[name])


def _owner(run: Mapping[str, Json]) -> str:
    return f"{run['tenant']}/{run['who']}" if run["who"] else str(run["tenant"])


def _numbered(number: Json) -> str:
    return "" if number is None else f" #{number}"  # in full Python the programs of a session have none


def _lines(transcript: Transcript) -> Iterator[str]:
    began, ms = transcript["began"], transcript["ms"]
    took = "has not ended" if ms is None else f"took {ms} ms"
    yield one_line(
        f"run {transcript['run_id']} of {_owner(transcript)}: {transcript['status']}, began {began}, {took}, "
        f"{transcript['isolation']}"
    )
    for name in ("reason", "session", "incomplete", "context_vars", "arguments"):
        if transcript.get(name):
            yield f"{name}: {_cut(transcript[name])}"
    if timeline := cast("Mapping[str, Json]", transcript["timeline"]):
        yield "time: " + ", ".join(
            f"{name.removesuffix('_ms').replace('_', ' ')} {ms:g} ms" for name, ms in timeline.items()
        )
    if "tokens" in transcript:
        yield tokens_line(transcript)
    yield from ("", "code:")
    for number, line in enumerate(str(transcript["code"]).splitlines(), 1):
        yield f"{number:5}  {line}"
    yield from ("", "calls:")
    for each in cast("Sequence[Mapping[str, Json]]", transcript["calls"]):
        yield from _call_lines(each)
    end = cast("Mapping[str, Json] | None", transcript["end"])
    if end is not None:
        yield ""
        for name in ("error", "output", "stderr", "result"):
            if end.get(name) not in (None, ""):
                yield f"{name}: {_cut(end[name])}"


def tokens_line(counts: Mapping[str, object]) -> str:
    """Return the tokens of one run or of several, as `use_tokens` gives them."""
    tokens, directly = (cast("Mapping[str, int]", counts[name]) for name in ("tokens", "tokens_directly"))
    return (
        f"tokens written {tokens['written']}, read {tokens['read']}; directly: calls {directly['calls']}, definitions "
        f"{directly['definitions']}"
    )


def _call_lines(call: Mapping[str, Json]) -> Iterator[str]:
    ms = "" if call["ms"] is None else f", {call['ms']:g} ms" if isinstance(call["ms"], int | float) else ""
    change = " (changes something)" if call.get("changes") else ""
    arguments = "" if call["arguments"] is None else _cut(call["arguments"])
    yield f"{call['n']:5}  at {call['at_ms']} ms{ms}  {call['call']}({arguments}){change}"
    for source in cast("Sequence[Mapping[str, str]]", call.get("sources", ())):
        place = f": {source['from']}" if "from" in source else ""
        yield one_line(f"       {source['argument']} ({source['kind']}) from {source['source']}{place}")
    for name in ("answer", "error", "outcome"):
        if name in call:
            yield f"       {name}: {_cut(call[name])}"


def _cut(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}… ({_SHOWN_CHARS} of {len(text)} characters; --json shows all)"
