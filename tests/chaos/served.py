"""A real server over HTTP, in a process that can be hurt: what it started is known, and only that is ever signalled."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.server.conftest import environment

from .clocked import CLOCK_VARIABLE, set_clock

UPSTREAM = Path(__file__).with_name("upstream.py")
CLOCKED = [sys.executable, "-P", str(Path(__file__).with_name("clocked.py"))]
START_SECONDS = 60.0


def write_upstreams(home: Path) -> None:
    """Configure this home with two upstream servers: one that is well, and one that is not."""
    one = {"command": sys.executable, "args": ["-P", str(UPSTREAM)]}
    # The one that is well is waited for as long as a fault may hold the server; the other one hangs.
    two = {"steady": one | {"call_timeout_seconds": 15}, "shaky": one | {"call_timeout_seconds": 3}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": two}))


class Served:
    """A server that is started again on the same home whenever it has ended."""

    def __init__(self, home: Path, database_url: str | None, command: Sequence[str] = CLOCKED, **env: str) -> None:
        self.url = ""
        self.lives = 0
        self._clock = home.with_name("clock")
        if not self._clock.exists():
            self.set_clock(0)
        self._home, self._command = home, command
        self._env = environment(**env) | {CLOCK_VARIABLE: str(self._clock)}
        if database_url is not None:
            self._env["SEALAB_DATABASE_URL"] = database_url
        self._said: list[str] = []
        self._heard = 0

    def beside(self) -> Served:
        """Return another server on the same home and database."""
        return Served(self._home, None, self._command, **self._env)

    def start(self, launched_by: Sequence[str] = ()) -> None:
        """Start it, by a command that runs the server as its arguments, and wait until it says where it listens."""
        command = [*launched_by, *self._command, "serve", "--http", "127.0.0.1:0", "--home", str(self._home)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self._env, text=True
        )
        self.lives += 1
        listens = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self.process, listens), daemon=True)
        self._reader.start()
        if not listens.wait(START_SECONDS) or self.process.poll() is not None:
            raise AssertionError(f"the server did not start: {''.join(self._said[-20:])}")

    def _read(self, process: subprocess.Popen[str], listens: threading.Event) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                if "serves MCP at http://" in line:
                    self.url = line.split()[-1]
                    listens.set()
                self._said.append(line)
        listens.set()

    def news(self) -> list[str]:
        """Return the lines of the log since the last time."""
        heard, self._heard = self._heard, len(self._said)
        return self._said[heard : self._heard]

    def set_clock(self, seconds: float) -> None:
        """Set its wall clock so many seconds off."""
        set_clock(self._clock, seconds)

    def signal(self, number: signal.Signals) -> None:
        """Signal it as a service manager does: it goes on if it was stopped, since it could not end otherwise."""
        self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)

    def end(self, number: signal.Signals, seconds: float = 60.0) -> tuple[int, list[int]]:
        """Signal it, and return how it ended and which processes of it were still there 10 seconds later."""
        family = self.family()
        self.signal(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(10)
        for each in family:  # one that was stopped notices nothing
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGCONT)
        _, left = psutil.wait_procs(family, timeout=10)
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        return self.process.returncode, [each.pid for each in left]

    def family(self) -> list[psutil.Process]:
        """Return all processes below the server."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def zygotes(self) -> list[psutil.Process]:
        return [each for each in self._children() if not _is_upstream(each)]

    def upstreams(self) -> list[psutil.Process]:
        return [each for each in self._children() if _is_upstream(each)]

    def workers(self) -> list[psutil.Process]:
        found = []
        for zygote in self.zygotes():
            with suppress(psutil.NoSuchProcess):
                found += zygote.children()
        return found

    def _children(self) -> Iterator[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            yield from psutil.Process(self.process.pid).children()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def allow_descriptors(self, soft: int) -> int:
        """Set the soft limit of the running server, and return what it was."""
        was, hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (min(soft, hard), hard))
        return was


@contextmanager
def another_uptime(seconds: float) -> Iterator[list[str]]:
    """Give a command that runs its arguments where the monotonic clock says that the machine started so long ago.

    The clock of a time namespace is set when that is made (time_namespaces(7)), which takes a right that a user
    namespace gives. Nothing but the time namespace is joined.
    """
    off = math.ceil(seconds - time.monotonic())
    with subprocess.Popen([*_time_namespace(off), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"made\n")
        holder.stdin.flush()
        if not holder.stdout.readline():
            raise AssertionError("a time namespace cannot be made here")
        yield ["nsenter", f"--time=/proc/{holder.pid}/ns/time_for_children"]
        holder.stdin.close()


def uptime_can_differ() -> bool:
    """Return whether `another_uptime` can be had on this machine."""
    try:
        return subprocess.run([*_time_namespace(1), "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def _time_namespace(off: int) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--time", f"--monotonic={off}", f"--boottime={off}"]


def _is_upstream(process: psutil.Process) -> bool:
    try:
        return str(UPSTREAM) in process.cmdline()
    except psutil.Error:
        return False


def control_seconds() -> float:
    """Return how long this machine takes at the moment to start a process that loads a little."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-S", "-c", "import asyncio"], check=True)
    return time.monotonic() - began
