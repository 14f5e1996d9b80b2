"""Background runs: queued, run, told of, cancelled, and gone on with by the next server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...conftest import Caller, in_process_server, in_this_process

ONE_SPARE = {"SEALAB_WORKERS_SPARE": "1"}


async def begun(caller: Caller, code: str, **arguments: Any) -> str:
    """Begin a background run and return its run_id."""
    report = await caller.told("execute_code", code=code, background=True, **arguments)
    assert report["status"] == "queued"
    run_id: str = report["run_id"]
    return run_id


_HANGS_SECONDS = 150


async def until(
    caller: Caller, run_id: str, reached: Callable[[dict[str, Any]], bool], **arguments: Any
) -> dict[str, Any]:
    """Ask for a run until it has come so far; where it does not, say how far it came."""
    state: dict[str, Any] = {}
    try:
        async with asyncio.timeout(_HANGS_SECONDS):
            while True:
                state = await caller.told("get_run", run_id=run_id, **arguments)
                if reached(state):
                    return state
                assert state["status"] in {"queued", "running", "waiting"}, state
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"it came no further than {state}") from None


async def ended(caller: Caller, run_id: str) -> dict[str, Any]:
    """Wait for the end of a run, for as long as a busy machine takes, and return its report."""
    return await until(caller, run_id, lambda state: "success" in state, wait_seconds=50)


def runs(state: dict[str, Any]) -> bool:
    return bool(state["status"] == "running")


one_at_a_time = in_process_server(ONE_SPARE | {"SEALAB_BACKGROUND_RUNS_MAX": "1", "SEALAB_BACKGROUND_QUEUE_MAX": "1"})
"""A client of a server that makes one background run at a time and has one wait."""


async def test_a_background_run_is_answered_at_once_and_its_report_can_be_waited_for(one_at_a_time: Caller) -> None:
    code = "print('seen')\nresult = context['n'] * 2"
    run_id = await begun(one_at_a_time, code, context_vars={"context": {"n": 21}})
    report = await ended(one_at_a_time, run_id)
    assert report["run_id"] == run_id
    assert (report["status"], report["success"], report["result"]) == ("ok", True, 42)
    assert report["output"] == "seen\n"


async def test_runs_wait_within_a_bound_and_end_when_they_are_cancelled_at_work_or_before(
    one_at_a_time: Caller,
) -> None:
    code = "import asyncio\nprogress(0.25, 'a quarter')\nawait asyncio.sleep(600)"
    first = await begun(one_at_a_time, code)
    state = await until(one_at_a_time, first, lambda state: "progress" in state)
    assert state == {"run_id": first, "status": "running", "progress": {"fraction": 0.25, "message": "a quarter"}}
    second = await begun(one_at_a_time, "write_file('begun.txt', 'x')")
    assert (await one_at_a_time.told("get_run", run_id=second))["status"] == "queued"
    refused = await one_at_a_time.refusal("execute_code", code="1", background=True)
    assert refused.startswith("1 background runs of yours wait to begin, which is the most.")
    for run_id in (second, first):
        answer = await one_at_a_time.call("get_run", run_id=run_id, cancel=True)
        assert answer.structured_content is not None
        assert (answer.structured_content["status"], answer.is_error) == ("cancelled", False)
    third = await begun(one_at_a_time, "result = len(list_files())")
    assert (await ended(one_at_a_time, third))["result"] == 0


async def test_a_background_run_has_the_operators_longer_time_limit(tmp_path: Path) -> None:
    env = ONE_SPARE | {"SEALAB_TIMEOUT_SECONDS": "0.3", "SEALAB_MAX_TIMEOUT_SECONDS": "0.3"}
    async with in_this_process(tmp_path, env | {"SEALAB_BACKGROUND_TIMEOUT_SECONDS": "30"}) as caller:
        run_id = await begun(caller, "import asyncio\nawait asyncio.sleep(0.6)\nresult = 'done'")
        assert (await ended(caller, run_id))["result"] == "done"
        short = await begun(caller, "import asyncio\nawait asyncio.sleep(600)", timeout_seconds=0.5)
        assert (await ended(caller, short))["status"] == "timeout"
        answer = await caller.call("execute_code", code="1", background=True, timeout_seconds=31)
    assert answer.is_error
    assert "at most 30" in answer.content[0].text  # type: ignore[union-attr]


async def test_the_report_of_a_run_in_the_foreground_can_be_had_again(one_at_a_time: Caller) -> None:
    report = await one_at_a_time.run("print('x')\nresult = [1, 2]")
    again = await one_at_a_time.told("get_run", run_id=report["run_id"])
    failed = await one_at_a_time.run("1 / 0")
    answer = await one_at_a_time.call("get_run", run_id=failed["run_id"])
    unknown = await one_at_a_time.call("get_run", run_id="0" * 26)
    assert (again["status"], again["result"], again["output"]) == ("ok", [1, 2], "x\n")
    assert answer.is_error
    assert answer.structured_content is not None
    assert answer.structured_content["error"]["type"] == "ZeroDivisionError"
    assert unknown.is_error


async def test_a_run_in_a_session_cannot_be_one_in_the_background(one_at_a_time: Caller) -> None:
    answer = await one_at_a_time.refusal("execute_code", code="1", background=True, session="s")
    assert "Leave out session" in answer


async def test_runs_that_wait_or_run_are_gone_on_with_by_the_next_server(tmp_path: Path) -> None:
    env = ONE_SPARE | {"SEALAB_BACKGROUND_RUNS_MAX": "1"}
    async with in_this_process(tmp_path, env) as caller:
        first = await begun(caller, "import asyncio\nawait asyncio.sleep(1)\nresult = 'first'")
        await until(caller, first, runs)
        second = await begun(caller, "result = 'second'")
    async with in_this_process(tmp_path, env) as caller:
        assert (await ended(caller, second))["result"] == "second"
        assert (await ended(caller, first))["result"] == "first"


async def test_background_runs_leave_the_workers_of_the_foreground_alone(tmp_path: Path) -> None:
    env = {"SEALAB_WORKERS_MAX": "1", "SEALAB_WORKERS_SPARE": "1"}
    async with in_this_process(tmp_path, env) as caller:
        run_ids = [await begun(caller, "while True:\n    pass") for _ in range(4)]
        for run_id in run_ids:
            await until(caller, run_id, runs)
        # The other runs go on for ever: had this one to wait for one of them, it would never begin.
        report = await caller.run("result = 1", timeout_seconds=20)
        assert report["result"] == 1
        for run_id in run_ids:
            await caller.told("get_run", run_id=run_id, cancel=True)


AUTO = ONE_SPARE | {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast", "SEALAB_VAULT_KEYRING": "false"}
PEOPLE = "full_name,email\nZorbla Quindlethwaite,zq@corp.example\n"
CODE = (
    "name, mail = read_file('people.csv').splitlines()[1].split(',')\nprogress(0.5, name)\n"
    "print('to', mail)\nresult = [name.upper(), {'about': name}]"
)
FAILING = CODE + "\nraise ValueError(f'no {name} at {mail}')"
PERSONAL = ("zorbla", "quindlethwaite", "zq@corp")


def nothing_personal(report: object) -> None:
    text = json.dumps(report).lower()
    assert not [each for each in PERSONAL if each in text], report


async def test_a_run_is_told_with_tokens_as_it_was_reported_by_the_next_server_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "people.csv").write_text(PEOPLE)
    reports = []
    async with in_this_process(tmp_path, AUTO) as caller:
        for code in (CODE, FAILING):
            reports.append(await caller.run(code))
            nothing_personal(reports[-1])
            nothing_personal(await caller.told("get_run", run_id=reports[-1]["run_id"]))
        in_background = [await begun(caller, code) for code in (CODE, FAILING)]
        for run_id in in_background:
            nothing_personal(await ended(caller, run_id))
    async with in_this_process(tmp_path, AUTO) as caller:
        for report in reports:
            later = await caller.told("get_run", run_id=report["run_id"])
            nothing_personal(later)
            assert later["status"] == report["status"]
            assert later["output"].startswith("to [EMAIL_")
        for run_id in in_background:
            nothing_personal(await caller.told("get_run", run_id=run_id))
