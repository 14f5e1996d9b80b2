"""What servers on one PostgreSQL database share of upstream servers: what is known of them, and requests at once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from sealab.server.base.database import database_of
from sealab.server.base.home import Home
from sealab.server.use_cases.upstream_tools import learned_facts, registry_state
from sealab.server.use_cases.upstream_tools.registry import Registry
from sealab.server.use_cases.upstream_tools.registry_state import RegistryState, state_of
from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.configuration import ServerConfig, Transport
from sealab.tools_registry.describing.learned import LearnedTypes
from sealab.tools_registry.errors import StateUnavailable
from sealab.tools_registry.kept import Draft, KeptInMemory
from sealab.tools_registry.search.usage import SearchUsage
from sealab.tools_registry.upstream.pins import Pins, Seen, StandingApproval

from ...skills_db.conftest import Place
from ...skills_db.postgres import Cluster
from ..conftest import two_servers

UPSTREAM = Path(__file__).parents[2] / "data" / "bridged_upstream.py"

ADD = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
OTHER = {**ADD, "description": "Other."}
ZOO = {"zoo": ServerConfig("zoo", Transport.HTTP, url="http://127.0.0.1:1")}


@contextmanager
def state(url: str, home: Path) -> Iterator[RegistryState]:
    database = database_of(url, Home(home))
    try:
        yield state_of(Home(home), database, database)
    finally:
        database.close()


@pytest.fixture
def two(postgres_place: Place, tmp_path: Path) -> Iterator[tuple[RegistryState, RegistryState]]:
    """The state of two servers, each with a home of its own."""
    with (
        state(postgres_place.server_url, tmp_path / "a") as first,
        state(postgres_place.server_url, tmp_path / "b") as second,
    ):
        yield first, second
    assert not (tmp_path / "a" / "registry").exists(), "nothing that others need lies on one machine"


def expire(*states: RegistryState) -> None:
    """Let the next use look, as after a notice."""
    for each in states:
        for texts in each.shared:
            texts.expire()


def test_a_quarantine_of_one_holds_on_all_and_ends_on_all(two: tuple[RegistryState, RegistryState]) -> None:
    first, second = Pins(two[0].pins), Pins(two[1].pins)
    assert first.see("zoo", [ADD]) == Seen(new=("add",))
    assert second.see("zoo", [ADD]) == Seen(), "a pin of one is a pin of all"
    assert second.quarantines() == frozenset()
    first.see("zoo", [OTHER])
    expire(two[1])
    assert second.quarantined("zoo") == ("add",)
    assert second.quarantines() == {"zoo"}
    second.accept("zoo", [OTHER])
    second.approve("zoo", "add", "me", StandingApproval({}, {}))
    expire(two[0])
    assert first.quarantined("zoo") == ()
    assert [*first.approved("zoo", "me")] == ["add"]


def test_a_quarantine_is_seen_without_a_notice_once_the_last_look_is_old(
    two: tuple[RegistryState, RegistryState], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Pins(two[0].pins), Pins(two[1].pins)
    first.see("zoo", [ADD])
    assert second.quarantined("zoo") == ()
    first.see("zoo", [OTHER])
    monkeypatch.setattr(registry_state, "TRUSTED_SECONDS", 0.0)
    assert second.quarantined("zoo") == ("add",)


def test_lists_learned_types_and_usage_of_one_are_known_to_all(
    two: tuple[RegistryState, RegistryState], tmp_path: Path
) -> None:
    catalogs = [Catalog.load(tmp_path / "tools", each.lists, ZOO) for each in two]
    catalogs[0].replace_server("zoo", [ADD], "1")
    expire(two[1])
    catalogs[1].reload_lists()
    assert catalogs[1].is_listed("zoo")
    assert [tool.full_name for tool in catalogs[1].tools()] == ["zoo.add"]
    revision = catalogs[1].revision
    catalogs[1].reload_lists()
    assert catalogs[1].revision == revision, "what has not changed is not read again"

    learned = [LearnedTypes(each.learned) for each in two]
    for each in learned:
        each.observe("zoo.add", {"sum": 3})
        assert each.has_unsaved
        each.save()
        assert not each.has_unsaved
    expire(two[0])
    learned[0].refresh()
    found = learned[0].get("zoo.add")
    assert found is not None
    assert found.count == 2

    usage = [SearchUsage(each.usage) for each in two]
    usage[0].searched("me", "add two numbers")
    usage[0].called("me", "zoo.add")
    usage[0].save()
    expire(two[1])
    usage[1].refresh()
    assert set(usage[1].likeness("me", "add two numbers")) == {"zoo.add"}


def test_without_the_database_a_call_is_refused_and_lists_stay_as_they_were(
    postgres_place: Place, tmp_path: Path
) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with state(nowhere, tmp_path) as found:
        with pytest.raises(StateUnavailable, match=r"cannot be reached"):
            Pins(found.pins).quarantined("zoo")
        catalog = Catalog.load(tmp_path / "tools", found.lists, ZOO)
        catalog.replace_server("zoo", [ADD], "1")
        catalog.reload_lists()
        assert catalog.is_listed("zoo")


def test_a_short_outage_of_the_database_stops_no_call_and_a_long_one_does(
    cluster: Cluster, postgres_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = sa.make_url(postgres_place.server_url).database

    def reachable(*, is_reachable: bool) -> None:
        admin.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
                sql.Identifier(str(name)), sql.Literal(is_reachable)
            )
        )
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

    monkeypatch.setattr(registry_state, "TRUSTED_SECONDS", 0.0)
    with (
        state(postgres_place.server_url, tmp_path) as found,
        psycopg.connect(cluster.url("postgres"), autocommit=True) as admin,
    ):
        pins = Pins(found.pins)
        pins.see("zoo", [ADD])
        assert pins.quarantined("zoo") == ()
        reachable(is_reachable=False)
        assert pins.quarantined("zoo") == ()
        expire(found)
        with pytest.raises(StateUnavailable):  # a notice said that it changed
            pins.quarantined("zoo")
        reachable(is_reachable=True)
        assert pins.quarantined("zoo") == ()
        reachable(is_reachable=False)
        assert pins.quarantined("zoo") == ()
        monkeypatch.setattr(registry_state, "OUTAGE_SECONDS", 0.0)
        with pytest.raises(StateUnavailable):
            pins.quarantined("zoo")


def test_what_a_home_had_in_files_counts_until_the_database_has_it(postgres_place: Place, tmp_path: Path) -> None:
    before = Pins(tmp_path / "registry" / "pins.json")
    before.see("zoo", [ADD])
    before.see("zoo", [OTHER])
    with (
        state(postgres_place.server_url, tmp_path) as found,
        state(postgres_place.server_url, tmp_path / "other") as other,
    ):
        assert Pins(found.pins).quarantined("zoo") == ("add",)
        Pins(found.pins).approve("zoo", "add", "me", StandingApproval({}, {}))
        assert Pins(other.pins).quarantined("zoo") == ("add",), "a quarantine outlives the move to the database"


async def test_a_mounted_file_of_servers_that_is_swapped_is_read_anew(tmp_path: Path) -> None:
    """As Kubernetes changes a ConfigMap: the link `..data` is replaced by one to another folder."""
    for number, name in ((1, "zoo"), (2, "owl")):
        (tmp_path / f"..{number}").mkdir()
        entry = {"url": "http://127.0.0.1:1/mcp"}
        (tmp_path / f"..{number}" / "mcp.json").write_text(json.dumps({"mcpServers": {name: entry}}))
        os.utime(tmp_path / f"..{number}" / "mcp.json", (1, 1))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "mcp.json").symlink_to("..data/mcp.json")
    registry = Registry(Home(tmp_path), {})
    assert list((await registry.configuration()).servers) == ["zoo"]
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert list((await registry.configuration()).servers) == ["owl"], "though both files are as old"
    await registry.close()


async def test_two_servers_that_search_at_once_ask_an_upstream_server_once(
    postgres_place: Place, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    entry = {"command": sys.executable, "args": [str(UPSTREAM)], "env": {"STARTED": str(starts)}}
    async with two_servers(postgres_place, tmp_path, {"zoo": entry}) as callers:
        answers = await asyncio.gather(*(each.call("search_tools", query="people") for each in callers))
    for answer in answers:
        assert answer.structured_content["tools"][0]["name"] == "people"
    assert len(starts.read_text().split()) == 1


@dataclass
class Slow:
    """A text whose change takes until `go` is set, as in a database that does not answer."""

    kept: KeptInMemory = field(default_factory=KeptInMemory)
    began: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    fails: bool = False
    where = "a slow place"

    def read(self, bytes_max: int = -1) -> bytes | None:
        return self.kept.read(bytes_max)

    def stamp(self) -> int:
        return self.kept.stamp()

    def remove(self) -> None:
        self.kept.remove()

    @contextmanager
    def editing(self) -> Iterator[Draft]:
        self.began.set()
        assert self.go.wait(30)
        if self.fails:
            raise StateUnavailable("It was away.")
        with self.kept.editing() as draft:
            yield draft


@pytest.mark.parametrize("fails", [False, True])
def test_nobody_waits_for_what_is_stored_of_calls_and_searches_and_nothing_of_it_is_lost(*, fails: bool) -> None:
    learning, using = Slow(fails=fails), Slow(fails=fails)
    learned, usage = LearnedTypes(learning), SearchUsage(using)
    learned.observe("zoo.feed", {"food": "hay"})
    usage.searched("me", "send a letter")
    usage.called("me", "post.send")
    saving = [threading.Thread(target=each.save) for each in (learned, usage)]
    for each in saving:
        each.start()
    assert learning.began.wait(30)
    assert using.began.wait(30)
    learned.observe("zoo.feed", {"amount": 1})  # as the event loop does
    found = learned.get("zoo.feed")
    assert found is not None
    assert found.count == 2
    usage.called("me", "post.stamp")
    assert set(usage.likeness("me", "send a letter")) == {"post.send", "post.stamp"}
    assert learned.has_unsaved
    for slow, thread in zip((learning, using), saving, strict=True):
        slow.go.set()
        thread.join()
        slow.fails = False
    learned.save()
    usage.save()
    assert not learned.has_unsaved
    assert not usage.has_unsaved
    stored = LearnedTypes(learning.kept).get("zoo.feed")
    assert stored == learned.get("zoo.feed")
    assert stored is not None
    assert stored.count == 2
    assert set(SearchUsage(using.kept).likeness("me", "send a letter")) == {"post.send", "post.stamp"}


async def test_a_server_ends_in_time_though_what_it_learned_cannot_be_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(learned_facts, "CLOSING_SECONDS", 0.1)
    slow = Slow()
    home = Home(tmp_path)
    registry = Registry(home, state=replace(registry_state.in_files(home), learned=slow))
    (await registry.learned.types()).observe("zoo.feed", {"food": "hay"})
    try:
        async with asyncio.timeout(20):
            await registry.close()
    finally:
        slow.go.set()


PATHS = {"/work": {"get": {"operationId": "work", "responses": {"200": {"description": "done"}}}}}
TEN = """
import asyncio
answers = await asyncio.gather(*(tools.slow.work() for _ in range(10)))
result = len(answers)
"""


@dataclass
class Service:
    """A service that counts how many requests it has at once."""

    port: int = 0
    now: int = 0
    most: int = 0
    seen: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.now, self.seen = self.now + 1, self.seen + 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(0.02)
                self.now -= 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    made = Service()
    listener = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        listener.close()


async def test_two_servers_together_send_no_more_at_once_than_the_entry_says(
    postgres_place: Place, tmp_path: Path
) -> None:
    async with service() as slow:
        document = {"openapi": "3.1.0", "info": {"title": "slow", "version": "1"}, "paths": PATHS}
        (tmp_path / "slow.json").write_text(json.dumps(document))
        entry = {
            "openapi": str(tmp_path / "slow.json"),
            "url": f"http://127.0.0.1:{slow.port}",
            "max_connections": 3,
            "approve": "never",
        }
        async with two_servers(postgres_place, tmp_path, {"slow": entry}) as callers:
            reports = await asyncio.gather(*(caller.run(TEN) for caller in callers))
    assert [report["result"] for report in reports] == [10, 10], reports
    assert slow.seen == 20
    assert 1 <= slow.most <= 3
