"""`sealab audit`: lists the lines of the audit log, checks its chain, and removes old lines from it."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...audit.audit_log import now_us
from ...audit.trail import AuditKind
from ...errors import Exit, UsageError
from ...home import Home
from ...identity import DEFAULT_TENANT, LOCAL_IDENTITY
from ...settings import Settings
from ...terminal_escaping import one_line
from .opened import opened_log

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore
    from ....skills_db.audit.chain import Head, KeptLine

Begin = Callable[[argparse.Namespace], tuple[Home, Settings]]

_LISTED = 100
_AGO = re.compile(r"(\d{1,6})([mhd])")
_UNITS = MappingProxyType({"m": "minutes", "h": "hours", "d": "days"})
_HASH = re.compile(r"[0-9a-f]{64}")
_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "list": ("since", "until", "tenant", "who", "event", "run", "limit"),
        "verify": ("expect_head",),
        "trim": ("before", "yes"),
    }
)
"""The options that each act takes, beside those of all."""


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Give the parser of `sealab audit` its acts and options; `options` adds those that all commands have."""
    parser.add_argument(
        "act",
        metavar="ACT",
        nargs="?",
        choices=tuple(_OPTIONS),
        default="list",
        help="list (without any), verify: check that no line was changed, or trim: remove old lines",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON, the lines one by one, then the head")
    parser.add_argument("--since", metavar="TIME", help="lines since: 30m, 12h, 7d or 2026-11-25T14:00")
    parser.add_argument("--until", metavar="TIME", help="lines before that time")
    parser.add_argument("--tenant", metavar="T", help="lines of this tenant")
    parser.add_argument("--who", metavar="P", help="lines of this principal")
    parser.add_argument("--event", metavar="K", help="lines of this kind, such as tool.called")
    parser.add_argument("--run", metavar="ID", help="lines of this run")
    parser.add_argument("--limit", metavar="N", type=int, help=f"the newest N ({_LISTED})")
    parser.add_argument("--expect-head", metavar="HASH", help="with verify: a head that was noted elsewhere before")
    parser.add_argument("--before", metavar="TIME", help="with trim: which lines to remove")
    parser.add_argument("--yes", action="store_true", default=None, help="with trim: remove them")
    parser.set_defaults(command=lambda chosen: _run(chosen, *begin(chosen)))
    options(parser)


def _run(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    for act, names in _OPTIONS.items():
        for name in names:
            if act != chosen.act and getattr(chosen, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"`sealab audit {chosen.act}` takes no {option}. It belongs to `sealab audit {act}`.")
    with opened_log(home, settings) as store:
        match chosen.act:
            case "verify":
                return _verify(chosen, store())
            case "trim":
                return _trim(chosen, store())
            case _:
                return _list(chosen, store())


def _list(chosen: argparse.Namespace, store: AuditStore) -> int:
    from ....skills_db.audit.audit_store import Wanted

    limit = _LISTED if chosen.limit is None else chosen.limit
    if limit < 1:
        raise UsageError(f"--limit cannot be {limit}. Give a number from 1 up.")
    if chosen.event not in (None, "audit.gap", *AuditKind):
        raise UsageError(f"--event cannot be {chosen.event}. Give one of {', '.join(AuditKind)}.")
    wanted = Wanted(
        since_us=None if chosen.since is None else _moment(chosen.since, "--since"),
        until_us=None if chosen.until is None else _moment(chosen.until, "--until"),
        tenant=chosen.tenant,
        principal=chosen.who,
        event=chosen.event,
        run=chosen.run,
        limit=limit,
    )
    found = False
    for line in store.lines(wanted):
        found = True
        print(json.dumps(_told(line)) if chosen.json else _shown(line))
    if chosen.json:
        print(json.dumps({"head": _told_head(store.head())}))
    elif not found:
        print("There are no lines that fit.")
    return Exit.OK


def _verify(chosen: argparse.Namespace, store: AuditStore) -> int:
    expected = None if chosen.expect_head is None else chosen.expect_head.strip().lower()
    if expected is not None and _HASH.fullmatch(expected) is None:
        raise UsageError("--expect-head is no head. Give the 64 hexadecimal digits that `sealab audit verify` printed.")
    verdict = store.verify(expected)
    if chosen.json:
        bad = None if verdict.why is None else {"line": verdict.bad_number, "why": verdict.why}
        told = {"ok": verdict.why is None, "lines": verdict.lines, "head": _told_head(verdict.head), "bad": bad}
        print(json.dumps(told))
    elif verdict.why is None:
        gone = verdict.head.before_number
        trimmed = f" Lines 1 to {gone} were trimmed." if gone else ""
        print(f"{verdict.lines} lines, none was changed.{trimmed}")
        print(f"head {verdict.head.number} {verdict.head.hash or '(empty)'}")
    else:
        print(f"The log was changed. Line {verdict.bad_number}: {verdict.why}. The {verdict.lines} before it hold.")
    return Exit.OK if verdict.why is None else Exit.FAILED


def _trim(chosen: argparse.Namespace, store: AuditStore) -> int:
    from ....skills_db.audit.chain import AuditEvent

    if chosen.before is None:
        raise UsageError("It is not clear what to trim. Give --before TIME, such as 365d or 2026-01-01.")
    before_us = _moment(chosen.before, "--before")
    if not chosen.yes:
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
    if chosen.json:
        print(json.dumps({"trimmed": gone, "head": _told_head(head)}))
    else:
        print(f"Trimmed {gone} lines; the log begins after line {head.before_number}.")
    return Exit.OK


def _told(line: KeptLine) -> dict[str, object]:
    event = line.event
    return {
        "number": line.number,
        "at": _time(event.at_us, "microseconds"),
        "event": event.event,
        "tenant": event.tenant,
        "principal": event.principal,
        "credential": event.credential,
        "run": event.run,
        "tool": event.tool,
        "decision": event.decision,
        "rule": event.rule,
        "bytes_in": event.bytes_in,
        "bytes_out": event.bytes_out,
        "outcome": event.outcome,
        "details": dict(event.details),
        "previous": line.previous,
        "hash": line.hash,
    }


def _told_head(head: Head) -> dict[str, object]:
    return {"number": head.number, "hash": head.hash, "begins_after": head.before_number}


def _shown(line: KeptLine) -> str:
    """Return a line for people; whatever somebody else named is written so that it moves nothing on a terminal."""
    event = line.event
    who = f"{event.tenant}/{event.principal}" + (f" ({event.credential})" if event.credential else "")
    parts = [event.run, event.tool, event.decision, f"by {event.rule}" if event.rule else "", event.outcome]
    parts += [f"{name}={value}" for name, value in event.details.items()]
    parts += [f"in={event.bytes_in}"] if event.bytes_in else []
    parts += [f"out={event.bytes_out}"] if event.bytes_out else []
    told = "  ".join(part for part in parts if part)
    return one_line(f"{line.number:>7}  {_time(event.at_us, 'seconds')}  {event.event:<18} {who:<16}  {told}").rstrip()


def _time(at_us: int, precision: str) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).isoformat(timespec=precision)
    except OverflowError:  # of a line that was changed
        return str(at_us)


def _moment(text: str, option: str) -> int:
    """Return a moment in microseconds since 1970. Raises `UsageError`."""
    try:
        if (ago := _AGO.fullmatch(text)) is not None:
            moment = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            moment = datetime.fromisoformat(text)
        return int(moment.timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} cannot be {text}. Give 30m, 12h, 7d, or a time such as 2026-11-25T14:00.") from None
