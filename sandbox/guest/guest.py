"""The one execution (or session) this child process exists for.

A worker process serves one guest and then ends, so what belongs to the guest is held here once, and the guards,
facades and helpers read it from here instead of passing it through every call. Guest code cannot reach this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

from .ownership import is_guest_frame

if TYPE_CHECKING:
    from ..job import Json


def _discard(_text: str) -> None:
    """Write nowhere: what a guest has before a worker gives it an output."""


def _no_host(name: str, _arguments: Mapping[str, Json]) -> Json:
    raise RuntimeError(f"{name} is not available here, since no host is connected. Run the code through the server.")


async def _no_host_async(name: str, arguments: Mapping[str, Json]) -> Json:
    return _no_host(name, arguments)


def _no_skills(_source: str, _filename: str, _name: str) -> dict[str, object]:
    raise RuntimeError("Skills cannot be loaded here. Run the code through the server.")


@dataclass(slots=True)
class Guest:
    """What the running code is given. A worker sets the fields before it runs anything.

    `write` takes what `print` writes and `write_error` what goes to standard error; both may be redirected to objects
    of the code's own. `output` and `error_output` are where they lead at first, and the streams themselves always;
    `call_host` sends one host call and waits for its answer;
    `call_host_async` does the same without holding up other tasks; `namespace` holds the code's global variables.
    `define(source, filename, name)` runs source as a module of its own and gives its variables; `sources` are those of
    such modules by their file names, `answers` the shapes of the tools' newest answers, and `run` counts the runs that
    this process was given.
    `full_python` says that no dialect limits the code, and `wider` names the isolations that run full Python and that
    its author may ask for instead. `plain` gives what a library's value is in plain Python, or the value itself, where
    it gets the place of the value in a result. `draw` shows a figure as an image and gives its number, or None for
    what is none.
    `measure` gives about how many bytes a library's value takes and how large it is in words, or None for any other.
    `displayed` are the values that the run displayed, as JSON, `displayed_notes` what is said of them, and
    `displayed_size` their bytes and how many values they are made of.
    `writes_workspace` says that it changes files of the workspace by itself, which the host brings home when it ends.
    `folder_of_skill` gives the folder of a version of a skill, `name@version`, and `run_script` runs a script there.
    `tells_reads` says that the host is to know of each file of the workspace before it is opened.
    """

    write: Callable[[str], None] = _discard
    write_error: Callable[[str], None] = _discard
    output: Callable[[str], None] = _discard
    error_output: Callable[[str], None] = _discard
    call_host: Callable[[str, Mapping[str, Json]], Json] = _no_host
    call_host_async: Callable[[str, Mapping[str, Json]], Awaitable[Json]] = _no_host_async
    namespace: dict[str, object] = field(default_factory=dict)
    define: Callable[[str, str, str], dict[str, object]] = _no_skills
    sources: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    run: int = 0
    full_python: bool = False
    wider: tuple[str, ...] = ()
    plain: Callable[[object, str], object] | None = None
    draw: Callable[[object], int | None] | None = None
    measure: Callable[[object], tuple[int, str] | None] | None = None
    displayed: list[Json] = field(default_factory=list)
    displayed_notes: dict[str, str] = field(default_factory=dict)
    displayed_size: list[int] = field(default_factory=lambda: [0, 0])
    folder_of_skill: Callable[[str], str] | None = None
    run_script: Callable[[str, str, Sequence[str]], str] | None = None
    tells_reads: bool = False
    writes_workspace: bool = False

    def forget_displayed(self) -> None:
        """Begin a run, which has displayed nothing yet."""
        self.displayed, self.displayed_notes, self.displayed_size = [], {}, [0, 0]


GUEST = Guest()


def variables_of(frame: FrameType | None) -> dict[str, object]:
    """Return the global variables of the guest code that runs in `frame`, or that called what runs there.

    Code of a skill runs in variables of its own, so what evaluates names on behalf of code asks whose they are.
    """
    while frame is not None:
        if is_guest_frame(frame):
            return frame.f_globals
        frame = frame.f_back
    return GUEST.namespace
