"""Erases a person: what the vault, journals, the archive of runs, skills and the workspace have of their values.

What is kept under `PRIVACY=auto` has tokens, which stand for nothing once the vault has forgotten them. Real values
stand in what was kept under other modes, and in files.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from ...sandbox.job import Json
from ...skills_db.journal.records import RUNNING
from ...skills_db.redaction import redact_skills
from ...workspace.archive import rewrite_kept
from ...workspace.errors import WorkspaceError
from ..base.errors import HostWorkRefused, PrivacyFailed
from .reading.encodings import encoding_of
from .reading.file_texts import is_packed
from .token_texts import spliced
from .tokens.known_values import KnownValues
from .tokens.notations import LeafKind, leaves_of, rebuilt

if TYPE_CHECKING:
    from ...skills_db.engine import Database
    from ...skills_db.journal.journal_store import JournalStore
    from ...workspace.store import Workspace

ERASED = "[erased]"
"""What stands where a value stood."""
_AT_WORK_MAX = 1000
_WITHIN_LEAST = 6
"""Characters of a value that is looked for within words too."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_READ_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Traces:
    """Where values of a person stand: names of files of the archive and of the workspace, of skills, and of runs.

    `fixed` are files of the workspace in which nothing can be replaced: packed ones and databases. `runs` are those
    whose journals go, `at_work` others that have not ended and may yet write of the person. `skills` are versions of
    skills whose code has them, `skill_names` skills that are named so.
    """

    runs: tuple[str, ...] = ()
    at_work: tuple[str, ...] = ()
    archive: tuple[str, ...] = ()
    recordings: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    skill_names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


class Eraser:
    """Finds the values of one person, in every form in which known values are found, and replaces them."""

    def __init__(self, values: Iterable[tuple[str, str]], texts_of: Callable[[IO[bytes]], Iterator[Json]]) -> None:
        """Make one of values with their types; `texts_of` reads packed files, as `Detectors.texts_of`."""
        self._texts_of = texts_of
        self._known = KnownValues()
        within: list[str] = []
        for text, kind in values:
            self._known.add(text, kind)
            within += {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        # Also beside other letters, such as after the `\n` of an escaped text: nothing of a person is to be left.
        some = sorted((re.escape(text) for text in within if len(text) >= _WITHIN_LEAST), key=len, reverse=True)
        self._within = re.compile("|".join(some), re.IGNORECASE) if some else None

    def holds(self, text: str) -> bool:
        """Return whether a value stands in a text."""
        return next(self._places(text), None) is not None

    def holds_within(self, text: str) -> bool:
        """Return whether a value stands in a text, or in the bytes of which it is the base64."""
        if self.holds(text):
            return True
        if len(text) % 4 or not _BASE64.fullmatch(text):
            return False
        data = base64.b64decode(text)
        return self.redacted_bytes(data) != data or self.is_packed_in(data)

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        yield from ((span.start, span.end) for span in self._known.find(text))
        if self._within is not None:
            yield from (match.span() for match in self._within.finditer(text))

    def redacted(self, text: str) -> str:
        """Return a text with `ERASED` in place of each value."""
        edits: list[tuple[int, int, str]] = []
        for start, end in sorted(self._places(text), key=lambda each: (each[0], -each[1])):
            if not edits or start >= edits[-1][1]:
                edits.append((start, end, ERASED))
            elif end > edits[-1][1]:
                edits[-1] = (edits[-1][0], end, ERASED)
        return spliced(text, edits)

    def redacted_value(self, value: Json) -> Json:
        """Return a text or a value of JSON with `ERASED` in place of each value, be it a number."""
        if isinstance(value, str):
            return self.redacted(value)
        leaves = list(leaves_of(value))
        texts = [self.redacted(leaf.text) for leaf in leaves]
        if all(leaf.text == text for leaf, text in zip(leaves, texts, strict=True)):
            return value
        kept = (
            None if leaf.kind is LeafKind.NUMBER and leaf.text == text else text
            for leaf, text in zip(leaves, texts, strict=True)
        )
        return rebuilt(value, kept)

    def redacted_bytes(self, data: bytes) -> bytes:
        """Return the bytes of a text with `ERASED` in place of each value, in its own encoding; others as they are."""
        encoding = None if is_packed(data) else encoding_of(data)
        if encoding is None:
            return data
        text = data.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "replace")
        redacted = self.redacted(text)
        if redacted == text:
            return data
        return redacted.encode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "replace")

    def is_packed_in(self, data: bytes) -> bool:
        """Return whether a value stands in what a packed file or a database holds, or that cannot be found out."""
        if not is_packed(data):
            return False
        try:
            texts = self._texts_of(io.BytesIO(data))
            return any(self.holds(text if isinstance(text, str) else json.dumps(text)) for text in texts)
        except (PrivacyFailed, HostWorkRefused):
            return True


def traces(
    eraser: Eraser,
    workspace: Workspace,
    database: Database,
    journals: JournalStore,
    *,
    erases: bool,
    in_files: bool = False,
    in_skills: bool = False,
) -> Traces:
    """Return where the values stand, and take them out where it `erases`. Blocks.

    Out of files only with `in_files`, out of what skills run and are called only with `in_skills`.
    """
    runs = tuple(journals.forget(eraser.holds_within, erases=erases))
    at_work = (run.run_id for run in journals.runs(status=RUNNING, limit=_AT_WORK_MAX))
    files: list[str] = []
    fixed: list[str] = []
    for name, data in _contents(workspace):
        redacted = eraser.redacted_bytes(data)
        if redacted != data:
            files.append(name)
            if erases and in_files:
                workspace.write(name, redacted)
        elif eraser.is_packed_in(data):
            fixed.append(name)
    skills = redact_skills(database, eraser.redacted_value, changes=erases, in_code=in_skills)
    return Traces(
        runs,
        tuple(run_id for run_id in at_work if run_id not in runs),
        tuple(rewrite_kept(workspace, eraser.redacted_bytes, changes=erases)),
        skills.recordings,
        skills.descriptions,
        skills.code,
        skills.names,
        tuple(files),
        tuple(fixed),
    )


def _contents(workspace: Workspace) -> Iterator[tuple[str, bytes]]:
    for file in workspace.list().files:
        try:
            data = bytearray()
            more = True
            while more:
                read = workspace.read(file.name, len(data), _READ_BYTES, encoding="base64")
                some = base64.b64decode(read.content)
                data += some
                more = read.truncated and bool(some)
        except WorkspaceError:
            continue  # deleted meanwhile
        yield file.name, bytes(data)
