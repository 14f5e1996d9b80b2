"""A database that is slow or does not answer stops what needs it, with a clear error, and nothing else."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from sealab.server.base.database import Opening
from sealab.skills_db.errors import DatabaseUnreachable

from ..skills_db.conftest import Place, cluster_of_tests
from ..skills_db.link import Link, linked
from ..waiting import until, wait_until
from .conftest import SEALAB, _said_by, environment

ASKING = 60
ENOUGH_SECONDS = 60
"""What does not answer at all is found by this."""


@pytest.fixture(scope="module")
def link_and_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Link, Place]]:
    with cluster_of_tests() as cluster:
        place = Place(cluster.create("silent"), tmp_path_factory.mktemp("home"))
        with linked(cluster, place) as both:
            yield both


@pytest.fixture
def server(link_and_place: tuple[Link, Place], tmp_path: Path) -> Iterator[tuple[Link, subprocess.Popen[str], str]]:
    link, place = link_and_place
    assert place.url is not None
    command = [*SEALAB, "serve", "--http", "127.0.0.1:0", "--home", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=environment(SEALAB_DATABASE_URL=place.url), text=True
    ) as process:
        try:
            yield link, process, _said_by(process)[-1].split()[-1]
        finally:
            link.mend()
            process.kill()
            process.wait(10)


def text_of(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


async def test_while_the_database_is_silent_only_what_needs_it_fails(
    server: tuple[Link, subprocess.Popen[str], str],
) -> None:
    link, _process, url = server
    async with Client(url, read_timeout_seconds=ENOUGH_SECONDS) as client:

        async def call(tool: str, **arguments: Any) -> CallToolResult:
            return await client.call_tool(tool, arguments)

        saved = await call("save_skill", name="kept", code="def kept():\n    return 1\n")
        assert not saved.is_error
        link.cut()
        asked = [asyncio.create_task(call("list_skills")) for _ in range(ASKING)]
        hiding = [asyncio.create_task(call("sanitize_pii", text="mail ana@corp.example")) for _ in range(20)]
        await asyncio.sleep(0)
        assert (await call("execute_code", code="6 * 7")).structured_content["result"] == 42  # type: ignore[index]
        assert not (await call("write_workspace_file", filename="a.txt", content="x")).is_error
        assert (await call("read_workspace_file", filename="a.txt")).structured_content["content"] == "x"  # type: ignore[index]
        assert not (await call("list_workspace_files")).is_error
        assert not all(each.done() for each in asked)
        assert not (await call("search_tools", query="kept")).is_error
        assert not (await call("list_tool_categories")).is_error
        statistics = (await call("get_execution_stats")).structured_content
        assert statistics is not None
        assert "answer" in statistics["skills"]["problem"]
        assert statistics["workspace"]["entries"] == 1
        for answer in await asyncio.gather(*asked, *hiding):
            assert answer.is_error
            assert "answer" in text_of(answer)
            assert "Try again in a moment" in text_of(answer)
        with pytest.raises(MCPError, match=r"answer.*Try again in a moment"):
            await client.list_resources()
        unknown = await call("save_skill", name="lost", code="def lost():\n    return 1\n")
        assert unknown.is_error
        link.mend()

        async def listed() -> bool:
            answer = await call("list_skills")
            return not answer.is_error and answer.structured_content["count"] == 1  # type: ignore[index]

        await until(listed)
        assert not (await call("sanitize_pii", text="mail ana@corp.example")).is_error
        statistics = (await call("get_execution_stats")).structured_content
        assert statistics is not None
        assert "problem" not in statistics["skills"]
        assert statistics["skills"]["recorded_runs"]["ok"] >= 1  # what ran meanwhile is recorded now


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_though_threads_hang_in_the_database(
    server: tuple[Link, subprocess.Popen[str], str], number: signal.Signals
) -> None:
    link, process, url = server
    async with Client(url, read_timeout_seconds=ENOUGH_SECONDS) as client:
        await client.call_tool("list_skills", {})
        link.cut()
        asked = [asyncio.create_task(client.call_tool("list_skills", {})) for _ in range(10)]
        await asyncio.sleep(0.5)
        process.send_signal(number)
        try:
            assert await asyncio.to_thread(process.wait, 15) == 0
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)


def test_those_who_wait_while_it_cannot_be_reached_are_told_and_do_not_try_too() -> None:
    tries: list[int] = []
    waiting = threading.Semaphore(0)
    let_go, answers = threading.Event(), threading.Event()

    def make() -> str:
        tries.append(1)
        assert let_go.wait(20)
        if not answers.is_set():
            raise DatabaseUnreachable("It does not answer. Try again.")
        return "opened"

    opening = Opening(make)

    def ask() -> str:
        waiting.release()
        return opening()

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask) for _ in range(8)]
        for _ in asked:
            assert waiting.acquire(timeout=20)
        wait_until(lambda: tries)
        let_go.set()
        for each in asked:
            with pytest.raises(DatabaseUnreachable, match="does not answer"):
                each.result()
        before = len(tries)
        assert before < len(asked)
        let_go.clear()
        again = threads.submit(ask)
        wait_until(lambda: len(tries) > before)
        with pytest.raises(DatabaseUnreachable):  # at once: nobody lets the other try go
            opening()
        answers.set()
        let_go.set()
        assert again.result() == opening() == "opened"
