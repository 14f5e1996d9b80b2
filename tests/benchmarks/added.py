"""What authentication, audit and policy add to `1+1` over HTTP: servers with more and more of them, asked in turns.

    python -m tests.benchmarks.added [--clients 1] [--calls 50] [--rounds 10]

Prints the latency of calls and the CPU time of the server for each, which a busy machine disturbs less. Asserts
nothing; the goal is 0.5 ms at p50 for all three together.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.benchmarks.load import STOP_SECONDS, at, said_by, told
from tests.benchmarks.load_client import Load
from tests.benchmarks.tenants_load import Scale, tokens_in
from tests.server.conftest import SEALAB

MODES = {
    "none": {"AUDIT": "off"},
    "tokens": {"AUDIT": "off", "AUTH": "tokens"},
    "tokens, audit": {"AUTH": "tokens"},
    "tokens, audit, policy": {"AUTH": "tokens", "POLICY": "policy"},
}
POLICY = 'permit (principal, action == Action::"run", resource == Isolation::"restricted");\n'
WARM_CALLS = 20
GOAL_MS = 0.5


@dataclass(slots=True)
class Asked:
    """A server, and what its calls took: all latencies, and the CPU time of a call in each round."""

    url: str
    process: psutil.Process
    tokens: list[str]
    latencies_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def ask(self, clients: int, calls: int) -> None:
        """Have clients make so many calls each."""
        before = self.process.cpu_times()
        found = told(Load(self.url, clients, calls, tokens=self.tokens, open_at_once=clients))
        after = self.process.cpu_times()
        assert not found.wrong, found.shown
        self.latencies_ms += found.latencies_ms
        spent = after.user + after.system - before.user - before.system
        self.cpu_ms.append(spent / len(found.latencies_ms) * 1000)


@contextmanager
def server(settings: dict[str, str], clients: int) -> Iterator[Asked]:
    """Run a server with such settings, in a home of its own with a token for each client."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
    own = {f"SEALAB_{key}": value for key, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        tokens = tokens_in(home, Scale(clients, 1, 0, 0))["tenant-0"] if "AUTH" in settings else []
        (home / "policy").mkdir()
        (home / "policy" / "policy.cedar").write_text(POLICY)
        log = home / "stderr.txt"
        command = [*SEALAB, "serve", "--http", "127.0.0.1:0", "--home", folder]
        with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=plain | own) as process:
            try:
                yield Asked(said_by(log), psutil.Process(process.pid), tokens)
            finally:
                process.terminate()
                process.wait(STOP_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what authentication, audit and policy add to a call.")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        asked = {mode: stack.enter_context(server(own, chosen.clients)) for mode, own in MODES.items()}
        for each in asked.values():
            each.ask(chosen.clients, WARM_CALLS)
            each.latencies_ms.clear()
            each.cpu_ms.clear()
        for number in range(chosen.rounds):
            for each in list(asked.values())[:: -1 if number % 2 else 1]:
                each.ask(chosen.clients, chosen.calls)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load average {load}; {chosen}")
    none = asked["none"]
    for mode, each in asked.items():
        p50, cpu = at(each.latencies_ms, 0.5), statistics.median(each.cpu_ms)
        more = p50 - at(none.latencies_ms, 0.5), cpu - statistics.median(none.cpu_ms)
        print(
            f"{mode:24} p50 {p50:6.2f} ms ({more[0]:+.2f}; goal {GOAL_MS:g})   CPU of a call {cpu:5.2f} ms "
            f"({more[1]:+.2f}), least {min(each.cpu_ms):.2f}"
        )


if __name__ == "__main__":
    main()
