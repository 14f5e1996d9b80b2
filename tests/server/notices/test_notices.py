"""Notices of one database: heard by whom they are for, and after a gap everything is looked at anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from sealab.server.notices.notices import Changed, Notices
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import open_database
from sealab.skills_db.shared_state.documents import DocumentStore
from sealab.skills_db.skills import SkillStore

from ...skills_db.postgres import Cluster

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
