"""What kind of Python a worker runs: what differs between the restricted dialect and full CPython, in one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Protocol

from ..job import Json, Start, Table
from ..wire.output import OutputBuffer
from .host_channel import HostChannel
from .program_values import NO_LITERALS

PRELOADED = (
    *("json", "re", "math", "datetime", "statistics", "collections", "itertools", "functools", "random", "string"),
    *("decimal", "fractions", "asyncio"),
)
"""The modules that code may use without importing them, in every kind of Python."""


@dataclass(frozen=True, slots=True)
class Program:
    """Source that was compiled. `is_async` says that it awaits at the top level."""

    code: CodeType
    is_async: bool


@dataclass(frozen=True, slots=True)
class RunExtras:
    """What a run left beside its result: notes by what they are about, and figures as PNG, with a caption each.

    `tables` describe the tables that were shown.

    `failure` says why the run is void: it did not do what its trace says, or met more than can be recorded.
    """

    notes: Mapping[str, str] = field(default_factory=dict)
    failure: BaseException | None = None
    figures: Sequence[bytes] = ()
    captions: Sequence[str] = ()
    tables: Sequence[Table] = ()


class Dialect(Protocol):
    """One kind of Python, as a zygote prepares it and its workers run it; methods stand in the order of their calls."""

    layers: tuple[str, ...]
    """The layers of protection that the language itself is."""

    compiles_modules: bool
    """Whether `compile_modules` compiles any."""

    def prepare(self, packages: Sequence[tuple[str, str]]) -> None:
        """Import, in the zygote and with all its rights, what workers would else have to import one by one.

        `packages` are the modules of packages, each as the directory that it is in and its name; of full Python, which
        finds them itself, those that are imported ahead besides what always is.
        """

    def seal(self) -> None:
        """Make unchangeable, when all is imported and warm, what code must not change for the worker's own sake."""

    def compile_modules(self) -> Mapping[str, bytes]:
        """Compile what would else be compiled when it is imported; give the bytes of each module by its name."""
        ...

    def take_compiled(self, find: Callable[[str], memoryview | None]) -> None:
        """Import modules from what `find` gives of those that `compile_modules` compiled, in another process."""

    def may_mean(self, module: str, name: str) -> bool:
        """Return whether code that reads `module.name` may mean a module that it did not import."""
        ...

    def new_namespace(self, helpers: Mapping[str, object]) -> dict[str, object]:
        """Return the global variables that code starts with."""
        ...

    def module(self, program: Program, name: str, helpers: Mapping[str, object]) -> dict[str, object]:
        """Run a program as a module of its own and return its variables."""
        ...

    def take_arguments(self, words: Sequence[str]) -> None:
        """Let the code find these in `sys.argv`, its own name first."""

    def connections(self) -> tuple[HostChannel, OutputBuffer]:
        """Make, in the zygote, what connects a worker with its host, all but the descriptors."""
        ...

    def open(self, channel_fd: int, output_fd: int) -> frozenset[int]:
        """Give the connections their descriptors, in the worker before it is confined; say which must stay open."""
        ...

    def start(self) -> None:
        """Get the worker ready for code, once it is confined."""

    def rehearse(self) -> None:
        """Do in a spare, which has time, what its code is likely to need done."""

    def begin(self) -> None:
        """Prepare for a run."""

    def bound_pools(self, threads: int, memory_bytes: int) -> None:
        """Let pools of threads that libraries make have so many threads, and what they hold so many bytes."""

    def follow(self, start: Start, trace: bytes, *, records: bool) -> None:
        """Begin a run at its start, and let it do what its trace says. Raises `ReplayDiverged`."""

    def compile(self, source: str, filename: str, literals: Mapping[str, Json] = NO_LITERALS) -> Program:
        """Compile source with `literals` in it. Raises `Refused` for what may not run, else what Python raises."""
        ...

    def run(self, program: Program, namespace: dict[str, object]) -> object:
        """Run a program and return what it shows: `result` if this run set it, else its last expression's value."""
        ...

    def end(self, *, session: bool) -> RunExtras:
        """End a run and gather what it left. Raises nothing."""
        ...
