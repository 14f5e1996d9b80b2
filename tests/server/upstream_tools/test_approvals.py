"""What a user is asked before tools are called, in both eras; and programs that are refused before they begin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult

from sealab.server.governance.questions import Question
from sealab.server.interfaces.protocol.elicitation import chosen
from tests.waiting import until

from ..command_line import sealab
from ..conftest import Caller, http_server, in_process_server, in_this_process
from .test_registry import ONE_SPARE, configure, connected, result, upstream

ERAS = ["stdio-legacy", "http-modern"]
NO = ElicitResult(action="decline")


def yes(covers: str | None = None) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": True} | ({} if covers is None else {"covers": covers}))


@dataclass
class User:
    """Gives the answers in turn, the last one ever again, and keeps the questions with what could be chosen."""

    answers: Sequence[ElicitResult]
    asked: list[str] = field(default_factory=list)
    choices: list[list[str]] = field(default_factory=list)

    async def __call__(self, _context: object, question: Any) -> ElicitResult:
        self.asked.append(question.message)
        self.choices.append(question.requested_schema["properties"].get("covers", {}).get("enum", []))
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def configured(home: Path) -> None:
    (home / "tools" / "weather").mkdir(parents=True)
    (home / "tools" / "weather" / "forecast.json").write_text('{"name": "forecast", "description": "Tell it."}')
    configure(home, up=upstream(deny=["as_text"]), other=upstream())


served = in_process_server(ONE_SPARE | {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}, configured)
"""A client that cannot ask its user; tests that ask connect others to its server."""


@asynccontextmanager
async def asking(served: Caller, user: Any, **options: Any) -> AsyncIterator[Caller]:
    """Give another client of the server, which asks this user."""
    server = served.client.server
    async with Client(server, read_timeout_seconds=200, elicitation_callback=user, **options) as client:
        yield Caller(client, served.home)


def writing(file: Path) -> str:
    return f"""
import asyncio
for line in ("a", "b"):
    await tools.up.append(path={str(file)!r}, line=line)
await asyncio.gather(*[tools.up.append(path={str(file)!r}, line=str(n)) for n in range(3)])
await tools.up.silent_about_itself(path={str(file)!r})
"""


@pytest.mark.parametrize("kind", ERAS)
async def test_one_question_covers_the_calls_of_a_program(kind: str, tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    file, user = tmp_path / "file", User([yes()])
    async with connected(kind, tmp_path, elicitation_callback=user) as caller:
        assert await result(caller, writing(file)) == "touched"
    [question] = user.asked
    assert question.startswith(
        'May the running code make these 2 calls, in "for line in (\\"a\\", \\"b\\"):"?\nIt runs for local, through mcp '
    )
    assert f'1. up.append(path="{file}", line=one of "a", "b", "0", …) [line 4, line 5, at most 5 times]\n' in question
    assert f'2. up.silent_about_itself(path="{file}") [line 6]\n' in question
    assert "up.append says that it may destroy something.\n" in question
    assert "up.silent_about_itself does not say that it only reads.\n" in question
    assert len(file.read_text().splitlines()) == 5


async def test_a_question_shows_what_names_something_whole_and_what_destroys_first(
    served: Caller, tmp_path: Path
) -> None:
    user = User([yes(), NO])
    file, long = tmp_path / "file", "x" * 9_000
    code = f"""
path = {str(file)!r}
for n in range(2):
    await tools.up.append(path=path, line=str(n))
    await tools.up.append(path=path, line=str(n))
await tools.up.silent_about_itself(path="/nowhere/{"z" * 900}")
await tools.up.append(path=path, line={long!r}[:2])
try:
    await tools.other.append(path="/".join([path, "y"]), line="y")
except ToolError as error:
    said = str(error)
said
"""
    async with asking(served, user) as caller:
        report = await caller.run(code)
    first, *_ = user.asked
    assert f'path="/nowhere/{"z" * 900}"' in first
    assert first.index("up.append(") < first.index("up.silent_about_itself(")
    assert '- up.append(path="' not in first
    assert 'other.append(line="y", path=computed from `"/".join([path, "y"])' in first
    assert report["error"]["type"] == "ToolError"


async def test_where_not_all_calls_are_known_each_is_asked_about_when_it_is_made(served: Caller) -> None:
    user = User([NO])
    code = "\n".join(f"await tools.up.append(path='/nowhere/x', line='{n}')" for n in range(201))
    async with asking(served, user) as caller:
        report = await caller.run(code)
    assert report["status"] == "error"
    assert [
        "up.append(" in each and "A yes covers the numbered calls, and no other." in each for each in user.asked
    ] == [True]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_user_can_be_asked_at_each_call(served: Caller, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    user = User([yes("ask at each call"), yes(), NO, yes("this call"), yes("such calls in this run")])
    code = f"""
import asyncio
answers = []
for line in ("a", "b", "c", "d", "e"):
    answers.append(await asyncio.gather(tools.up.append(path={str(file)!r}, line=line), return_exceptions=True))
[str(each) for each, in answers]
"""
    async with asking(served, user, mode=mode) as caller:
        first, second, *others = await result(caller, code)
    assert (first, others) == ("1", ["2", "3", "4"])
    assert "did not approve" in second
    assert len(user.asked) == 5, "the last yes holds for the run"
    assert f'1. up.append(path="{file}", line="a")\n' in user.asked[1]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_after_a_no_nothing_is_called_at_all(served: Caller, mode: str, tmp_path: Path) -> None:
    file, user = tmp_path / "file", User([NO])
    async with asking(served, user, mode=mode) as caller:
        report = await caller.run(f"await tools.up.add(left=1)\nawait tools.up.append(path={str(file)!r}, line='x')")
    assert (report["status"], report["error"]["line"], "tool_calls" in report) == ("refused", 2, False)
    assert "Nothing was called. Line 2: The user did not approve the call of up.append" in report["error"]["message"]
    assert len(user.asked) == 1
    assert not file.exists()


async def test_a_yes_for_always_holds_in_later_runs_until_it_is_taken_back(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    file, user = tmp_path / "file", User([yes("such calls always")])
    code = f"await tools.up.append(path={str(file)!r}, line='x')"
    for _ in range(2):
        async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
            await result(caller, code)
            await result(caller, code)
    assert len(user.asked) == 1
    assert user.choices == [["the calls shown", "such calls always", "ask at each call"]]
    pins = json.loads((tmp_path / "registry" / "pins.json").read_text())
    rule = {"arguments": {"path": str(file)}, "limits": {}}
    assert list(pins["servers"]["up"]["approved"].values()) == [{"append": [rule]}]
    assert f'they are made:\n- up.append where path is "{file}"' in user.asked[0]
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        await result(caller, code)  # nobody need be asked
    shown = await asyncio.to_thread(sealab, "servers", "test", "up", "--home", str(tmp_path), "--ask-again")
    assert "always approved" not in shown.stdout
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        await result(caller, code)
    assert len(user.asked) == 2
    shown = await asyncio.to_thread(sealab, "servers", "test", "up", "--home", str(tmp_path))
    assert f'always approved: append where path is "{file}"\n' in shown.stdout
    pins["servers"]["up"]["approved"] = {"http credentials of another": {"append": [rule]}}
    (tmp_path / "registry" / "pins.json").write_text(json.dumps(pins))
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        await result(caller, code)
    assert len(user.asked) == 3


async def test_a_caller_that_cannot_be_told_from_others_is_not_offered_always(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    user = User([yes("such calls always")])
    with http_server(tmp_path, **ONE_SPARE) as url:
        for _ in range(2):
            async with Client(url, read_timeout_seconds=200, elicitation_callback=user) as client:
                code = f"await tools.up.append(path={str(tmp_path / 'file')!r}, line='x')"
                await result(Caller(client, tmp_path), code)
    assert user.choices == [["the calls shown", "ask at each call"]] * 2


async def test_a_hundred_reads_are_not_done_for_a_write_that_is_refused_and_all_such_calls_are_named(
    served: Caller,
) -> None:
    code = """
for n in range(100):
    await tools.up.add(left=n)
async def later(path):
    await tools.other.append(path=path, line="x")
await later("/nowhere/x")
await call_tool("up", "silent_about_itself", {"path": "/nowhere/y"})
await call_tool("up.as_text"); await tools.other["append"](path="z", line="z")
"""
    report = await served.run(code)
    error = report["error"]
    assert (report["status"], error["type"], error["line"], "tool_calls" in report) == (
        "refused",
        "ToolError",
        5,
        False,
    )
    assert "Lines 5, 8: other.append says that it may destroy something, so a user has to approve" in error["message"]
    assert "Line 7: up.silent_about_itself does not say that it only reads" in error["message"]
    assert "Line 8: The operator does not allow up.as_text" in error["message"]
    assert "dry_run=true" in error["hint"]
    assert "tools.other.add" in error["hint"]
    assert "mcp.json" not in error["message"] + error["hint"]


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    await tools.up.append(path='/nowhere/x', line='y')\nexcept ToolError as error:\n    r = str(error)",
        "import asyncio\n[r] = map(str, await asyncio.gather(tools.up.silent_about_itself(path='/nowhere/x'), return_exceptions=True))",
        "tool = 'append'\ntry:\n    await call_tool('up.' + tool, {'path': '/nowhere/x', 'line': 'y'})\nexcept Exception as error:\n    r = str(error)",
        "try:\n    await tools.up.as_text()\nexcept:\n    r = 'so a user has to approve With dry_run=true tools.up.add'",
    ],
)
async def test_a_program_that_catches_what_is_refused_runs(served: Caller, code: str) -> None:
    first, said = await result(served, f"first = await tools.up.add(left=1)\n{code}\n[first, r]")
    assert first == 2
    assert "so a user has to approve" in said
    assert "With dry_run=true" in said
    assert "tools.up.add" in said


async def test_a_no_to_calls_whose_failure_is_caught_ends_only_these(served: Caller) -> None:
    user = User([NO])
    code = "r = []\nfor n in range(2):\n    try:\n        await tools.up.append(path='/nowhere/x', line='y')\n    except ToolError as e:\n        r.append(str(e))\nr"
    async with asking(served, user) as caller:
        said = await result(caller, code)
    assert all("did not approve" in each for each in said)
    assert len(user.asked) == 1


async def test_in_a_dry_run_nobody_is_asked_about_writes_and_what_is_denied_is_refused_all_the_same(
    served: Caller,
) -> None:
    user = User([NO])
    async with asking(served, user) as caller:
        report = await caller.run("await tools.up.append(path='/nowhere/x', line='y')", dry_run=True)
        assert report["status"] == "ok"
        assert (await caller.run("await tools.up.as_text()", dry_run=True))["status"] == "refused"
    assert user.asked == []


async def test_calls_of_a_quarantined_server_are_refused_before_anything_runs(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(), other=upstream(approve="never"))
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        await result(caller, "await tools.up.add(left=1); await tools.other.add(left=1)")
    pins = json.loads((tmp_path / "registry" / "pins.json").read_text())
    pins["servers"]["other"]["quarantined"] = ["add"]
    (tmp_path / "registry" / "pins.json").write_text(json.dumps(pins))
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run("await tools.up.add(left=1)\nawait tools.other.append(path='/nowhere/x', line='x')")
    assert (report["status"], "tool_calls" in report) == ("refused", False)
    assert "until the user accepts" in report["error"]["message"]


async def test_the_operators_word_on_what_reads_spares_the_question(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(reads=["silent_*"], writes=["add"]))
    file = tmp_path / "file"
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        assert await result(caller, f"await tools.up.silent_about_itself(path={str(file)!r})") == "touched"
        report = await caller.run("await tools.up.add(left=1)")
    assert (
        "up.add is marked in the operator's mcp.json as one that writes, so a user has to approve"
        in report["error"]["message"]
    )


async def test_in_full_python_programs_are_judged_too(served: Caller) -> None:
    code = "import tools\nawait tools.up.add(left=1)\nawait tools.up.append(path='/nowhere/x', line='y')"
    report = await served.run(code, isolation="process")
    assert (report["status"], report["error"]["line"], "tool_calls" in report) == ("refused", 3, False)


async def test_a_tool_without_a_server_leaves_the_others_to_be_judged(served: Caller) -> None:
    report = await served.run("await tools.weather.forecast()\nawait tools.up.append(path='/nowhere/x', line='y')")
    assert (report["status"], report["error"]["line"]) == ("refused", 2)


ENDS_WHILE_IT_ASKS = """
import asyncio
async def fail():
    await asyncio.sleep(1)
    raise ValueError("over")
await tools.up.add(left=1)
name = ".".join(["up", "append"])  # which nobody can know before it runs
await asyncio.gather(call_tool(name, {{"path": {!r}, "line": "x"}}), fail())
"""


async def test_a_run_that_ended_while_its_user_was_asked_is_reported_all_the_same(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    asked: list[bool] = []
    with http_server(tmp_path) as url:
        async with Client(url, read_timeout_seconds=200) as other:

            async def ended() -> bool:
                content = (await other.call_tool("get_execution_stats", {})).structured_content
                return content is not None and content["runs"]["by_status"]["error"] == 1

            async def user(_context: object, _question: object) -> ElicitResult:
                asked.append(await ended())
                await until(ended)
                return ElicitResult(action="accept", content={"approve": True})

            async with Client(url, read_timeout_seconds=200, elicitation_callback=user) as asking:
                code = ENDS_WHILE_IT_ASKS.format(str(tmp_path / "file"))
                report = (await asking.call_tool("execute_code", {"code": code})).structured_content
                assert report is not None
                assert report["error"]["message"] == "over"
    assert asked == [False]
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("action", "content", "meant"),
    [
        ("accept", {"approve": True, "covers": "the run"}, "the run"),
        ("accept", {"approve": True}, "this call"),
        ("accept", {"approve": True, "covers": "everything"}, "this call"),
        ("accept", {"approve": False, "covers": "the run"}, None),
        ("accept", {"covers": "the run"}, None),
        ("accept", None, None),
        ("decline", {"approve": True}, None),
        ("cancel", {"approve": True}, None),
    ],
)
def test_only_a_form_that_says_yes_is_one_and_it_covers_no_more_than_it_says(
    action: str, content: dict[str, object] | None, meant: str | None
) -> None:
    answer = ElicitResult.model_validate({"action": action, "content": content})
    assert chosen(answer, Question(choices=("this call", "the run"))).choice == meant
    assert chosen(answer, Question()).choice == (None if meant is None else "")
