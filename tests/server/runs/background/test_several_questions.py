"""A run that asks its user several times loses neither what was approved nor what is under way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from sealab.server.protocol import elicitation

from ...conftest import in_this_process
from .test_background import begun, ended, until
from .test_parked_runs import ENV, answered, asks, operated, served

AT_ONCE = """
import asyncio
name = 'send'
texts = ['held', 'second', 'third']
result = await asyncio.gather(*(call_tool('notes.' + name, {'text': text}) for text in texts))
"""
IN_TURN = """
first = await tools.notes.send(text='first')
name = 'look'
second = await call_tool('notes.' + name, {'name': 'second'})
result = [first, second, await tools.notes.send(text='third')]
"""


def served_held(home: Path) -> tuple[Path, Path]:
    """Configure the server of notes, which answers one call once a file is there; return what was sent, and that."""
    sent, go = served(home), home / "go"
    program = (home / "notes.py").read_text()
    held = f"while text == 'held' and not pathlib.Path({str(go)!r}).exists():\n        time.sleep(0.01)"
    (home / "notes.py").write_text(program.replace("if text == 'slow':\n        time.sleep(600)", held))
    return sent, go


async def test_calls_at_once_that_are_approved_one_after_another_are_each_made_once(tmp_path: Path) -> None:
    sent, go = served_held(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        run_id = await begun(caller, AT_ONCE)
        assert "held" in (await until(caller, run_id, asks))["approval"]["question"]
        assert (await answered(tmp_path, "approve", f"{run_id}.1")).returncode == 0
        await until(caller, run_id, lambda _state: sent.exists())
        listed = await operated(tmp_path, "list", "--status", "waiting")
        assert run_id not in listed.stdout, "it waits while a call is under way"
        go.touch()
        await until(caller, run_id, asks)
        assert (await answered(tmp_path, "approve", f"{run_id}.2")).returncode == 0
        report = await ended(caller, run_id)
    assert report["result"] == ["sent held", "sent second", "sent third"], report
    assert sorted(sent.read_text().split()) == ["held", "second", "third"]


async def test_what_a_user_approved_for_a_run_is_not_asked_again_after_another_question(tmp_path: Path) -> None:
    sent = served(tmp_path)
    config = tmp_path / "mcp.json"
    config.write_text(config.read_text().replace('"writes"', '"always"'))
    async with in_this_process(tmp_path, ENV) as caller:
        run_id = await begun(caller, IN_TURN)
        for number, tool in ((1, "notes.send"), (2, "notes.look")):
            state = await until(caller, run_id, asks)
            assert state["approval"]["id"] == f"{run_id}.{number}"
            assert tool in state["approval"]["question"]
            assert (await answered(tmp_path, "approve", f"{run_id}.{number}")).returncode == 0
            await until(caller, run_id, lambda state: state.get("approval", {}).get("id") != f"{run_id}.{number}")  # noqa: B023
        report = await ended(caller, run_id)
    assert report.get("result") == ["sent first", "saw second", "sent third"], report
    assert sent.read_text() == "first\nthird\n"


async def test_a_call_of_the_foreground_is_answered_before_its_run_waits_for_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, go = served_held(tmp_path)
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.3)
    asked: list[str] = []

    async def user(_context: object, question: Any) -> ElicitResult:
        asked.append(question.message)
        if len(asked) > 1:
            asyncio.get_running_loop().call_later(0.6, go.touch)
            await asyncio.Event().wait()
        return ElicitResult(action="accept", content={"approve": True})

    async with in_this_process(tmp_path, ENV, elicitation_callback=user, mode="legacy") as caller:
        report = await caller.run(AT_ONCE)
        assert report["status"] == "waiting", report
        assert (await answered(tmp_path, "approve", report["approval"]["id"])).returncode == 0
        later = await ended(caller, report["run_id"])
    assert later["result"] == ["sent held", "sent second", "sent third"], later
    assert sorted(sent.read_text().split()) == ["held", "second", "third"]
