"""A background run that needs a yes waits without a worker, over restarts, until somebody answers, once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from sealab.server.protocol import elicitation

from ...command_line import Ended, sealab_process
from ...conftest import Caller, in_this_process
from ...journal.test_journaled_runs import CLAIMED, NOTES
from ...upstream_tools.test_registry import configure
from .test_background import begun, told, until

ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_BACKGROUND_RUNS_MAX": "2"} | CLAIMED
CODE = """
import random
number = random.random()
await call_tool('notes.put', {'text': 'before'})
name = 'send'
try:
    answer = await call_tool('notes.' + name, {'text': f'told {number}'})
except ToolError as error:
    answer = f'refused: {error}'
result = [number, answer]
"""


def asks(state: dict[str, Any]) -> bool:
    return bool(state["status"] == "waiting")


def served(home: Path) -> Path:
    """Configure the server of notes, of whose calls a user has to approve those that send."""
    (home / "notes.py").write_text(NOTES)
    sent = home / "sent.txt"
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(sent)], "reads": ["put"]}
    configure(home, notes={**command, "approve": "writes"})
    return sent


async def answered(home: Path, *words: str) -> Ended:
    return await asyncio.to_thread(sealab_process, "approvals", *words, "--home", str(home), **CLAIMED)


async def parked(caller: Caller) -> tuple[str, str]:
    """Begin a run and wait until it asks; return its run_id and the id of the question."""
    run_id = await begun(caller, CODE)
    state = await until(caller, run_id, asks)
    assert "send" in state["approval"]["question"]
    return run_id, state["approval"]["id"]


@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_question_is_answered_after_a_restart_and_the_run_goes_on(tmp_path: Path, answer: str) -> None:
    sent = served(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        run_id, approval = await parked(caller)
    listed = json.loads((await answered(tmp_path, "list", "--json")).stdout)
    assert [each["id"] for each in listed["approvals"]] == [approval]
    assert (await answered(tmp_path, answer, approval)).returncode == 0
    async with in_this_process(tmp_path, ENV) as caller:
        report = await told(caller, run_id, wait_seconds=50)
    assert report["status"] == "ok", report
    number, said = report["result"]
    if answer == "approve":
        assert sent.read_text() == f"told {number}\n"
        assert said == f"sent told {number}"
    else:
        assert not sent.exists()
        assert said.startswith("refused: ")


async def test_of_two_answers_one_counts(tmp_path: Path) -> None:
    served(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        _, approval = await parked(caller)
    answers = await asyncio.gather(answered(tmp_path, "approve", approval), answered(tmp_path, "deny", approval))
    assert sorted(each.returncode for each in answers) == [0, 2]
    assert "does not wait any more" in "".join(each.stderr for each in answers)


async def test_a_run_that_waits_for_an_answer_can_be_cancelled(tmp_path: Path) -> None:
    sent = served(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        run_id, approval = await parked(caller)
        assert (await told(caller, run_id, cancel=True))["status"] == "cancelled"
        assert (await answered(tmp_path, "approve", approval)).returncode == 2
        assert (await told(caller, run_id))["status"] == "cancelled"
    assert not sent.exists()


async def test_a_run_that_waits_holds_no_place(tmp_path: Path) -> None:
    served(tmp_path)
    async with in_this_process(tmp_path, ENV | {"SEALAB_BACKGROUND_RUNS_MAX": "1"}) as caller:
        await parked(caller)
        other = await begun(caller, "result = 'ran'")
        assert (await told(caller, other, wait_seconds=30))["result"] == "ran"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_run_whose_user_gives_no_answer_waits_for_one_and_get_run_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, answer: str
) -> None:
    sent = served(tmp_path)
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.3)
    asked: list[str] = []

    async def user(_context: object, question: Any) -> ElicitResult:
        asked.append(question.message)
        if len(asked) == 1:
            await asyncio.sleep(0.6)
        return ElicitResult(action="accept" if answer == "approve" else "decline", content={"approve": True})

    async with in_this_process(tmp_path, ENV, elicitation_callback=user, mode=mode) as caller:
        report = await caller.run(CODE)
        assert report["status"] == "waiting", report
        assert "send" in report["approval"]["question"]
        later = await told(caller, report["run_id"], wait_seconds=50)
    assert later["status"] == "ok", later
    assert len(asked) == 2
    number, said = later["result"]
    if answer == "approve":
        assert sent.read_text() == f"told {number}\n"
    else:
        assert said.startswith("refused: ")
        assert not sent.exists()


async def test_a_run_of_the_foreground_waits_over_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = served(tmp_path)
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.2)

    async def absent(_context: object, _question: Any) -> ElicitResult:
        await asyncio.sleep(0.6)
        return ElicitResult(action="cancel")

    async with in_this_process(tmp_path, ENV, elicitation_callback=absent) as caller:
        report = await caller.run(CODE)
    assert (await answered(tmp_path, "approve", report["approval"]["id"])).returncode == 0
    async with in_this_process(tmp_path, ENV) as caller:
        later = await told(caller, report["run_id"], wait_seconds=50)
    assert sent.read_text() == f"told {later['result'][0]}\n"


async def test_without_a_journal_no_answer_is_a_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = served(tmp_path)
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.2)

    async def absent(_context: object, _question: Any) -> ElicitResult:
        await asyncio.sleep(0.6)
        return ElicitResult(action="cancel")

    env = ENV | {"SEALAB_JOURNAL": "off"}
    async with in_this_process(tmp_path, env, elicitation_callback=absent) as caller:
        report = await caller.run(CODE)
    assert report["result"][1].startswith("refused: ")
    assert not sent.exists()
