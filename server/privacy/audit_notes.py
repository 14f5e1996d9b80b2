"""Lines for the audit, written a moment after the answer that they tell of, so that no answer waits for the disk.

Writing them is durable, which takes along to the disk what the vault was given before: a token that was shown outlives
a crash of the machine half a second later, and one of the program at once. A crash of the program loses the lines of
its last half second; an orderly end loses none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...skills_db.errors import DatabaseUnreachable

if TYPE_CHECKING:
    from ...skills_db.vault import Note, Vault

PAUSE_SECONDS = 0.5
"""How long lines gather before they are written together."""

_WAITING_MAX = 10_000
"""Lines that wait for a database that does not answer."""
_LOG = logging.getLogger(__name__)


class AuditNotes:
    """The lines that wait to be written; safe to use from several threads."""

    def __init__(self, vault: Callable[[], Vault]) -> None:
        """Make it; `vault` is asked for when there is something to write, and may block."""
        self._vault = vault
        self._waiting: deque[Note] = deque()
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._ends = threading.Event()
        self._unwritten = False
        self._thread: threading.Thread | None = None

    def add(self, scope: str, action: str, destination: str, counts: Mapping[str, int]) -> None:
        """Have it noted that something was done with so many values of each type; returns at once."""
        if not counts:
            return
        from ...skills_db.vault_entries import Note  # noqa: PLC0415 - with PRIVACY=off nothing of it is loaded

        self._waiting.append(Note(time.time(), scope, action, destination, dict(counts)))
        with self._starting:
            if self._thread is None and not self._ends.is_set():
                self._thread = threading.Thread(target=self._work, name="sealab-audit", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Write what waits. Blocks."""
        with self._writing:
            notes = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not notes:
                return
            notes = _merged(notes)
            try:
                self._vault().note(*notes)
            except DatabaseUnreachable as error:
                self._waiting.extendleft(reversed(notes[-_WAITING_MAX:]))  # nothing of them was written
                if not self._unwritten:
                    _LOG.warning("%d lines of the privacy audit wait to be written: %s", len(notes), error)
                self._unwritten = True
            except Exception as error:  # noqa: BLE001 - the answer that it tells of has been given
                _LOG.warning("%d lines of the privacy audit could not be written: %s", len(notes), error)
            else:
                self._unwritten = False

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        self._ends.set()
        with self._starting:
            thread = self._thread
        if thread is not None:
            thread.join()
        self.flush()

    def _work(self) -> None:
        while not self._ends.wait(PAUSE_SECONDS):
            self.flush()


def _merged(notes: Iterable[Note]) -> list[Note]:
    """Make one line of those that say the same of other values: a program may do it a thousand times in a moment."""
    merged: dict[tuple[str, str, str], Note] = {}
    for note in notes:
        key = (note.scope, note.action, note.destination)
        before = merged.get(key)
        counts = note.counts if before is None else Counter(before.counts) + Counter(note.counts)
        merged[key] = replace(note, counts=counts)
    return list(merged.values())
