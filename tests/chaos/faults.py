"""What goes wrong, each as a context: it begins on the way in and is over on the way out.

Processes are signalled by ids that were found below the server or the database of this driver, and no others. The
machine's own clock and control groups are left alone: the server's wall clock is set for it alone (`clocked`), and its
monotonic clock by a time namespace, which cannot be set while a process lives in it. Where the memory of a container
ends, the kernel kills either one process or all of them (memory.oom.group); these kills are made here, since making a
control group takes a right that a throw-away machine may not have.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from sealab.skills_db import DATABASE_FILE
from tests.skills_db.postgres import Cluster

from .served import Served, another_uptime

_QUESTION = frozenset({"question gone"})
GONE = _QUESTION | {"cut", "unreachable", "http 404"}
LATE = frozenset({"cut late"})
"""A connection that was cut though the server ends in order, which may happen to who comes after it was asked to."""
STOPPING = frozenset({"tool error", "rpc error", "http 503"})
FULL = frozenset({"busy", "cut", "unreachable", "tool error", "rpc error", "http 503", "http 429", "crashed"})


@dataclass
class Place:
    """What can be hurt: a server, its home, and its database server if it has one."""

    served: Served
    home: Path
    cluster: Cluster | None
    wrong: list[str]
    """What a fault itself found: how the server ended."""


Act = Callable[[Place, Random], AbstractContextManager[None]]


@dataclass(frozen=True)
class Fault:
    """What it does; which answers it excuses, of all calls or of those that need what it `hurts`.

    With `aside`, who needs nothing of what it hurts is answered while it lasts.
    """

    name: str
    act: Act
    excuses: frozenset[str] = frozenset()
    hurts: frozenset[str] = frozenset()
    aside: bool = True


_HELD = frozenset({"busy", "timeout"})
"""What may come of a fault that lasts as long as another does, which may be a minute."""


def together(faults: Sequence[Fault]) -> Fault:
    """Return a fault in the middle of which another begins and ends."""

    @contextmanager
    def act(place: Place, rng: Random) -> Iterator[None]:
        with ExitStack() as stack:
            for each in faults:
                stack.enter_context(each.act(place, rng))
            yield

    return Fault(
        " + ".join(each.name for each in faults),
        act,
        excuses=_HELD.union(*(each.excuses for each in faults)) if len(faults) > 1 else faults[0].excuses,
        hurts=frozenset().union(*(each.hurts for each in faults)),
        aside=all(each.aside for each in faults),
    )


@contextmanager
def nothing(_place: Place, _rng: Random) -> Iterator[None]:
    yield


def _hold(rng: Random, most: float) -> None:
    time.sleep(rng.uniform(0.1, most))


def _some(processes: list[psutil.Process], rng: Random, most: int) -> list[psutil.Process]:
    return rng.sample(processes, min(len(processes), rng.randint(1, most)))


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.send_signal(number)


@contextmanager
def _stopped(processes: list[psutil.Process]) -> Iterator[None]:
    _signal(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(processes, signal.SIGCONT)


Chosen = Callable[[Place, Random], list[psutil.Process]]


def killed(chosen: Chosen) -> Act:
    @contextmanager
    def act(place: Place, rng: Random) -> Iterator[None]:
        _signal(chosen(place, rng), signal.SIGKILL)
        yield

    return act


def stopped(chosen: Chosen, most: float) -> Act:
    @contextmanager
    def act(place: Place, rng: Random) -> Iterator[None]:
        with _stopped(chosen(place, rng)):
            yield
            _hold(rng, most)

    return act


def _workers(place: Place, rng: Random) -> list[psutil.Process]:
    return _some(place.served.workers(), rng, 3)


def _zygotes(place: Place, _rng: Random) -> list[psutil.Process]:
    return place.served.zygotes()


@contextmanager
def descriptors_gone(place: Place, rng: Random) -> Iterator[None]:
    was = place.served.allow_descriptors(place.served.descriptors() + rng.randint(0, 6))
    try:
        yield
        _hold(rng, 2)
    finally:
        place.served.allow_descriptors(was)


@contextmanager
def disk_full(place: Place, rng: Random) -> Iterator[None]:
    """Fill the file system of the home, which is a small one of its own, with one file."""
    ballast = place.home.parent / "ballast"
    with ballast.open("wb") as file:
        free = os.statvfs(place.home)
        size = free.f_bavail * free.f_frsize
        with suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, size)
        while size > 4096:
            size //= 2
            with suppress(OSError):
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
        try:
            yield
            _hold(rng, 2)
        finally:
            ballast.unlink()


@contextmanager
def database_locked(place: Place, rng: Random) -> Iterator[None]:
    connection = sqlite3.connect(place.home / DATABASE_FILE, timeout=20, isolation_level=None)
    try:
        with suppress(sqlite3.OperationalError):  # a server that is stopped may have locked it
            connection.execute("BEGIN EXCLUSIVE")
        yield
        _hold(rng, 8)
    finally:
        connection.close()


@contextmanager
def database_killed(place: Place, rng: Random) -> Iterator[None]:
    assert place.cluster is not None
    family = _of(place.cluster)
    place.cluster.stop(signal.SIGKILL)
    try:
        yield
        _hold(rng, 2)
    finally:
        _signal(family, signal.SIGCONT)  # one that is stopped does not hear that its parent is gone
        psutil.wait_procs(family, timeout=20)
        place.cluster.start()


def _of(cluster: Cluster | None) -> list[psutil.Process]:
    assert cluster is not None
    assert cluster.process is not None
    if cluster.process.poll() is not None:  # another fault killed it
        return []
    parent = psutil.Process(cluster.process.pid)
    return [parent, *parent.children()]


def _kill(place: Place) -> None:
    _code, left = place.served.end(signal.SIGKILL)
    if left:
        place.wrong.append(f"a killed server left {len(left)} processes")


@contextmanager
def server_killed(place: Place, _rng: Random) -> Iterator[None]:
    _kill(place)
    place.served.start()
    yield


@contextmanager
def everything_killed(place: Place, _rng: Random) -> Iterator[None]:
    """Kill the server and all below it at once, as the kernel does when the memory of a whole container is gone."""
    family = place.served.family()
    place.served.process.kill()
    _signal(family, signal.SIGKILL)
    _kill(place)
    place.served.start()
    yield


@contextmanager
def machine_restarted(place: Place, rng: Random) -> Iterator[None]:
    """Kill the server and start it where the monotonic clock has begun anew, or has gone on for years."""
    _kill(place)
    with another_uptime(rng.choice((2, 60, 3600, 10 * 365 * 86_400))) as launcher:
        place.served.start(launcher)
    yield


@contextmanager
def clock_set(place: Place, rng: Random) -> Iterator[None]:
    """Set the wall clock of the server forth or back, by a second up to a day, and right again."""
    place.served.set_clock(rng.choice((-1, 1)) * 86_400 ** rng.random())
    try:
        yield
        _hold(rng, 3)
    finally:
        place.served.set_clock(0)


@contextmanager
def server_terminated(place: Place, _rng: Random) -> Iterator[None]:
    _terminate(place, {0})
    yield


@contextmanager
def server_pressed(place: Place, rng: Random) -> Iterator[None]:
    """Ask it to end twice: who is in a hurry does not wait for what is at work."""
    place.served.signal(signal.SIGTERM)
    _hold(rng, 0.5)
    _terminate(place, {0, -signal.SIGTERM})
    yield


def _terminate(place: Place, codes: set[int]) -> None:
    code, left = place.served.end(signal.SIGTERM)
    if code not in codes or left:
        place.wrong.append(f"SIGTERM ended the server with {code} and left {len(left)} processes")
    place.served.start()


@contextmanager
def second_server(place: Place, rng: Random) -> Iterator[None]:
    """Let another server work on the same home, and kill it."""
    other = place.served.beside()
    other.start()
    try:
        yield
        _hold(rng, 1)
    finally:
        other.end(signal.SIGKILL)


_CALLS = frozenset({"tool error", "error"})
_DATABASE, _SESSION, _TOOLS = frozenset({"database"}), frozenset({"session"}), frozenset({"tools"})
_CRASHED = frozenset({"crashed"})
FAULTS = (
    Fault("nothing", nothing),
    Fault("workers killed", killed(_workers), _CRASHED, _SESSION),
    Fault("workers stopped", stopped(_workers, 2), aside=False),
    Fault("zygote killed", killed(_zygotes), _CRASHED, _SESSION),
    Fault("zygote stopped", stopped(_zygotes, 3), aside=False),
    Fault("server stopped", stopped(lambda at, _: [psutil.Process(at.served.process.pid)], 3), aside=False),
    Fault("second server", second_server),
    Fault("upstreams killed", killed(lambda at, rng: _some(at.served.upstreams(), rng, 2)), hurts=_TOOLS),
    Fault("upstreams stopped", stopped(lambda at, _: at.served.upstreams(), 5), hurts=_TOOLS),
    Fault("descriptors gone", descriptors_gone, FULL | _CALLS, _SESSION, aside=False),
    Fault("disk full", disk_full, hurts=_DATABASE | {"files"}),
    Fault("server killed", server_killed, GONE, _SESSION, aside=False),
    Fault("everything killed", everything_killed, GONE, _SESSION, aside=False),
    Fault("machine restarted", machine_restarted, GONE, _SESSION, aside=False),
    Fault("clock set", clock_set, _QUESTION),
    Fault("server terminated", server_terminated, GONE - {"cut"} | LATE | STOPPING, _SESSION, aside=False),
    Fault("server pressed", server_pressed, GONE | STOPPING | {"cancelled"}, _SESSION, aside=False),
)
OF_SQLITE = (Fault("database locked", database_locked, hurts=_DATABASE),)
OF_POSTGRESQL = (
    Fault("database frozen", stopped(lambda at, _: _of(at.cluster), 8), hurts=_DATABASE),
    Fault("database killed", database_killed, hurts=_DATABASE),
)
