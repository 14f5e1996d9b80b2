"""Lines that somebody could have written without end are added up, and none is left out of the count."""

from __future__ import annotations

import asyncio

import pytest

from sealab.server.audit import sums
from sealab.server.audit.sums import SUMS_MAX, Sums
from sealab.skills_db.audit.chain import AuditEvent


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
