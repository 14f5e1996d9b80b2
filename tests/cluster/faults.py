"""What goes wrong with a cluster while clients work, and what they see of it.

Each fault runs on a cluster of its own and returns what was seen, or raises with what must not be. What was
acknowledged is read again at the end. Processes are signalled by the ids that this driver started.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from tests.chaos.client import MODERN

from .checks import Wrong, a_session, approvals, everything, same, waited_for
from .crowd import Crowd, Told
from .harness import Running
from .report import LeftOutError
from .standby import promote, standby_of

BEFORE_SECONDS, AFTER_SECONDS = 12.0, 20.0
BACK_SECONDS = 5.0
"""How soon after a fault the p99 has to be what it was."""
Make = Callable[..., AbstractContextManager[Running]]


@contextmanager
def _under_load(running: Running) -> Iterator[tuple[Crowd, Told]]:
    """Let clients work for a while before, during and after what is done."""
    crowd = Crowd(running)
    with crowd.working() as told:
        # The first call of each costs more: what is measured begins once all have made one.
        waited_for(lambda: len(told.samples) > len(crowd.tokens), "the first calls", 120)
        time.sleep(BEFORE_SECONDS)
        running.balancer.faults()  # those of before count no more
        yield crowd, told
        time.sleep(AFTER_SECONDS)


def _hurt(make: Make, act: Callable[[Running], object]) -> str:
    """Do to a cluster under load what goes wrong, until it is over, and say what clients saw."""
    with make() as running:
        with _under_load(running) as (crowd, told):
            fault = time.monotonic()
            act(running)
            over = time.monotonic()
        return _seen(crowd, told, fault, over)


def _seen(crowd: Crowd, told: Told, fault: float, over: float) -> str:
    """Return what clients saw of a fault. Raises `Wrong` for what no fault excuses.

    `fault` is when it began, and `over` when it was over; p99 has five seconds from there to be back.
    """
    reread = crowd.reread()
    normal = told.p99_ms(fault - BEFORE_SECONDS, fault)
    back = told.p99_is_back(over, normal, time.monotonic())
    failed = Told([each for each in told.samples if each.ended >= fault]).failures()
    during = len(told.between(fault, over + BACK_SECONDS))
    late = told.failures(over + BACK_SECONDS)
    shown = "; ".join(f"{count} × {what}" for what, count in failed.most_common(4)) or "no failed call"
    seen = (
        f"{len(told.samples)} calls, {during} from the fault to {BACK_SECONDS:g} s after its end, "
        f"{sum(failed.values())} failed ({shown}); p99 {normal:.0f} ms before, back {back:g} s after it was over; {reread}"
    )
    if of_balancer := crowd.running.balancer.faults():
        seen += f"; nginx: {dict(of_balancer.most_common(3))}"
    wrong = []
    if told.lost:
        wrong.append(f"lost: {told.lost[:3]}")
    if unclear := told.unclear():
        wrong.append(f"{len(unclear)} answers wrong or silent: {[each.text[:160] for each in unclear[:3]]}")
    if back > BACK_SECONDS:
        wrong.append("p99 is not back in time")
    if late:
        times = [round(each.began - over, 1) for each in told.between(over + BACK_SECONDS) if each.outcome != "ok"]
        wrong.append(f"failed calls after that, at {times[:5]} s: {dict(late.most_common(3))}")
    if early := Told([each for each in told.between(fault - BEFORE_SECONDS) if each.ended < fault]).failures():
        wrong.append(f"failed calls before the fault: {dict(early.most_common(3))}")
    if wrong:
        raise Wrong("; ".join(wrong) + f" [{seen}; {_logged(crowd.running)}]")
    return seen


def _logged(running: Running) -> str:
    """Return the last warnings that each replica logged."""
    said = {
        name: [line for line in each.said if " WARNING " in line or " ERROR " in line]
        for name, each in running.replicas.items()
    }
    return "logged: " + "; ".join(f"{name}: {lines[-3:]}" for name, lines in said.items() if lines)


def replica_killed(make: Make) -> str:
    """Kill -9; its supervisor starts it again."""
    with make() as running:
        with _under_load(running) as (crowd, told):
            fault = time.monotonic()
            running.replicas[running.names[0]].kill()
            over = time.monotonic()
            running.start(running.names[0])
        return _seen(crowd, told, fault, over)


def database_killed(make: Make) -> str:
    """PostgreSQL gets SIGKILL, is away for three seconds and starts again."""

    def act(running: Running) -> None:
        running.database.stop(signal.SIGKILL)
        time.sleep(3)
        _start_database(running)

    return _hurt(make, act)


def _start_database(running: Running) -> None:
    """Start it once the processes of the one that was killed are gone."""
    deadline = time.monotonic() + 30
    while True:
        try:
            running.start_database()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def database_promoted(make: Make) -> str:
    """PostgreSQL gets SIGKILL; a standby, which has all that was acknowledged, is promoted and gets its address."""
    with make(own=True) as running:
        isolated = running.isolated
        address = isolated.add_ip("database")
        with ExitStack() as stack:
            with running.inside_database():
                standby = stack.enter_context(standby_of(running.database, {"listen_addresses": address}))
            with _under_load(running) as (crowd, told):
                fault = time.monotonic()
                running.database.stop(signal.SIGKILL)
                promote(standby)
                isolated.lead("database", address)
                over = time.monotonic()
            return f"{over - fault:.1f} s until it led to the standby; " + _seen(crowd, told, fault, over)


def connections_lost(make: Make) -> str:
    """All connections to PostgreSQL end, three times."""
    ended = []

    def act(running: Running) -> None:
        for _ in range(3):
            with running.connect() as connection:
                row = connection.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = 'cluster' AND pid <> pg_backend_pid()"
                ).fetchone()
            ended.append(row[0] if row else 0)
            time.sleep(1)

    seen = _hurt(make, act)
    return f"{sum(ended)} connections ended; {seen}"


def store_down(make: Make) -> str:
    """The object store takes no connection for six seconds."""
    return _with_store(make, "down", 6)


def store_slow(make: Make) -> str:
    """Each request to the object store waits for a second, for ten seconds."""
    return _with_store(make, "slow 1", 10)


def _with_store(make: Make, line: str, seconds: float) -> str:
    def act(running: Running) -> None:
        assert running.store is not None
        running.store.is_told(line)
        time.sleep(seconds)
        running.store.is_told("pass")

    @contextmanager
    def with_store() -> Iterator[Running]:
        with make() as running:
            if running.store is None:
                raise LeftOutError("the replicas keep files in a folder (--store none)")
            yield running

    return _hurt(with_store, act)


def replicas_parted(make: Make) -> str:
    """Nothing passes between one replica and the other two for ten seconds; all reach the database and clients."""
    return _hurt(make, lambda running: _parted(running, running.names[1:]))


def database_parted(make: Make) -> str:
    """Nothing passes between one replica and the database for ten seconds."""
    return _hurt(make, lambda running: _parted(running, ["database"]))


def _parted(running: Running, others: Sequence[str]) -> None:
    with running.isolated.parted(running.names[0], others):
        time.sleep(10)


def clock_skewed(make: Make) -> str:
    """The clock of one replica is five minutes fast, then five minutes slow; checks pass all the same."""
    said = []
    with make() as running:
        for seconds in (300, -300):
            first = running.names[0]
            running.replicas[first].drain()
            running.start(first, clock_seconds=seconds)
            # What the first call costs, such as the start of upstream servers, is none of the clock's.
            client = running.client(MODERN, running.token(), first)
            waited_for(lambda client=client: client.run("await tools.steady.echo(text='x')").ok, "the first call", 120)
            for look in (everything, a_session, approvals):
                try:
                    look(running)
                except AssertionError as error:
                    raise Wrong(f"{seconds:+d} s: {look.__name__}: {error}") from error
            said.append(f"{seconds:+d} s: tools, a session and approvals")
    return "by tests/chaos/clocked.py; " + "; ".join(said)


def rolling_deploy(make: Make) -> str:
    """Each replica in turn is taken out of the balancer, drained, replaced and put back: no call fails."""
    return _deployed(make, takes_out=True)


def rolling_deploy_unannounced(make: Make) -> str:
    """The same where the balancer is not told, so that it sends calls to a replica that drains."""
    return _deployed(make, takes_out=False)


def _deployed(make: Make, *, takes_out: bool) -> str:
    with make() as running:
        with _under_load(running) as (crowd, told):
            fault, codes = time.monotonic(), []
            for name in running.names:
                if takes_out:
                    running.balancer.take_out(name)
                    time.sleep(0.5)  # until the balancer's new process takes connections
                codes.append(running.replicas[name].drain())
                running.start(name)
                if takes_out:
                    running.balancer.put_back(name)
            over = time.monotonic()
        seen = _seen(crowd, told, fault, over)
        same(codes, [0] * len(codes), "how the replicas ended")
        if takes_out and (failed := Told([each for each in told.samples if each.ended >= fault]).failures()):
            raise Wrong(f"failed calls: {dict(failed.most_common(5))} [{seen}; {_logged(running)}]")
        return f"{over - fault:.0f} s for three; " + seen


def disk_full(make: Make) -> str:
    """The home of one replica is on a disk that is full for ten seconds."""

    def act(running: Running) -> None:
        ballast = running.replicas[running.names[0]].home / "ballast"
        with suppress(OSError), open(ballast, "wb", buffering=0) as written:
            while True:
                written.write(bytes(1 << 16))
        time.sleep(10)
        ballast.unlink()

    with tempfile.TemporaryDirectory(prefix="sealab-disks-") as folder, _small_disk(Path(folder) / "replica-1"):
        return _hurt(lambda: make(homes=Path(folder)), act)


@contextmanager
def _small_disk(place: Path, megabytes: int = 64) -> Iterator[None]:
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place], check=False)
    if made.returncode:
        raise LeftOutError("a small disk takes the right to mount one")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)


FAULTS: dict[str, Callable[[Make], str]] = {
    "a replica killed": replica_killed,
    "PostgreSQL killed": database_killed,
    "PostgreSQL promoted": database_promoted,
    "connections lost": connections_lost,
    "the store down": store_down,
    "the store slow": store_slow,
    "replicas parted": replicas_parted,
    "a replica parted from PostgreSQL": database_parted,
    "a clock skewed": clock_skewed,
    "a rolling deploy": rolling_deploy,
    "a deploy the balancer does not know of": rolling_deploy_unannounced,
    "a full disk": disk_full,
}
