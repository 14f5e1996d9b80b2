"""Hurts a real server while clients work with it, and looks at what it does then; see `make chaos`.

    python -m tests.chaos.drive [--seconds S] [--seed N] [--round N] [--fault NAME] [--database sqlite|postgresql]

Works in rounds of STEPS steps, each with a server and a home of its own. A step lets some clients work, has one thing
go wrong, and then looks: were all answers right or honest, is what was acknowledged still there, are the turns,
descriptors and processes back, and is `1 + 1` answered. Everything is chosen by the seed and the number of the round;
`--round` runs that one alone. Ends with 1 on a find.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.skills_db.postgres import find_binaries, throwaway_cluster

from .client import MODERN, Answer, Client
from .faults import FAULTS, LATE, OF_POSTGRESQL, OF_SQLITE, Fault, Place, machine_restarted, together
from .load import LOADS, Ledger, Load, Visit, visitors
from .served import CLOCKED, Served, control_seconds, uptime_can_differ, write_upstreams

STEPS, VISITS = 20, 12
SECOND_FAULTS = 0.3
"""How often a second thing goes wrong in the middle of the first."""
QUIET_SECONDS = 25.0
ANSWERED_SECONDS, CONTROLS = 1.0, 10.0
"""How late `1 + 1` may come: a second, or as long as this machine takes to start so many processes at the moment."""
DATABASE_SECONDS = 5.0
"""How long after a fault the database may be refused: a server of its own is asked again in a while."""
LATE_OFTEN = 2
"""An answer that is late once may be the machine's fault."""
DESCRIPTORS_SLACK, PROCESSES_SLACK = 16, 3
_OF_A_RUN = 6
"""Descriptors that a session or a waiting run may hold."""
FAST_DISK = Path("/dev/shm")
"""A small file system of its own, where one can be had without rights."""


@dataclass
class Find:
    text: str
    where: str
    times: int = 1


@dataclass
class Record:
    """What happened in all rounds."""

    steps: Counter[str] = field(default_factory=Counter)
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    finds: dict[str, Find] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    reread: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, text: str, where: str) -> None:
        """Note a find; those that differ only in numbers and ids are one."""
        key = re.sub(r"\w*\d\w*", "#", text)[:300]
        with self.lock:
            if key in self.finds:
                self.finds[key].times += 1
            else:
                self.finds[key] = Find(text[:1500], where)
                print(f"FIND {where}: {text[:1500]}", flush=True)

    def show(self) -> None:
        print("\nsteps by fault, and how late 1 + 1 was answered during or after it at most")
        for name, count in sorted(self.steps.items()):
            print(f"  {name:<22}{count:>6}{self.slowest.get(name, 0):>10.2f} s")
        statuses = sorted({status for counts in self.calls.values() for status in counts})
        print("\nanswers" + " " * 13 + "".join(f"{status:>12}" for status in statuses))
        for what, counts in sorted(self.calls.items()):
            print(f"  {what:<18}" + "".join(f"{counts[status] or '':>12}" for status in statuses))
        print(f"\nread again: {self.reread}; finds: {len(self.finds)}")
        for each in self.finds.values():
            print(f"  {each.where}, {each.times} times: {each.text}")


class Round:
    """One server, what it acknowledged, and the steps that hurt it."""

    def __init__(self, place: Place, seed: str, record: Record, where: str) -> None:
        self._place = place
        self._served = place.served
        self._seed, self._rng = seed, Random(seed)
        self._record = record
        self._where = self._at = where
        self._ledger = Ledger()
        self._clients = visitors(lambda: self._served.url)
        self._other = Client(lambda: self._served.url, MODERN, "dora")
        self._fault = FAULTS[0]
        self._began = 0.0

    def run(self, steps: int, faults: Sequence[Fault], loads: Sequence[Load] = LOADS) -> None:
        self._served.start()
        try:
            self._settle()
            for number in range(steps):
                self._at = f"{self._where} STEP={number}"
                self._rng = Random(f"{self._seed}/{number}")
                many = 1 + (self._rng.random() < SECOND_FAULTS)
                self._step(number, together(self._rng.sample(faults, min(many, len(faults)))), loads)
            self._at = f"{self._where} at its end"
            self._fault = FAULTS[0]
            self._ended(signal.SIGKILL)
            self._served.start()
            self._reread(most=10**9)
            self._ended(signal.SIGTERM)
        finally:
            if self._served.process.poll() is None:
                self._served.end(signal.SIGKILL)

    def _settle(self) -> None:
        """Use everything once, and count what there is then."""
        self._life = self._served.lives
        warm = "import asyncio\nawait asyncio.gather(*[tools[s].echo(text='') for s in ('steady', 'shaky')])"
        self._judge("warm", self._other.run(warm.replace("tools[s]", "getattr(tools, s)"), timeout_seconds=60))
        for tool, given in (
            ("sanitize_pii", {"text": "a.b@c.example"}),
            ("list_skills", {}),
            ("list_workspace_files", {}),
        ):
            self._judge("warm", self._other.call(tool, given))
        with ThreadPoolExecutor(len(self._clients)) as threads:
            list(threads.map(lambda client: client.run("import time\ntime.sleep(0.3)"), self._clients))
        self._descriptors, self._processes = self._served.descriptors(), len(self._served.family())

    def _step(self, number: int, fault: Fault, loads: Sequence[Load]) -> None:
        self._fault, self._began, self._place.wrong = fault, float("inf"), []
        step_began = time.monotonic()
        self._record.steps[fault.name] += 1
        end = threading.Event()
        visits = [
            Visit(each, Random(self._rng.getrandbits(64)), f"n{number}x{index}", self._judge, self._ledger, end)
            for index, each in enumerate(self._rng.choices(self._clients, k=self._rng.randint(2, VISITS)))
        ]
        chosen = self._rng.choices(loads, k=len(visits))
        pause, chance = self._rng.uniform(0, 1), Random(self._rng.getrandbits(64))
        with ThreadPoolExecutor(len(visits)) as threads:
            working = [threads.submit(load, visit) for load, visit in zip(chosen, visits, strict=True)]
            time.sleep(pause)
            self._began = time.monotonic()
            with fault.act(self._place, chance):
                if fault.aside:
                    self._answers("during")
            end.set()
            self._answers("after")
            for each in working:
                each.result()
        self._fault = FAULTS[0]
        for wrong in self._place.wrong:
            self._find(wrong)
        if self._served.process.poll() is not None:
            self._find(f"the server ended by itself with {self._served.process.returncode}")
            self._served.start()
        self._recovered(fault)
        if self._served.lives != self._life:
            self._life, self._ledger.waiting = self._served.lives, 0
            self._reread(most=40)
        self._quiet()
        self._reread(most=4)
        worked = ", ".join(load.__name__ for load in chosen)
        print(f"{self._at}: {fault.name}; {worked}; {time.monotonic() - step_began:.1f} s", flush=True)
        for traceback in _tracebacks(self._served.news()):
            self._find(f"traceback in the log ({fault.name}): {traceback}")

    # What is looked at

    def _judge(
        self, what: str, answer: Answer, right: object = True, allowed: tuple[str, ...] = (), needs: str = ""
    ) -> None:
        with self._record.lock:
            self._record.calls.setdefault(what, Counter())[answer.status] += 1
        reason = answer.dishonest()
        if reason is None and answer.ok and not right:
            reason = f"a wrong answer: {answer.text} {answer.content}"
        elif reason is None and not answer.ok and answer.status not in allowed and not self._excuses(answer, needs):
            reason = f"no reason for {answer.status}: {answer.text}"
        if reason is not None:
            self._find(f"{what}, {self._fault.name}: {reason}")

    def _excuses(self, answer: Answer, needs: str) -> bool:
        if answer.status in self._fault.excuses:
            return True
        if answer.status == "cut" and self._fault.excuses >= LATE:
            return answer.sent > self._began - 0.3  # what was taken before is answered
        if "crashed" in self._fault.excuses and "Nothing was saved. Save it again." in answer.text:
            return True
        return bool(self._fault.hurts & {needs}) and answer.status in {"tool error", "error"}

    def _answers(self, when: str) -> None:
        """Let another client add one and one."""
        name = self._fault.name
        control, began = control_seconds(), time.monotonic()
        answer = self._other.run("1 + 1", timeout_seconds=20)
        took = time.monotonic() - began
        self._judge("1 + 1", answer, not answer.ok or answer.content["result"] == 2)
        self._record.slowest[name] = max(self._record.slowest.get(name, 0), took)
        if took > max(ANSWERED_SECONDS, CONTROLS * max(control, control_seconds())):
            self._record.late[f"{name} {when}"] += 1
            if self._record.late[f"{name} {when}"] >= LATE_OFTEN:
                self._find(f"1 + 1 {when} {name} came late, again: {took:.1f} s, control {control:.2f} s")

    def _recovered(self, fault: Fault) -> None:
        """Wait until the database can be used again."""
        began = time.monotonic()
        while not (answer := self._other.call("list_skills", {})).ok and time.monotonic() - began < QUIET_SECONDS:
            time.sleep(0.1)
        if time.monotonic() - began > DATABASE_SECONDS:
            self._find(
                f"the database came back {time.monotonic() - began:.1f} s after {fault.name}: {answer.status} {answer.text}"
            )

    def _quiet(self) -> None:
        """Wait until nothing works any more. What then still has a turn, a descriptor or a process is lost."""
        deadline, left = time.monotonic() + QUIET_SECONDS, "no statistics"
        while time.monotonic() < deadline:
            answer = self._other.call("get_execution_stats", {})
            if answer.ok:
                left = self._left(answer)
                if not left:
                    return
            time.sleep(0.2)
        self._find(f"not back after {QUIET_SECONDS:g} s: {left}")

    def _left(self, answer: Answer) -> str:
        pool = answer.content["pool"]
        waiting = self._ledger.waiting
        held = pool["sessions"] + waiting
        descriptors = self._served.descriptors() - self._descriptors - _OF_A_RUN * held
        processes = len(self._served.family()) - self._processes - held
        left = []
        if pool["waiting"] or pool["running"] + pool["resting"] > waiting:
            left.append(f"turns: {pool}, {waiting} may wait for a user")
        if descriptors > DESCRIPTORS_SLACK:
            left.append(f"{descriptors} descriptors")
        if processes > PROCESSES_SLACK:
            left.append(f"{processes} processes")
        return ", ".join(left)

    def _reread(self, most: int) -> None:
        self._record.reread += min(most, len(self._ledger))
        for lost in self._ledger.reread(self._clients, self._rng, most):
            self._find(lost)

    def _ended(self, how: signal.Signals) -> None:
        code, left = self._served.end(how)
        if left or code not in {0, -signal.SIGKILL} or (how is signal.SIGTERM and code):
            self._find(f"{how.name} ended the server with {code} and left {len(left)} processes")

    def _find(self, text: str) -> None:
        self._record.find(text, self._at)


def _tracebacks(lines: Sequence[str]) -> Iterator[str]:
    """Give for each traceback what was raised, and where."""
    frames: list[str] = []
    for line in lines:
        if line.lstrip().startswith('File "'):
            frames.append(line.strip().rpartition("/")[2])
        elif frames and re.match(r"(\w+\.)*\w*(Error|Exception|Cancelled|Interrupt)\w*\b", line):
            yield f"{line.strip()} in {' < '.join(reversed(frames[-6:]))}"
            frames = []


@contextmanager
def place_of(database: str, command: Sequence[str] = CLOCKED) -> Iterator[Place]:
    """Make a home, and a database server if that is asked for."""
    with ExitStack() as stack:
        disk = FAST_DISK if os.access(FAST_DISK, os.W_OK) else None
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sealab-chaos-", dir=disk))) / "home"
        home.mkdir()
        write_upstreams(home)
        cluster = stack.enter_context(throwaway_cluster()) if database == "postgresql" else None
        url = None if cluster is None else cluster.create("chaos")
        served = Served(home, url, command, SEALAB_SESSION_IDLE_SECONDS="4", SEALAB_QUEUE_SECONDS="15")
        yield Place(served, home, cluster, [])


def faults_of(database: str, only: str | None) -> list[Fault]:
    known = [*FAULTS, *(OF_POSTGRESQL if database == "postgresql" else OF_SQLITE)]
    return [each for each in known if only in {None, each.name}]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="no round begins after that")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="run this round alone")
    parser.add_argument("--fault", help="have nothing else go wrong")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="instead of both in turn")
    options = parser.parse_args()
    if os.environ.get("SEALAB_DISPOSABLE") != "1":
        print(
            "this kills processes and fills disks: use `make chaos WRAPPER=…` with a command that gives it a throw-away"
            " machine",
            file=sys.stderr,
        )
        return 2
    databases = [options.database] if options.database else ["sqlite", "postgresql"]
    if find_binaries() is None and "postgresql" in databases:
        print("no PostgreSQL on this machine: its faults are left out")
        databases = ["sqlite"]
    can_restart = uptime_can_differ()
    if not can_restart:
        print("no time namespace can be made on this machine: it is not restarted")
    record, began = Record(), time.monotonic()
    for number in itertools.count() if options.round is None else [options.round]:
        database = databases[number % len(databases)]
        faults = [
            each for each in faults_of(database, options.fault) if can_restart or each.act is not machine_restarted
        ]
        if faults:
            with place_of(database) as place:
                where = f"SEED={options.seed} ROUND={number} ({database})"
                Round(place, f"{options.seed}/{number}", record, where).run(STEPS, faults)
        if time.monotonic() - began > options.seconds:
            break
    record.show()
    return int(bool(record.finds))


if __name__ == "__main__":
    sys.exit(main())
