"""Runs steps in forks of this process: one fork for many, another after a step that ended it or hangs.

A step is hostile, so that a fork can write no file, open none that Python does not bring with it, start no process and
use no network: an audit hook refuses it, and what it refused is a find.
"""

from __future__ import annotations

import gc
import itertools
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .reached import Stuck, bounded

Step = tuple[str, Callable[[], Iterator[str]]]
_FOUND_BY_STEP = 2
_SILENT_SECONDS = 60
_FORK_CPU_SECONDS = 90
_MEMORY_BYTES = 2 << 30
_HARMFUL = (
    "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "tempfile.", "pty.", "fcntl.", "ftplib.", "glob.", "mmap.",
    "signal.pthread_kill", "syslog.", "sqlite3.", "webbrowser.", "urllib.", "msvcrt.", "resource.setrlimit",
)  # fmt: skip
_HARMLESS = frozenset({"ctypes.cdata", "os.putenv", "os.unsetenv", "os.getxattr", "os.fwalk", "os.walk"})
_OF_PYTHON = tuple(
    {
        str(Path(each).resolve())
        for each in (sys.base_prefix, sys.prefix, Path(__file__).parents[2], "/usr/share/zoneinfo")
    }
)


def run(
    steps: Callable[[], Iterator[Step]], changes: Callable[[], Iterable[str]], seconds: float = 15
) -> tuple[list[str], int]:
    """Do all steps and return what they found, and how many there were; `changes` says then what they did to the host.

    What computes or waits for longer than `seconds` is interrupted.
    """
    found: list[str] = []
    progress = mmap.mmap(-1, 16)
    first = 0
    while True:
        progress[:16] = bytes(16)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _act(steps, changes, seconds=seconds, first=first, progress=progress, writing=writing)
        os.close(writing)
        label, hung = _follow(reading, child, progress, found)
        _, status = os.waitpid(child, 0)
        done = int.from_bytes(progress[:8], "little")
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 and not hung:
            return sorted(set(found)), done
        why = "hangs" if hung else f"ends by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "exits"
        found.append(f"{label}: {why}")
        first = done + 1


def _follow(reading: int, child: int, progress: mmap.mmap, found: list[str]) -> tuple[str, bool]:
    label, hung, before, since = "the start", False, bytes(8), time.monotonic()
    text = b""
    with open(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], 1.0)
            if progress[:8] != before:
                before, since = progress[:8], time.monotonic()
            if not ready:
                if time.monotonic() - since > _SILENT_SECONDS and not hung:
                    hung = True
                    os.kill(child, signal.SIGKILL)
                continue
            part = pipe.read(1 << 16)
            if not part:
                return label, hung
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                kind, said = json.loads(line)
                if kind == "found":
                    found.append(said)
                elif kind == "at":
                    label = said


class _Harmful(PermissionError):
    """What a step must not do."""


def _act(
    steps: Callable[[], Iterator[Step]],
    changes: Callable[[], Iterable[str]],
    *,
    seconds: float,
    first: int,
    progress: mmap.mmap,
    writing: int,
) -> None:
    encode, write = json.JSONEncoder().encode, os.write

    def tell(kind: str, said: str) -> None:
        write(writing, f"{encode([kind, said])}\n".encode())

    refused: list[str] = []
    active = [False]

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if not active[0]:
            return
        if event == "open":
            name, _mode, flags = arguments
            if type(flags) is int and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and _is_of_python(name):
                return
        elif not event.startswith(_HARMFUL) or event in _HARMLESS:
            return
        refused.append(f"{event} {str(arguments)[:80]}")
        raise _Harmful(event)

    status = 1
    try:
        gc.disable()
        sys.addaudithook(audit)
        for kind, most in (
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_AS, _MEMORY_BYTES),
            (resource.RLIMIT_CPU, _FORK_CPU_SECONDS),
        ):
            resource.setrlimit(kind, (most, most))
        of_the_fork = set(changes())
        for number, (label, act) in enumerate(steps()):
            if number < first:
                continue
            progress[:8] = number.to_bytes(8, "little")
            tell("at", label)
            active[0] = True
            try:
                with bounded(seconds):
                    for each in itertools.islice(dict.fromkeys(act()), _FOUND_BY_STEP):
                        tell("found", f"{label}: {each}")
            except Stuck:
                tell("found", f"{label}: takes more than {seconds} s")
            finally:
                active[0] = False
            for each in refused[:_FOUND_BY_STEP]:
                tell("found", f"{label}: {each}")
            refused.clear()
        for each in set(changes()) - of_the_fork:
            tell("found", f"writes into the host: {each}")
        status = 0
    except BaseException as error:  # a slip of the walk itself
        import traceback

        tell("found", f"the walk itself: {traceback.format_exception(error)[-3:]}"[:800])
        status = 0
    finally:
        os._exit(status)


def _is_of_python(name: object) -> bool:
    """Return whether Python opens a file for itself: the compiler asks for the source of a file without a name."""
    return isinstance(name, str) and (not name or os.path.realpath(name).startswith(_OF_PYTHON))
