"""Runs of a real server are journaled: what the code asked and was given, before a change is sent, and only if asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp import Client

from sealab.server.base.database import HomeDatabase
from sealab.server.base.settings import Settings
from sealab.server.privacy.privacy import Privacy
from sealab.server.use_cases.journal.replaying import RecordedCall, recorded_calls
from sealab.skills_db.journal.journal_store import JournalStore
from sealab.skills_db.journal.records import StoredJournal

from ...waiting import until
from ..conftest import Caller, http_process, in_process_server, in_this_process
from ..upstream_tools.test_registry import ONE_SPARE, configure

NOTES = """
import pathlib, sys, time
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('notes', log_level='ERROR')
sent = pathlib.Path(sys.argv[1])

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(name: str) -> str:
    'Look.'
    if name == 'slow':
        time.sleep(600)
    return f'saw {name}'

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def send(text: str, to: list[str] = []) -> str:
    'Send.'
    with sent.open('a') as file:
        file.write(text + '\\n')
    if text == 'slow':
        time.sleep(600)
    return f'sent {text}'

@server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=True))
def put(text: str) -> str:
    'Put.'
    return text

server.run()
"""
CLAIMED = {"SEALAB_VAULT_KEYRING": "false"}


def served_notes(home: Path, *, idempotent: bool = False) -> Path:
    """Configure the server of notes, every call of which is approved; return the file of what it was sent.

    With `idempotent` its `send` says that it is, and is slow once.
    """
    program = NOTES
    if idempotent:
        program = program.replace("read_only_hint=False)", "read_only_hint=False, idempotent_hint=True)").replace(
            "if text == 'slow'", "if text == 'slow once' and sent.read_text().count('slow') == 1"
        )
    (home / "notes.py").write_text(program)
    sent = home / "sent.txt"
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(sent)]}
    configure(home, notes={**command, "approve": "never"})
    return sent


def store(home: Path) -> JournalStore:
    """Open the journals of a home as a second process does."""
    settings = Settings(vault_keyring=False)
    database = HomeDatabase(None, home)
    return JournalStore(database(), Privacy(settings, home, database).key(), quota_bytes=1 << 40)


async def journal_of(home: Path, run_id: str, calls: int) -> tuple[StoredJournal, Sequence[RecordedCall]]:
    """Return a journal and its calls once so many are written."""
    journals = store(home)
    await until(lambda: run_id in [run.run_id for run in journals.runs(status="ok")])
    journal = journals.journal(run_id)
    found = made(journal)
    assert len(found) == calls
    return journal, found


def made(journal: StoredJournal) -> Sequence[RecordedCall]:
    """Return the calls that the code made itself: before it begins, its worker has those judged that it will make."""
    return [call for call in recorded_calls(journal.records) if call.name != "judge_calls"]


caller = in_process_server(ONE_SPARE | CLAIMED, served_notes)


async def test_a_run_leaves_its_code_its_calls_with_their_answers_and_its_end(caller: Caller) -> None:
    code = "seen = await tools.notes.look(name=who)\nwrite_file('a.txt', seen)\nprint(read_file('a.txt'))\nresult = 7"
    report = await caller.run(code, context_vars={"who": "Ada"})
    journal, calls = await journal_of(caller.home, report["run_id"], 3)
    assert (journal.scope, journal.run.isolation, journal.header["code"]) == ("home", "restricted", code)
    assert journal.header["context_vars"] == {"who": "Ada"}
    assert [(call.name, call.changes) for call in calls] == [
        ("call_tool", False),
        ("write_file", True),
        ("read_file", False),
    ]
    assert calls[0].arguments == {"name": "notes.look", "arguments": {"name": "Ada"}}
    assert calls[0].reply == {"answer": "saw Ada"}
    end = journal.records[-1].value
    assert (end["status"], end["result"], end["output"]) == ("ok", 7, "saw Ada\n")
    assert journal.run.tools == {"notes.look": {"done": 1, "failed": 0}}
    assert journal.trace


async def test_what_may_be_repeated_is_what_the_tool_or_the_place_of_a_file_says(caller: Caller) -> None:
    code = (
        "import os\nawait tools.notes.send(text='a')\nawait tools.notes.put(text='b')\nwrite_file('a.txt', '')\n"
        "os.mkdir('folder')\nos.rmdir('folder')\ndelete_file('a.txt')\n"
        "def one() -> int:\n    'Return one.'\n    return 1\n"
    )
    report = await caller.run(code)
    assert report["success"], report
    _, calls = await journal_of(caller.home, report["run_id"], 6)
    assert [(call.changes, call.repeatable) for call in calls] == [
        (True, False),
        (True, True),
        (True, True),
        (True, False),
        (True, False),
        (True, False),
    ]


async def test_files_that_are_opened_to_be_read_are_no_change_and_appending_cannot_be_repeated(caller: Caller) -> None:
    code = (
        "with open('log', 'w') as file: file.write('x')\nwith open('log') as file: file.read()\n"
        "with open('log', 'a') as file: file.write('y')"
    )
    report = await caller.run(code)
    assert report["success"], report
    journals = store(caller.home)
    await until(lambda: report["run_id"] in [run.run_id for run in journals.runs(status="ok")])
    calls = made(journals.journal(report["run_id"]))
    told = [(call.name, call.arguments.get("mode"), call.changes, call.repeatable) for call in calls]
    assert ("file_open", "w", True, True) in told
    assert ("file_open", "r", False, False) in told
    assert ("file_write", None, True, False) in told


async def test_a_dry_run_changes_nothing_and_so_says_nothing_of_changes(caller: Caller) -> None:
    report = await caller.run("await tools.notes.send(text='dry')\nwrite_file('b.txt', '')", dry_run=True)
    journal, calls = await journal_of(caller.home, report["run_id"], 2)
    assert journal.header["dry_run"] is True
    assert [call.changes for call in calls] == [False, False]


async def test_the_programs_of_a_session_are_numbered_until_it_ends(caller: Caller) -> None:
    runs = [(await caller.run("x = 1", session="counted"))["run_id"] for _ in range(3)]
    await caller.run("close_session('counted')")
    runs.append((await caller.run("x = 1", session="counted"))["run_id"])
    journals = store(caller.home)
    await until(lambda: runs[-1] in [run.run_id for run in journals.runs(status="ok")])
    assert [journals.journal(run).run.number for run in runs] == [0, 1, 2, 0]
    assert {journals.journal(run).run.session for run in runs} == {"counted"}


async def test_with_the_journal_off_nothing_is_kept(tmp_path: Path) -> None:
    served_notes(tmp_path)
    async with in_this_process(tmp_path, ONE_SPARE | CLAIMED | {"SEALAB_JOURNAL": "off"}) as caller:
        report = await caller.run("await tools.notes.send(text='a')")
        assert report["success"]
    assert store(tmp_path).runs() == []


async def test_the_intent_of_a_call_survives_the_death_of_its_server(tmp_path: Path) -> None:
    sent = served_notes(tmp_path)
    code = "await tools.notes.look(name='x')\nawait tools.notes.send(text='slow')"
    with http_process(tmp_path, **ONE_SPARE, **CLAIMED) as server:
        calling = asyncio.create_task(_run(server.url, code))
        await until(lambda: sent.exists() or calling.done())
        server.process.kill()
        await asyncio.gather(calling, return_exceptions=True)
    journals = store(tmp_path)
    (run,) = journals.runs()
    assert (run.status, run.ended) == ("running", None)
    look, send = made(journals.journal(run.run_id))
    assert look.reply == {"answer": "saw x"}
    assert (send.changes, send.repeatable, send.reply) == (True, False, None)


async def _run(url: str, code: str) -> None:
    async with Client(url, read_timeout_seconds=200) as client:
        await client.call_tool("execute_code", {"code": code, "timeout_seconds": 60})
