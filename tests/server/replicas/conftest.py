"""Real servers that are one sealab: processes of their own, each with its home and address, on one PostgreSQL."""

from __future__ import annotations

import itertools
import secrets
import select
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from ...skills_db.conftest import cluster  # noqa: F401 - a fixture
from ...skills_db.postgres import Cluster
from ..conftest import SEALAB, environment

_NUMBERS = itertools.count()
KEY = "aa" * 32


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Replica:
    """One server: its URL, where the others reach it, and its process."""

    url: str
    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it with no chance to say anything."""
        self.process.kill()
        self.process.wait(10)


@dataclass
class Sealab:
    """Several servers, and their database."""

    database_url: str
    folder: Path
    replicas: list[Replica] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.replicas]

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Ask the database itself."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def end_lease(self, replica: Replica) -> None:
        """Have the lease of a server run out now, as it would some seconds after its end."""
        self.execute("UPDATE sealab_replica SET leased_until = 0 WHERE address = %s", replica.address)

    def owner(self) -> Replica:
        """The server that has the one session there is."""
        rows = self.execute(
            "SELECT address FROM sealab_replica JOIN sealab_session_lease ON replica = sealab_replica.id"
        )
        (address,) = [row[0] for row in rows]
        return next(each for each in self.replicas if each.address == address)

    def others(self, replica: Replica) -> list[Replica]:
        return [each for each in self.replicas if each is not replica]


@contextmanager
def replica(home: Path, database_url: str, **env: str) -> Iterator[Replica]:
    """Run one server; at its end it waits for no call."""
    home.mkdir(exist_ok=True)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    given = {
        "SEALAB_DATABASE_URL": database_url,
        "SEALAB_VAULT_KEY": KEY,
        "SEALAB_REPLICA_ADDRESS": address,
        "SEALAB_DRAIN_SECONDS": "0",
        "SEALAB_WORKERS_SPARE": "1",
        **env,
    }
    command = [*SEALAB, "serve", "--http", f"127.0.0.1:{port}", "--home", str(home)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(**given), text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            while "http://" not in said and select.select([process.stderr], [], [], 50)[0]:
                line = process.stderr.readline()
                said += line
                assert line, said
            assert "http://" in said, said
            yield Replica(f"{address}/mcp", address, process)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture
def sealab(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Sealab]]:  # noqa: F811 - the fixture
    """Start so many servers on a new database."""
    name = f"replicas_{next(_NUMBERS)}_{secrets.token_hex(3)}"
    with ExitStack() as stack:

        def started(count: int = 2, **env: str) -> Sealab:
            made = Sealab(cluster.create(name), tmp_path)
            for number in range(count):
                made.replicas.append(
                    stack.enter_context(replica(tmp_path / f"home-{number}", made.database_url, **env))
                )
            return made

        yield started
    cluster.drop(name)
