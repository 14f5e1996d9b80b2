"""Servers on one database: notices, heard by whom they are for, and whether one can work with the tables that all share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg
import pytest

from sealab.server.base.notices.notices import Changed, Notices
from sealab.server.base.notices.readiness import ServerSetup, differing
from sealab.server.base.settings import Settings
from sealab.skills_db import migrations
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import open_database
from sealab.skills_db.migrations import MIGRATIONS, Migration
from sealab.skills_db.shared_state.documents import DocumentStore
from sealab.skills_db.skills import SkillStore

from ...skills_db.postgres import Cluster
from ...waiting import wait_until
from ..command_line import sealab
from ..conftest import http_server

WAIT_SECONDS = 30


class Ear:
    """Notes what was heard, and waits until something was."""

    def __init__(self) -> None:
        self.heard: list[Changed] = []
        self._more = asyncio.Event()

    def __call__(self, changed: Changed) -> None:
        self.heard.append(changed)
        self._more.set()

    async def until(self, holds: Callable[[list[Changed]], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds(self.heard):
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def listening(notices: Notices) -> AsyncIterator[None]:
    task = asyncio.create_task(notices.listen())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def change_document(url: str, home: Path, tenant: str | None, data: bytes) -> None:
    with open_database(url, home, tenant=tenant) as database, DocumentStore(database).editing("a") as draft:
        draft.data = data


def save_skill(url: str, home: Path, name: str) -> None:
    with open_database(url, home) as database:
        SkillStore(database).save(SkillDraft(name=name, code="pass"))


async def test_each_hears_of_its_own_tenant_and_again_of_everything_after_a_gap(
    cluster: Cluster, tmp_path: Path
) -> None:
    url = cluster.create("notices")
    await asyncio.to_thread(save_skill, url, tmp_path, "before")
    notices, operator, acme = Notices(url), Ear(), Ear()
    with notices.heard(None, operator), notices.heard("acme", acme):
        async with listening(notices):
            await operator.until(lambda heard: heard == [Changed.ANYTHING])
            assert notices.is_listening
            await asyncio.to_thread(change_document, url, tmp_path, "acme", b"1")
            await acme.until(lambda heard: heard[-1] is Changed.DOCUMENTS)
            await asyncio.to_thread(save_skill, url, tmp_path, "a")
            await operator.until(lambda heard: heard[-1] is Changed.SKILLS)
            assert operator.heard == [Changed.ANYTHING, Changed.SKILLS], "it is not the operator's"
            with psycopg.connect(url, autocommit=True) as connection:
                ended = connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sealab notices'"
                ).fetchall()
            assert ended == [(True,)], "one connection hears for all"
            await asyncio.to_thread(save_skill, url, tmp_path, "while_nobody_listens")
            for ear in (operator, acme):
                await ear.until(lambda heard: heard.count(Changed.ANYTHING) >= 2)
            assert notices.gaps == 1
            await asyncio.to_thread(save_skill, url, tmp_path, "b")
            await operator.until(lambda heard: heard[-1] is Changed.SKILLS)
            assert Changed.SKILLS not in acme.heard, "they were the operator's"


NO_NOTICES = (
    "",
    "1",
    "{",
    "[]",
    "[" * 7000,
    "x" * 7_000,
    '{"schema": "public", "kind": "other", "version": 1}',
    '{"schema": "public", "kind": "skills", "version": Infinity}',
)


async def test_what_is_no_notice_and_a_part_that_fails_disturb_nobody(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = cluster.create("noise")
    await asyncio.to_thread(save_skill, url, tmp_path, "before")

    def fails(_changed: Changed) -> None:
        raise RuntimeError("a defect")

    notices, ear = Notices(url), Ear()
    with notices.heard(None, fails), notices.heard(None, ear):
        async with listening(notices):
            await ear.until(bool)
            with psycopg.connect(url, autocommit=True) as connection:
                for payload in NO_NOTICES:
                    connection.execute("SELECT pg_notify('sealab_notice', %s)", [payload])
            await asyncio.to_thread(save_skill, url, tmp_path, "a")
            await ear.until(lambda heard: heard == [Changed.ANYTHING, Changed.SKILLS])
    assert notices.gaps == 0
    assert "A notice could not be taken." in caplog.text


async def test_where_the_database_is_a_file_nothing_listens() -> None:
    notices = Notices(None)
    await asyncio.wait_for(notices.listen(), WAIT_SECONDS)
    assert not notices.is_shared


EXPANDS = Migration("9998_notes", ("CREATE TABLE sealab_note (id INTEGER)",))
CONTRACTS = Migration("9999_no_notes", ("DROP TABLE sealab_note",), needs=EXPANDS.name)


def readyz(url: str) -> tuple[int, dict[str, object]]:
    try:
        with urlopen(url.replace("/mcp", "/readyz"), timeout=20) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_server_is_ready_on_expanded_tables_and_not_on_contracted_ones(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.create("readiness")
    with http_server(tmp_path, SEALAB_DATABASE_URL=url, SEALAB_WORKERS_SPARE="1") as server:
        wait_until(lambda: readyz(server)[0] == 200)
        with open_database(url, tmp_path) as database:
            migrations.apply(database.migrating, (*MIGRATIONS, EXPANDS))
            assert readyz(server)[0] == 200
            migrations.apply(database.migrating, (*MIGRATIONS, EXPANDS, CONTRACTS))
        wait_until(lambda: readyz(server)[0] == 503)
        reason = str(readyz(server)[1]["reason"])
        assert "step 9999_no_notes" in reason
        assert "Use that version or a later one." in reason


def test_a_server_without_its_tables_is_not_ready_and_says_who_can_make_them(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.create("unmade")
    with open_database(url, tmp_path) as database, database.migrating.begin() as connection:
        connection.exec_driver_sql("DELETE FROM sealab_migration WHERE name = '0001_tables'")
        connection.exec_driver_sql("CREATE ROLE serves LOGIN PASSWORD 'serves'")
        connection.exec_driver_sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO serves")
    try:
        limited = url.replace(f"sealab:{cluster.password}", "serves:serves")
        with http_server(tmp_path, SEALAB_DATABASE_URL=limited, SEALAB_WORKERS_SPARE="1") as server:
            wait_until(lambda: "lacks 0001_tables" in str(readyz(server)[1].get("reason")))
            assert readyz(server)[0] == 503
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY serves")
            connection.execute("DROP ROLE serves")


def test_doctor_and_readyz_tell_what_differs_between_servers(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.create("differing")
    env = {"SEALAB_DATABASE_URL": url, "SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEY": "ab" * 32}
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "second" / "mcp.json").write_text('{"mcpServers": {}}')
    with http_server(tmp_path / "first", **env) as first:
        wait_until(lambda: readyz(first) == (200, {"ready": True}))
        with http_server(tmp_path / "second", SEALAB_MEMORY_MB="400", **env) as second:
            wait_until(lambda: "warning" in readyz(second)[1])
            warning = (
                "2 servers use it, which differ in mcp.json (2 kinds) and the settings (2 kinds): give all the same"
            )
            assert readyz(second)[1]["warning"] == warning
            doctor = sealab("doctor", "--json", "--home", str(tmp_path / "first"), **env)
            assert json.loads(doctor.stdout)["database"]["note"] == f"it answers. {warning}"


def test_a_setup_follows_a_mounted_file_that_is_swapped_and_tells_no_secret(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "mcp.json").write_text(f'{{"mcpServers": {{}}, "secret": {number}}}')
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "mcp.json").symlink_to("..data/mcp.json")
    setups = [ServerSetup(Settings(vault_key=key), tmp_path / "mcp.json", None) for key in ("a", "a", "b")]
    before = [setup.now() for setup in setups]
    assert before[0] == before[1]
    assert before[0]["mcp.json"] != before[2]["mcp.json"], "without the key the file cannot be guessed"
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert differing([before[0], setups[0].now()]) == {"mcp.json": 2}


@pytest.mark.parametrize("same", [[], [{"a": "1"}], [{"a": "1"}, {"a": "1"}]])
def test_what_is_the_same_does_not_differ(same: list[dict[str, str]]) -> None:
    assert differing(same) == {}
