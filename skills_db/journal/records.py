"""What a journal consists of, and how its records stand in a piece.

A piece is records one after another: a byte for the kind, four for the length (big-endian), then the body. The body of
a trace record is bytes as the worker gave them, of all others a JSON object.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

FORMAT = 1
"""The format of header, records and end. A journal of a later one is not read."""

QUEUED, RUNNING, WAITING, ENDED = "queued", "running", "waiting", "ended"
"""The status of a run: of one in the background all of these, of any that has not ended `RUNNING`."""
CUT = "cut"
"""The status of a run whose lease is over without an end: its server went down, or could not write it."""
ERASED = "erased"
"""The status of a run whose journal was erased, since it held data of a person."""

_HEAD = struct.Struct(">BI")
_LINE_CHARS = 100
_CALL_TOOL = "call_tool"
"""The host call whose arguments name a tool."""


class RecordKind(IntEnum):
    """What a record says."""

    INTENT = 1
    """A call that may change something is about to be made: `n name arguments repeatable at_ms`."""
    OUTCOME = 2
    """A call was answered: `n ms`, `answer` or `error`, and `name arguments at_ms` where no intent has them."""
    TRACE = 3
    """A piece of what the worker recorded of the run."""
    END = 4
    """How the run ended: `status result output stderr error`."""
    RESUMED = 5
    """The run was cut, and another process took it up: `at process`."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its body as it is stored."""

    kind: RecordKind
    body: bytes

    @property
    def value(self) -> dict[str, object]:
        """The body of any record but a trace."""
        found = json.loads(self.body)
        if not isinstance(found, dict):
            raise ValueError("a record is not an object")  # noqa: TRY004 - of what was read, not of an argument
        return found


def joined(records: Iterable[Record]) -> bytes:
    """Return records as one piece."""
    return b"".join(part for each in records for part in (_HEAD.pack(each.kind, len(each.body)), each.body))


def parted(piece: bytes) -> Iterator[Record]:
    """Give the records of a piece. Raises ValueError where it is cut or holds an unknown kind."""
    at = 0
    while at < len(piece):
        if len(piece) - at < _HEAD.size:
            raise ValueError("a record is cut in its head")
        kind, length = _HEAD.unpack_from(piece, at)
        at += _HEAD.size
        if len(piece) - at < length:
            raise ValueError("a record is cut in its body")
        yield Record(RecordKind(kind), piece[at : at + length])
        at += length


def tools_called(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Count the calls by tool in the records of a run that has not ended; `unknown` are those without an answer."""
    called: dict[object, str] = {}
    ended: dict[object, str] = {}
    for each in records:
        if each.kind not in {RecordKind.INTENT, RecordKind.OUTCOME}:
            continue
        fields = each.value
        number, arguments = fields["n"], fields.get("arguments")
        if fields.get("name") == _CALL_TOOL and isinstance(arguments, Mapping):
            called[number] = str(arguments.get("name"))
        if each.kind is RecordKind.OUTCOME:
            ended[number] = "failed" if "error" in fields else "done"
    tools: dict[str, dict[str, int]] = {}
    for number, tool in called.items():
        counts, how = tools.setdefault(tool, {"done": 0, "failed": 0}), ended.get(number, "unknown")
        counts[how] = counts.get(how, 0) + 1
    return tools


def first_line(code: str) -> str:
    """Return the first line of a program that is not blank, and of a long one its beginning."""
    line = next(filter(None, map(str.strip, code.splitlines())), "")
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


@dataclass(frozen=True, slots=True)
class RunBegin:
    """What a run begins with. `header` is what it can be run again from, a JSON object; times in seconds since 1970.

    `number` counts the programs of a session from 0, and `after` is the run of the one before it. `leased_by` names the
    process that runs it, until `leased_until` at most, unless it says otherwise later.
    """

    run_id: str
    scope: str
    isolation: str
    began: float
    expires: float
    timeout_seconds: float
    memory_mb: int
    header: bytes
    session: str | None = None
    number: int | None = None
    after: str | None = None
    leased_by: str = ""
    leased_until: float = 0.0


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, and the `reason` of one that failed.

    `tools` counts its calls by tool, `times` says where its time went, as JSON; `incomplete` says why records are
    missing, if any are.
    """

    status: str
    ended: float
    isolation: str
    tools: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    incomplete: str | None = None
    reason: str | None = None
    times: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionPrograms:
    """The programs that a session consists of, by their runs. `gap` says why it cannot be rebuilt, if it cannot."""

    programs: tuple[str, ...] = ()
    gap: str | None = None


@dataclass(frozen=True, slots=True)
class RunChange:
    """What is to be written of one run: its begin, the piece with the number `number`, its end.

    `process` is the one that holds the lease of a run that ends; nobody else can end it.
    """

    run_id: str
    number: int
    begin: RunBegin | None = None
    piece: bytes = b""
    end: RunEnd | None = None
    process: str = ""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run as a list shows it. `owner` is what the database calls its scope; `bytes` is what its journal takes.

    `code` is the first line of its program, which a list alone has.
    """

    run_id: str
    owner: str
    isolation: str
    status: str
    began: float
    ended: float | None
    expires: float
    bytes: int
    session: str | None
    number: int | None
    tools: Mapping[str, Mapping[str, int]]
    incomplete: str | None
    scope: str = ""
    code: str = ""
    reason: str | None = None
    times: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredJournal:
    """The whole journal of one run, in so many `pieces`; `after` is the run before it in its session."""

    run: RunSummary
    scope: str
    header: Mapping[str, object]
    records: tuple[Record, ...]
    pieces: int = 0
    after: str | None = None

    @property
    def trace(self) -> bytes:
        """What the worker recorded, all pieces joined."""
        return b"".join(each.body for each in self.records if each.kind is RecordKind.TRACE)

    @property
    def end(self) -> dict[str, object] | None:
        """How the run ended; None where that is not recorded."""
        return next((each.value for each in reversed(self.records) if each.kind is RecordKind.END), None)
