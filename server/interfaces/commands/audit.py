"""`sealab audit`: lists the lines of the audit log, checks its chain, and removes old lines from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ....skills_db.audit.audit_store import LineFilter
from ....skills_db.audit.chain import AuditEvent, Head, KeptLine
from ...base.errors import Exit, UsageError
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY
from ...base.terminal_escaping import one_line
from ...governance.audit.audit_log import now_us
from ...governance.audit.trail import AuditKind
from .command import Command
from .opened import opened_log
from .terminal import Here, Output, moment_of

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore

_LISTED = 100
_HASH = re.compile(r"[0-9a-f]{64}")
_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "list": ("since", "until", "tenant", "who", "event", "run", "limit"),
        "verify": ("expect_head",),
        "trim": ("before", "yes"),
    }
)
"""The options that each act takes, beside those of all."""
_SHOWN = (
    *("event", "tenant", "principal", "credential", "run", "tool", "decision", "rule", "bytes_in", "bytes_out"),
    "outcome",
)


def _audit(
    here: Here,
    act: Literal["list", "verify", "trim"] = "list",
    *,
    since: str | None = None,
    until: str | None = None,
    tenant: str | None = None,
    who: str | None = None,
    event: str | None = None,
    run: str | None = None,
    limit: int = _LISTED,
    expect_head: str | None = None,
    before: str | None = None,
    yes: bool = False,
) -> Output | int:
    """List what happened, and check that no line of it was changed.

    act ACT: list (without any), verify: check that no line was changed, or trim: remove old lines
    since TIME: lines since: 30m, 12h, 7d or 2026-11-25T14:00
    until TIME: lines before that time
    tenant T: lines of this tenant
    who P: lines of this principal
    event K: lines of this kind, such as tool.called
    run ID: lines of this run
    limit N: the newest N (100)
    expect_head HASH: with verify: a head that was noted elsewhere before
    before TIME: with trim: which lines to remove
    yes: with trim: remove them
    """
    for other, names in _OPTIONS.items():
        for name in names:
            if other != act and getattr(here.chosen, name) not in {None, False, _LISTED}:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"`sealab audit {act}` takes no {option}. It belongs to `sealab audit {other}`.")
    with opened_log(here.home, here.settings) as opening:
        store = opening()
        match act:
            case "verify":
                return _verify(store, expect_head)
            case "trim":
                return _trim(store, before, yes=yes)
        if limit < 1:
            raise UsageError(f"--limit cannot be {limit}. Give a number from 1 up.")
        if event not in (None, "audit.gap", *AuditKind):
            raise UsageError(f"--event cannot be {event}. Give one of {', '.join(AuditKind)}.")
        since_us, until_us = _moment_us(since, "--since"), _moment_us(until, "--until")
        wanted = LineFilter(
            since_us=since_us, until_us=until_us, tenant=tenant, principal=who, event=event, run=run, limit=limit
        )
        if here.json:
            for line in store.lines(wanted):
                print(json.dumps(line_json(line)))
            print(json.dumps({"head": _head_json(store.head())}))
            return Exit.OK
        return Output(None, [*_grouped(store.lines(wanted))] or "There are no lines that fit.")


audit = Command(_audit)


def _verify(store: AuditStore, expect_head: str | None) -> Output:
    expected = None if expect_head is None else expect_head.strip().lower()
    if expected is not None and _HASH.fullmatch(expected) is None:
        raise UsageError("--expect-head is no head. Give the 64 hexadecimal digits that `sealab audit verify` printed.")
    verdict = store.verify(expected)
    head = verdict.head
    summary = {"ok": verdict.why is None, "lines": verdict.lines, "head": _head_json(head), "bad": None}
    if verdict.why is not None:
        lines = f"The log was changed. Line {verdict.bad_number}: {verdict.why}. The {verdict.lines} before it hold."
        return Output({**summary, "bad": {"line": verdict.bad_number, "why": verdict.why}}, lines, Exit.FAILED)
    trimmed = f" Lines 1 to {head.before_number} were trimmed." if head.before_number else ""
    whole = f"{verdict.lines} lines, none was changed.{trimmed}"
    return Output(summary, (whole, f"head {head.number} {head.hash or '(empty)'}"))


def _trim(store: AuditStore, before: str | None, *, yes: bool) -> Output:
    before_us = _moment_us(before, "--before")
    if before_us is None:
        raise UsageError("It is not clear what to trim. Give --before TIME, such as 365d or 2026-01-01.")
    if not yes:
        raise UsageError("Lines that are trimmed are gone. Export them with `sealab audit --json`, then say --yes.")
    verdict = store.verify()
    if verdict.why is not None:
        raise UsageError(
            f"The log was changed at line {verdict.bad_number}, so it is not trimmed. Look into that first."
        )
    event = AuditEvent(
        event=AuditKind.TRIMMED,
        at_us=now_us(),
        tenant=DEFAULT_TENANT,
        principal=LOCAL_IDENTITY.principal,
        details={"before_us": before_us},
    )
    gone = store.trim(before_us, event)
    head = store.head()
    lines = f"Trimmed {gone} lines; the log begins after line {head.before_number}."
    return Output({"trimmed": gone, "head": _head_json(head)}, lines)


def _grouped(lines: Iterable[KeptLine]) -> Iterator[str]:
    """Give lines for people, those of one run together below its first one, though others came in between."""
    groups: dict[str | int, list[KeptLine]] = {}
    for line in lines:
        groups.setdefault(line.event.run or line.number, []).append(line)
    for first, *others in groups.values():
        yield _shown(first)
        yield from (f"  {_shown(each)}" for each in others)


def line_json(line: KeptLine) -> dict[str, object]:
    """Return a line as JSON."""
    event = line.event
    return {
        "number": line.number,
        "at": _time(event.at_us, "microseconds"),
        **{name: getattr(event, name) for name in _SHOWN},
        "details": dict(event.details),
        "previous": line.previous,
        "hash": line.hash,
    }


def _head_json(head: Head) -> dict[str, object]:
    return {"number": head.number, "hash": head.hash, "begins_after": head.before_number}


def _shown(line: KeptLine) -> str:
    """Return a line for people; whatever somebody else named is written so that it moves nothing on a terminal."""
    event = line.event
    who = f"{event.tenant}/{event.principal}" + (f" ({event.credential})" if event.credential else "")
    parts = [event.run, event.tool, event.decision, f"by {event.rule}" if event.rule else "", event.outcome]
    parts += [f"{name}={value}" for name, value in event.details.items()]
    parts += [f"in={event.bytes_in}"] if event.bytes_in else []
    parts += [f"out={event.bytes_out}"] if event.bytes_out else []
    text = "  ".join(part for part in parts if part)
    return one_line(f"{line.number:>7}  {_time(event.at_us, 'seconds')}  {event.event:<18} {who:<16}  {text}").rstrip()


def _time(at_us: int, precision: str) -> str:
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
        return at.astimezone().isoformat(timespec=precision)
    except OverflowError:  # of a line that was changed
        return str(at_us)


def _moment_us(text: str | None, option: str) -> int | None:
    """Return a moment in microseconds since 1970. Raises `UsageError`."""
    return None if text is None else int(moment_of(text, option) * 1_000_000)
