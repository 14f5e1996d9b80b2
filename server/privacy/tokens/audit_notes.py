"""Lines for the audit, written a moment after the answer that they record, so that no answer waits for the disk.

Writing them is durable, which takes along to the disk what the vault was given before: a token that was shown outlives
a crash of the machine half a second later, and one of the program at once. A crash of the program loses the lines of
its last half second; an orderly end loses none.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....skills_db.vault_entries import Note
from ...base.lru import Lru
from ...base.write_behind import WriteBehind
from ...governance.scopes import tokens_of

if TYPE_CHECKING:
    from ....skills_db.vault import Vault

OnTypes = Callable[[str, str, str, Mapping[str, int], str, str], None]
"""Called with the scope, the action, the destination, how many values of each type, the run and the rule."""

PAUSE_SECONDS = 0.5
"""How long lines gather before they are written together."""


class AuditNotes:
    """The lines that wait to be written; safe to use from several threads."""

    def __init__(self, vault: Callable[[], Vault], on_types: OnTypes | None = None) -> None:
        """Make it; `vault` is asked for when there is something to write, and may block.

        `on_types` is called with each at once: the audit log of the server keeps those that let values out, for good.
        """
        self._on_types = on_types
        self._lines: WriteBehind[Note] = WriteBehind(
            "lines of the privacy audit",
            lambda notes: vault().note(*notes),
            wait_seconds_max=PAUSE_SECONDS,
            merge=_merged,
        )

    def add(
        self, scope: str, action: str, destination: str, counts: Mapping[str, int], *, run: str = "", rule: str = ""
    ) -> None:
        """Queue a note that something was done with so many values of each type, by a run if one did.

        `scope` is that of the caller: the audit log says who it was, the vault whose tokens these are. `rule` names
        what refused them, for the audit log.
        """
        if not counts:
            return
        if self._on_types is not None:
            self._on_types(scope, action, destination, counts, run, rule)

        self._lines.add(Note(time.time(), tokens_of(scope), action, destination, dict(counts), run))

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        self._lines.close()


class RecordLinks:
    """Which values stood together in one record, written a moment later; safe to use from several threads.

    A crash of the program loses those of its last half second, as of the audit: then `sealab pii forget` finds less.
    """

    def __init__(self, vault: Callable[[], Vault]) -> None:
        """Make it; `vault` is asked for when there is something to write, and may block."""
        self._vault = vault
        self._known: Lru[tuple[str, Sequence[str]], None] = Lru(_RECORDS_KNOWN)
        self._turn = threading.Lock()
        self._records: WriteBehind[tuple[str, Sequence[str]]] = WriteBehind(
            "links of records", self._write, wait_seconds_max=PAUSE_SECONDS
        )

    def add(self, scope: str, records: Sequence[Sequence[str]]) -> None:
        """Queue a note of which tokens stood together; blocks only where very many wait."""
        with self._turn:
            new = [(scope, record) for record in records if (scope, record) not in self._known]
            self._known |= dict.fromkeys(new)
        if new:
            self._records.add(*new)
            if len(self._records) > _RECORDS_WAITING:
                self._records.flush()

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        self._records.close()

    def _write(self, records: Sequence[tuple[str, Sequence[str]]]) -> None:
        by_scope: dict[str, list[Sequence[str]]] = defaultdict(list)
        for scope, record in records:
            by_scope[scope].append(record)
        for scope, some in by_scope.items():
            self._vault().link(scope, some)


_RECORDS_WAITING = 5_000
_RECORDS_KNOWN = 10_000
"""Records that were linked lately, and need not be again."""


def _merged(notes: Iterable[Note]) -> list[Note]:
    """Make one line of those that say the same of other values: a program may do it a thousand times in a moment."""
    merged: dict[tuple[str, str, str, str], Note] = {}
    for note in notes:
        key = (note.scope, note.action, note.destination, note.run)
        before = merged.get(key)
        counts = note.counts if before is None else Counter(before.counts) + Counter(note.counts)
        merged[key] = replace(note, counts=counts)
    return list(merged.values())
