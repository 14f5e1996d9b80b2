"""Which calls of tools are found in a program before it runs."""

from __future__ import annotations

import warnings

import pytest

from sealab.sandbox.guest_api import hosted_tools
from sealab.sandbox.guest_api.planned_calls import CALLS_MAX, read_program
from sealab.sandbox.job import Json

GIVEN = {**hosted_tools.helpers(), "mcp_git": hosted_tools._server("git"), "git": hosted_tools._server("git"), "n": 1}


def planned_calls(source: str) -> list[Json]:
    program = read_program(source, GIVEN)
    return [] if program is None else program.calls()


def found(source: str) -> list[tuple[str, int]]:
    return [(name, line) for name, line, *_ in planned_calls(source)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("await tools.git.log(n=1)", "git.log"),
        ("x = [await tools.git.log(n=i) for i in range(3)]", "git.log"),
        ("await tools['my-git']['log.all']()", "my-git.log.all"),
        ("await tools.append(line='x')", "append"),
        ("await mcp_git.log()", "git.log"),
        ("await git.log()", "git.log"),
        ("await mcp_servers['git'].log()", "git.log"),
        ("await call_tool('git.log', {})", "git.log"),
        ("await call_tool('git', 'log', {})", "git.log"),
        ("await tools.call_tool('git.log')", "git.log"),
        ("from mcp import runtime\nawait runtime.call_tool('git.log')", "git.log"),
        ("from mcp.runtime import call_tool as c\nawait c('git.log')", "git.log"),
        ("from tools import git as g\nawait g.log()", "git.log"),
        ("import tools as t\nawait t.git.log()", "git.log"),
        ("g = tools.git\nawait g.log()", "git.log"),
        ("import asyncio\nawait asyncio.gather(*map(tools.git.log, [1]))", "git.log"),
        ("async def f():\n    return await tools.git.log()", "git.log"),
        ("(await tools.git.log()).strip().split('x')[0]", "git.log"),
        ("f'{await tools.git.log()}'", "git.log"),
    ],
)
def test_a_call_is_found_however_it_is_written(source: str, name: str) -> None:
    assert found(source) == [(name, source.count("\n", 0, len(source)) + 1)]


@pytest.mark.parametrize(
    "source",
    [
        "tools = {}\ntools.git.log()",
        "for tools in []: tools.git.log()",
        "def f(git): return git.log()",
        "class git: log = print\ngit.log()",
        "import json as git\ngit.log()",
        "g = tools.git\ng = []\ng.append(1)",
        "search_tools('x'); tools.list_tools(); tools.search_tools('y'); mcp_servers.keys()",
        "await call_tool(name, {}); await call_tool(f'{n}.x', {})",
        "tools.git; tools['git']",
        "'tools.git.log()'  # tools.git.log()",
        "n + 1",
        "tools.git.log(",
        "skills.tools.log()",
    ],
)
def test_what_is_no_call_of_a_tool_or_cannot_be_known_is_not_found(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("try:\n    tools.a.b()\nexcept ToolError: pass", True),
        ("try:\n    tools.a.b()\nexcept (ValueError, Exception): pass", True),
        ("try:\n    tools.a.b()\nexcept: pass", True),
        ("try:\n    if n:\n        tools.a.b()\nexcept ToolError: pass", True),
        ("with suppress(ToolError):\n    tools.a.b()", True),
        ("gather(tools.a.b(), return_exceptions=True)", True),
        ("try:\n    tools.a.b()\nexcept ValueError: pass", False),
        ("try:\n    pass\nexcept ToolError:\n    tools.a.b()", False),
        ("try:\n    tools.a.b()\nfinally: pass", False),
        ("try:\n    def f(): tools.a.b()\nexcept ToolError: pass", False),
        ("gather(tools.a.b(), return_exceptions=False)", False),
        ("gather(tools.a.b(), return_exceptions=True); tools.a.b()", False),
    ],
)
def test_it_is_known_whether_a_program_catches_the_failure_of_a_call(source: str, caught: bool) -> None:
    assert [each[2] for each in planned_calls(source)] == [caught]


def test_programs_that_nest_or_are_long_are_taken_and_the_calls_bounded() -> None:
    assert len(found("\n".join(f"tools.a.b{n}()" for n in range(CALLS_MAX + 50)))) == CALLS_MAX
    assert found("x" + ".y" * 500 + "\ntools.a.b()") == [("a.b", 2)]
    assert found("[" * 90 + "tools.a.b()" + "]" * 90) == [("a.b", 1)]
    found("x" + ".y" * 50_000 + "\ntools.a.b()")


def test_a_source_that_the_compiler_warns_of_is_read_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found("'\\d'; tools.a.b() is 1") == [("a.b", 1)]


def test_functions_that_call_one_another_many_times_are_read_once() -> None:
    calls = "\n".join(f"async def f{n}():\n    " + f"await f{n + 1}()\n    " * 30 for n in range(60))
    source = f"{calls}\nasync def f60():\n    await tools.git.log(n=1)\nawait f0()"
    [[name, _line, _caught, [call], *_]] = planned_calls(source)
    assert (name, call["certain"]) == ("git.log", True)


def test_a_literal_is_sent_where_a_frame_can_carry_it_and_is_else_known_when_the_program_runs() -> None:
    sent = {"a": "None", "b": "[True, -1.5, ('x', +2)]", "c": "{'k': {'l': []}}", "d": str((1 << 63) - 1)}
    kept = {"e": "b'x'", "f": "{1}", "g": "1j", "h": "1e999", "i": str(1 << 63), "j": "'\\ud800'", "k": "{1: 2}"}
    kept |= {
        "l": "[0] * 3",
        "m": repr("x" * 1001),
        "n": "[" * 21 + "]" * 21,
        "o": "{**x}",
        "p": "set()",
        "q": "{[]: 1}",
    }
    arguments = ", ".join(f"{name}={text}" for name, text in (sent | kept).items())
    [[_, _, _, [known], *_]] = planned_calls(f"await tools.git.log({arguments})")  # type: ignore[misc]  # one call
    assert known["given"] == {"a": None, "b": [True, -1.5, ["x", 2]], "c": {"k": {"l": []}}, "d": (1 << 63) - 1}
    assert known["others"] == sorted(kept)
