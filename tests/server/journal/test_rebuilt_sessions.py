"""A session that has lost its process is what it was: its programs run again on their recorded answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ...waiting import until
from ..conftest import Caller, in_process_server, in_this_process
from ..upstream_tools.test_registry import ONE_SPARE
from .test_journaled_runs import CLAIMED, served_notes, store

ENV = ONE_SPARE | CLAIMED
PROGRAMS = (
    "import random, uuid, time\nseen = [await tools.notes.look(name='Ada')]\nwrite_file('a.txt', 'one')",
    "rows = {'a': {3, 1, 2}, 'when': time.time(), 'which': str(uuid.uuid4())}\ntext = read_file('a.txt')",
    "def double(x):\n    return 2 * x\ndrawn = [random.random() for _ in range(3)]\nprint(drawn)",
    "import asyncio\nseen += await asyncio.gather(*[tools.notes.look(name=str(n)) for n in range(5)])",
    "sent = await tools.notes.send(text='once')\nwrite_file('a.txt', 'two')",
    "try:\n    await tools.notes.nothing()\nexcept Exception as error:\n    failed = str(error)\n1 / 0",
)
ALL = "[seen, sorted(rows['a']), rows['when'], rows['which'], text, double(21), drawn, sent, failed]"


caller = in_process_server(ENV, served_notes)


forgetful = in_process_server(ENV | {"SEALAB_SESSION_IDLE_SECONDS": "0.05"}, served_notes)
"""A client of a server whose idle sessions lose their process at once."""


async def test_a_session_that_loses_its_process_after_each_program_is_what_it_was(forgetful: Caller) -> None:
    told: list[Any] = []
    for number, code in enumerate((*PROGRAMS, ALL, ALL)):
        report = await forgetful.run(code, session="kept")
        assert "session_ended" not in report, report
        assert report["success"] is (number != len(PROGRAMS) - 1), report
        rebuilt = report.get("session")
        assert number == 0 or (rebuilt["rebuilt"], rebuilt["programs"]) == (True, number), report
        told.append(report["result"])
        await until_gone(forgetful, "kept")
    assert told[-2] == told[-1]
    assert told[-1][4] == "one"
    assert (forgetful.home / "sent.txt").read_text() == "once\n"


async def test_a_time_out_leaves_a_session_as_it_was_before_that_program(caller: Caller) -> None:
    await caller.run("x = [1]", session="kept")
    report = await caller.run("x.append(2)\nwhile True:\n    pass", session="kept", timeout_seconds=0.5)
    assert report["status"] == "timeout"
    assert "its code ran out of time" in report["session_ended"]
    assert "The next call finds it as it was before this one." in report["session_ended"]
    report = await caller.run("x.append(3)\nx", session="kept")
    assert (report["result"], report["session"]["programs"]) == ([1, 3], 1)
    assert "session_ended" not in report
    report = await caller.run("x", session="kept")
    assert report["result"] == [1, 3]
    assert "session" not in report


async def test_a_time_out_of_a_program_that_waited_does_too(caller: Caller) -> None:
    await caller.run("x = [1]", session="waited")
    code = "x.append(2)\nawait tools.notes.send(text='slow')"
    assert (await caller.run(code, session="waited", timeout_seconds=1))["status"] == "timeout"
    assert (await caller.run("x", session="waited"))["result"] == [1]


async def test_a_session_that_was_closed_is_not_rebuilt(caller: Caller) -> None:
    await caller.run("x = 1", session="closed")
    assert (await caller.run("close_session('closed')"))["result"] is True
    report = await caller.run("'x' in globals()", session="closed")
    assert report["result"] is False
    assert "session" not in report


async def test_an_idle_session_that_lost_its_process_can_still_be_closed(forgetful: Caller) -> None:
    await forgetful.run("x = 1", session="idle")
    await until_gone(forgetful, "idle")
    assert (await forgetful.run("close_session('idle')"))["result"] is True
    assert (await forgetful.run("close_session('idle')"))["result"] is False
    assert (await forgetful.run("'x' in globals()", session="idle"))["result"] is False


async def until_gone(caller: Caller, name: str) -> None:
    async def is_gone() -> bool:
        return name not in [each["name"] for each in (await caller.run("list_sessions()"))["result"]]

    await until(is_gone)


async def test_what_takes_too_long_to_rebuild_ends_the_session_and_says_so(tmp_path: Path) -> None:
    served_notes(tmp_path)
    env = ENV | {"SEALAB_SESSION_REBUILD_SECONDS": "0.05", "SEALAB_SESSION_IDLE_SECONDS": "0.05"}
    async with in_this_process(tmp_path, env) as caller:
        await caller.run("x = 1\nfor _ in range(4_000_000):\n    pass", session="kept")
        await until_gone(caller, "kept")
        report = await caller.run("'x' in globals()", session="kept")
        assert report["result"] is False
        assert "SESSION_REBUILD_SECONDS" in report["session_ended"]
        await until_gone(caller, "kept")
        report = await caller.run("1", session="kept")
        assert report["session"]["programs"] == 1


@pytest.mark.parametrize("forgets", ["first", "middle", "last"])
async def test_a_session_of_which_a_program_was_erased_ends(forgetful: Caller, forgets: str) -> None:
    session = f"without-its-{forgets}"
    for name in ("first", "middle", "last"):
        await forgetful.run(f"x = {f'{name} of {session}'!r}", session=session)
    store(forgetful.home).forget(lambda text: f"{forgets} of {session}" in text)
    await until_gone(forgetful, session)
    report = await forgetful.run("'x' in globals()", session=session)
    assert report["result"] is False
    assert "was erased by `sealab pii forget`" in report["session_ended"]


async def test_two_calls_at_once_rebuild_a_session_once(tmp_path: Path) -> None:
    served_notes(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        await caller.run("x = [0]", session="kept")
    async with in_this_process(tmp_path, ENV) as caller:
        reports = await asyncio.gather(*(caller.run(f"x.append({n})\nlen(x)", session="kept") for n in range(3)))
        assert sorted(report["result"] for report in reports) == [2, 3, 4]
        assert sum("session" in report for report in reports) == 1


async def test_without_a_journal_a_session_ends_with_its_process(tmp_path: Path) -> None:
    served_notes(tmp_path)
    async with in_this_process(tmp_path, ENV | {"SEALAB_JOURNAL": "off"}) as caller:
        await caller.run("x = 1", session="kept")
        await caller.run("while True: pass", session="kept", timeout_seconds=0.5)
        report = await caller.run("'x' in globals()", session="kept")
        assert report["result"] is False
        assert "ran out of time" in report["session_ended"]
