"""The restricted dialect as a worker's Python: see `compiling`, `namespace` and `event_loop`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO, cast

from ..guest import clock, randomness
from ..guest.guest import GUEST
from ..guest.host_channel import HostChannel, HostGone
from ..guest.known_modules import KNOWN_MODULES
from ..guest.program_values import NO_LITERALS
from ..guest.runtime import Program, RunExtras
from ..guest.trace import TRACE, ReplayDiverged
from ..job import Json, Start
from ..report.unawaited import Unawaited
from ..skill_source import docstrings
from ..wire.output import OutputBuffer
from . import compiling, event_loop, facades, guest_modules, names, namespace
from .facades import identity, sealing, streams
from .facades.stand_ins import random_seeds

_NAMED_MAX = 3
_NOTE_CHARS_MAX = 1000


class RestrictedPython:
    """Code that is judged before it runs, in a namespace of guarded builtins and facades."""

    layers: tuple[str, ...] = ("language",)
    compiles_modules = True

    _channel: HostChannel
    _output: OutputBuffer

    def __init__(self) -> None:
        self._unawaited = Unawaited()
        self._has_run = False
        self._nowhere = cast("TextIO", _Nowhere())

    def prepare(self, packages: Sequence[tuple[str, str]]) -> None:
        """Build every facade, and read the files they read and the source of guest modules."""
        random_seeds.install()
        facades.preload()
        guest_modules.preload(packages)
        docstrings.preload()

    def seal(self) -> None:
        """Let no store reach the classes that facades give: guards and the worker's own code use them too."""
        sealing.seal()

    def compile_modules(self) -> Mapping[str, bytes]:
        """Compile the guest modules, those of packages too."""
        return guest_modules.compile_all()

    def take_compiled(self, find: Callable[[str], memoryview | None]) -> None:
        """Import guest modules from what was compiled."""
        guest_modules.take_compiled(find)

    def may_mean(self, module: str, name: str) -> bool:
        """Return whether a module that can be imported has a member of that name."""
        return KNOWN_MODULES.defines(module, name)

    def new_namespace(self, helpers: Mapping[str, object]) -> dict[str, object]:
        """Return guarded builtins, the preloaded modules and `helpers`."""
        own = namespace.new_namespace(helpers)
        self._unawaited.given(own)
        return own

    def module(self, program: Program, name: str, helpers: Mapping[str, object]) -> dict[str, object]:
        """Run under the guards, in a namespace of its own."""
        own = namespace.new_namespace(helpers)
        own["__name__"] = name
        compiling.run_program(program, own)
        return own

    def take_arguments(self, words: Sequence[str]) -> None:
        """Set `sys.argv`."""
        facades.set_arguments(words)

    def connections(self) -> tuple[HostChannel, OutputBuffer]:
        """Let coroutines wait for the channel, and notice those that are never awaited."""
        self._channel, self._output = HostChannel(), OutputBuffer()
        event_loop.set_channel(self._channel, self._channel.hand_out, self._channel.is_waited_for)
        self._unawaited.watch()
        TRACE.renew()
        self._has_run = False
        return self._channel, self._output

    def open(self, channel_fd: int, output_fd: int) -> frozenset[int]:
        """Map the output; the channel is the only descriptor."""
        self._channel.connect(channel_fd)
        self._output.attach(output_fd)
        return frozenset({channel_fd})

    def start(self) -> None:
        """Keep what CPython would write itself to nobody."""
        sys.stderr = self._nowhere

    def rehearse(self) -> None:
        """Do nothing more than the zygote did."""

    def begin(self) -> None:
        """Clear the notes of earlier runs, and restore the streams they exchanged."""
        if not self._has_run:  # each page that is looked at is copied
            return
        self._unawaited.begin()
        event_loop.take_cancelled()
        streams.restore()

    def bound_pools(self, threads: int, memory_bytes: int) -> None:
        """Do nothing: there are no such libraries."""

    def follow(self, start: Start, trace: bytes, *, records: bool) -> None:
        """Take time and random bytes from the start of the run, and have it recorded."""
        is_first, self._has_run = not self._has_run, True
        clock.begin(start.time_ns, is_first=is_first)
        if is_first:
            identity.begin()
        randomness.begin(start.seed, is_first=is_first)
        TRACE.begin(trace, records=records, flush=self._channel.send_trace)

    def compile(self, source: str, filename: str, literals: Mapping[str, Json] = NO_LITERALS) -> Program:
        """Judge and compile. Raises `Refused`, `SyntaxError`."""
        return compiling.compile_program(source, filename=filename, literals=literals)

    def run(self, program: Program, namespace: dict[str, object]) -> object:
        """Run under the guards."""
        return compiling.run_program(program, namespace)

    def end(self, *, session: bool) -> RunExtras:  # noqa: ARG002 - the same for both
        """Write what open files still hold. Note what could not be written, and which calls never ran or ended."""
        notes = {**self._unawaited.notes(GUEST.namespace), **_cancelled_tasks(), **_unwritten()}
        if TRACE.failure is None:
            with suppress(ReplayDiverged):
                self._channel.hold_trace(is_last=True)
        return RunExtras(notes=notes, failure=TRACE.failure)


def _unwritten() -> dict[str, str]:
    """Flush the files that the run left open, as CPython does when it ends; return notes on those that failed."""
    if not guest_modules.is_loaded("io"):
        return {}
    try:
        failed = guest_modules.call("io", "flush_all")
    except HostGone:
        raise
    except BaseException as error:  # noqa: BLE001 - code may have put anything in its place
        failed = [("a file", type(error).__name__)]
    note = f"not all of it was written: {failed}"[:_NOTE_CHARS_MAX]
    return {"open files": note} if failed else {}


def _cancelled_tasks() -> dict[str, str]:
    tasks = sorted({(task.line or 0, names.demangle(task.name)) for task in event_loop.take_cancelled()})
    if not tasks:
        return {}
    named = ", ".join(f"{name}() of line {line}" if line else f"{name}()" for line, name in tasks[:_NAMED_MAX])
    named += f" and {len(tasks) - _NAMED_MAX} more" if tasks[_NAMED_MAX:] else ""
    return {"tasks": f"Cancelled when the code ended, before they had: {named}. Write `await task` to wait for one."}


class _Nowhere:
    """Stands where standard error was: nothing that CPython writes there (errors in `__del__`) concerns the report."""

    def write(self, text: str) -> int:
        """Drop it."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""
