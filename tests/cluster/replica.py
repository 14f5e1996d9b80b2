"""One replica: a real `sealab serve`, that can be stopped, killed, and started again on its home."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from tests.chaos.clocked import CLOCK_VARIABLE, set_clock
from tests.chaos.served import CLOCKED
from tests.server.conftest import SEALAB, environment

from .network import Network

START_SECONDS = 240.0
_SAID_MAX = 4000
_T = TypeVar("_T", int, float)


class Replica:
    """A replica by its name; `settings` are those of its environment."""

    def __init__(self, name: str, network: Network, home: Path, settings: dict[str, str]) -> None:
        self.name, self.home = name, home
        self.address = f"{network.ip(name)}:{network.port(name)}"
        self.settings = settings
        self.said: deque[str] = deque(maxlen=_SAID_MAX)
        self._network = network
        self._process: subprocess.Popen[str] | None = None
        home.mkdir(exist_ok=True)

    @property
    def process(self) -> subprocess.Popen[str]:
        """Its process. Raises `AssertionError` before the first start."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    def start(self, launched_by: Sequence[str] = (), *, clock_seconds: float = 0) -> None:
        """Start it, by a command that runs the server as its arguments, and wait until it listens.

        Its wall clock is `clock_seconds` off.
        """
        env = environment(**self.settings)
        command = [*self._network.launcher(self.name), *launched_by]
        if clock_seconds:
            # Not faketime(1): under it the interpreter's sleep, which is until a monotonic time, fails or never ends.
            set_clock(self.home / "clock", clock_seconds)
            env[CLOCK_VARIABLE] = str(self.home / "clock")
            command += CLOCKED
        else:
            command += SEALAB
        command += ["serve", "--http", self.address, "--home", str(self.home)]
        command += ["--behind-proxy", self._network.ip("balancer")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True)
        listens = threading.Event()
        threading.Thread(target=self._read, args=(self._process, listens), daemon=True).start()
        if not listens.wait(START_SECONDS) or self._process.poll() is not None:
            self.end()
            raise AssertionError(f"{self.name} did not start: {''.join(list(self.said)[-20:])}")

    def _read(self, process: subprocess.Popen[str], listens: threading.Event) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.said.append(line)
                if "serves MCP at http" in line:
                    listens.set()
        listens.set()

    def signal(self, number: signal.Signals) -> None:
        """Signal the server: what gave it a place replaced itself by it."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it with SIGKILL and reap it."""
        self.signal(signal.SIGKILL)
        self.process.wait(20)

    def drain(self, seconds: float = 60.0) -> int:
        """Tell it to stop as a service manager does, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def end(self) -> None:
        """End it and all that it started, in whatever state it is."""
        if self._process is None or self._process.poll() is not None:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        for each in [psutil.Process(self._process.pid), *family]:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGCONT)
                each.kill()
        self._process.wait(20)

    def rss_bytes(self) -> int:
        """Return the resident memory of the server and of all below it."""
        return sum(self._of_each(lambda each: each.memory_info().rss))

    def cpu_seconds(self) -> float:
        """Return what the server has used of processors, with all below it, those that have ended among them."""
        return sum(self._of_each(lambda each: sum(each.cpu_times()[:4])))

    def _of_each(self, tell: Callable[[psutil.Process], _T]) -> Iterator[_T]:
        server = psutil.Process(self.process.pid)
        for each in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                yield tell(each)
