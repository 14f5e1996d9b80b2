"""`sealab runs`: which runs were journaled, what each did, and whether it does the same again."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from ...sandbox.job import Json, Status
from ..caller import Caller
from ..database import database_of
from ..errors import EXIT_OF_STATUS, Exit, UsageError
from ..home import Home
from ..journal.journal import Journal
from ..journal.transcript import Transcript
from ..privacy.of_home import privacy_of
from ..runs.background.background_listing import (
    STATUSES,
    cancel,
    check_replayable,
    check_resumable,
    listed_runs,
    recorded_run,
)
from ..runs.hidden_transcripts import hidden_transcript
from ..settings import Settings
from .terminal import print_error, print_run, read_source

if TYPE_CHECKING:
    from ...skills_db.journal.records import Journal as RunRecord
    from ..journal.replaying import RunReplay
    from ..runs.recorded_runs import Replayed
    from ..runs.report import Report

Begin = Callable[[argparse.Namespace], tuple[Home, Settings]]
"""Reads the home and the settings that a command line names."""

_LISTED = 50
_SHOWN_CHARS = 500
"""Characters of an argument, an answer, a result or an output that are shown; `--json` has them whole."""
_AGO = re.compile(r"(\d+)([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Give the parser of `sealab runs` its commands; `options` adds those that all commands have."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, help="what to do")

    def command(name: str, run: Callable[[argparse.Namespace, Home, Settings], int], help_text: str) -> _Parser:
        made = commands.add_parser(name, help=help_text, description=f"{help_text.capitalize()}.", allow_abbrev=False)
        made.add_argument("--json", action="store_true", help="print it as JSON")
        made.set_defaults(command=lambda chosen: run(chosen, *begin(chosen)))
        options(made)
        return made

    listed = command("list", _list, "list the runs that were journaled, the newest first")
    listed.add_argument(
        "--status", metavar="STATUS", help="those that ended so, or are queued, running, waiting or cut"
    )
    listed.add_argument("--tool", metavar="TOOL", help="those that called this tool, such as crm.send")
    listed.add_argument("--since", metavar="TIME", help="those that began since: 30m, 12h, 7d or 2026-11-25T14:00")
    listed.add_argument("--limit", metavar="N", type=int, default=_LISTED, help=f"the newest N ({_LISTED})")
    show = command("show", _show, "show what a run did: its code, each call, its output and its result")
    export = command("export", _export, "write what a run did to one file, with tokens in place of personal data")
    again = command("replay", _replay, "run it again from its journal, send nothing, and say whether it does the same")
    resumed = command("resume", _resume, "go on with a run that was cut, from where its journal ends")
    cancelled = command("cancel", _cancel, "end a background run, whether it waits or runs")
    for each in (show, export, again, resumed, cancelled):
        each.add_argument("run", metavar="RUN", help="the run_id of a report or of `sealab runs list`")
    again.add_argument(
        "--edit", metavar="FILE", help="run this code instead, - for stdin; from its first new call on, calls are made"
    )
    export.add_argument("--output", "-o", metavar="FILE", help="write to this file instead of stdout")


_Parser = argparse.ArgumentParser


def _list(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    if chosen.limit < 1:
        raise UsageError(f"--limit cannot be {chosen.limit}. Give a number from 1 up.")
    if chosen.status not in (None, *STATUSES):
        raise UsageError(f"--status cannot be {chosen.status}. Give one of {', '.join(STATUSES)}.")
    since = 0.0 if chosen.since is None else _moment(chosen.since)
    with _Opened(home, settings) as work:
        told = listed_runs(
            work.journal.store(),
            work.journal.background(),
            since=since,
            status=chosen.status,
            tool=chosen.tool,
            limit=chosen.limit,
        )
    if chosen.json:
        print(json.dumps({"count": len(told), "runs": told}, ensure_ascii=False))
    else:
        for line in _table(told):
            print(line)
    return Exit.OK


def _cancel(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    with _Opened(home, settings) as work:
        status, sentence = cancel(work.journal.store(), work.journal.background(), chosen.run)
    print(json.dumps({"run_id": chosen.run, "status": status}) if chosen.json else sentence)
    return Exit.OK


def _show(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    with _Opened(home, settings) as work:
        told = work.hidden(chosen.run)
    if chosen.json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        for line in _lines(told):
            print(line)
    return Exit.OK


def _export(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    with _Opened(home, settings) as work:
        told = work.hidden(chosen.run)
    text = json.dumps(told, ensure_ascii=False, indent=None if chosen.json else 2)
    if chosen.output is None:
        print(text)
        return Exit.OK
    try:
        Path(chosen.output).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(
            f"{chosen.output} cannot be written: {error.strerror}. Name a file in a folder that you may write to."
        ) from None
    return Exit.OK


def _replay(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    if chosen.edit is not None:
        return _replay_edited(chosen, home, settings)
    replayed = asyncio.run(_replayed(_replaying(settings, home, chosen.run), home, chosen.run))
    same = replayed.difference is None
    difference = None if same else _hidden(settings, home, replayed)
    if chosen.json:
        told = {"run_id": replayed.run_id, "same": same, "answered": replayed.answered, "difference": difference}
        print(json.dumps(told, ensure_ascii=False))
    elif same:
        print(f"The same: {replayed.answered} calls were answered from the journal, and the run ended as it had.")
    else:
        print(f"Different in {replayed.run_id}: {difference}.")
    return Exit.OK if same else Exit.FAILED


def _replay_edited(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    code = read_source(chosen.edit)
    settings = _replaying(settings, home, chosen.run)
    report, answers = asyncio.run(_edited(settings, home, chosen.run, code, asks=chosen.edit != "-"))
    if chosen.json:
        told = {"report": report, "answered": answers.answered, "made": answers.sent}
        print(json.dumps(told, ensure_ascii=False))
    else:
        print_run(report)
        made = f"{len(answers.sent)} made" if answers.sent else "none made"
        print_error(f"sealab: Calls: {answers.answered} answered from the journal, {made}.")
    return EXIT_OF_STATUS[Status(report["status"])]


async def _edited(settings: Settings, home: Home, run_id: str, code: str, *, asks: bool) -> tuple[Report, RunReplay]:
    from ..app import running
    from ..runs.replay import replay_edited

    caller = Caller(ask=_ask if asks and sys.stdin.isatty() else None)
    async with running(settings, home) as app:
        return await replay_edited(app.executor, run_id, code, caller=caller)


def _resume(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    with _Opened(home, settings) as work:
        journal = check_resumable(work.journal.store(), work.journal.background(), chosen.run)
    report = asyncio.run(_resumed(_with_limits(settings, [journal]), home, chosen.run))
    if chosen.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print_run(report)
    return EXIT_OF_STATUS[Status(report["status"])]


async def _resumed(settings: Settings, home: Home, run_id: str) -> Report:
    from ..app import running
    from ..runs.resume import resume

    async with running(settings, home) as app:
        return (await resume(app.executor, run_id, ask=_ask if sys.stdin.isatty() else None)).report


async def _ask(question: str, covers: Sequence[str]) -> str | None:
    """Ask on the terminal; only a plain yes is one, and it covers the least."""
    print_error(f"{question}\nApprove? [y/N]")
    answer = await asyncio.to_thread(sys.stdin.readline)
    if answer.strip().lower() not in {"y", "yes"}:
        return None
    return covers[0] if covers else ""


async def _replayed(settings: Settings, home: Home, run_id: str) -> Replayed:
    from ..app import running
    from ..runs.replay import replay

    async with running(settings, home) as app:
        return await replay(app.pools, app.journal, run_id)


def _replaying(settings: Settings, home: Home, run_id: str) -> Settings:
    """Return the settings to replay a run under. Raises `RequestRefused` where it has not ended."""
    with _Opened(home, settings) as work:
        check_replayable(work.journal.store(), work.journal.background(), run_id)
        journals = work.journal.store()
        return _with_limits(settings, map(journals.journal, journals.session_until(run_id)))


def _with_limits(settings: Settings, journals: Iterable[RunRecord]) -> Settings:
    """Return the settings to run something again under: no maximum is below what it was allowed then.

    A background run has limits of its own, and the operator may have lowered the others since.
    """
    seconds, memory_mb = settings.max_timeout_seconds, settings.max_memory_mb
    for each in journals:
        seconds = max(seconds, cast("float", each.header["timeout_seconds"]))
        memory_mb = max(memory_mb, cast("int", each.header["memory_mb"]))
    return replace(settings, workers_spare=0, max_timeout_seconds=seconds, max_memory_mb=memory_mb)


def _hidden(settings: Settings, home: Home, replayed: Replayed) -> str:
    with _Opened(home, settings) as work:
        scope = work.journal.store().journal(replayed.run_id).scope
        return asyncio.run(work.privacy.hide_text(scope, replayed.difference or ""))


class _Opened:
    """The journals of a home and what hides values in them, open until it is left."""

    def __init__(self, home: Home, settings: Settings) -> None:
        database = database_of(settings.database_url, home)
        self._database = closing(database)
        home.prepare()
        self.privacy = privacy_of(settings, home, database)
        self.journal = Journal(settings, database, self.privacy.key, keeps=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.privacy.close()
        self._database.__exit__(None, None, None)

    def hidden(self, run_id: str) -> Transcript:
        """Return what a run did, with tokens of its owner in place of personal data."""
        found = recorded_run(self.journal.store(), self.journal.background(), run_id)
        return asyncio.run(hidden_transcript(self.privacy, found))


def _moment(text: str) -> float:
    """Return a moment in seconds since 1970. Raises `UsageError`."""
    try:
        if (ago := _AGO.fullmatch(text)) is not None:
            return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--since cannot be {text}. Give 30m, 12h, 7d, or a time such as 2026-11-25T14:00.") from None


def _table(runs: Sequence[Mapping[str, Json]]) -> Iterator[str]:
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
        ms = "" if run["ms"] is None else f"{run['ms']} ms"
        yield f"{run['run_id']}  {run['began']}  {run['status']:<9} {ms:>9}  {called}{place}".rstrip()


def _numbered(number: Json) -> str:
    return "" if number is None else f" #{number}"  # in full Python the programs of a session have none


def _lines(told: Transcript) -> Iterator[str]:
    began, ms = told["began"], told["ms"]
    took = "has not ended" if ms is None else f"took {ms} ms"
    yield f"run {told['run_id']}: {told['status']}, began {began}, {took}, {told['isolation']}"
    for name in ("session", "incomplete", "context_vars", "arguments"):
        if told.get(name):
            yield f"{name}: {_cut(told[name])}"
    yield from ("", "code:")
    for number, line in enumerate(str(told["code"]).splitlines(), 1):
        yield f"{number:5}  {line}"
    yield from ("", "calls:")
    for each in cast("Sequence[Mapping[str, Json]]", told["calls"]):
        yield from _call_lines(each)
    end = cast("Mapping[str, Json] | None", told["end"])
    if end is not None:
        yield ""
        for name in ("error", "output", "stderr", "result"):
            if end.get(name) not in (None, ""):
                yield f"{name}: {_cut(end[name])}"


def _call_lines(call: Mapping[str, Json]) -> Iterator[str]:
    ms = "" if call["ms"] is None else f", {call['ms']:g} ms" if isinstance(call["ms"], int | float) else ""
    change = " (changes something)" if call.get("changes") else ""
    yield f"{call['n']:5}  at {call['at_ms']} ms{ms}  {call['call']}({_cut(call['arguments'])}){change}"
    for name in ("answer", "error", "outcome"):
        if name in call:
            yield f"       {name}: {_cut(call[name])}"


def _cut(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}… ({_SHOWN_CHARS} of {len(text)} characters; --json shows all)"
