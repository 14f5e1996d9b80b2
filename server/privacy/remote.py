"""Detection and the reading of files as the server has them: bytes go to a reader, what comes back is judged.

A security boundary. Recognizers, models and expressions are slow for some texts, and what they run on is a stranger's:
so they run in a confined process, which is killed at a deadline. One that was taken over can hide what it was sent to
look at, and nothing else: what it sends back is findings within that text, or an error; known values are found here.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import IO, Any

from ...sandbox.errors import Busy, ReadFailed, ReadOverran, SandboxError
from ...sandbox.host.readers import Readers
from ...sandbox.job import Json, Owner
from ..base.errors import HostWorkRefused, PrivacyFailed
from ..base.host_work import OWNER, account, waiting
from .detection.findings import TYPE_NAME, DetectionFailed, Finding, KeyedText, TableFindings
from .reader import ALL_TEXTS, ANY_TEXT, COLUMN, LEAVES, TEXTS

SECONDS_MAX = 30.0
"""What one request may take where no run's time limit says less."""
_COPIED_BYTES = 1 << 20


class RemoteDetector:
    """Finds personal data as `Detector` does, in readers; safe to use from several threads. Blocks."""

    def __init__(self, readers: Callable[[], Readers], name: str) -> None:
        """Make that of a `name` that the readers know."""
        self._readers = readers
        self._name = name

    def warm(self) -> None:
        """Start the readers, which takes seconds. Raises `DetectionFailed`."""
        try:
            self._readers().warm()
        except SandboxError as error:
            raise _failed(error) from error

    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
        """Return the findings of each leaf; see `Detector.find_leaves`. Raises `DetectionFailed`, `HostWorkRefused`."""
        reply = self._asked(LEAVES, [[list(leaf.path), leaf.text] for leaf in leaves])
        with _judging():
            return [_findings(each, len(leaf.text)) for each, leaf in zip(reply, leaves, strict=True)]

    def find_column(self, path: tuple[str, ...], texts: Sequence[str], headings: Sequence[str] = ()) -> TableFindings:
        """Return what is personal in cells of a column; see `Detector.find_column`. Raises as `find_leaves`."""
        reply = self._asked(COLUMN, [list(path), list(texts), list(headings)])
        with _judging():
            whole, within = reply
            found = TableFindings()
            for kind, numbers in whole.items():
                found.whole[_type(kind)] = [texts[_place(number, len(texts) - 1)] for number in numbers]
            for number, findings in within:
                text = texts[_place(number, len(texts) - 1)]
                found.within[text] = _findings(findings, len(text))
            return found

    def _asked(self, what: str, asked: Json) -> Any:
        try:
            data = json.dumps(asked).encode()
            with waiting():
                answer = self._readers().read(f"{self._name} {what}", data, once=False, **_of_the_run())
        except (Busy, ReadOverran) as error:
            raise HostWorkRefused(str(error)) from error
        except SandboxError as error:
            raise _failed(error) from error
        with _judging():
            return json.loads(answer)


def text_of_any(readers: Callable[[], Readers], data: bytes) -> str:
    """Return the text that bytes may be, as `reading.any_bytes` does. Blocks. Raises as `texts_of_file`."""
    with _refusing():
        return str(json.loads(readers().read(ANY_TEXT, data, **_of_the_run())))


def texts_of_file(
    readers: Callable[[], Readers], file: IO[bytes], *, complete: bool = False
) -> Generator[Json, None, None]:
    """Give the texts of a file and the rows of its tables, as `reading.file_texts` does, read by a reader. Blocks.

    Raises `PrivacyFailed` where it cannot be looked through, and `HostWorkRefused` at the end of the run's time.
    """
    with tempfile.TemporaryFile() as copied:
        while some := file.read(_COPIED_BYTES):
            copied.write(some)
        copied.flush()
        only_read = os.open(f"/proc/self/fd/{copied.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            of_file = readers().read_file(ALL_TEXTS if complete else TEXTS, only_read, **_of_the_run())
            with _refusing(), closing(of_file) as pieces:
                while (piece := _next(pieces)) is not None:
                    yield json.loads(piece)
        finally:
            os.close(only_read)


def _next(pieces: Generator[bytes, None, None]) -> bytes | None:
    with waiting():
        return next(pieces, None)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (Busy, ReadOverran) as error:
        raise HostWorkRefused(str(error)) from error
    except (SandboxError, ValueError, RecursionError) as error:
        # Not its words, which may be what stands in the file.
        raise PrivacyFailed(
            "The file could not be looked through for personal data. Export what is needed as CSV or JSON."
        ) from error


def _of_the_run() -> dict[str, Any]:
    """Return what a read may take, and who is charged: what is left of the run's account, where there is one."""
    charged, owner = account(), Owner(*OWNER.get())
    if charged is None:
        return {"timeout_seconds": SECONDS_MAX, "owner": owner}
    left = max(charged.cpu_seconds - charged.spent_seconds, 0.1)
    return {"timeout_seconds": left, "owner": owner, "check": charged.check, "charge": charged.charge}


def _failed(error: SandboxError) -> DetectionFailed:
    why = error.kind if isinstance(error, ReadFailed) and error.kind else type(error).__name__
    said = f" {error}" if not isinstance(error, ReadFailed) else ""
    return DetectionFailed(
        f"Personal data could not be looked for ({why}), so the text is withheld.{said} "
        "Try a smaller or simpler text; if that fails too, report it."
    )


@contextmanager
def _judging() -> Iterator[None]:
    """Raise `DetectionFailed` where what a reader sent is not what it may send."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise DetectionFailed(
            "What looks for personal data gave an answer that cannot be right, so the text is withheld."
        ) from None


def _findings(rows: Sequence[Any], length: int) -> list[Finding]:
    found = []
    for start, end, kind, score in rows:
        if _place(start, length) >= _place(end, length):
            raise ValueError
        if not isinstance(score, int | float) or not math.isfinite(score):
            raise ValueError
        found.append(Finding(start, end, _type(kind), float(score)))
    return found


def _type(kind: object) -> str:
    if not isinstance(kind, str) or not TYPE_NAME.fullmatch(kind):
        raise ValueError
    return kind


def _place(number: object, most: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most:
        raise ValueError
    return number
