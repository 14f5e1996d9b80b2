"""The writer of the audit log: it waits, tries again and fails only where the database does; lines without end are added up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sealab.server.base.errors import AuditUnwritten
from sealab.server.base.identity import ALL_RIGHTS, Identity
from sealab.server.governance.audit import audit_log, sums
from sealab.server.governance.audit.audit_log import GAP, AuditLog, now_us
from sealab.server.governance.audit.sums import SUMS_MAX, Sums
from sealab.server.governance.audit.trail import AuditTrail, ToolCallLine
from sealab.server.governance.caller import LOCAL, Caller
from sealab.skills_db.audit.audit_store import AuditStore, LineFilter
from sealab.skills_db.audit.chain import AuditEvent
from sealab.skills_db.engine import open_database
from sealab.skills_db.errors import AuditDamaged, CommitUnknown, DatabaseUnavailable

from ...waiting import until

KEY = bytes(32)


class Failing(AuditStore):
    """A store whose next additions fail, each with one of these; `lands` says that it adds the lines all the same."""

    def __init__(self, home: Path, failures: Sequence[Exception] = (), *, lands: bool = False) -> None:
        self.database = open_database(None, home)
        super().__init__(self.database, KEY)
        self.failures = list(failures)
        self.lands = lands

    def add(self, events: Sequence[AuditEvent]):
        if self.failures:
            failure = self.failures.pop(0)
            if self.lands:
                super().add(events)
            raise failure
        return super().add(events)

    def events(self) -> list[str]:
        return [line.event.run for line in self.lines(LineFilter(limit=200_000))]


def line(run: object) -> AuditEvent:
    return AuditEvent(event="run.began", at_us=now_us(), run=str(run))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.01)


async def test_a_database_that_fails_for_a_moment_loses_nothing_and_refuses_nobody(tmp_path: Path) -> None:
    store = Failing(tmp_path, [DatabaseUnavailable("It is held by another program.")] * 5)
    log = AuditLog(lambda: store)
    for number in range(10):
        log.note(line(number))
        await log.stored()
    assert store.events() == [str(number) for number in range(10)]
    log.close()


@pytest.mark.parametrize("lands", [True, False])
async def test_a_commit_that_was_not_heard_of_leaves_each_line_once(tmp_path: Path, *, lands: bool) -> None:
    store = Failing(tmp_path, [CommitUnknown("The connection was lost.")], lands=lands)
    log = AuditLog(lambda: store)
    log.note(line("a"))
    first = asyncio.create_task(log.stored())
    await until(lambda: not store.failures)
    log.note(line("b"))
    await first
    await log.stored()
    assert store.events() == ["a", "b"]
    log.close()


async def test_those_who_wait_are_told_once_it_has_failed_for_long_and_what_they_added_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "GIVE_UP_SECONDS", 0.1)
    monkeypatch.setattr(audit_log, "TROUBLE_SECONDS", 0.05)
    store = Failing(tmp_path, [DatabaseUnavailable("The disk is full.")] * 10_000)
    log = AuditLog(lambda: store)
    log.note(line("a"))
    with pytest.raises(AuditUnwritten, match="The disk is full"):
        await log.stored()
    assert "The disk is full" in str(log.trouble())
    store.failures.clear()
    await until(lambda: store.events() == ["a"])
    await until(lambda: log.trouble() is None)
    log.close()


async def test_a_log_that_was_changed_from_outside_is_told_at_once(tmp_path: Path) -> None:
    store = Failing(tmp_path, [AuditDamaged("Its head was changed.")] * 10_000)
    log = AuditLog(lambda: store)
    log.note(line("a"))
    with pytest.raises(AuditUnwritten, match="head was changed"):
        await asyncio.wait_for(log.stored(), audit_log.GIVE_UP_SECONDS / 2)
    log.close()


async def test_lines_that_were_lost_are_counted_in_the_log_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit_log, "LINES_MAX", 10)
    store = Failing(tmp_path, [DatabaseUnavailable("It is away.")] * 10_000)
    log = AuditLog(lambda: store)
    for number in range(25):
        log.note(line(number))
    store.failures.clear()
    await until(lambda: len(store.events()) == 11)
    *_, last = store.lines(LineFilter())
    assert (last.event.event, last.event.details) == (GAP, {"lines": 15})
    assert "are being lost" in caplog.text
    log.close()


async def test_a_burst_of_a_thousand_runs_with_twenty_calls_each_is_kept_whole_and_nobody_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "ROOM_LINES", 2000)
    store = Failing(tmp_path)
    trail = AuditTrail(AuditLog(lambda: store))

    async def run(number: int) -> None:
        name = f"r{number}"
        await trail.run_began(LOCAL, name, isolation="restricted", code_bytes=3, dry_run=False)
        for _ in range(20):
            await trail.tool_sent(LOCAL, name, ToolCallLine("up.get", "allowed", "approve=never"))
            trail.tool_called(LOCAL, name, ToolCallLine("up.get", "allowed", "approve=never", outcome="ok"))
        trail.run_ended(LOCAL, name, status="ok", isolation="restricted", ms=1.0, calls=20)

    await asyncio.gather(*map(run, range(1000)))
    assert trail.log is not None
    await trail.log.stored()
    verdict = store.verify()
    assert (verdict.why, verdict.lines) == (None, 22_000)
    trail.log.close()


async def test_the_end_writes_what_waits_but_opens_no_database_for_a_server_of_which_nothing_was_asked(
    tmp_path: Path,
) -> None:
    store = Failing(tmp_path)
    idle = AuditTrail(AuditLog(lambda: pytest.fail("the database was opened")))
    await idle.server_started("stdio")
    idle.server_stopped()
    assert idle.log is not None
    idle.log.close()
    log = AuditLog(lambda: store)
    log.note(line("a"))
    log.close()
    assert store.events() == ["a"]


async def test_a_line_says_whose_the_request_was(tmp_path: Path) -> None:
    store = Failing(tmp_path)
    trail = AuditTrail(AuditLog(lambda: store), "acme", is_required=True)
    identity = Identity("acme", "ana", ALL_RIGHTS, "tok_1")
    for caller in (Caller("principal ana", identity=identity), Caller("principal bo"), Caller("http session secret")):
        await trail.run_began(caller, "r", isolation="restricted", code_bytes=1, dry_run=False)
    events = [kept.event for kept in store.lines(LineFilter())]
    assert [(each.tenant, each.principal, each.credential) for each in events[:2]] == [
        ("acme", "ana", "tok_1"),
        ("acme", "bo", ""),
    ]
    assert events[2].principal.startswith("session:")
    assert "secret" not in events[2].principal
    assert trail.log is not None
    trail.log.close()


def denied(principal: str = "", **details: str) -> AuditEvent:
    return AuditEvent(event="access.denied", at_us=1, principal=principal, rule="token invalid", details=details)


async def test_the_first_is_written_at_once_and_the_others_are_counted_at_the_end() -> None:
    written: list[AuditEvent] = []
    counted = Sums()
    for _ in range(1000):
        counted.add(denied(), written.append)
    for _ in range(2):
        counted.add(denied("ana"), written.append)
    assert [each.principal for each in written] == ["", "ana"]
    counted.close()
    assert [each.details.get("more") for each in written] == [None, None, 999, 1]
    counted.add(denied(), written.append)
    assert len(written) == 5


async def test_counts_are_written_by_the_clock_and_then_it_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "SUM_SECONDS", 0.02)
    written: list[AuditEvent] = []
    again = asyncio.Event()

    def note(event: AuditEvent) -> None:
        written.append(event)
        if "more" in event.details:
            again.set()

    counted = Sums()
    for _ in range(3):
        counted.add(denied(), note)
    await again.wait()
    counted.add(denied(), note)
    assert [each.details.get("more") for each in written] == [None, 2, None]


async def test_however_many_kinds_there_are_memory_is_bounded_and_the_count_is_whole() -> None:
    written: list[AuditEvent] = []
    counted = Sums()
    total = SUMS_MAX * 3
    for number in range(total):
        counted.add(denied(**{"from": f"10.0.{number // 256}.{number % 256}"}), written.append)
    counted.close()
    assert len(written) == SUMS_MAX + 2
    assert (
        len([each for each in written if "more" not in each.details])
        + sum(int(each.details.get("more", 0)) for each in written)
        == total
    )
    assert written[-1].principal == "(others)"
