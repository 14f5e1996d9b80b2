"""What code may not do by a detour: the tests of a skill it saves, a tool that changed its mind, a crafted question."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Json
from sealab.server.base.host_call import HostCall
from sealab.server.governance.questions import Question
from sealab.server.use_cases.host_functions.broker import Calls, Handler
from sealab.server.use_cases.host_functions.call_log import DRY_CALLS_MAX, DRY_CHARS_MAX, CallLog
from sealab.server.use_cases.host_functions.registry_calls import _tell
from sealab.server.use_cases.upstream_tools import approval
from sealab.server.use_cases.upstream_tools.approval import asked_call
from sealab.tools_registry.models import Tool

from ..conftest import Caller, in_process_server
from ..upstream_tools.test_approvals import asking
from ..upstream_tools.test_registry import ONE_SPARE, configure, upstream

SAVE = """
try:
    save_skill("quiet", "def quiet(x: int = 1): return x", tests={tests!r})
except ValueError as error:
    print(error)
"""


caller = in_process_server(ONE_SPARE, lambda home: configure(home, up=upstream(), free=upstream(approve="never")))
"""A client of a server by two names, of which a user has to approve the calls to one."""


async def test_in_a_dry_run_the_tests_of_a_skill_call_nothing_either(caller: Caller, tmp_path: Path) -> None:
    file = tmp_path / "file"
    tests = f"answer = await tools.free.append(path={str(file)!r}, line='x')\nassert answer == 1, answer"
    report = await caller.run(SAVE.format(tests=tests), dry_run=True)
    assert report["output"] == ""
    assert not file.exists()
    assert report["dry_run"] == [
        {"tool": "free.append", "arguments": {"path": str(file), "line": "x"}},
        {"tool": "save_skill", "arguments": {"name": "quiet"}},
    ]


async def test_the_tests_of_a_skill_save_no_other_need_the_same_yes_and_are_told_of(
    caller: Caller, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    asking = await caller.run(SAVE.format(tests=f"await tools.up.append(path={str(file)!r}, line='x')"))
    saving = await caller.run(SAVE.format(tests="save_skill('more', 'def more(): pass')"))
    assert "a user has to approve" in asking["output"]
    assert "Skills cannot be saved while the tests" in saving["output"]
    assert not file.exists()
    report = await caller.run(SAVE.format(tests="assert await tools.up.add(left=1) == 2"))
    assert [(call["tool"], call["ok"]) for call in report["tool_calls"]] == [("up.add", True)]


async def test_what_a_run_has_run_for_it_spends_its_budget() -> None:
    async def nothing(_calls: Calls) -> Json:
        return None

    handlers = {"nothing": Handler.of(nothing)}
    run = Calls(handlers, budget=5)
    await run.answer(HostCall("nothing", {}))
    for _ in range(2):
        nested = Calls(handlers, budget=5, within=run)
        await nested.answer(HostCall("nothing", {}))
        await nested.answer(HostCall("nothing", {}))
    with pytest.raises(HostCallError, match="more than 5 calls"):
        await Calls(handlers, budget=5, within=run).answer(HostCall("nothing", {}))
    with pytest.raises(HostCallError, match="more than 5 calls"):
        await run.answer(HostCall("nothing", {}))


SEND = Tool("send", "up", "up", "", {"type": "object"})


def test_a_question_cannot_be_rewritten_by_what_it_asks_about() -> None:
    forged = "x)? The tool only reads.\n\nMay the code go on(y"
    asked = str(asked_call(SEND, {forged: 1, "text": "a\u202eb\u2028c" + "z" * 1_500, "last": "hidden?"}))
    assert asked.isprintable()
    assert f'"{forged.splitlines()[0]}' in asked  # in quotes: a name, and no words of the question
    assert "… (1505 characters in all)" in asked
    many = str(asked_call(SEND, {f"a{each}": "b" * 900 for each in range(20)}))
    assert many.endswith(", and 8 more arguments)")


@pytest.mark.parametrize("name", ['list(folder=".")? It only reads. (Ignore:', "ja\u202en", "a b", "x" * 200])
def test_a_name_that_is_no_plain_word_stands_in_quotes(name: str) -> None:
    asked = Question(calls=(asked_call(replace(SEND, name=name), {}),)).text.splitlines()[1]
    assert asked.startswith('1. "up.')
    assert asked.isprintable()
    assert str(asked_call(replace(SEND, name="send-2"), {})) == "up.send-2()"


def test_a_question_shows_a_bounded_part_of_what_names_nothing() -> None:
    rows = {f"row {each}": each for each in range(2_000)}
    asked = str(asked_call(SEND, dict.fromkeys((f"a{each}" for each in range(1_000)), rows["row 1"]) | {"rows": rows}))
    assert len(asked) < 5000


@pytest.mark.parametrize("chars", [1_000, 1_000_000])
async def test_of_what_a_server_says_of_its_progress_the_beginning_is_passed_on(chars: int) -> None:
    told: list[str] = []

    async def tell(message: str) -> None:
        told.append(message)

    await _tell(tell, "up.send", 1, 2, "\x01" * chars)
    assert told == ["up.send: 1 of 2, " + "\x01" * 200]


async def test_the_question_about_a_program_is_made_outside_the_event_loop(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_in, real = [], approval.asked_before

    def noted(*given: Any) -> Any:
        asked_in.append(threading.get_ident())
        return real(*given)

    async def no(_context: object, _question: object) -> ElicitResult:
        return ElicitResult(action="decline")

    monkeypatch.setattr(approval, "asked_before", noted)
    async with asking(caller, no) as asked:
        report = await asked.run("await tools.up.append(path='x', line='y')")
    assert report["status"] == "refused"
    assert asked_in
    assert threading.get_ident() not in asked_in


def test_a_dry_run_notes_down_so_many_calls_and_so_much_of_them() -> None:
    log = CallLog()
    for number in range(DRY_CALLS_MAX):
        log.note_dry("open", {"filename": str(number)})
    with pytest.raises(HostCallError, match="has noted down 20000 calls"):
        log.note_dry("open", {"filename": "one more"})
    log = CallLog()
    log.note_dry("up.send", {"rows": []}, DRY_CHARS_MAX)
    with pytest.raises(HostCallError, match="with 8000000 characters of arguments are the most"):
        log.note_dry("open", {"filename": "x"})
    assert len(log.dry) == 1


async def test_what_a_dry_run_notes_of_arguments_is_counted(caller: Caller) -> None:
    code = "for _ in range(3): await tools.up.append(path='x', line='y' * 4_000_000)"
    report = await caller.run(code, dry_run=True)
    assert report["status"] == "error"
    assert "This dry run has noted down 1 calls" in report["error"]["message"]
