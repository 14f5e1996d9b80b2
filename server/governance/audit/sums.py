"""Adds up lines of the audit log that somebody could have written without end, such as those of refused requests.

The first of its kind is written at once; those that follow within `SUM_SECONDS` are counted, and one line then says
how many there were. No line is left out of a count: an orderly end writes the counts, and a server that is killed loses
those of the last `SUM_SECONDS`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ....skills_db.audit.chain import AuditEvent, Detail

SUM_SECONDS = 60.0
"""How long lines of one kind are counted before their sum is written."""
SUMS_MAX = 500
"""Kinds of lines that are counted at once; further ones are counted together, without who and from where."""
_OTHERS = "(others)"
_Kind = tuple[str, str, str, str, str, str, tuple[tuple[str, Detail], ...]]


@dataclass(slots=True)
class _Sum:
    """A kind of line: one of its events, what writes it, and how many came since the last was written."""

    event: AuditEvent
    note: Callable[[AuditEvent], None]
    since: float
    more: int = 0


class Sums:
    """The counts of one process; those are written by a timer of the event loop in which the first line came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[_Kind, _Sum] = {}
        self._ends = False

    def add(self, event: AuditEvent, note: Callable[[AuditEvent], None]) -> None:
        """Write an event by `note`, or count it. Call it in an event loop."""
        with self._lock:
            if self._ends:
                note(event)
                return
            kind = _kind_of(event)
            if kind not in self._sums and len(self._sums) >= SUMS_MAX:
                event = replace(event, tenant="", principal=_OTHERS, credential="", details={})
                kind = _kind_of(event)
            known = self._sums.get(kind)
            if known is not None:
                known.more += 1
                return
            if not self._sums:
                asyncio.get_running_loop().call_later(SUM_SECONDS, self._write)
            self._sums[kind] = _Sum(event, note, time.monotonic())
        note(event)

    def close(self) -> None:
        """Write all counts; what is added from now on is written at once."""
        with self._lock:
            self._ends = True
        self._write()

    def _write(self) -> None:
        with self._lock:
            sums, self._sums = list(self._sums.values()), {}
        now = time.monotonic()
        for each in sums:
            if each.more:
                counted: dict[str, Detail] = {"more": each.more, "seconds": round(now - each.since, 1)}
                at_us = time.time_ns() // 1000
                each.note(replace(each.event, at_us=at_us, details={**each.event.details, **counted}))


def _kind_of(event: AuditEvent) -> _Kind:
    details = tuple(sorted(event.details.items()))
    return event.event, event.tenant, event.principal, event.credential, event.decision, event.rule, details
