"""Runs of a tenant, seen and answered by others: by right, and by the links of that tenant alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sealab.server.base.identity import Identity, Right
from sealab.server.governance.caller import Caller
from sealab.server.governance.questions import NO
from sealab.server.interfaces.protocol.serving import mcp_server
from sealab.server.use_cases.runs.background.background import Background, RunAccess
from sealab.server.use_cases.runs.background.background_reports import RunState
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.skills_db.errors import JournalNotFound

from ...waiting import until, wait_until
from ..runs.background.test_parked_runs import served
from .team import Member, Reply, team_server, token, told
from .test_tenants import alice, opened

CODE = "answer = await call_tool('notes.send', {'text': 'quetzal'})\nprint('quetzal', answer)"
MATE = Caller("principal mate", identity=Identity("acme", "mate", frozenset({Right.RUN, Right.APPROVE})))


def test_a_question_is_answered_by_who_may_and_the_report_is_shown_to_who_may(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    sent = served(home)
    tokens = {
        "alice": token(home, "acme", "alice", "default"),
        "mate": token(home, "acme", "mate", "default"),
        "answering": token(home, "acme", "answering", "default", "approve"),
        "admin": token(home, "acme", "admin", "default", "admin"),
        "other": token(home, "beta", "alice", "default", "approve", "admin"),
    }
    with team_server(home, SEALAB_BACKGROUND_RUNS_MAX="2") as url:
        team = {name: Member(url, each) for name, each in tokens.items()}
        run_id = team["alice"].call("execute_code", code=CODE, background=True).structured["run_id"]

        def seen_by(name: str) -> Reply:
            return team[name].call("get_run", run_id=run_id)

        wait_until(lambda: seen_by("alice").structured["status"] == "waiting")
        for name, sees in (("mate", False), ("answering", True), ("admin", True), ("other", False)):
            reply = seen_by(name)
            assert (name, not reply.failed, "notes.send" in reply.text) == (name, sees, sees)
        assert team["answering"].call("get_run", run_id=run_id, cancel=True).failed
        assert team["mate"].call("get_run", run_id=run_id, cancel=True).failed
        assert told(home, "approvals", "list", "--tenant", "beta")["count"] == 0
        assert told(home, "approvals", "list")["approvals"][0]["tenant"] == "acme"
        link = told(home, "approvals", "list", "--tenant", "acme", "--url", url)["approvals"][0]["link"]
        path = link.removeprefix(url.removesuffix("/mcp"))
        assert path.startswith("/approvals/acme/")
        nobody = Member(url, None)
        for wrong in ("/approvals/", "/approvals/beta/", "/approvals/no-such/", "/approvals/default/"):
            assert nobody.http("GET", path.replace("/approvals/acme/", wrong)).status == 404
        page = nobody.http("GET", path)
        assert (page.status, "notes.send" in page.text) == (200, True)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert "The question was approved" in nobody.http("POST", path, "answer=approve", form).text
        wait_until(lambda: seen_by("alice").structured["status"] == "ok")
        assert sent.read_text().count("quetzal") == 1
        for name, sees in (("alice", True), ("mate", False), ("answering", False), ("admin", True), ("other", False)):
            assert (name, "quetzal" in seen_by(name).text) == (name, sees)


async def question_of(background: Background, run_id: str) -> Any:
    """Return the question of a run once it asks."""
    asked: list[Any] = []

    async def asks() -> bool:
        asked.append((await background.state(run_id, None)).approval)
        return asked[-1] is not None

    await until(asks)
    return asked[-1]


async def test_who_may_only_answer_is_shown_the_question_while_it_waits_and_nothing_after(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    served(home)
    async with opened(home) as tenants, tenants.using("acme") as acme:
        background = acme.app.background
        submitted = await background.submit(CodeRequest(f"progress(0.5, 'quetzal')\n{CODE}", caller=alice("acme")))
        run_id = submitted.run_id

        async def seen_by_mate() -> RunState:
            return await background.reached(run_id, await background.reach(run_id, MATE), MATE)

        asked = await question_of(background, run_id)
        seen = await seen_by_mate()
        assert (seen.approval, seen.execution, seen.progress) == (asked, None, None)
        assert await background.answer(asked, NO, None, by=None)
        for _ in range(2):  # whether or not it has ended meanwhile
            with pytest.raises(JournalNotFound, match="You have no run"):
                await seen_by_mate()
            await background.state(run_id, alice("acme").scope, wait_seconds=30)


async def test_get_run_shows_no_report_of_another_whose_question_is_answered_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    served(home)
    reach = Background.reach

    async def answered_after(self: Background, run_id: str, caller: Caller) -> RunAccess:
        found = await reach(self, run_id, caller)
        approval = (await self.queued_state(run_id, None)).approval
        assert approval is not None
        assert await self.answer(approval, NO, None, by=None)
        await self.state(run_id, None, wait_seconds=30)
        return found

    async with opened(home) as tenants, tenants.using("acme") as acme:
        background = acme.app.background
        submitted = await background.submit(CodeRequest(f"print('quetzal')\n{CODE}", caller=alice("acme")))
        await question_of(background, submitted.run_id)
        monkeypatch.setattr(Background, "reach", answered_after)
        monkeypatch.setattr("sealab.server.interfaces.protocol.background_tools.caller_of", lambda _ctx: MATE)
        async with Client(mcp_server(acme.app)) as client:
            answer = await client.call_tool("get_run", {"run_id": submitted.run_id, "wait_seconds": 20})
        assert answer.is_error
        assert "quetzal" not in str(answer)
