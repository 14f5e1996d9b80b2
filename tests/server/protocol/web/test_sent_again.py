"""Calls that are sent again after their streams broke, or with an idempotency key, over a real connection."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import App, running
from sealab.server.base.errors import RequestRefused
from sealab.server.base.home import Home
from sealab.server.base.identity import Identity, Right
from sealab.server.governance.caller import Caller
from sealab.server.governance.scopes import of_principal
from sealab.server.interfaces.protocol import draining, elicitation
from sealab.server.interfaces.protocol.sent_calls import EarlierCalls, SentCall
from sealab.server.use_cases.replicas.replica_errors import OutcomeUnknown
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest, new_run_id

from ...conftest import http_server, in_a_task, settings_of
from ...upstream_tools.test_registry import configure
from .raw import MODERN, Answer, begun, call, opened, post, read
from .test_rights_gate import ASKABLE, NOTES, YES, question_of

KEY = "sealab/idempotencyKey"
NAMES = (f"run{number}.txt" for number in itertools.count())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "notes.py").write_text(NOTES)
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")], "reads": ["put"]}
    configure(home, asking={**command, "approve": "writes"})
    return home


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with http_server(home, SEALAB_WORKERS_SPARE="2") as url:
        yield url


def writing(name: str) -> str:
    """A program that notes in a file that it began, waits until it may go on, and notes that it ended."""
    return (
        f"import os, time\nwith open({name!r}, 'a') as file:\n    file.write('began ')\n"
        f"while not os.path.exists('go {name}'):\n    time.sleep(0.05)\n"
        f"with open({name!r}, 'a') as file:\n    file.write('ended ')\nresult = {name!r}"
    )


def go(home: Path, name: str) -> None:
    (home / "workspace" / f"go {name}").touch()


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest, url: str) -> dict[str, str]:
    """The headers of a client of each era."""
    return MODERN if request.param == "modern" else {"mcp_session_id": opened(url)}


def written(home: Path, name: str) -> str:
    """What the programs of a name wrote."""
    file = home / "workspace" / name
    return file.read_text() if file.exists() else ""


def report(answer: Answer) -> dict[str, Any]:
    return dict(answer.message["result"]["structuredContent"])


def said(answer: Answer) -> str:
    return str(answer.message["result"]["content"][0]["text"])


def keyed(message: dict[str, Any], key: object) -> dict[str, Any]:
    params = message["params"]
    return {**message, "params": {**params, "_meta": {**params["_meta"], KEY: key}}}


def broken(url: str, home: Path, message: dict[str, Any], name: str, **headers: str) -> None:
    """Send a call and break its stream once its program has begun."""
    connection = begun(url, message, **headers)
    wait_for(lambda: "began" in written(home, name))
    connection.close()


def test_a_call_whose_stream_broke_is_joined_when_it_is_sent_again(url: str, home: Path, era: dict[str, str]) -> None:
    name = next(NAMES)
    broken(url, home, call(writing(name)), name, **era)
    again = begun(url, call(writing(name)), **era)
    go(home, name)
    answer = read(again)
    assert report(answer)["joined"] is True
    assert report(answer)["result"] == name
    assert "joined: this call was sent before" in said(answer)
    assert written(home, name) == "began ended "


def test_its_report_is_there_though_it_ended_before_the_call_was_sent_again_and_then_it_is_a_new_call(
    url: str, home: Path
) -> None:
    name = next(NAMES)
    broken(url, home, call(writing(name)), name, **MODERN)
    go(home, name)
    wait_for(lambda: written(home, name) == "began ended ")
    assert report(post(url, call(writing(name)), **MODERN))["joined"] is True
    assert "joined" not in report(post(url, call(writing(name)), **MODERN))
    assert written(home, name) == "began ended began ended "


def test_two_calls_that_are_meant_twice_stay_two(url: str, home: Path) -> None:
    name, other = next(NAMES), next(NAMES)
    go(home, name)
    first, second = (begun(url, call(writing(name)), **MODERN) for _ in range(2))
    assert ["joined" in report(read(each)) for each in (first, second)] == [False, False]
    broken(url, home, call(writing(other)), other, **MODERN)
    go(home, other)
    assert "joined" not in report(post(url, call(writing(other), memory_mb=300), **MODERN))
    assert "joined" not in report(post(url, call(writing(other)), **MODERN, authorization="Bearer another"))


def test_a_call_with_a_key_joins_the_run_of_that_key_also_once_it_has_ended(
    url: str, home: Path, era: dict[str, str]
) -> None:
    name, key = next(NAMES), f"key {time.time_ns()}"
    first = begun(url, keyed(call(writing(name)), key), **era)
    wait_for(lambda: "began" in written(home, name))
    joining = begun(url, keyed(call(writing(name)), key), **era)
    go(home, name)
    second, ended = report(read(joining)), report(read(first))
    assert second["joined"] is True
    assert "joined" not in ended
    third = report(post(url, keyed(call(writing(name)), key), **era))
    assert third["joined"] is True
    assert {each["run_id"] for each in (ended, second, third)} == {ended["run_id"]}
    assert third["result"] == name
    assert written(home, name) == "began ended "


def test_a_key_of_another_program_and_what_is_no_key_are_refused(url: str) -> None:
    key = f"key {time.time_ns()}"
    assert report(post(url, keyed(call("1"), key), **MODERN))["result"] == 1
    assert "was given before, for a call with another program" in said(post(url, keyed(call("2"), key), **MODERN))
    assert report(post(url, keyed(call("2"), key), **MODERN, authorization="Bearer another"))["result"] == 2
    for odd in ("", 7, "k" * 201):
        assert "is no key. Give a text of 1 to 200 characters" in said(post(url, keyed(call("1"), odd), **MODERN))


def test_a_background_run_is_begun_once_for_a_key(url: str) -> None:
    key = f"key {time.time_ns()}"
    first, second = (report(post(url, keyed(call("1", background=True), key), **MODERN)) for _ in range(2))
    assert second["run_id"] == first["run_id"]
    assert second["joined"] is True


def test_a_cancellation_ends_a_run_that_a_broken_stream_does_not(url: str, home: Path) -> None:
    session = opened(url)
    name = next(NAMES)
    message = call(writing(name))
    broken(url, home, message, name, mcp_session_id=session)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
    began = time.monotonic()
    assert post(url, cancelled, mcp_session_id=session).status == 202
    wait_for(lambda: _running(url) == 0)
    assert time.monotonic() - began < 10
    assert written(home, name) == "began "
    again = begun(url, call(writing(name)), mcp_session_id=session)
    wait_for(lambda: written(home, name) == "began began ")
    go(home, name)
    assert "joined" not in report(read(again))


def _running(url: str) -> int:
    message = call("")
    message["params"] |= {"name": "get_execution_stats", "arguments": {}}
    told = report(post(url, message, **MODERN | {"mcp_name": "get_execution_stats"}))
    return int(told["pool"]["running"])


def test_a_broken_stream_ends_its_run_after_a_while(url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LASTING_SECONDS", 0.3)
    name = next(NAMES)
    broken(url, home, call(writing(name)), name, **MODERN)
    wait_for(lambda: _running(url) == 0)
    assert written(home, name) == "began "


@pytest.mark.parametrize("bound", ["BROKEN_MAX", "BROKEN_BYTES_MAX"])
def test_of_too_many_calls_whose_streams_broke_the_oldest_end(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(elicitation, bound, 1)
    oldest, newest = next(NAMES), next(NAMES)
    for name in (oldest, newest):
        broken(url, home, call(writing(name)), name, **MODERN)

    def one_is_left() -> bool:
        return bool(report(post(url, call("1"), **MODERN))["success"]) and _running(url) == 1

    wait_for(one_is_left)
    go(home, oldest)
    again = begun(url, call(writing(newest)), **MODERN)
    go(home, newest)
    assert report(read(again))["joined"] is True
    assert written(home, oldest) == "began "


def sent(token: str, *rights: Right, key: str | None = "k", principal: str = "ada") -> SentCall:
    identity = Identity("default", principal, frozenset(rights), token)
    return SentCall(Caller(of_principal(principal), identity=identity), (token, ""), "asked", key)


def test_another_principal_another_token_and_one_with_fewer_rights_join_nothing() -> None:
    first = sent("one", Right.RUN, Right.FILES)
    assert sent("two", Right.RUN, Right.FILES).is_again(first, broke=False)
    assert not sent("two", Right.RUN, Right.FILES, principal="ben").is_again(first, broke=True)
    with pytest.raises(RequestRefused, match="made with more rights than the token has"):
        sent("two", Right.RUN).is_again(first, broke=False)
    without = sent("one", Right.RUN, key=None)
    assert sent("one", Right.RUN, key=None).is_again(without, broke=True)
    assert not sent("one", Right.RUN, key=None).is_again(without, broke=False)
    assert not sent("two", Right.RUN, key=None).is_again(without, broke=True)
    assert not sent("one", key=None).is_again(without, broke=True)


@pytest.fixture(scope="module")
def asking(home: Path, url: str) -> str:
    """A server that asks before it calls a tool of an upstream server, which has been started."""
    report(post(url, call("await tools.asking.put(text='x')"), **MODERN))
    return url


def test_a_question_whose_stream_broke_is_asked_of_the_call_that_is_sent_again(asking: str, home: Path) -> None:
    session = {"mcp_session_id": post(asking, ASKABLE).session}
    calling = call("await tools.asking.send(text='y')")
    first = begun(asking, calling, **session)
    question_of(first.getresponse())
    first.close()
    again = begun(asking, {**calling, "id": 1000}, **session)
    stream = again.getresponse()
    assert post(asking, {"jsonrpc": "2.0", "id": question_of(stream), "result": YES}, **session).status == 202
    told = json.loads(stream.read().rpartition(b"data: ")[2])["result"]["structuredContent"]
    again.close()
    assert (told["result"], told["joined"]) == ("sent y", True)
    assert (home / "sent.txt").read_text().count("y") == 1


def test_a_question_of_the_newer_protocol_is_asked_again_too(asking: str, home: Path) -> None:
    message = keyed(call("await tools.asking.send(text='z')"), "a key")
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {"form": {}}}
    asked = [post(asking, message, **MODERN).message["result"] for _ in range(2)]
    assert [each["inputRequests"].keys() for each in asked] == [asked[0]["inputRequests"].keys()] * 2
    (name,) = asked[1]["inputRequests"]
    answered = {"requestState": asked[1]["requestState"], "inputResponses": {name: YES}}
    told = post(asking, {**message, "params": message["params"] | answered}, **MODERN)
    assert report(told)["result"] == "sent z"
    assert (home / "sent.txt").read_text().count("z") == 1


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    home, env = tmp_path_factory.mktemp("unrun"), {"SEALAB_WORKERS_SPARE": "0"}
    async with in_a_task(running(settings_of(home, env), Home(home), serves=True)) as app:
        yield app


def known_by(key: str, token: str = "one", *rights: Right) -> SentCall:
    return replace(sent(token, *rights, key=key), run_id=new_run_id())


async def test_a_call_that_waits_for_its_turn_is_waited_for_and_one_whose_process_is_gone_is_new(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.interfaces.protocol.sent_calls.LEASE_SECONDS", 0.6)
    monkeypatch.setattr("sealab.server.interfaces.protocol.sent_calls.RENEW_SECONDS", 0.1)
    monkeypatch.setattr("sealab.server.interfaces.protocol.sent_calls._LOOK_SECONDS", 0.1)
    before, first = EarlierCalls(app.background), known_by("waits")
    assert await before.first(first) is None
    async with before.kept(first):  # it has no journal yet
        again = asyncio.ensure_future(before.first(known_by("waits")))
        assert await asyncio.wait({again}, timeout=1.2) == (set(), {again})
    assert await again is None  # it is kept no more


async def test_a_call_that_was_taken_for_gone_is_ended_when_it_is_run_anew(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.interfaces.protocol.sent_calls.RENEW_SECONDS", 0.1)
    before, first = EarlierCalls(app.background), known_by("stalled")
    assert await before.first(first) is None
    await before.forget(first)
    with pytest.raises(asyncio.CancelledError):
        async with before.kept(first), asyncio.timeout(5):
            await asyncio.Event().wait()


async def test_a_run_of_which_nothing_is_kept_is_not_run_again(app: App) -> None:
    before, first = EarlierCalls(app.background), known_by("ended")
    assert await before.first(first) is None
    await before.ran(first)
    with pytest.raises(OutcomeUnknown, match="its outcome is unknown: nothing is kept of its run"):
        await before.first(known_by("ended"))


async def test_a_run_that_has_a_journal_is_known_for_good(app: App) -> None:
    before, first = EarlierCalls(app.background), known_by("began", "one", *Right)
    assert await before.first(first) is None
    await execute(app.executor, CodeRequest("1", run_id=first.run_id, caller=first.caller))
    await app.journal.stored()
    store, scope, mark = app.journal.background(), first.caller.scope, hashlib.sha256(b"began").hexdigest()
    assert await asyncio.to_thread(store.keep_sent, scope, mark, str(first.run_id))
    await asyncio.to_thread(store.forget_sent, scope, mark, str(first.run_id), silent_seconds=1e-9)
    state = await before.first(known_by("began", "one", *Right))
    assert state is not None
    assert state.run_id == first.run_id


async def test_a_token_with_fewer_rights_is_not_given_a_run_of_before(app: App) -> None:
    before = EarlierCalls(app.background)
    assert await before.first(known_by("rights", "one", Right.RUN, Right.FILES)) is None
    with pytest.raises(RequestRefused, match="made with more rights than the token has"):
        await before.first(known_by("rights", "two", Right.RUN))


def test_without_journals_a_call_with_a_key_runs_once(tmp_path: Path) -> None:
    with http_server(tmp_path, SEALAB_WORKERS_SPARE="1", SEALAB_JOURNAL="off") as url:
        message = keyed(call("with open('runs.txt', 'a') as file:\n    file.write('ran ')"), "once")
        assert report(post(url, message, **MODERN))["success"] is True
        for _ in range(2):
            assert "its outcome is unknown" in said(post(url, message, **MODERN))
    assert written(tmp_path, "runs.txt") == "ran "
