"""A user is asked by whichever server has the run, and answers through whichever the client reaches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.types import ElicitResult

from ...waiting import until
from ..protocol.web.raw import MODERN, call, post
from ..runs.background.test_parked_runs import CODE
from .conftest import Sealab, balancer, client
from .test_sessions_on_replicas import bearer, report, run

SENDING = "await call_tool('notes.send', {'text': 'asked'})"


def sent_anywhere(team: Sealab) -> int:
    return sum(path.read_text().count("asked") for path in team.folder.glob("home-*/sent.txt"))


@pytest.mark.timeout(90)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("session", [None, "asks"])
async def test_a_question_of_a_run_is_answered_through_another_server(
    team: Sealab, mode: str, session: str | None
) -> None:
    token = team.token("default", f"judy-{mode}-{session}", "approve")
    asked: list[str] = []

    async def user(_context: object, question: Any) -> ElicitResult:
        asked.append(question.message)
        return ElicitResult(action="accept", content={"approve": True})

    before = sent_anywhere(team)
    more = {} if session is None else {"session": session}
    if session is not None:  # on a server, which the client mostly does not reach
        assert await asyncio.to_thread(lambda: run(team.urls[2], "kept = 1", session, token)["success"])
    with balancer(team.urls) as url:
        async with client(url, token, mode, elicitation_callback=user) as caller:
            for _ in range(3):
                answer = await caller.call_tool("execute_code", {"code": SENDING, "timeout_seconds": 60, **more})
                assert not answer.is_error, answer
    assert len(asked) == 3
    assert sent_anywhere(team) == before + 3


@pytest.mark.timeout(90)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_background_run_that_waits_is_answered_through_another_server(team: Sealab, mode: str) -> None:
    token = team.token("default", f"kim-{mode}", "approve")

    async def user(_context: object, _question: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    async with client(team.urls[0], token, mode) as caller:
        begun = await caller.call_tool("execute_code", {"code": CODE, "background": True})
        run_id = begun.structured_content["run_id"]

        async def waits() -> bool:
            state = (await caller.call_tool("get_run", {"run_id": run_id})).structured_content
            return bool(state["status"] == "waiting")

        await until(waits)
    async with client(team.urls[1], token, mode, elicitation_callback=user) as other:
        state = await other.call_tool("get_run", {"run_id": run_id, "wait_seconds": 50})
        assert state.structured_content["status"] == "ok", state.structured_content
    async with client(team.urls[2], token, mode) as third:
        told = await third.call_tool("get_run", {"run_id": run_id})
        assert told.structured_content["result"][1].startswith("sent told"), told.structured_content


@pytest.mark.timeout(120)
def test_a_state_that_no_server_made_or_whose_server_is_gone_gets_a_clear_answer(team: Sealab) -> None:
    token = team.token("default", "leo", "approve")
    for state in ("x", f"{'0' * 16}.v1.xyz", f"{'a' * 16}.{'b' * 40}"):
        message = call("1")
        message["params"]["requestState"] = state
        for url in team.urls:
            answer = post(url, message, **MODERN, **bearer(token))
            assert answer.message["error"]["message"] == "Invalid or expired requestState", answer
    assert report(post(team.urls[0], call("1"), **MODERN, **bearer(token)))["result"] == 1
