"""The cluster that the checks use: it can be had, its parts can be hurt, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.chaos.client import LEGACY, MODERN
from tests.skills_db.postgres import INSTALL, find_binaries, throwaway_cluster

from .checks import CHECKS, Wrong, must, waited_for
from .crowd import Told, _Count, _judged
from .faults import FAULTS
from .harness import Running, cluster
from .network import Loopback, Namespaces, network_of
from .report import LeftOutError, Report
from .standby import promote, standby_of

pytestmark = pytest.mark.timeout(300)


def spaces() -> set[str]:
    return (
        {name for name in os.listdir("/run/netns") if f"-{os.getpid()}-" in name}
        if Path("/run/netns").exists()
        else set()
    )


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    try:
        with cluster(2, store=None) as made:
            yield made
    except LookupError as missing:
        pytest.fail(str(missing)) if os.environ.get("CI") else pytest.skip(str(missing))


def test_each_request_goes_to_the_next_replica(running: Running) -> None:
    client, code = running.client(MODERN, running.token()), "await tools.where.variable(name='REPLICA')"
    answered = [must(client.run(code), "which replica")["result"] for _ in range(4)]
    assert answered == [*answered[:2], *answered[:2]]
    assert set(answered) == set(running.names)


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_replica_is_reached_by_its_own_port_and_the_others_stay_when_it_is_killed(running: Running, era: str) -> None:
    first, second = running.names
    code = "await tools.where.variable(name='REPLICA')"
    assert must(running.client(era, running.token(), second).run(code), "alone")["result"] == second
    running.replicas[first].kill()
    assert running.readiness(first)[0] != 200
    assert must(running.client(era, running.token(), second).run("1 + 1"), "the other")["result"] == 2
    client = running.client(era, running.token())
    assert [must(client.run("1 + 1"), "by the balancer")["result"] for _ in range(6)] == [2] * 6
    running.start(first)
    assert must(running.client(era, running.token(), first).run("1 + 1"), "back")["result"] == 2


def test_a_replica_that_was_taken_out_gets_no_request(running: Running) -> None:
    first, second = running.names
    running.balancer.take_out(first)
    client, code = running.client(MODERN, running.token()), "await tools.where.variable(name='REPLICA')"
    try:
        # The balancer's old process may take a connection until its new one does.
        waited_for(lambda: {client.run(code).content["result"] for _ in range(4)} == {second}, "it is out", 20)
    finally:
        running.balancer.put_back(first)
    waited_for(lambda: {client.run(code).content["result"] for _ in range(4)} == {first, second}, "it is back", 20)


def test_a_link_that_is_cut_passes_nothing_until_it_is_whole(running: Running) -> None:
    if not isinstance(running.network, Namespaces):
        pytest.skip(f"The parts are on {running.network.kind}: `make system` installs what it takes.")
    first, second = running.names
    host, port = running.replicas[second].address.split(":")
    reaches = [*running.network.launcher(first), "bash", "-c", f"exec timeout 2 bash -c '</dev/tcp/{host}/{port}'"]
    assert subprocess.run(reaches, check=False).returncode == 0
    with running.network.parted(first, [second]):
        assert subprocess.run(reaches, check=False).returncode != 0
        assert must(running.client(MODERN, running.token(), first).run("1 + 1"), "by the balancer")["result"] == 2
    assert subprocess.run(reaches, check=False).returncode == 0


def test_a_clock_that_is_off_is_that_of_one_replica_alone(running: Running) -> None:
    first, second = running.names
    running.replicas[first].drain()
    running.start(first, clock_seconds=300)
    code, token = "import time\ntime.time()", running.token()
    try:
        fast, right = (must(running.client(MODERN, token, name).run(code), name)["result"] for name in (first, second))
        assert 250 < fast - right < 301
    finally:
        running.replicas[first].drain()
        running.start(first)


def test_a_promoted_standby_has_what_was_acknowledged_and_takes_changes() -> None:
    if find_binaries() is None:
        pytest.skip(INSTALL)
    with throwaway_cluster() as primary, standby_of(primary, {}) as standby:
        primary.execute(sql.SQL("CREATE TABLE told AS SELECT 1 AS number"))
        primary.stop(signal.SIGKILL)
        promote(standby)
        with psycopg.connect(standby.url("postgres"), autocommit=True) as connection:
            connection.execute("INSERT INTO told VALUES (2)")
            assert connection.execute("SELECT number FROM told ORDER BY number").fetchall() == [(1,), (2,)]


def test_nothing_is_left_of_namespaces_whatever_ends_them() -> None:
    before = spaces()

    def interrupted() -> None:
        with network_of(["replica-1"]) as network:
            assert isinstance(network, Loopback) or len(spaces()) == len(before) + 5
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert spaces() == before


def test_without_namespaces_all_is_on_loopback_and_that_is_said() -> None:
    with network_of(["replica-1"], wanted=False) as network:
        assert network.ip("replica-1") == "127.0.0.1"
        assert network.port("replica-1") == network.port("replica-1") != network.port("balancer")
        assert "loopback" in network.kind


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('{"id": 1, "result": {"structuredContent": {"status": "ok", "result": 2}}}', "ok"),
        (
            'data: {"id": 1, "result": {"isError": true, "content": [{"text": "The store is away. Try later."}]}}',
            "clear",
        ),
        ('{"id": 1, "result": {"isError": true, "content": [{"text": "Internal Server Error"}]}}', "wrong"),
        ('{"id": 1, "error": {"message": "x"}}', "wrong"),
        ("data: {", "cut"),
        ("", "cut"),
    ],
)
def test_what_a_client_was_told_is_right_clear_cut_or_wrong(text: str, outcome: str) -> None:
    assert _judged(text)[0] == outcome


def test_a_count_that_forgets_what_was_acknowledged_is_wrong() -> None:
    count = _Count(sent=3, acknowledged=1)
    assert count.judged(3) == ("ok", "")
    count.sent = 5
    assert count.judged(3)[0] == "wrong"
    assert count.judged(6)[0] == "wrong"
    assert count.judged(5) == ("ok", "")


def test_a_percentile_that_never_came_back_is_said_to_be_infinite() -> None:
    assert Told().p99_is_back(0, 100, 20) == float("inf")


def test_a_report_says_what_failed_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()

    def fails() -> str:
        raise Wrong("it is lost")

    def missing() -> str:
        raise LeftOutError("no disk")

    report.of("one", fails)
    report.of("two", missing)
    report.of("three", lambda: "seen")
    assert report.failed == ["one"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["FAILED", "-", "ok"]
    assert "it is lost" in lines[0]


def test_what_is_looked_at_says_what_it_is_about() -> None:
    for name, look in {**CHECKS, **FAULTS}.items():
        assert name
        assert look.__doc__, name
