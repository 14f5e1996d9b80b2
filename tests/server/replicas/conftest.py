"""Real servers that are one sealab: processes of their own, each with its home and address, on one PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sealab.server.governance.access.names import DEFAULT_RIGHTS
from sealab.server.governance.access.token_text import digest_of, new_token
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.tenants.tenant_store import TenantStore
from sealab.skills_db.tokens import TokenStore

from ...skills_db.postgres import Cluster
from ..conftest import SEALAB, environment
from ..journal.test_journaled_runs import CLAIMED
from ..runs.background.test_parked_runs import served as notes_served

_NUMBERS = itertools.count()
KEY = "aa" * 32
TEAM = {"SEALAB_AUTH": "tokens", **CLAIMED}


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
    said: list[str]
    """The lines that it logs."""

    def kill(self) -> None:
        """End it with no chance to say anything."""
        self.process.kill()
        self.process.wait(60)


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
        """Let the lease of a server run out now, as it would some seconds after its end."""
        self.execute("UPDATE sealab_replica SET leased_until = 0 WHERE address = %s", replica.address)

    def owner(self) -> Replica:
        """The server that has the one session there is."""
        rows = self.execute(
            "SELECT address FROM sealab_replica JOIN sealab_session_lease ON replica = sealab_replica.id"
        )
        (address,) = [row[0] for row in rows]
        return next(each for each in self.replicas if each.address == address)

    def token(self, tenant: str, principal: str, *scopes: str) -> str:
        """A new token with the usual scopes and those that are named."""
        token, now = new_token(), time.time()
        with open_database(self.database_url, self.folder) as database:
            TenantStore(database).ensure(tenant)
            TokenStore(database).put(
                digest_of(token),
                name=principal,
                tenant=tenant,
                principal=principal,
                scopes=[*sorted(DEFAULT_RIGHTS), *scopes],
                now=now,
                expires=None,
            )
        return token

    def others(self, replica: Replica) -> list[Replica]:
        return [each for each in self.replicas if each is not replica]


@contextmanager
def replica(home: Path, database_url: str, **env: str) -> Iterator[Replica]:
    """Run one server; at its end it waits for no call."""
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
            said: list[str] = []
            for line in process.stderr:
                said.append(line)
                if "sealab serves MCP" in line:
                    break
            else:
                raise AssertionError("".join(said))
            threading.Thread(target=_drained, args=(process.stderr, said), daemon=True).start()
            yield Replica(f"{address}/mcp", address, process, said)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _drained(stream: IO[str], said: list[str]) -> None:
    said.extend(stream)


@contextmanager
def balancer(urls: Sequence[str]) -> Iterator[str]:
    """Give a URL whose connections go to one server after the other, and are passed on as they are."""
    turns = itertools.cycle([(str(urlsplit(url).hostname), urlsplit(url).port) for url in urls])
    ends: list[Callable[[], object]] = []
    listening = threading.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = next(turns)
        with closing(writer), suppress(OSError):
            other_reader, other_writer = await asyncio.open_connection(host, port)
            with closing(other_writer):
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(_piped(reader, other_writer))
                    ways.create_task(_piped(other_reader, writer))

    async def balance() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(ended.set))
        async with await asyncio.start_server(connected, sock=listener):
            listening.set()
            await ended.wait()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(balance()), daemon=True)
        thread.start()
        listening.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            ends[0]()
            thread.join()


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def client(url: str, token: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """Give a client that opens a connection for each request."""
    once = httpx2.Limits(max_keepalive_connections=0)
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, limits=once, timeout=50) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=50, **options) as made,  # type: ignore[arg-type]
    ):
        yield made


@contextmanager
def started(
    cluster: Cluster, folder: Path, count: int, prepare: Callable[[Path], object] = lambda _home: None, **env: str
) -> Iterator[Sealab]:
    """Run so many servers on a new database; `prepare` makes the home of each."""
    name = f"replicas_{next(_NUMBERS)}_{secrets.token_hex(3)}"
    made = Sealab(cluster.create(name), folder)
    try:
        with ExitStack() as stack, ThreadPoolExecutor(count) as starting:
            homes = [folder / f"home-{number}" for number in range(count)]
            for home in homes:
                home.mkdir()
                prepare(home)
            contexts = [replica(home, made.database_url, **env) for home in homes]
            made.replicas += starting.map(stack.enter_context, contexts)
            yield made
    finally:
        cluster.drop(name)


@pytest.fixture
def sealab(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Sealab]]:
    """Start so many servers on a new database."""
    with ExitStack() as stack:
        yield lambda *given, **env: stack.enter_context(started(cluster, tmp_path, *given, **env))


@pytest.fixture(scope="module")
def team(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealab]:
    """Three servers that ask for tokens."""
    folder = tmp_path_factory.mktemp("replicas")
    with started(cluster, folder, 3, notes_served, **TEAM) as made:
        yield made


@pytest.fixture
def shared(cluster: Cluster, tmp_path: Path) -> Iterator[Database]:
    """A new database, for the parts of a server that run within a test."""
    name = f"replicas_{next(_NUMBERS)}_{secrets.token_hex(3)}"
    with open_database(cluster.create(name), tmp_path) as database:
        yield database
    cluster.drop(name)
