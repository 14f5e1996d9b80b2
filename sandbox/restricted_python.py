"""The restricted dialect as a worker's Python: see `language`, `namespace` and `event_loop`."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import TextIO, cast

from . import event_loop, facades, language, namespace
from .dialect import Afterwards, Program
from .forgotten import Forgotten
from .guest import GUEST
from .host_channel import HostChannel
from .output import Output
from .reading import docstrings


class RestrictedPython:
    """Code that is judged before it runs, in a namespace of guarded builtins and facades."""

    layers: tuple[str, ...] = ("language",)

    def __init__(self) -> None:
        self._forgotten = Forgotten()

    def prepare(self) -> None:
        """Build every facade, and read the files they read."""
        facades.preload()
        docstrings.preload()

    def seal(self) -> None:
        """Let no store reach the classes that facades give: guards and the worker's own code use them too."""
        facades.seal()

    def new_namespace(self, helpers: Mapping[str, object]) -> dict[str, object]:
        """Return guarded builtins, the preloaded modules and `helpers`."""
        return namespace.new_namespace(helpers)

    def module(self, program: Program, name: str, helpers: Mapping[str, object]) -> dict[str, object]:
        """Run under the guards, in a namespace of its own."""
        own = namespace.new_namespace(helpers)
        own["__name__"] = name
        language.run_program(program, own)
        return own

    def open(self, channel_fd: int, output_fd: int) -> tuple[HostChannel, Output, frozenset[int]]:
        """Map the output; the channel is the only descriptor."""
        return HostChannel(channel_fd), Output(output_fd), frozenset({channel_fd})

    def settle(self, channel: HostChannel, output: Output) -> None:  # noqa: ARG002 - print() goes through `GUEST`
        """Let coroutines hear the channel, and notice those that are never awaited."""
        random.seed()
        event_loop.set_channel(channel.descriptor, channel.receive, channel.is_waited_for)
        sys.stderr = cast("TextIO", _Nowhere())
        self._forgotten.watch()

    def begin(self) -> None:
        """Forget what an earlier run forgot."""
        self._forgotten.begin()

    def compile(self, source: str, filename: str) -> Program:
        """Judge and compile. Raises `Refused`, `SyntaxError`."""
        return language.compile_program(source, filename=filename)

    def run(self, program: Program, namespace: dict[str, object]) -> object:
        """Run under the guards."""
        return language.run_program(program, namespace)

    def end(self, *, session: bool) -> Afterwards:  # noqa: ARG002 - the same for both
        """Tell what was never awaited."""
        return Afterwards(notes=self._forgotten.notes(GUEST.namespace))


class _Nowhere:
    """Stands where standard error was: nothing that CPython writes there (errors in `__del__`) concerns the report."""

    def write(self, text: str) -> int:
        """Drop it."""
        return len(text)

    def flush(self) -> None:
        """Have nothing to do."""
