"""Programs whose calls do not fit the signatures of their tools: refused before they run, or left to run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ..conftest import Caller, in_this_process
from .test_approvals import NO, User, asking
from .test_registry import ONE_SPARE, configure, upstream


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = configure(tmp_path_factory.mktemp("home"), up=upstream(approve="never"))
    env = ONE_SPARE | {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}
    async with in_this_process(home, env) as caller:
        await caller.run("await tools.up.add(left=1)")
        yield caller


async def refusal(caller: Caller, code: str, **arguments: Any) -> dict[str, Any]:
    report = await caller.run(code, **arguments)
    assert (report["status"], "tool_calls" in report) == ("refused", False), report
    error: dict[str, Any] = report["error"]
    return error


async def test_everything_that_does_not_fit_is_named_in_one_answer_and_nothing_is_called(caller: Caller) -> None:
    error = await refusal(
        caller,
        """
import asyncio
first = await tools.up.add(left=1)
await tools.up.add(lft=1, right=first)
await tools.up.add(left="one", right=[2])
if first:
    await tools.up.add()
for each in range(first):
    tools.up.people()
async def main():
    return await asyncio.gather(tools.up.fail(cause="x"), tools.up.adds(left=1))
asyncio.run(main())
""",
    )
    said = error["message"]
    assert said.startswith("Nothing was called. Line 4: up.add takes no argument")
    assert 'up.add takes no argument "lft". Did you mean left?' in said
    assert 'Line 5: The argument left of up.add cannot be "one". Give an integer.' in said
    assert "Line 5: The argument right of up.add cannot be [2]. Give an integer." in said
    assert all(
        line.partition(": ")[0].removeprefix("Nothing was called. ").startswith("Line") for line in said.split("\n")
    )
    assert said.count("\n") >= 6, "each fault has a line of its own"
    assert "Line 7: up.add needs the argument left." in said, "what is not certain is named beside what is"
    assert "Line 9: The call of up.people is not awaited" in said
    assert 'Line 11: up.fail takes no argument "cause". It takes reason.' in said
    assert "Line 11: There is no tool 'up.adds'. The nearest are up.add, " in said
    assert said.count("tools.up.add(*, left: int, right: int = 1) -> int") == 1
    assert said.count("tools.up.fail(*, reason: str) -> str") == 1
    assert (error["type"], error["line"]) == ("ToolError", 4)
    assert "Correct these calls" in error["hint"]


@pytest.mark.parametrize(
    "code",
    [
        "await tools.up.add(lft=1)",
        "await tools['up'].add(**{'lft': 1})",
        "await tools.up.add({'lft': 1})",
        "await call_tool('up.add', {'lft': 1})",
        "await call_tool('up', 'add', arguments={'lft': 1})",
        "await call_tool(name='up.add', arguments={'lft': 1})",
        "await call_tool(server='up', tool='add', lft=1)",
        "await tools.add(lft=1)",
        "await up.add(lft=1)",
        "n = 3\nawait tools.up.add(left=n, wright=n)",
        "more = {}\nawait tools.up.add(lft=1, **more)",
        "await tools.up.add()",
        "await tools.up.add(right=2)",
        "n = 3\nawait tools.up.add(right=n)",
        "await tools.up.add(left='1')",
        "n = 3\nawait tools.up.add(left=None, right=n)",
        "more = {}\nawait tools.up.add(left={'a': [1]}, **more)",
        "x = 1 + await tools.up.add(left='1')",
        "print([await tools.up.add(left='1') for n in range(3)])",
        "for n in [1, 2]:\n    await tools.up.add(left=n, wright=2)",
        "while True:\n    await tools.up.add(wright=2)\n    break",
        "import asyncio\nawait asyncio.gather(*[tools.up.add(wright=n) for n in (1, 2)])",
        "import asyncio\nawait asyncio.wait_for(tools.up.add(left='1'), 3)",
        "async def f():\n    return await g()\nasync def g():\n    return await tools.up.add(left='1')\nawait f()",
        "import asyncio\nasync def main():\n    await tools.up.add(left='1')\nif __name__ == '__main__':\n    asyncio.run(main())",
        "with open('x', 'w') as f:\n    f.write(await tools.up.add(left='1'))",
        "await tools.up.adds(left=1)",
        "await tools.upp.add(left=1)",
        "await tools.nowhere.adds_up_numbers(left=1)",
        "await tools.quite_other.thing(left=1)",
        "await call_tool('up.adds', {'left': 1})",
        "tools.up.add(left=1)",
        "tools.up.add(left=1)\nawait tools.up.add(left=2)",
        "x = tools.up.people()['people']",
        "x = tools.up.people()\nfor each in x['people']:\n    print(each)",
        "print(tools.up.add(left=1))",
        "for each in tools.up.people():\n    print(each)",
    ],
)
async def test_a_call_that_is_certain_to_fail_is_refused(caller: Caller, code: str) -> None:
    await refusal(caller, code)


@pytest.mark.parametrize(
    "code",
    [
        "if not first:\n    await tools.up.add(lft=1)",
        "first and await tools.up.add(lft=1) if not first else 0",
        "for n in range(first - 2):\n    await tools.up.add(lft=n)",
        "for n in []:\n    await tools.up.add(lft=n)",
        "for n in (1, 2):\n    if n:\n        break\n    await tools.up.add(lft=n)",
        "[await tools.up.add(lft=n) for n in (1, 2) if n > 2]",
        "import asyncio\nawait asyncio.gather(*[tools.up.add(lft=n) for n in []])",
        "async def never():\n    await tools.up.add(lft=1)",
        "async def f(n):\n    if not n:\n        return\n    await tools.up.add(lft=1)\nawait f(0)",
        "def maybe():\n    yield tools.up.add(lft=1)\nmaybe()",
        "import sys\nif first:\n    sys.exit()\nawait tools.up.add(lft=1)",
        "raise SystemExit\nawait tools.up.add(lft=1)",
        "try:\n    await tools.up.add(lft=1)\nexcept ToolError:\n    pass",
        "Wrong = ToolError\ntry:\n    await tools.up.add(lft=1)\nexcept Wrong:\n    pass",
        "try:\n    await tools.up.add(1, 2)\nexcept TypeError:\n    pass",
        "from contextlib import suppress\nwith suppress(ToolError):\n    await tools.up.add(lft=1)",
        "from contextlib import suppress\nquiet = suppress(ToolError)\nwith quiet:\n    await tools.up.add(lft=1)",
        "import asyncio\nawait asyncio.gather(tools.up.add(lft=1), return_exceptions=True)",
        "import asyncio\nasync def f():\n    await tools.up.add(lft=1)\nawait asyncio.gather(f(), return_exceptions=True)",
        "import asyncio\ntask = asyncio.create_task(tools.up.add(lft=1))\nawait asyncio.wait([task])\ntask.exception()",
        "async def f():\n    await tools.up.add(lft=1)\ntry:\n    await f()\nexcept Exception:\n    pass",
        "class tools:\n    class up:\n        async def add(lft): return lft\nawait tools.up.add(lft=1)",
        "more = {'left': 2}\nawait tools.up.add(**more)",
        "more = [{'left': 2}]\nawait tools.up.add(*more)",
        "more = {'left': 2}\nawait tools.up.add(more)",
        "more = {'left': 2}\nawait call_tool('up.add', more)",
        "tool = 'add'\nawait call_tool('up', tool, {'left': 1})",
        "tool = 'people'\nawait call_tool('up', tool)",
        "await call_tool('up.people')",
        "await call_tool('up.people', None)",
        "await tools.up.people(max_count=1)",
        "await tools.up.people(MaxCount=1)",
        "n = 4\nawait tools.up.add(left=n)",
        "await tools.up.add(left=True - 1)",
        "await tools.up.add(left=-1)",
        "import asyncio\ncalls = [tools.up.add(left=n) for n in range(3)]\nawait asyncio.gather(*calls)",
        "call = tools.up.add(left=1)\nawait call",
        "call = tools.up.add(left=1)\ncall.close()",
        "def call():\n    return tools.up.add(left=1)\nawait call()",
        "from mcp import runtime\nawait runtime.discovered_servers()\nawait runtime.describe_server('up')",
        "tools.list_tools()",
        "'await tools.up.add(lft=1)'",
    ],
)
async def test_a_program_that_may_run_to_its_end_is_never_refused(caller: Caller, code: str) -> None:
    report = await caller.run(f"first = await tools.up.add(left=0)\n{code}")
    assert report["status"] == "ok", report["error"]


async def test_in_full_python_and_in_a_dry_run_calls_are_checked_too(caller: Caller) -> None:
    error = await refusal(caller, "import tools\nawait tools.up.add(lft=1)", isolation="process")
    assert error["line"] == 2
    await refusal(caller, "await tools.up.add(lft=1)", dry_run=True)


async def test_a_long_text_and_one_with_a_token_in_it_are_left_to_the_call(caller: Caller) -> None:
    for value in ("x" * 5000, "[PERSON_0123456789]"):
        report = await caller.run(f"await tools.up.add(left={value!r})")
        assert (report["status"], len(report["tool_calls"])) == ("error", 1)


async def test_a_tool_that_may_appear_after_a_call_is_waited_for(caller: Caller) -> None:
    report = await caller.run("await tools.up.add(left=1)\nawait tools.up.quite_other_thing()")
    assert (report["status"], len(report["tool_calls"])) == ("error", 2)


async def test_by_a_list_of_an_earlier_session_nothing_is_refused(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(approve="never"))
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        assert (await caller.run("await tools.up.add(left=1)"))["result"] == 2
    [listed] = (tmp_path / "registry" / "lists").glob("*.json")
    text = listed.read_text()
    assert '"left"' in text
    listed.write_text(text.replace('"left"', '"links"').replace('"people"', '"persons"'))
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run("await tools.up.add(left=1)\nawait tools.up.people()")
    assert report["status"] == "ok", report["error"]
    assert json.loads(listed.read_text()) == json.loads(text)


async def test_of_what_does_not_fit_no_user_is_asked_and_it_stands_beside_what_needs_a_yes(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    user = User([NO])
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        async with asking(caller, user) as asked:
            await refusal(asked, "await tools.up.append(path='/nowhere/x')")
            error = await refusal(asked, "await tools.up.append(pth='/nowhere/x')")
            assert error["hint"] == "Correct these calls, and run the program again."
            error = await refusal(asked, "await tools.up.append('/nowhere/x', 'y', 'z')")
            assert "takes only path, line by position. Pass the others by name." in error["message"]
        code = "if 0:\n    await tools.up.add(lft=1)\nawait tools.up.append(path='/nowhere/x', line='y')"
        error = await refusal(caller, code)
    assert user.asked == []
    assert "Line 2: up.add takes no argument" in error["message"]
    assert "Line 3: up.append says that it may destroy something" in error["message"]
    assert error["hint"].startswith("Correct the calls that are wrong. With dry_run=true ")


async def test_too_many_arguments_by_position_can_be_caught(caller: Caller) -> None:
    code = "try:\n    await tools.up.add(1, 2)\nexcept TypeError as error:\n    result = str(error)"
    assert "takes only left by position" in (await caller.run(code))["result"]


async def test_a_missing_await_in_a_plain_function_is_told_with_what_makes_it_possible(caller: Caller) -> None:
    code = "def work(n):\n    r = tools.up.people(maxCount=n)\n    return r['total']\nwork(1)"
    said = (await refusal(caller, code))["message"]
    assert "Make work() an `async def`, and await it where it is called; write `await` before the call." in said


async def test_in_a_thread_the_hint_of_a_missing_await_is_one_that_works_there(caller: Caller) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
import asyncio
def work(n):
    r = {}tools.up.people(maxCount=n){}
    return r["total"]
with ThreadPoolExecutor(2) as pool:
    result = list(pool.map(work, [1, 2]))
"""
    report = await caller.run(code.format("", ""))
    assert "Make work() an `async def`" in report["error"]["hint"]
    assert "In a thread, write asyncio.run(…) around the call." in report["error"]["hint"]
    assert "Write `await` before the call, in an `async def`." in report["truncated"]["code"]["note"]
    assert (await caller.run(code.format("asyncio.run(", ")")))["result"] == [1, 2]


async def test_a_folder_that_is_missing_or_of_a_user_is_told_what_to_do_about(caller: Caller) -> None:
    failed = (await caller.run("open('o3/x.csv', 'w')"))["error"]
    assert failed["type"] == "FileNotFoundError"
    assert "Path('o3').mkdir(parents=True, exist_ok=True)" in failed["hint"]
    report = await caller.run("write_file('o4/deep/x.txt', 'x')")
    assert [each["name"] for each in report["files"]] == ["o4/deep/x.txt"], report["error"]
    report = await caller.run("open('~/x.csv', 'w')")
    assert report["error"]["hint"].startswith("`~` is no folder here: leave it out.")


async def test_a_function_of_code_is_named_to_those_who_look_for_it_among_the_tools(caller: Caller) -> None:
    found = await caller.call("search_tools", query="read a resource of a server")
    none = await caller.call("search_tools", query="rename a customer")
    report = await caller.run("await tools.up.list_resources()")
    said = "Code also has list_resources(server), read_resource(server, uri), which are no tools."
    assert found.structured_content["in_code"] == said
    assert said in found.content[0].text
    assert "in_code" not in none.structured_content
    assert "in code, call list_resources(server)" in report["error"]["message"]


async def test_what_discovery_answers_can_be_gathered(caller: Caller) -> None:
    code = "servers, tools = await asyncio.gather(list_servers(), tools.list_tools())\nresult = [len(servers), len(tools) > 1]"
    report = await caller.run(code)
    assert report["result"] == [1, True], report
