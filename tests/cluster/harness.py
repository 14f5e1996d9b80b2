"""Three replicas, a balancer, PostgreSQL and an S3-compatible server, as real processes on this machine.

`cluster()` yields them with addresses, tokens, and what can be done to each. Everything is removed on the way out.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from sealab.server.base.database import HomeDatabase
from sealab.server.base.home import Home
from sealab.server.base.identity import Right
from sealab.server.governance.access.token_text import digest_of, new_token
from sealab.skills_db.tokens import TokenStore
from tests.chaos.client import Client
from tests.chaos.served import UPSTREAM
from tests.skills_db.postgres import Cluster as DatabaseServer
from tests.skills_db.postgres import throwaway_cluster

from .balancer import PUBLIC_NAME, Balancer, balancer_of
from .network import Namespaces, Network, network_of
from .processors import Share, share_of_processors
from .replica import Replica
from .report import LeftOutError
from .store import Store, store_of

ECHOING = Path(__file__).parents[1] / "data" / "echoing_upstream.py"
READY_SECONDS = 180.0
_LIFE_SECONDS = 86_400.0
_DATABASE_PORT = 5432
_DATABASE_OPTIONS = {"max_connections": 300, "shared_preload_libraries": "pg_stat_statements"}


@dataclass
class Running:
    """A running cluster."""

    network: Network
    folder: Path
    database: DatabaseServer
    database_url: str
    store: Store | None
    replicas: dict[str, Replica]
    balancer: Balancer
    settings: Mapping[str, str]
    shares: Mapping[str, Share]
    """What each replica has of the processors, where that is bounded."""
    clients: int

    @property
    def names(self) -> list[str]:
        return list(self.replicas)

    @property
    def isolated(self) -> Namespaces:
        """The namespaces. Raises `LeftOutError` on loopback, where no link can be cut."""
        if not isinstance(self.network, Namespaces):
            raise LeftOutError("no link can be cut on loopback")
        return self.network

    def url(self, at: str | None = None) -> Callable[[], str]:
        """Return what gives the URL of the balancer, or of one replica behind it."""
        return lambda: self.balancer.url if at is None else self.balancer.urls[at]

    def client(self, era: str, token: str, at: str | None = None) -> Client:
        """Return a client of the balancer, or of one replica."""
        return Client(self.url(at), era, token)

    def tokens(self, names: Sequence[str], tenant: str = "default") -> list[str]:
        """Make tokens that may do all, of principals of these names."""
        database = HomeDatabase(self.database_url, self.operator)
        store, now, made = TokenStore(database()), time.time(), []
        rights = [right.value for right in Right if right is not Right.ADMIN]
        for name in names:
            token = new_token()
            store.put(
                digest_of(token), name=name, tenant=tenant, principal=name, scopes=rights, now=now,
                expires=now + _LIFE_SECONDS,
            )  # fmt: skip
            made.append(token)
        database.close()
        return made

    def token(self, name: str = "", tenant: str = "default") -> str:
        """Make one token, of a principal that nobody else is."""
        return self.tokens([name or f"agent-{secrets.token_hex(4)}"], tenant)[0]

    @property
    def operator(self) -> Path:
        """The home from which the operator's commands run, which no replica has."""
        folder = self.folder / "operator"
        Home(folder).prepare()
        return folder

    def start(self, name: str, **options: Any) -> None:
        """Start a replica, and wait until it is ready."""
        launcher = self.shares[name].launcher if name in self.shares else ()
        self.replicas[name].start(launcher, **options)
        self.wait_until_ready(name)

    def wait_until_ready(self, name: str, seconds: float = READY_SECONDS) -> None:
        """Wait until a replica says that it is ready. Raises `AssertionError`."""
        deadline, said = time.monotonic() + seconds, "nothing"
        while time.monotonic() < deadline:
            status, said = self.readiness(name)
            if status == 200:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} is not ready after {seconds:g} s: {said}")

    def readiness(self, name: str) -> tuple[int, str]:
        """Return what `/readyz` of a replica answers, through the balancer; 0 where it cannot be reached."""
        url = self.balancer.urls[name].replace("/mcp", "/readyz")
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode(errors="replace")
        except OSError as error:
            return 0, str(error)

    def connect(self) -> psycopg.Connection:
        """Return a connection to the replicas' database, on another way than theirs."""
        return psycopg.connect(self.database.url("cluster"), autocommit=True)

    def inside_database(self) -> AbstractContextManager[None]:
        """Be where the database is, to start it there."""
        return self.network.inside("database") if isinstance(self.network, Namespaces) else nullcontext()

    def start_database(self) -> None:
        """Start the database again, after it was stopped."""
        with self.inside_database():
            self.database.start()


@contextmanager
def cluster(
    replicas: int = 3,
    *,
    settings: Mapping[str, str] | None = None,
    store: str | None = "moto",
    isolated: bool = True,
    processors: float | None = None,
    homes: Path | None = None,
    clients: int = 200,
) -> Iterator[Running]:
    """Run a cluster; `settings` are more settings of each replica, without the prefix of their variables.

    Each replica has a share of so many `processors` if that is given. `clients` are how many work while something goes
    wrong. Raises `LookupError` where a part is missing.
    """
    names = [f"replica-{number}" for number in range(1, replicas + 1)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sealab-cluster-")))
        network = stack.enter_context(network_of(names, wanted=isolated))
        database = stack.enter_context(_database(network))
        socket_url = database.create("cluster")
        database_url = _over_tcp(network, database, socket_url)
        kept = None if store is None else stack.enter_context(store_of(store, network))
        wanted = _settings_of(database_url, kept) | dict(settings or {})
        made, shares = {}, {}
        for name in names:
            given = wanted | {"REPLICA_ADDRESS": f"http://{network.ip(name)}:{network.port(name)}"}
            environment = {f"SEALAB_{key}": value for key, value in given.items()} | {"REPLICA_NAME": name}
            environment |= {} if kept is None else kept.environment
            made[name] = Replica(name, network, (homes or folder) / name, environment)
            if processors is not None:
                shares[name] = stack.enter_context(share_of_processors(name, processors))
            write_upstreams(made[name].home)
        balancer = stack.enter_context(
            balancer_of(network, {name: each.address for name, each in made.items()}, folder / "balancer")
        )
        running = Running(network, folder, database, socket_url, kept, made, balancer, wanted, shares, clients)
        try:
            # All at once: the first one makes the tables, and the others wait for it.
            with ThreadPoolExecutor(replicas) as threads:
                list(threads.map(running.start, names))
            yield running
        finally:
            for each in made.values():
                each.end()


@contextmanager
def _database(network: Network) -> Iterator[DatabaseServer]:
    """Run PostgreSQL: in a namespace it listens there, and takes the replicas by their password."""
    if not isinstance(network, Namespaces):
        with throwaway_cluster(durable=True, options=_DATABASE_OPTIONS) as server:
            yield server
        return
    options = _DATABASE_OPTIONS | {"listen_addresses": network.ip("database"), "port": _DATABASE_PORT}
    with ExitStack() as stack:
        with network.inside("database"):
            server = stack.enter_context(throwaway_cluster(durable=True, options=options))
        with open(server.folder / "data" / "pg_hba.conf", "a") as rules:
            rules.write("\nhost all all 10.89.0.0/24 scram-sha-256\n")
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
        yield server


def _over_tcp(network: Network, database: DatabaseServer, socket_url: str) -> str:
    """Return the URL by which replicas reach the database."""
    if not network.isolated:
        return socket_url
    return f"postgresql://sealab:{database.password}@{network.ip('database')}:{_DATABASE_PORT}/cluster"


def _settings_of(database_url: str, store: Store | None) -> dict[str, str]:
    settings = {
        "DATABASE_URL": database_url, "VAULT_KEY": secrets.token_hex(32), "AUTH": "tokens",
        "PUBLIC_URL": f"https://{PUBLIC_NAME}", "DRAIN_SECONDS": "20",
    }  # fmt: skip
    return settings | ({} if store is None else {"WORKSPACE_URL": store.url})


def write_upstreams(home: Path, *more: str) -> None:
    """Configure a replica with a server that echoes and destroys, one that says at which replica it runs, and `more`.

    All replicas have the same file.
    """
    steady = {"command": sys.executable, "args": ["-P", os.fspath(UPSTREAM)], "call_timeout_seconds": 30}
    where = {"command": sys.executable, "args": ["-P", os.fspath(ECHOING)], "env": {"REPLICA": "${REPLICA_NAME}"}}
    servers = {"steady": steady, "where": where} | dict.fromkeys(more, where)
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
