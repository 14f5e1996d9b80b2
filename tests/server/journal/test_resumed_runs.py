"""A run whose server was killed goes on in another process: what was answered is not asked again, nor sent."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sealab.skills_db.errors import RunNotCut
from sealab.skills_db.journal.records import Record, RecordKind, RunChange, joined

from ...waiting import until
from ..command_line import Ended, sealab
from ..conftest import http_process
from ..upstream_tools.test_registry import ONE_SPARE
from .test_journaled_runs import CLAIMED, served_notes, store

ENV = ONE_SPARE | CLAIMED
CODE = """
import random, time, uuid
drawn = [random.random(), time.time(), str(uuid.uuid4())]
seen = [await tools.notes.look(name=str(n)) for n in range(3)]
write_file(f'{name}.txt', str(drawn))
await tools.notes.send(text=f'first {name}')
try:
    said = await tools.notes.send(text='slow')
except OutcomeUnknown as error:
    said = type(error).__name__
last = await tools.notes.send(text=f'last {name}')
result = [seen, read_file(f'{name}.txt') == str(drawn), said, last]
"""
IN_SESSION = "x.append(2)\ntry:\n    await tools.notes.send(text='slow')\nexcept OutcomeUnknown:\n    x.append(3)\nx"


@dataclass(frozen=True)
class Cut:
    """A home whose server was killed while it was at work on runs, and their ids by name."""

    home: Path
    runs: dict[str, str]

    def sent(self, name: str) -> list[str]:
        """Return what one of them has sent."""
        return [line for line in (self.home / "sent.txt").read_text().splitlines() if line.endswith(f" {name}")]


@pytest.fixture(scope="module")
async def cut(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    home = tmp_path_factory.mktemp("home")
    sent = served_notes(home)
    ends = home / "notes.py"
    ends.write_text(ends.read_text().replace("time.sleep(600)", "import anyio; await anyio.sleep(600)"))
    ends.write_text(ends.read_text().replace("def send(", "async def send(").replace("def look(", "async def look("))
    plain = ("whole", "raced", "damaged", "other")
    with http_process(home, **ENV) as server:
        await _run(server.url, "x = [1]", {"session": "kept"})
        calls = [asyncio.create_task(_run(server.url, CODE, {"context_vars": {"name": name}})) for name in plain]
        in_sessions = {"kept": IN_SESSION, "left": "x = 1\nawait tools.notes.send(text='slow')"}
        calls += [asyncio.create_task(_run(server.url, code, {"session": at})) for at, code in in_sessions.items()]
        await until(
            lambda: (sent.exists() and sent.read_text().count("slow") == 6) or any(each.done() for each in calls)
        )
        assert [each.result().structured_content["error"] for each in calls if each.done()] == []
        server.process.kill()
        await asyncio.gather(*calls, return_exceptions=True)
    journals = store(home)
    found = [journals.journal(run.run_id) for run in journals.runs() if run.ended is None]
    runs = {each.run.session or each.header["context_vars"]["name"]: each.run.run_id for each in found}
    assert len(runs) == 6
    return Cut(home, runs)


async def _run(url: str, code: str, arguments: dict[str, Any]) -> Any:
    async with Client(url, read_timeout_seconds=200) as client:
        return await client.call_tool("execute_code", {"code": code, "timeout_seconds": 120, **arguments})


def lease_ends(home: Path, run_id: str) -> None:
    """End the lease of a run, as it ends a minute after its process."""
    with sqlite3.connect(home / "sealab.db") as database:
        database.execute("UPDATE sealab_journal_run SET leased_until = 0 WHERE run_id = ?", (run_id,))
    database.close()


def resumed(home: Path, run_id: str) -> Ended:
    return sealab("runs", "resume", run_id, "--json", "--home", str(home), **CLAIMED)


async def test_a_run_goes_on_where_it_was_cut_and_sends_nothing_again(cut: Cut) -> None:
    home, run_id = cut.home, cut.runs["whole"]
    early = await asyncio.to_thread(resumed, home, run_id)
    assert early.returncode != 0
    assert "is at work, or its server ended less than a minute ago" in early.stderr
    lease_ends(home, run_id)
    ended = await asyncio.to_thread(resumed, home, run_id)
    report = json.loads(ended.stdout)
    assert report["success"], report
    assert report["run_id"] == run_id
    assert report["result"] == [["saw 0", "saw 1", "saw 2"], True, "OutcomeUnknown", "sent last whole"]
    assert cut.sent("whole") == ["first whole", "last whole"]
    assert [call["tool"] for call in report["tool_calls"]] == ["notes.look"] * 3 + ["notes.send"] * 3
    journal = store(home).journal(run_id)
    assert journal.run.status == "ok"
    assert journal.run.tools["notes.send"] == {"done": 2, "failed": 1}
    again = await asyncio.to_thread(sealab, "runs", "replay", run_id, "--home", str(home), **CLAIMED)
    assert again.stdout.startswith("The same: ")
    ended = await asyncio.to_thread(resumed, home, run_id)
    assert "has ended: ok." in ended.stderr
    assert cut.sent("whole") == ["first whole", "last whole"]
    assert (home / "sent.txt").read_text().count("slow") == 6


async def test_a_call_that_declares_to_be_idempotent_is_made_again(tmp_path: Path) -> None:
    sent = served_notes(tmp_path, idempotent=True)
    with http_process(tmp_path, **ENV) as server:
        calling = asyncio.create_task(_run(server.url, "result = await tools.notes.send(text='slow once')", {}))
        await until(lambda: sent.exists() or calling.done())
        server.process.kill()
        await asyncio.gather(calling, return_exceptions=True)
    (run_id,) = [run.run_id for run in store(tmp_path).runs() if run.ended is None]
    lease_ends(tmp_path, run_id)
    report = json.loads((await asyncio.to_thread(resumed, tmp_path, run_id)).stdout)
    assert report["result"] == "sent slow once"
    assert sent.read_text().splitlines() == ["slow once", "slow once"]


async def test_the_program_of_a_session_goes_on_in_its_session_unless_that_went_on_without_it(cut: Cut) -> None:
    with http_process(cut.home, **ENV) as server:
        answer = await _run(server.url, "x = 2", {"session": "left"})
        assert answer.structured_content["success"]
    for session in ("kept", "left"):
        lease_ends(cut.home, cut.runs[session])
    ended = await asyncio.to_thread(resumed, cut.home, cut.runs["left"])
    assert ended.returncode != 0
    assert "is not as it found it" in ended.stderr
    report = json.loads((await asyncio.to_thread(resumed, cut.home, cut.runs["kept"])).stdout)
    assert report["result"] == [1, 2, 3]
    with http_process(cut.home, **ENV) as server:
        answer = await _run(server.url, "x.append(4)\nx", {"session": "kept"})
        assert answer.structured_content["result"] == [1, 2, 3, 4]
        assert answer.structured_content["session"]["programs"] == 2


async def test_one_process_alone_takes_a_run_up_and_the_one_before_can_write_no_more(cut: Cut) -> None:
    run_id = cut.runs["raced"]
    lease_ends(cut.home, run_id)
    first, second = store(cut.home), store(cut.home)
    taken = await asyncio.gather(
        *(asyncio.to_thread(each.take_over, run_id, name, 60) for each, name in ((first, "a"), (second, "b"))),
        return_exceptions=True,
    )
    assert sorted(isinstance(each, RunNotCut) for each in taken) == [False, True], taken


async def test_what_is_cut_out_of_a_journal_is_noticed_and_nothing_is_sent(cut: Cut) -> None:
    run_id = cut.runs["damaged"]
    lease_ends(cut.home, run_id)
    with sqlite3.connect(cut.home / "sealab.db") as database:
        database.execute("DELETE FROM sealab_journal_piece WHERE run_id = ? AND number = 1", (run_id,))
    database.close()
    ended = await asyncio.to_thread(resumed, cut.home, run_id)
    assert ended.returncode != 0
    assert "pieces of it are missing" in ended.stderr
    assert cut.sent("damaged") == ["first damaged"]


async def test_a_program_that_asks_for_something_else_stops_and_sends_nothing(cut: Cut) -> None:
    home, run_id = cut.home, cut.runs["other"]
    lease_ends(home, run_id)
    journals = store(home)
    taken = journals.take_over(run_id, "nobody", 0)
    first = next(
        record
        for record in taken.records
        if record.kind is RecordKind.OUTCOME and record.value.get("name") == "call_tool"
    )
    other = Record(RecordKind.OUTCOME, first.body.replace(b"notes.look", b"notes.send", 1))
    assert other != first
    changed = joined([other if record is first else record for record in taken.records])
    with sqlite3.connect(home / "sealab.db") as database:
        database.execute("DELETE FROM sealab_journal_piece WHERE run_id = ?", (run_id,))
    database.close()
    journals.write([RunChange(run_id, 0, piece=changed)], {run_id: taken.scope}, durable=True)
    ended = await asyncio.to_thread(resumed, home, run_id)
    report = json.loads(ended.stdout)
    assert not report["success"]
    assert "was notes.send(" in report["error"]["message"], report
    assert "and is notes.look(" in report["error"]["message"]
    assert report["error"]["line"] == 4
    assert cut.sent("other") == ["first other"]
