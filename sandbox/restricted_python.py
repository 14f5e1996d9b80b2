"""The restricted dialect as a worker's Python: see `language`, `namespace` and `event_loop`."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping
from typing import TextIO, cast

from . import event_loop, facades, language, namespace
from .dialect import Afterwards, Program
from .host_channel import HostChannel
from .output import Output
from .reading import docstrings

_FORGOTTEN = re.compile(r"coroutine '[^'\n]{1,200}' was never awaited")


class RestrictedPython:
    """Code that is judged before it runs, in a namespace of guarded builtins and facades."""

    layers: tuple[str, ...] = ("language",)

    def __init__(self) -> None:
        self._slips = _Slips()

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
        """Let coroutines hear the channel, and keep what CPython writes to standard error."""
        random.seed()
        event_loop.set_channel(channel.descriptor, channel.receive, channel.is_waited_for)
        sys.stderr = cast("TextIO", self._slips)

    def begin(self) -> None:
        """Forget earlier remarks."""
        self._slips.remarks.clear()

    def compile(self, source: str, filename: str) -> Program:
        """Judge and compile. Raises `Refused`, `SyntaxError`."""
        return language.compile_program(source, filename=filename)

    def run(self, program: Program, namespace: dict[str, object]) -> object:
        """Run under the guards."""
        return language.run_program(program, namespace)

    def end(self, *, session: bool) -> Afterwards:  # noqa: ARG002 - the same for both
        """Give the remarks."""
        return Afterwards(notes=dict(self._slips.remarks))


class _Slips:
    """Stands where standard error was, and keeps one thing that CPython writes there: a forgotten `await`.

    CPython looks for the warnings module through the importer of the running code, does not find it, and then writes
    the warning itself. Nothing else that it writes there (errors in `__del__`) concerns the report.
    """

    def __init__(self) -> None:
        self.remarks: dict[str, str] = {}

    def write(self, text: str) -> int:
        forgotten = _FORGOTTEN.search(text)
        if forgotten is not None:
            self.remarks["code"] = f"{forgotten[0]}: nothing of it ran. Write `await` before the call."
        return len(text)

    def flush(self) -> None:
        """Have nothing to do."""
