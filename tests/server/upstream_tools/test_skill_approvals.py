"""What a user is asked about calls in skills and calls that no source tells, and how often at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import InputRequiredResult

from sealab.server.interfaces.protocol import elicitation

from ..conftest import Caller, http_server, in_this_process
from .test_approvals import NO, User, asking, yes
from .test_registry import ONE_SPARE, configure, result, upstream

INNER = """
async def inner(path: str, line: str) -> str:
    '''Append a line.'''
    return await tools.up.append(path=path, line=line)
"""
OUTER = """
import skills
async def outer(path: str, times: int) -> int:
    '''Append many lines, and touch the file.'''
    for at in range(times):
        await skills.inner(path, str(at))
    return times
"""
SOMETIMES = """
async def sometimes(path: str, really: bool) -> bool:
    '''Append a line where it really should.'''
    if really:
        await tools.up.append(path=path, line="x")
    return really
"""


PAGES = """
async def lines(tool: str, path: str, times: int) -> int:
    '''Call a tool by its name.'''
    for at in range(times):
        await call_tool(tool, {"path": path, "line": str(at)})
    return times
"""


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    """A client that cannot ask its user, of a server with the skills."""
    names = {"up": upstream(deny=["as_text"])} | {f"up{n}": upstream() for n in range(3)}
    async with in_this_process(configure(tmp_path_factory.mktemp("home"), **names), ONE_SPARE) as caller:
        await save(caller, INNER, OUTER, SOMETIMES, PAGES)
        yield caller


async def save(caller: Caller, *codes: str) -> None:
    for code in codes:
        name = code.partition("(")[0].split()[-1] if "import" not in code else "outer"
        saved = await caller.call("save_skill", name=name, code=code, force=True)
        assert not saved.is_error, saved.content


def by_a_computed_name(path: Path, times: int) -> str:
    return f"""
name = "".join(["up", ".append"])
said = []
for at in range({times}):
    try:
        await call_tool(name, {{"path": {str(path)!r}, "line": str(at)}})
    except ToolError as error:
        said.append(str(error))
said
"""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_one_question_covers_the_calls_in_the_skills_that_a_program_uses(
    served: Caller, mode: str, tmp_path: Path
) -> None:
    file, user = tmp_path / "file", User([yes()])
    async with asking(served, user, mode=mode) as caller:
        code = f"from skills import outer as many\nawait many({str(file)!r}, 13)\nawait tools.up.append(path={str(file)!r}, line='y')"
        await result(caller, code)
    [question] = user.asked
    at = "line 3, line 4 of the skill inner, at most 14 times"
    assert f'1. up.append(path="{file}", line=one of "y", "0", "1", …) [{at}]' in question
    assert len(file.read_text().splitlines()) == 14


@pytest.mark.parametrize(
    "call",
    [
        "await skills.inner(path, 'x')",
        "await skills['inner'](path, 'x')",
        "await skills.inner.v1(path, 'x')",
        "await skills['inner@1'](path, 'x')",
        "await load_skill('inner')(path, 'x')",
        "await load_skill('inner', version=1)(path, 'x')",
        "await call_skill('inner', 1, {'path': path, 'line': 'x'})",
        "from skills import inner\nimport asyncio\nawait asyncio.gather(*map(inner, [path], ['x']))",
        "import skills as s\nawait s.inner(path, 'x')",
    ],
)
async def test_a_skill_is_known_however_it_is_named(served: Caller, call: str, tmp_path: Path) -> None:
    user = User([yes()])
    async with asking(served, user) as caller:
        await result(caller, f"path = {str(tmp_path / 'file')!r}\n{call}")
    [question] = user.asked
    is_passed_on = "map(" in call or "load_skill" in call
    assert "up.append(path=" in question
    assert ("of the skill inner" in question) != is_passed_on


async def test_a_skill_that_is_run_by_itself_is_asked_about_once(served: Caller, tmp_path: Path) -> None:
    file, user = tmp_path / "file", User([yes()])
    async with asking(served, user) as caller:
        answer = await caller.call("run_skill", name="outer", arguments={"path": str(file), "times": 12})
        assert answer.structured_content["result"] == 12
    [question] = user.asked
    assert 'in "The skill outer, version 1"?' in question


async def test_a_skill_that_a_session_imported_is_known_in_its_later_calls(served: Caller, tmp_path: Path) -> None:
    user = User([yes()])
    async with asking(served, user) as caller:
        await result(caller, "from skills import inner", session="imports")
        for _ in range(2):
            await result(caller, f"await inner({str(tmp_path / 'file')!r}, 'x')", session="imports")
    assert all("[line 4 of the skill inner@1]" in each for each in user.asked)
    assert len(user.asked) == 2


async def test_after_a_no_to_the_calls_of_a_skill_nothing_is_called(served: Caller, tmp_path: Path) -> None:
    file = tmp_path / "file"
    async with asking(served, User([NO])) as caller:
        report = await caller.run(f"await tools.up.add(left=1)\nawait skills.outer({str(file)!r}, 2)")
    assert (report["status"], report["error"]["line"], "tool_calls" in report) == ("refused", 2, False)
    assert "The skill inner makes a call in its line 4: The user did not approve" in report["error"]["message"]
    assert not file.exists()


async def test_where_nobody_can_be_asked_a_skill_that_is_certain_to_write_ends_the_program_before_it_starts(
    served: Caller,
) -> None:
    report = await served.run("await tools.up.add(left=1)\nawait skills.inner('/nowhere/x', 'y')")
    assert (report["status"], report["error"]["line"], "tool_calls" in report) == ("refused", 2, False)
    assert await result(served, "await skills.sometimes('/nowhere/x', False)") is False
    assert await result(served, "[await skills.sometimes('/nowhere/x', False) for _ in range(1)]") == [False]
    caught = "try:\n    await skills.inner('/nowhere/x', 'y')\nexcept ToolError:\n    r = 'caught'\nr"
    assert await result(served, caught) == "caught"


async def test_a_plain_yes_to_a_second_call_of_a_tool_covers_the_rest_of_the_run(
    served: Caller, tmp_path: Path
) -> None:
    file, user = tmp_path / "file", User([yes()])
    async with asking(served, user) as caller:
        assert await result(caller, by_a_computed_name(file, 30)) == []
    assert len(file.read_text().splitlines()) == 30
    assert [each[0] for each in user.choices] == ["this call", "such calls in this run"]
    assert "A yes now covers each further call in this run" in user.asked[1]


async def test_a_user_who_wants_to_be_asked_about_each_call_is_asked_as_often_as_clients_allow(
    served: Caller, tmp_path: Path
) -> None:
    file, user = tmp_path / "file", User([yes("this call")])
    async with asking(served, user) as caller:
        said = await result(caller, by_a_computed_name(file, 12))
    assert len(user.asked) == elicitation.ROUNDS_MAX == len(file.read_text().splitlines())
    assert len(said) == 12 - elicitation.ROUNDS_MAX
    assert "this run asked 8 times already" in said[0]
    assert "so that one question shows them all" in said[0]


async def test_tests_of_a_skill_that_come_after_the_last_question_say_that_it_was_the_last(
    served: Caller, tmp_path: Path
) -> None:
    file, user = tmp_path / "file", User([yes("this call")])
    code = (
        by_a_computed_name(file, elicitation.ROUNDS_MAX)
        + f"save_skill('inner', {INNER!r}, tests={TESTED.format(str(file))!r})"
    )
    async with asking(served, user) as caller:
        report = await caller.run(code)
    assert "this run asked 8 times already" in report["error"]["message"]
    assert len(user.asked) == elicitation.ROUNDS_MAX


@pytest.mark.parametrize("kind", ["stdio-modern", "stdio-legacy"])
async def test_after_a_question_that_nobody_answered_nothing_more_is_asked_in_the_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, up=upstream())
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.2)
    asked: list[str] = []

    async def absent(_context: object, question: Any) -> Any:
        asked.append(question.message)
        await asyncio.sleep(1)
        return NO

    mode = "legacy" if kind.endswith("legacy") else "auto"
    env = ONE_SPARE | {"SEALAB_JOURNAL": "off"}  # with one the run waits for an answer
    async with in_this_process(tmp_path, env, elicitation_callback=absent, mode=mode) as caller:
        said = await result(caller, by_a_computed_name(tmp_path / "file", 3))
    assert len(said) == 3
    assert len(asked) == 1
    assert not (tmp_path / "file").exists()


async def test_calls_that_are_made_at_once_make_one_question(served: Caller, tmp_path: Path) -> None:
    file = tmp_path / "file"
    code = f"""
import asyncio
names = [f"up{{n}}.append" for n in range(3)]
await asyncio.gather(*[call_tool(name, {{"path": {str(file)!r}, "line": name}}) for name in names])
"""
    rounds: list[int] = []
    async with asking(served, User([yes()])) as caller:
        await result(caller, "await asyncio.gather(*[tools[f'up{n}'].add(left=1) for n in range(3)])")
        given: dict[str, Any] = {}
        while True:
            answer = await caller.client.session.call_tool(
                "execute_code", {"code": code}, allow_input_required=True, **given
            )
            if not isinstance(answer, InputRequiredResult):
                break
            rounds.append(len(answer.input_requests or {}))
            given = {
                "input_responses": dict.fromkeys(answer.input_requests or {}, yes()),
                "request_state": answer.request_state,
            }
    assert answer.structured_content is not None
    assert answer.structured_content["success"], answer.structured_content
    assert rounds == [1]


ASKS = "name = 'up.' + 'append'\ntry:\n    await call_tool(name, {{'path': {!r}, 'line': 'x'}})\nexcept ToolError as e:\n    r = str(e)"


async def test_a_question_whose_client_never_comes_back_yields_its_session_to_the_next_call(
    served: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation, "YIELD_SECONDS", 0.2)
    async with asking(served, User([yes()])) as caller:
        await result(caller, "kept = 7", session="yields")
        arguments = {"code": ASKS.format(str(tmp_path / "file")) + "\n" + ASKS.format("/x"), "session": "yields"}
        asked = await caller.client.session.call_tool("execute_code", arguments, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert await result(caller, "[kept, r[:25]]", session="yields") == [7, "The user did not approve "]
        late = await caller.client.session.call_tool(
            "execute_code",
            arguments,
            input_responses=dict.fromkeys(asked.input_requests or {}, yes()),
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert late.structured_content is not None
    assert late.structured_content["success"], "the report is kept for a client that comes back late"
    assert not (tmp_path / "file").exists()


async def test_a_question_is_waited_for_where_nothing_else_wants_its_session(
    served: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation, "YIELD_SECONDS", 0.0)
    file = tmp_path / "file"

    class Slow(User):
        async def __call__(self, context: object, question: Any) -> Any:
            await result(caller, "1", session="other")
            return await super().__call__(context, question)

    async with asking(served, Slow([yes()])) as caller:
        await result(caller, ASKS.format(str(file)), session="waits")
    assert file.read_text() == "x\n"


async def test_a_legacy_client_that_leaves_while_it_is_asked_ends_the_run_and_frees_its_session(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    asked = asyncio.Event()

    class Silent(User):
        async def __call__(self, _context: object, _question: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

    async def leaving(url: str) -> None:
        async with Client(url, mode="legacy", read_timeout_seconds=200, elicitation_callback=Silent([NO])) as client:
            await Caller(client, tmp_path).run(ASKS.format(str(tmp_path / "file")), session="s")

    with http_server(tmp_path, **ONE_SPARE) as url:
        task = asyncio.create_task(leaving(url))
        await asked.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        async with Client(url, mode="legacy", read_timeout_seconds=200) as client:
            assert await result(Caller(client, tmp_path), "1", session="s") == 1


TESTED = """
path = {!r}
await inner(path, "a")
await inner(path, "b")
"""


async def test_the_tests_of_a_skill_ask_once_for_the_tools_that_they_call_and_nothing_for_those_they_do_not(
    tmp_path: Path,
) -> None:
    configure(tmp_path, up=upstream())
    file, user = tmp_path / "file", User([yes()])
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        await save(caller, INNER)
        assert user.asked == []
        tests = TESTED.format(str(file))
        for given in ({"tests": tests}, {"tests": tests, "record": True}):
            saved = await caller.call("save_skill", name="inner", code=INNER, **given)
            assert not saved.is_error, saved.content
        await result(caller, f"save_skill('inner', {INNER!r}, tests={tests!r})['version']")
        loaded = await caller.call("load_skill", name="inner", version=3)
    assert loaded.structured_content["metadata"]["recorded_calls"] == 2
    assert len(user.asked) == 3
    assert 'line=one of "a", "b") [line 4 of the skill inner, at most 2 times]' in user.asked[0]
    assert len(file.read_text().splitlines()) == 6


async def test_tests_that_nobody_can_be_asked_about_say_what_to_do(served: Caller) -> None:
    saved = await served.call("save_skill", name="inner", code=INNER, tests=TESTED.format("/nowhere/x"))
    said = saved.content[0].text
    assert "this client cannot ask one" in said
    assert "Have the tests call no such tool; or save the skill without tests" in said
    assert "dry_run" not in said


async def test_a_tool_whose_name_is_handed_to_a_skill_as_text_is_asked_about_when_it_is_called(
    served: Caller, tmp_path: Path
) -> None:
    file, user = tmp_path / "file", User([yes()])
    async with asking(served, user) as caller:
        assert await result(caller, f"await skills.lines('up.append', {str(file)!r}, 12)") == 12
        assert await result(caller, "await tools.up.add(left=1); 'up.append'") == "up.append", "nothing computes a name"
    assert [each[0] for each in user.choices] == ["this call", "such calls in this run"]


async def test_a_text_that_may_be_the_name_of_a_tool_ends_no_program(served: Caller) -> None:
    code = (
        "name = 'up.' + 'add'\n[await call_tool(name, {'left': 1}), 'up.append', 'up.as_text', 'no.tool', 'file.csv']"
    )
    assert (await result(served, code))[0] == 2
    async with asking(served, User([NO])) as caller:
        assert (await result(caller, code))[0] == 2


PAY = """
async def {name}(path: str) -> str:
    '''Append a line.'''
    return await tools.up.append(path=path, line={line!r})
"""
CLERK = """
from skills import {name}
async def {name}_by_clerk(path: str) -> str:
    '''Have a line appended.'''
    return await {name}(path)
"""


async def saved(caller: Caller, name: str, code: str) -> None:
    answer = await caller.call("save_skill", name=name, code=code, force=True)
    assert not answer.is_error, answer.content


class Meanwhile(User):
    """Answers as `User`, and while the first question is open somebody else saves a skill anew."""

    def __init__(self, other: Caller, name: str, answers: list[Any]) -> None:
        super().__init__(answers)
        self._other, self._name = other, name

    async def __call__(self, context: object, question: Any) -> Any:
        if not self.asked:
            await saved(self._other, self._name, PAY.format(name=self._name, line="judged by nobody"))
        return await super().__call__(context, question)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("pay_a", "await skills.pay_a(path)"),
        ("pay_b", "from skills import pay_b\nawait pay_b(path)"),
        ("pay_c", "await load_skill('pay_c')(path)"),
        ("pay_d", "await skills.pay_d_by_clerk(path)"),
    ],
)
async def test_the_version_that_a_question_showed_runs_though_another_is_saved_while_it_is_open(
    served: Caller, name: str, call: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    await saved(served, name, PAY.format(name=name, line="judged"))
    await saved(served, f"{name}_by_clerk", CLERK.format(name=name))
    user = Meanwhile(served, name, [yes(), NO])
    async with asking(served, user) as caller:
        await result(caller, f"path = {str(file)!r}\n{call}")
    assert file.read_text() == "judged\n"
    assert len(user.asked) == 1


async def test_in_a_session_each_question_shows_what_its_call_runs(served: Caller, tmp_path: Path) -> None:
    """Also through a skill that was loaded when the one that it imports had another version."""
    file = tmp_path / "file"
    call = f"await skills.pay_s_by_clerk({str(file)!r})"
    await saved(served, "pay_s", PAY.format(name="pay_s", line="first"))
    await saved(served, "pay_s_by_clerk", CLERK.format(name="pay_s"))
    user = Meanwhile(served, "pay_s", [yes()])
    async with asking(served, user) as caller:
        for _ in range(2):
            await result(caller, call, session="pays")
    assert file.read_text() == "first\njudged by nobody\n"
    assert ["judged by nobody" in each for each in user.asked] == [False, True]


async def test_a_skill_keeps_its_variables_in_a_session_while_it_stays_the_same(served: Caller) -> None:
    await saved(served, "counted", "times = []\ndef counted() -> int:\n    times.append(1)\n    return len(times)\n")
    await saved(served, "counting", "from skills import counted\ndef counting() -> int:\n    return counted()\n")
    counts = [await result(served, "skills.counting()", session="counts") for _ in range(2)]
    assert counts == [1, 2]
    await saved(served, "counted", "def counted() -> int:\n    return -1\n")
    assert await result(served, "skills.counting()", session="counts") == -1


async def test_a_skill_that_a_program_saves_is_asked_about_anew(served: Caller, tmp_path: Path) -> None:
    file = tmp_path / "file"
    await saved(served, "pay_e", PAY.format(name="pay_e", line="judged"))
    code = f"""
path = {str(file)!r}
await skills.pay_e(path)
save_skill("pay_e", code={PAY!r}.format(name="pay_e", line="".join(["n", "ew"])))
try:
    await skills.pay_e(path)
except ToolError as error:
    said = str(error)
said
"""
    user = User([yes(), NO])
    async with asking(served, user) as caller:
        assert "did not approve" in await result(caller, code)
    assert file.read_text() == "judged\n"
    assert len(user.asked) == 2
    assert '"new"' in user.asked[1]


async def test_a_yes_does_not_cover_a_skill_whose_name_the_program_computes(served: Caller, tmp_path: Path) -> None:
    file = tmp_path / "file"
    await saved(served, "pay_f", PAY.format(name="pay_f", line="hidden"))
    code = f"""
path = {str(file)!r}
await tools.up.append(path=path, line="shown")
try:
    await getattr(skills, "".join(["pay", "_f"]))(path)
except ToolError as error:
    said = str(error)
said
"""
    user = User([yes(), NO])
    async with asking(served, user) as caller:
        assert "did not approve" in await result(caller, code)
    assert file.read_text() == "shown\n"
    assert '"hidden"' in user.asked[1]


async def test_a_skill_that_was_deleted_while_its_question_was_open_does_not_run(
    served: Caller, tmp_path: Path
) -> None:
    await saved(served, "pay_g", PAY.format(name="pay_g", line="judged"))

    class Deleting(User):
        async def __call__(self, context: object, question: Any) -> Any:
            await served.call("delete_skill", name="pay_g")
            await saved(served, "pay_g", PAY.format(name="pay_g", line="judged by nobody"))
            return await super().__call__(context, question)

    async with asking(served, Deleting([yes()])) as caller:
        report = await caller.run(f"await skills.pay_g({str(tmp_path / 'file')!r})")
    assert "Version 1 of the skill 'pay_g', with which this run began, was deleted." in report["error"]["message"]
    assert not (tmp_path / "file").exists()
