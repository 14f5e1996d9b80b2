"""A session of code or of MCP, and a question to a user, are one, whichever server gets the calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp.types import ElicitResult

from ...waiting import until, wait_until
from ..protocol.web.raw import HEADERS, MODERN, PING, Answer, asked, begun, call, connected, opened, post
from ..runs.background.test_parked_runs import CODE
from .conftest import Sealab, balancer, client


def report(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer
    assert "result" in answer.message, answer.message
    return dict(answer.message["result"]["structuredContent"])


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def run(url: str, code: str, session: str, token: str, **more: Any) -> dict[str, Any]:
    return report(post(url, call(code, session=session, **more), **MODERN, **bearer(token)))


@pytest.mark.timeout(240)
def test_a_session_is_used_in_turns_through_all_servers_in_both_eras(team: Sealab) -> None:
    alice = team.token("acme", "alice")
    legacy = opened(team.urls[0], **bearer(alice))
    assert run(team.urls[1], "n = 0", "turns", alice)["success"]
    for expected in range(1, 101):
        url, message = team.urls[expected % 3], call("n += 1\nn", session="turns")
        if expected % 2:
            answer = post(url, message, **MODERN, **bearer(alice))
        else:
            answer = post(url, message, mcp_session_id=legacy, **bearer(alice))
        assert report(answer)["result"] == expected
    for url in team.urls:
        assert [each["name"] for each in run(url, "list_sessions()", "turns", alice)["result"]] == ["turns"]


@pytest.mark.timeout(120)
def test_callers_and_tenants_have_their_own_sessions_of_a_name_through_every_server(team: Sealab) -> None:
    who = {
        "carol": team.token("acme", "carol"),
        "dave": team.token("acme", "dave"),
        "erin": team.token("beta", "carol"),
    }
    for number, (name, token) in enumerate(who.items()):
        assert run(team.urls[number], f"mine = {name!r}", "shared", token)["success"]
    for url in team.urls:
        for name, token in who.items():
            assert run(url, "mine", "shared", token)["result"] == name
            listed = run(url, "list_sessions()", "shared", token)["result"]
            assert [each["name"] for each in listed] == ["shared"]


@pytest.mark.timeout(120)
def test_progress_comes_through_and_a_stream_that_breaks_ends_no_run_on_the_other_server(team: Sealab) -> None:
    frank = team.token("acme", "frank")
    assert run(team.urls[0], "kept = 1", "long", frank)["success"]
    message = call("progress(0.5, 'half')\nimport time\ntime.sleep(2)\nwent_on = True", session="long")
    message["params"]["_meta"] = {**message["params"]["_meta"], "progressToken": "p"}
    connection = begun(team.urls[1], message, **MODERN, **bearer(frank))
    answer = connection.getresponse()
    told = next(json.loads(line[6:]) for line in answer if line.startswith(b"data: "))
    assert told["method"] == "notifications/progress"
    assert "half" in str(told)
    answer.close()
    connection.close()
    # It might be sent again, to join the run: the session has its turn when that has ended.
    assert run(team.urls[2], "[kept, went_on]", "long", frank, timeout_seconds=40)["result"] == [1, True]


@pytest.mark.timeout(120)
def test_a_session_that_another_server_has_is_closed_and_not_rebuilt(team: Sealab) -> None:
    grace = team.token("acme", "grace")
    assert run(team.urls[0], "kept = 1", "closed", grace)["success"]
    code = "close_session('closed')"
    assert run(team.urls[1], code, "another", grace)["result"] is True
    after = run(team.urls[2], "kept", "closed", grace)
    assert after["error"]["type"] == "NameError", after


@pytest.mark.timeout(120)
def test_the_report_of_a_run_is_there_for_every_server_as_soon_as_it_has_ended(team: Sealab) -> None:
    heidi = team.token("acme", "heidi")
    ran = report(post(team.urls[0], call("6 * 7"), **MODERN, **bearer(heidi)))
    for url in team.urls:
        message = call("")
        message["params"] |= {"name": "get_run", "arguments": {"run_id": ran["run_id"]}}
        asked = post(url, message, **{**MODERN, "mcp_name": "get_run"}, **bearer(heidi))
        assert report(asked)["result"] == 42


@pytest.mark.timeout(120)
def test_a_background_run_is_told_of_and_cancelled_through_every_server(team: Sealab) -> None:
    ivan = team.token("acme", "ivan")
    code = "progress(0.25, 'quarter')\nimport time\ntime.sleep(300)"
    begun_run = report(post(team.urls[0], call(code, background=True), **MODERN, **bearer(ivan)))

    def state(url: str, **more: Any) -> dict[str, Any]:
        message = call("")
        message["params"] |= {"name": "get_run", "arguments": {"run_id": begun_run["run_id"], **more}}
        return report(post(url, message, **{**MODERN, "mcp_name": "get_run"}, **bearer(ivan)))

    for url in team.urls:
        wait_until(lambda url=url: state(url).get("progress", {}).get("message") == "quarter")
    state(team.urls[1], cancel=True)
    for url in team.urls:
        wait_until(lambda url=url: state(url)["status"] == "cancelled")


@pytest.mark.timeout(120)
def test_a_session_is_used_listened_to_and_ended_through_servers_that_do_not_have_it(team: Sealab) -> None:
    alice = bearer(team.token("acme", "alice"))
    name = opened(team.urls[0], **alice)
    for url in team.urls:
        assert report(post(url, call("6 * 7"), mcp_session_id=name, **alice))["result"] == 42
    stream = connected(team.urls[1])
    stream.request("GET", "/mcp", headers={**HEADERS, "mcp-session-id": name, **alice})
    answer = stream.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
    assert answer.getheader("mcp-session-id") == name
    assert asked(team.urls[2], "DELETE", mcp_session_id=name, **alice).status == 200
    answer.read()  # until it ends
    stream.close()
    for url in team.urls:
        assert post(url, PING, mcp_session_id=name, **alice).status == 404


@pytest.mark.timeout(120)
def test_an_id_counts_with_its_signature_and_its_credentials_alone(team: Sealab) -> None:
    alice, bob = bearer(team.token("acme", "alice")), bearer(team.token("acme", "bob"))
    name = opened(team.urls[0], **alice)
    server, inner, signature = name.split(".")
    forged = [inner, f"{server}.{inner}", f"{server}.{inner}.{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"]
    forged += [f"{'0' * 16}.{inner}.{signature}", f"{server}.{inner[:-1]}.{signature}", "x"]
    for url in team.urls:
        for each in forged:
            assert post(url, PING, mcp_session_id=each, **alice).status == 404
        assert post(url, PING, mcp_session_id=name, **bob).status == 404
        assert post(url, PING, mcp_session_id=name, **alice).status == 200


@pytest.mark.timeout(180)
def test_a_session_whose_server_is_gone_is_not_found_once_that_is_certain(sealab: Callable[..., Sealab]) -> None:
    running = sealab(2)
    gone, stays = running.replicas
    name = opened(gone.url)
    assert post(stays.url, PING, mcp_session_id=name).status == 200
    gone.kill()
    running.execute("UPDATE sealab_replica SET leased_until = leased_until + 1000 WHERE address = %s", gone.address)
    refused = post(stays.url, PING, mcp_session_id=name)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    running.execute("DELETE FROM sealab_replica WHERE address = %s", gone.address)
    wait_until(lambda: post(stays.url, PING, mcp_session_id=name).status == 404)
    assert post(stays.url, PING, mcp_session_id=opened(stays.url)).status == 200


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
