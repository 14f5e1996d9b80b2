"""Runs of a tenant, seen and answered by others: by right, and by the links of that tenant alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...waiting import wait_until
from ..runs.background.test_parked_runs import served
from .team import Member, Reply, team_server, token, told

CODE = "answer = await call_tool('notes.send', {'text': 'quetzal'})\nprint('quetzal', answer)"


@pytest.mark.timeout(240)
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
        assert told(home, "approvals", "list")["count"] == 0
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
