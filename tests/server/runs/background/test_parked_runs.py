"""A background run that needs a yes waits without a worker, over restarts, until somebody answers, once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.types import ElicitResult

from sealab.server.interfaces.protocol import elicitation

from ....skills_db.conftest import cluster_of_tests
from ...command_line import Ended, sealab
from ...conftest import Caller, http_process, in_this_process
from ...journal.test_journaled_runs import CLAIMED, NOTES
from ...upstream_tools.test_registry import configure
from .test_background import begun, ended, until
from .test_background_restarts import over_http

ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_BACKGROUND_RUNS_MAX": "2"} | CLAIMED
CODE = """
import random
number = random.random()
await call_tool('notes.put', {'text': 'before'})
name = 'send'
try:
    answer = await call_tool('notes.' + name, {'text': f'told {number}', 'to': ['anna', 'bert']})
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


async def answered(home: Path, *words: str, env: dict[str, str] | None = None) -> Ended:
    """Run `sealab approvals` with the settings of a server."""
    return await asyncio.to_thread(sealab, "approvals", *words, "--home", str(home), **(env or CLAIMED))


async def operated(home: Path, *words: str) -> Ended:
    """Run `sealab runs`."""
    return await asyncio.to_thread(sealab, "runs", *words, "--home", str(home), **CLAIMED)


async def parked(caller: Caller) -> tuple[str, str]:
    """Begin a run and wait until it asks; return its run_id and the id of the question."""
    run_id = await begun(caller, CODE)
    state = await until(caller, run_id, asks)
    assert "send" in state["approval"]["question"]
    return run_id, state["approval"]["id"]


async def test_a_run_that_waits_holds_no_place_is_shown_as_waiting_and_can_be_cancelled(tmp_path: Path) -> None:
    sent = served(tmp_path)
    async with in_this_process(tmp_path, ENV | {"SEALAB_BACKGROUND_RUNS_MAX": "1"}) as caller:
        run_id, approval = await parked(caller)
        other = await begun(caller, "result = 'ran'")
        assert (await ended(caller, other))["result"] == "ran"
        (listed,) = json.loads((await operated(tmp_path, "list", "--tool", "notes.put", "--json")).stdout)["runs"]
        assert (listed["run_id"], listed["status"]) == (run_id, "waiting")
        assert listed["tools"]["notes.put"] == {"done": 1, "failed": 0}
        assert (await operated(tmp_path, "show", run_id)).stdout.startswith(f"run {run_id} of default/local: waiting, ")
        refusal = (await operated(tmp_path, "replay", run_id)).refusal(3)
        assert "its status is waiting. It waits for an answer: `sealab approvals list`" in refusal
        assert f"{run_id}  " in (await operated(tmp_path, "list", "--status", "waiting")).stdout
        resumed = await operated(tmp_path, "resume", run_id)
        assert (resumed.returncode, "waits for an answer" in resumed.stderr) == (3, True)
        assert (await caller.told("get_run", run_id=run_id, cancel=True))["status"] == "cancelled"
        assert f"{run_id}  " in (await operated(tmp_path, "list", "--status", "cancelled")).stdout
        resumed = await operated(tmp_path, "resume", run_id)
        assert (resumed.returncode, "has ended: cancelled" in resumed.stderr) == (3, True)
        assert (await answered(tmp_path, "approve", approval)).returncode == 2
        assert (await caller.told("get_run", run_id=run_id))["status"] == "cancelled"
    assert not sent.exists()


async def test_questions_are_answered_after_a_restart_and_their_runs_go_on(tmp_path: Path) -> None:
    """Also with the versions of skills that the questions showed."""
    sent = served(tmp_path)

    async def save(line: str) -> None:
        code = f"async def pay() -> str:\n    return await tools.notes.send(text={line!r})\n"
        assert not (await caller.call("save_skill", name="pay", code=code)).is_error

    async with in_this_process(tmp_path, ENV) as caller:
        approved, denied = await parked(caller), await parked(caller)
        await save("judged")
        paying = await begun(caller, "result = await skills.pay()")
        assert "judged" in (await until(caller, paying, asks))["approval"]["question"]
        await save("judged by nobody")
    listed = json.loads((await answered(tmp_path, "list", "--json")).stdout)
    assert {each["id"] for each in listed["approvals"]} == {approved[1], denied[1], f"{paying}.1"}
    assert (await answered(tmp_path, "approve", approved[1])).returncode == 0
    assert (await answered(tmp_path, "deny", denied[1])).returncode == 0
    async with in_this_process(tmp_path, ENV) as caller:
        reports = [await ended(caller, run_id) for run_id, _ in (approved, denied)]
        number, said = reports[0]["result"]
        assert said == f"sent told {number}"
        assert sent.read_text() == f"told {number}\n"
        assert (await answered(tmp_path, "approve", f"{paying}.1")).returncode == 0
        assert (await ended(caller, paying))["result"] == "sent judged"
    assert [each["status"] for each in reports] == ["ok", "ok"], reports
    assert reports[1]["result"][1].startswith("refused: ")
    assert sent.read_text() == f"told {number}\njudged\n"


@pytest.fixture
def where(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Give the settings of servers on a database of either kind."""
    if request.param == "sqlite":
        yield ENV
        return
    with cluster_of_tests() as cluster:
        yield ENV | {"SEALAB_DATABASE_URL": cluster.create("sealab")}


@pytest.mark.parametrize(("where", "mode"), [("sqlite", "auto"), ("postgresql", "legacy")], indirect=["where"])
async def test_of_answers_at_once_by_links_a_client_and_the_operator_one_counts_and_the_others_are_told(
    tmp_path: Path, where: dict[str, str], mode: str
) -> None:
    sent = served(tmp_path)
    ready = asyncio.Barrier(3)

    async def user(_context: object, _question: Any) -> ElicitResult:
        await ready.wait()
        return ElicitResult(action="accept", content={"approve": True})

    async def sent_form(page: str, answer: str) -> httpx2.Response:
        await ready.wait()
        return await http.post(page, data={"answer": answer})

    with http_process(tmp_path, **where) as one, http_process(tmp_path, **where) as other:
        async with (
            over_http(one.url, mode) as caller,
            over_http(one.url, mode, elicitation_callback=user) as asked,
            httpx2.AsyncClient(timeout=50) as http,
        ):
            run_id, approval = await parked(caller)
            pages = [await link_to(tmp_path, url, where) for url in (one.url, other.url)]
            told_client, operator, *shown = await asyncio.gather(
                asked.call("get_run", run_id=run_id),
                answered(tmp_path, "deny", approval, env=where),
                sent_form(pages[0], "approve"),
                sent_form(pages[1], "deny"),
            )
            report = await ended(caller, run_id)
    state = told_client.structured_content
    assert state is not None
    # Each answer says what counts: its own, or the one that came before.
    said = [
        *[(each.status_code == 200, "approved" in each.text) for each in shown],
        (operator.returncode == 0, operator.returncode != 0 and "it was approved at" in operator.stderr),
        ("approval" not in state, "approval" not in state or "approved" in state["approval"]["answered"]),
    ]
    assert [counts for counts, _ in said].count(True) == 1, said
    assert len({approves for _, approves in said}) == 1, said
    assert {each.status_code for each in shown} <= {200, 409}
    assert sent.exists() is said[0][1]
    assert report["status"] == "ok", report


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_whose_answer_comes_later_is_told_which_one_counts(tmp_path: Path, mode: str) -> None:
    sent = served(tmp_path)
    open_questions: list[str] = []

    async def user(_context: object, _question: Any) -> ElicitResult:
        assert (await answered(tmp_path, "deny", open_questions[0])).returncode == 0
        return ElicitResult(action="accept", content={"approve": True})

    async with in_this_process(tmp_path, ENV, mode=mode) as caller:
        run_id, approval = await parked(caller)
    open_questions.append(approval)
    async with in_this_process(tmp_path, ENV, elicitation_callback=user, mode=mode) as caller:
        answer = await caller.call("get_run", run_id=run_id, wait_seconds=50)
    assert answer.structured_content is not None
    assert answer.structured_content["status"] == "ok"
    assert answer.structured_content["approval"]["answered"].startswith("denied at ")
    assert f"Another answer to {approval} came first: it was denied at " in str(answer.content)
    assert not sent.exists()


async def link_to(home: Path, url: str, env: dict[str, str]) -> str:
    """Return the link to the one question that waits."""
    (found,) = json.loads((await answered(home, "list", "--url", url, "--json", env=env)).stdout)["approvals"]
    return str(found["link"])


async def test_questions_outlive_all_that_is_killed_and_are_answered_each_in_its_way_at_what_is_started_next(
    tmp_path: Path,
) -> None:
    sent = served(tmp_path)

    async def user(_context: object, _question: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    with http_process(tmp_path, **ENV) as server:
        async with over_http(server.url, "auto") as caller:
            by_link, by_operator, by_client = [await parked(caller) for _ in range(3)]
        server.process.kill()
        server.process.wait()
    assert (await answered(tmp_path, "approve", by_operator[1])).returncode == 0
    with http_process(tmp_path, **ENV) as server:
        listed = (await answered(tmp_path, "list", "--url", server.url, "--json")).stdout
        links = {each["id"]: each["link"] for each in json.loads(listed)["approvals"]}
        async with httpx2.AsyncClient(timeout=50) as http:
            assert (await http.post(links[by_link[1]], data={"answer": "approve"})).status_code == 200
        async with over_http(server.url, "legacy", elicitation_callback=user) as caller:
            reports = [await ended(caller, run_id) for run_id, _ in (by_link, by_operator, by_client)]
    assert [each["status"] for each in reports] == ["ok"] * 3, reports
    assert all(said == f"sent told {number}" for number, said in (each["result"] for each in reports))
    assert set(sent.read_text().splitlines()) == {f"told {each['result'][0]}" for each in reports}
    assert len(sent.read_text().splitlines()) == 3


@pytest.mark.parametrize(("mode", "answer"), [("auto", "approve"), ("legacy", "deny")])
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
        later = await ended(caller, report["run_id"])
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
        later = await ended(caller, report["run_id"])
    assert sent.read_text() == f"told {later['result'][0]}\n"


async def test_runs_that_were_accepted_go_on_when_the_operator_has_lowered_the_maxima(tmp_path: Path) -> None:
    sent = served(tmp_path)
    async with in_this_process(tmp_path, ENV | {"SEALAB_BACKGROUND_RUNS_MAX": "1"}) as caller:
        run_id, approval = await parked(caller)
        at_work = await begun(caller, "import asyncio\nawait asyncio.sleep(600)")
        await until(caller, at_work, lambda state: state["status"] == "running")
        queued = await begun(caller, "result = 'ran'", memory_mb=900)
    assert (await answered(tmp_path, "approve", approval)).returncode == 0
    lowered = {"SEALAB_BACKGROUND_TIMEOUT_SECONDS": "40", "SEALAB_MAX_MEMORY_MB": "600"}
    async with in_this_process(tmp_path, ENV | lowered | {"SEALAB_BACKGROUND_RUNS_MAX": "4"}) as caller:
        assert (await ended(caller, queued))["result"] == "ran"
        assert (await ended(caller, run_id))["status"] == "ok"
    assert sent.exists()


AT_ONCE = """
import asyncio
name = 'send'
await call_tool('notes.put', {'text': 'so that its server is at work'})
async def sent(text, seconds):
    await asyncio.sleep(seconds)
    return await call_tool('notes.' + name, {'text': text})
result = await asyncio.gather(sent('held', 0), sent('second', 0.5), sent('third', 0.5))
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
