"""One worker: a forked child that confines itself, takes one job (or a session's jobs, one by one) and reports.

Everything hostile happens here: compiling the source, running it, rendering its result and its error, all under the
wall clock of the parent. The worker is forked by the zygote, which prepared what every worker starts with.
"""

from __future__ import annotations

import base64
import keyword
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

from .. import confine
from ..confine import limits
from ..confine.limits import Allowance, Bounds
from ..dialect.facades import module_lookups
from ..errors import FrameError, Refused
from ..guest.guest import GUEST
from ..guest.host_channel import HostGone
from ..guest.program_values import NO_LITERALS
from ..guest.runtime import Dialect, RunExtras
from ..guest.spelling import PREFIX
from ..guest.trace import ReplayDiverged
from ..guest_api import data_helpers, hosted, hosted_skills, hosted_tools, judged_programs
from ..job import Failure, Isolation, Job, Json, SourceReading, Start, Status
from ..python_versions import require_walked
from ..report import failures, memory, values
from ..report.results import exit_text
from ..skill_source import facts
from ..wire import output
from ..wire.frames import EXIT_WITHOUT_REPORT, FRAME_BYTES_MAX, NAME_CHARS_MAX, encode, encode_job

_WARM_SOURCES = (
    """
import json
class A:
    x: int = 1
    def f(self) -> int:
        self.x += 1
        return self.x
[A().f() for _ in range(2)]
""",
    """
import asyncio
await asyncio.sleep(0)
{"a": 1.5, "b": (None, True)}
""",
    """
def f(n):
    return undefined
f(1)
""",
)
WARM_ROUNDS = 8
"""Until the interpreter has specialized what every job runs: a worker would do it again, on pages of its own."""
_WARM_OUTPUT_BYTES = 1 << 16
_WARM_ANSWER_BYTES = 1 << 16
_HURRY_MS = 2
"""A worker whose job has not come by then is a spare with time to rehearse."""
_NO_NOTES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the zygote made ready for all its workers; each fork has a copy of its own."""

    dialect: Dialect
    plan: confine.Plan
    bounds: Bounds
    worker: Worker
    ready: bytes = field(init=False)

    def __post_init__(self) -> None:
        layers = [*self.dialect.layers, *self.plan.layers, "limits"]
        object.__setattr__(self, "ready", encode({"t": "ready", "layers": layers}))


module_lookups.provide()


def starting_namespace(dialect: Dialect) -> dict[str, object]:
    """Make what every worker's code starts with."""
    return dialect.new_namespace({**hosted.helpers(), **data_helpers.helpers()})


def warm(dialect: Dialect, *, rounds: int = WARM_ROUNDS) -> None:
    """Do once, before a worker is confined, what every worker does, so that none pays for a first time."""
    worker = Worker(dialect)
    host, theirs = socket.socketpair()
    with host, theirs:
        dialect.open(theirs.fileno(), output.create(_WARM_OUTPUT_BYTES))
        for source in _WARM_SOURCES * rounds:
            # As in a session: the end of any other run is the end of its process, threads and all.
            host.sendall(encode_job(Job(source, session="warm"), Isolation.RESTRICTED))
            worker.answer_next(None)
            host.recv(_WARM_ANSWER_BYTES)
        worker.output.close()


def serve(
    prepared: Prepared,
    channel_fd: int,
    output_fd: int,
    run_folder: str = "",
    overlay_to: socket.socket | None = None,
) -> NoReturn:
    """Run a worker until the host closes the channel. Never returns; fails closed when a layer cannot be set up.

    Full Python writes to the workspace through its `run_folder`, where that is possible.
    """
    status = EXIT_WITHOUT_REPORT
    worker = prepared.worker
    try:
        keep_fds = prepared.dialect.open(channel_fd, output_fd)
        confine.enter(prepared.plan, keep_fds=keep_fds, run_folder=run_folder, overlay_to=overlay_to)
        GUEST.writes_workspace = prepared.plan.overlays and bool(run_folder)
        prepared.bounds.apply()
        prepared.dialect.start()
        worker.channel.send(prepared.ready)
        if not worker.channel.readable.poll(_HURRY_MS):
            worker.rehearse()
        while True:
            worker.answer_next(prepared.bounds)
    except HostGone:
        status = 0
    finally:
        os._exit(status)


class Worker:
    """A worker as its zygote makes it: all there but for its descriptors, and not confined.

    What it is made of here, every fork has without writing to a page: so as much as possible is made here.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._namespace = starting_namespace(dialect)
        self.channel, self.output = dialect.connections()
        self._memory_mb = 0
        self._given = dict(self._namespace)
        self._peak_before_mb: int | None = None
        self._calls: dict[str, str] = {}
        self._compile_us = 0
        GUEST.output, GUEST.error_output = self.output.write, self.output.write_error
        GUEST.call_host = self.channel.call
        GUEST.call_host_async = self.channel.call_async
        GUEST.namespace = self._namespace
        GUEST.define = definer(dialect)
        GUEST.run = 0

    def rehearse(self) -> None:
        """Run a job of nothing, while there is time: each page that a job writes to is copied after a fork."""
        self._dialect.rehearse()
        self._dialect.begin()
        self._encoded(_with(self._run("0", {}), self._dialect.end(session=True)))

    def answer_next(self, bounds: Bounds | None) -> None:
        """Wait for a job, run it within the `bounds` of this process, and report. Raises `HostGone`."""
        frame = self.channel.next_run()
        allowance = Allowance(**cast("Mapping[str, int]", frame["limits"]))
        session = bool(frame["session"])
        self._compile_us = 0
        if bounds is not None:
            bounds.lower(allowance, session=session, first=not self._calls)
        self.output.clear(allowance.output_bytes)
        GUEST.write, GUEST.write_error = GUEST.output, GUEST.error_output  # an earlier call may have redirected them
        GUEST.run += 1
        GUEST.tells_reads = bool(frame["tells_reads"])
        if self._calls:
            GUEST.answers.clear()
            GUEST.forget_displayed()
        self._dialect.begin()
        self._dialect.bound_pools(cast("int", frame["threads"]), allowance.memory_bytes)
        self._memory_mb = allowance.memory_bytes // limits.MIB
        if self._peak_before_mb is None:
            self._peak_before_mb = memory.peak_mb()
        if frame["arguments"]:
            self._dialect.take_arguments(cast("Sequence[str]", frame["arguments"]))
        try:
            code = cast("str", frame["code"])
            report = self._run(
                code,
                cast("Mapping[str, Json]", frame["vars"]),
                begins=partial(self._follow, frame),
                reads=cast("Mapping[str, Any] | None", frame["reads"]),
                within=cast("str | None", frame["within"]),
                literals=cast("Mapping[str, Json]", frame["literals"]),
            )
            extras = self._dialect.end(session=session)
            if extras.failure is not None:
                report = self._failed(extras.failure, code, self._filename)
                if isinstance(extras.failure, ReplayDiverged):
                    report["diverged"] = True
            if session and bounds is not None:
                report["held"] = self._held()
            report["compile_us"] = self._compile_us
            data = self._encoded(_with(report, extras))
        except MemoryError:
            limits.open_reserve()
            data = encode(_report(Status.MEMORY, error=Failure("MemoryError", "The code used up its memory.")))
        self.channel.report(data)
        # Frames of functions that live on in a session lead back to the call that made them.
        self._calls[self._filename] = cast("str", frame["code"])

    def _held(self) -> list[Json]:
        """Return what the session holds; nothing where there is no memory left to find out."""
        with suppress(Exception):
            return [asdict(each) for each in memory.held_in(self._namespace, self._given)]
        return []

    def _follow(self, frame: Mapping[str, Json]) -> None:
        start = Start(bytes.fromhex(cast("str", frame["seed"])), cast("int", frame["time_ns"]))
        trace = base64.b64decode(cast("str", frame["trace"]))
        self._dialect.follow(start, trace, records=bool(frame["records"]))

    @property
    def _filename(self) -> str:
        """The name that tracebacks show for the running source."""
        return failures.SOURCE_NAME if not self._calls else f"<call {len(self._calls) + 1}>"

    def _run(
        self,
        code: str,
        variables: Mapping[str, Json],
        *,
        begins: Callable[[], None] = lambda: None,
        reads: Mapping[str, Any] | None = None,
        within: str | None = None,
        literals: Mapping[str, Json] = NO_LITERALS,
    ) -> dict[str, Json]:
        filename = self._filename
        recursion_limit = sys.getrecursionlimit()
        try:
            begins()
            given = {_variable(name): value for name, value in variables.items()}
            began = perf_counter_ns()
            program = self._dialect.compile(code, filename, literals)
            self._compile_us = (perf_counter_ns() - began) // 1000
            GUEST.sources[filename] = code
        except Refused as refusal:
            report = _report(Status.REFUSED, error=failures.describe_refusal(refusal, code, filename))
            return report if refusal.type == "ValueError" else {**report, "refusal": _refusal_fields(refusal)}
        except BaseException as error:  # noqa: BLE001 - a parser may raise anything at hostile source
            return self._failed(error, code, filename)
        own = self._namespace
        for name, server in hosted_tools.bridge_names(code).items():
            own.setdefault(name, server)
        own.update(given)
        try:
            if reads is not None:
                return _report(Status.OK, result=facts.describe(code, SourceReading(**reads), known=own))
            own.update(hosted_tools.server_names(code, own, self._dialect.may_mean))
            if (refused := _refused_calls(code, own, filename, within)) is not None:
                return refused
            if within is not None:
                own.update(hosted_skills.variables_of(within))
            return self._ended(self._dialect.run(program, own))
        except HostGone:
            raise
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt and the like are the guest's own here
            # The code may have set them so low that nothing of what follows could run.
            sys.setrecursionlimit(recursion_limit)
            sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
            return self._failed(error, code, filename)

    def _ended(self, result: object) -> dict[str, Json]:
        sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)  # the code may have set it otherwise
        rendered = values.render(result)
        return _report(Status.OK, result=rendered.json, notes=rendered.notes)

    def _failed(self, error: BaseException, code: str, filename: str) -> dict[str, Json]:
        if type(error) is SystemExit:
            with suppress(output.OutputFull):
                GUEST.error_output(exit_text(error))
        of_memory = memory.is_of_memory(error)
        if of_memory:
            limits.open_reserve()
        failure = failures.describe(error, code, filename, earlier={**self._calls, **GUEST.sources})
        if not of_memory:
            cut = len(failure.message) > failures.MESSAGE_CHARS_MAX
            notes = {"error.message": "cut; raise with less text, and print() or write_file() the rest"} if cut else {}
            return _report(Status.ERROR, error=failure, notes=notes)
        return _report(Status.MEMORY, error=self._out_of_memory(failure))

    def _out_of_memory(self, failure: Failure) -> Failure:
        """Return what was used, by what, and what would need less."""
        peak_mb = max(0, memory.peak_mb() - (self._peak_before_mb or 0))
        asking = "it asked" if failure.line is None else f"line {failure.line} asked"
        summary = (
            f"The code used up its {self._memory_mb} MB of memory. It had taken {peak_mb} MB when {asking} for more"
        )
        said = f": {failure.message}" if failure.message else "."
        hints = [memory.advice_for(failure.traceback or "") or "Hold less at once."]
        with suppress(Exception):
            variables = memory.held_in(self._namespace, self._given)
            if words := memory.in_words(variables, self._memory_mb * limits.MIB // 20, 3):
                hints.append(f"Held are {words}.")
        if GUEST.wider and not GUEST.full_python:
            hints.append(f'Of many numbers numpy and pandas hold a tenth of the bytes: isolation="{GUEST.wider[0]}".')
        hints.append("Or ask for more with memory_mb.")
        return replace(failure, type="MemoryError", message=f"{summary}{said}", hint=" ".join(hints))

    def _encoded(self, report: dict[str, Json]) -> bytes:
        try:
            return encode(report)
        except MemoryError as error:
            return encode(self._failed(error, "", self._filename))
        except FrameError:
            note = (
                f"The result is larger than {FRAME_BYTES_MAX} bytes, too large to show. "
                "Write it to a file with write_file() and read it in slices."
            )
            return encode(
                {**report, "result": None, "notes": {"result": note}, "figures": [], "captions": [], "displayed": []}
            )


def _refusal_fields(refusal: Refused) -> dict[str, Json]:
    named = dict.fromkeys(each.module for each in (refusal, *refusal.others) if each.module is not None)
    return {"module": refusal.module, "modules": [module for module in named if len(module) <= NAME_CHARS_MAX]}


def _variable(name: str) -> str:
    """Return the name by which the code's own source will find a context variable. Raises `Refused`."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith(("__", PREFIX)):
        raise Refused(
            f"{name!r} cannot be the name of a context variable.",
            type="ValueError",
            instead="Use a plain Python name that does not begin with two underscores.",
        )
    return name


def _with(report: dict[str, Json], extras: RunExtras) -> dict[str, Json]:
    """Return a report with what the run left beside its result."""
    notes = {**cast("Mapping[str, str]", report["notes"]), **GUEST.displayed_notes, **extras.notes}
    beside: dict[str, Sequence[Json]] = {
        "figures": [base64.b64encode(figure).decode("ascii") for figure in extras.figures],
        "captions": list(extras.captions),
        "tables": [asdict(table) for table in extras.tables],
        "displayed": GUEST.displayed,
    }
    return {**report, "notes": notes, **{name: values for name, values in beside.items() if values}}


def _refused_calls(code: str, names: Mapping[str, object], filename: str, within: str | None) -> dict[str, Json] | None:
    """Ask the host to judge the calls of tools that the code makes; return the report where it refuses one."""
    refused = judged_programs.why_refused(code, names, within)
    if refused is None:
        return None
    failure = failures.describe_refusal(refused, code, filename)
    return _report(Status.REFUSED, error=replace(failure, hint=refused.instead))


def _report(
    status: Status, *, result: Json = None, error: Failure | None = None, notes: Mapping[str, str] = _NO_NOTES
) -> dict[str, Json]:
    return {
        "t": "done",
        "status": status.value,
        "result": result,
        "error": None if error is None else asdict(error),
        "notes": dict(notes),
    }


Define = Callable[[str, str, str], dict[str, object]]


class SkillNotRunnable(Exception):
    """A skill's source may not run at this isolation."""

    __module__ = "builtins"


def _refusal_text(refusal: Refused) -> str:
    """Return what was refused and, after the semicolon, what to do about it."""
    if GUEST.wider:
        return f'{refusal.message}; ask for isolation="{GUEST.wider[0]}", which can run it'
    instead = f"; {refusal.instead}" if refusal.instead else ""
    return f"{refusal.message} (full Python could run it, which is not offered here){instead}"


def definer(dialect: Dialect) -> Define:
    """Return what `GUEST.define` is to be: `(source, filename, name)` in, the module's variables out.

    It raises `SkillNotRunnable` for source that the dialect refuses, and whatever the source raises.
    """

    def define(source: str, filename: str, name: str) -> dict[str, object]:
        try:
            program = dialect.compile(source, filename)
        except Refused as refusal:
            where = "" if refusal.line is None else f" in line {refusal.line}"
            raise SkillNotRunnable(f"{filename} was refused{where}: {_refusal_text(refusal)}") from None
        if program.is_async:
            raise SkillNotRunnable(f"{filename} awaits at its top level. Put that into an async function.")
        helpers = {**hosted.helpers(), **data_helpers.helpers(), **hosted_tools.bridge_names(source)}
        return dialect.module(program, name, helpers)

    return define


def dialect_of(isolation: Isolation) -> Dialect:
    """Return the kind of Python that code runs in at an isolation; only that kind is imported.

    Raises `LevelMissing` for the restricted dialect on a version of Python that it was not examined on.
    """
    if isolation is Isolation.RESTRICTED:
        require_walked()
        from ..dialect.restricted_python import RestrictedPython

        return RestrictedPython()
    from ..full_python.full_python import FullPython

    return FullPython()
