"""What goes into one execution and what comes out of it: the vocabulary of this folder's border."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 - recursive

HostCalls: TypeAlias = Callable[[str, Mapping[str, Json]], Awaitable[Json]]
"""Answers one host call `(name, arguments)` of a running execution, or raises `HostCallError`."""


class Waits:
    """The times in which host calls of one run only wait. Then they do not count as being answered.

    A worker has a few calls answered at the same time, since each may hold memory and threads of the host. A call that
    waits for an upstream server or a user holds neither, so a hundred calls of slow tools take as long as the slowest.
    While a user is asked, the clock of the run and that of the run around it stand still too.
    """

    def __init__(self, around: Waits | None = None) -> None:
        """Make those of a run, which another run `around` it waits for, if one does."""
        self._around = around
        self.aside: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the time in which a call does not count; its worker sets this and the next."""
        self.paused: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the time in which the clock stands still."""
        self.asking: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the time in which a call does nothing but ask; the journal sets this."""

    def for_server(self) -> AbstractContextManager[None]:
        """Do not count the current call while it waits for a server."""
        return self.aside()

    @contextmanager
    def for_user(self) -> Iterator[None]:
        """Do not count the current call while it waits for a user, nor the time."""
        with (
            nullcontext() if self._around is None else self._around.for_user(),
            self.paused(),
            self.aside(),
            self.asking(),
        ):
            yield


TYPE_CHARS_MAX = 200
SEED_BYTES = 32
FONTS_FOLDER = "sealab-fonts"
"""Beside the packages of full Python: holds the list of fonts that matplotlib calls `fontlist-v….json`."""


class Owner(NamedTuple):
    """Whose something is: a caller of a tenant. The tenant is empty where there is only one."""

    tenant: str = ""
    caller: str = ""


NOBODY = Owner()
"""Who has what is done for nobody in particular."""


class Status(StrEnum):
    """How an execution ended; the `status` of the run report."""

    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    BUSY = "busy"


class Isolation(StrEnum):
    """What keeps the code apart from the machine."""

    RESTRICTED = "restricted"
    PROCESS = "process"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one execution may use. Memory counts above what the warm interpreter itself holds."""

    timeout_seconds: float = 30.0
    memory_mb: int = 500
    pids_max: int = 64
    open_files_max: int = 64
    file_size_mb: int = 64
    output_bytes_max: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceReading:
    """What is to be read from source, by `skill_source.facts`: as the skill of this name, with these tests.

    `variables` are those that a script takes as parameters; None leaves it to the script: all its constants. `scripts`
    are the Python files of a folder of others, by their paths: of these the skill is made, and the source is not read.
    """

    name: str
    tests: str = ""
    variables: tuple[str, ...] | None = None
    scripts: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What a run begins with that no second run would have by itself.

    All its random bytes come from `seed`, and its wall clock shows `time_ns` (nanoseconds since the epoch) when it
    begins. The seed is a secret as the values are that code makes of it.
    """

    seed: bytes
    time_ns: int

    def __post_init__(self) -> None:
        if len(self.seed) != SEED_BYTES:
            raise ValueError(f"A seed has {SEED_BYTES} bytes, not {len(self.seed)}. Take them from os.urandom().")
        if not 0 <= self.time_ns < 1 << 63:
            raise ValueError(f"The time of a start cannot be {self.time_ns}. Give nanoseconds since the epoch.")

    @staticmethod
    def now() -> Start:
        """Return a start that no other run has."""
        return Start(os.urandom(SEED_BYTES), time.time_ns())


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """That a session was rebuilt before a job: how many programs were run again, and how long that took."""

    programs: int
    ms: float


class TraceRecorder(Protocol):
    """Is given what a run in `restricted` can be run again from: its start and its trace. Neither method may block."""

    def started(self, start: Start, program: int) -> None:
        """Take the start, before the job is sent. A worker that was lost unbegun is replaced: the last one counts.

        `program` counts the jobs of the worker, from 0: in a session, those that must be run again before this one.
        """

    def recorded(self, piece: bytes) -> None:
        """Take the next piece of the trace. It comes before the call or the report that followed it in the run."""


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """What code of full Python changed in the workspace: the upper layer of an overlay, at a `path` of the host.

    All that is in it is hostile. `known` is kept for as long as the worker lives, in a session over many jobs: it is
    for whoever reads the folder to note there what was read already. `made_ns` is when the worker got it, in
    nanoseconds since the epoch. `mapped` are the inode numbers of the files that the worker has in its memory and can
    go on writing, in a session, which sets no time of the file.
    """

    path: str
    known: dict[bytes, bytes]
    made_ns: int
    mapped: frozenset[int] = frozenset()


TakesHome: TypeAlias = Callable[["Outcome", WrittenFolder], Awaitable["Outcome"]]
"""Takes what a run wrote into the workspace, or keeps it elsewhere, and returns the outcome that says so.

While it is called no process of the worker runs.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One execution as asked for. `session` names the kept worker, or None for a fresh one.

    With `reads` the code only compiles, and the result is what it says of itself. `within` names the skill whose
    variables the code finds beside its own. A job that is `nested` was asked for by a running one, which waits for it:
    it is never refused for others that wait. `threads` are those that each pool of threads of a library may have.
    `caller` says for whom it runs, and `tenant` whose caller that is, where
    there is more than one: tenants, and the callers of each, share turns and sessions fairly.
    `arguments` are `sys.argv`, the program's name first; none leave it as it is. `literals` are texts, and what the
    program has in their place wherever its source has them in a constant; tracebacks show the source as it is. One that
    `tells_reads` asks the host (`learn_path`) before it opens a file of the workspace by itself, and has it hide the
    texts of its figures (`hide_labels`). `takes_home` is given what full Python changed in the workspace; without it
    that is dropped. `waits` are those of its calls.

    In `restricted`, a job with the `start` and the `trace` (all pieces, joined) of an earlier run, with its code and
    variables, does what that run did, as long as its calls are answered as they were. Where the trace ends it goes on
    by itself. It ends as `diverged` where it does not do what is recorded. In a session the trace is that of one
    program, and those before it must have been run again too. Without a `start` each run has one of its own.
    """

    code: str
    context_vars: Mapping[str, Json] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    isolation: Isolation = Isolation.RESTRICTED
    session: str | None = None
    reads: SourceReading | None = None
    within: str | None = None
    nested: bool = False
    caller: str = ""
    tenant: str = ""
    arguments: tuple[str, ...] = ()
    literals: Mapping[str, Json] = field(default_factory=dict)
    tells_reads: bool = False
    start: Start | None = None
    trace: bytes = b""
    threads: int = 1
    takes_home: TakesHome | None = None
    waits: Waits = field(default_factory=Waits, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an execution did not end well; the `error` of the run report.

    `type` is the name of a class: a text that could not be one, which code can give its own exceptions, stands before
    the message instead. `line` is 1-based in the caller's own source. `traceback` holds the caller's own lines only.
    """

    type: str
    message: str
    line: int | None = None
    hint: str | None = None
    traceback: str | None = None

    def __post_init__(self) -> None:
        if not self.type.isidentifier() or len(self.type) > TYPE_CHARS_MAX:
            object.__setattr__(self, "message", f"{self.type}: {self.message}")
            object.__setattr__(self, "type", "Exception")


@dataclass(frozen=True, slots=True)
class Refusal:
    """That the dialect refused the code before any of it ran, though full Python might run it.

    `module` is the module whose import was refused, if that was the reason. `modules` are all whose imports would be.
    """

    module: str | None = None
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `nulls` counts its missing values, None where that was not counted."""

    name: str
    dtype: str
    nulls: int | None = 0
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table or array that a result holds at `place`, such as `result.top`.

    `kind` is its class. `shape` counts rows, and columns without those of the index. `columns` begin with the index;
    `columns_left_out` more are not named. `shown` rows stand in the result: where that is not all, the result has its
    head and tail, and `file` is where the whole lies in the workspace, which `read_with` reads. `why_not_kept` says why
    there is no file.
    """

    place: str
    kind: str
    shape: tuple[int, ...]
    columns: tuple[Column, ...] = ()
    columns_left_out: int = 0
    shown: int = 0
    file: str | None = None
    read_with: str | None = None
    why_not_kept: str | None = None


@dataclass(frozen=True, slots=True)
class SessionVariable:
    """A variable that a session holds: its class, about how many bytes it takes, and how much is in it, in words."""

    name: str
    kind: str
    bytes: int
    extent: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the sandbox knows of one ended execution.

    `notes` says where a value could not be shown as it was: `{"result.price": "nan became null"}`.
    `output` and `stderr` are what it wrote to standard output and to standard error.
    `queued_ms` is how long it waited to begin, before its clock ran. `session_ended` says why the session's worker is
    gone, or None while it is open. `figures` are PNG images that the code showed or left open, in that order, and
    `captions` what each of them shows, in words. `tables` describe the tables in the result and in what the code
    `displayed`, a list in its order. `held` are the variables of the run's session.
    `diverged` says that the run did not do what the trace of its job holds; `error` has the line and what it did.
    `rebuilt` is there where the job's session had lost its worker and was rebuilt. `compile_us` is how many
    microseconds of its time the worker took to compile the code, as it says itself.
    """

    status: Status
    result: Json = None
    output: str = ""
    stderr: str = ""
    error: Failure | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    duration_ms: float = 0.0
    queued_ms: float = 0.0
    cpu_ms: float | None = None
    isolation: Isolation = Isolation.RESTRICTED
    layers: tuple[str, ...] = ()
    session_ended: str | None = None
    refusal: Refusal | None = None
    figures: tuple[bytes, ...] = ()
    diverged: bool = False
    rebuilt: Rebuilt | None = None
    captions: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    displayed: Json = None
    held: tuple[SessionVariable, ...] = ()
    compile_us: int = 0


RunBefore: TypeAlias = Callable[[Job, HostCalls], Awaitable[Outcome]]
"""Runs one job in a worker of a session, before the job that is asked for."""

Rebuild: TypeAlias = Callable[[RunBefore], Awaitable[int]]
"""Runs the programs of a session again that has no worker, in a new one, and returns how many.

Raises `SessionNotRebuilt` where that cannot be done; then the session begins anew.
"""
