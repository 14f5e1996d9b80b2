"""The tools as a client sees them: the contract over both transports and in both eras, all else in one process."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import pytest

from ...waiting import until
from ..conftest import Caller
from .test_progress_and_sessions import run_and_hear

TOOLS = {
    *("search_tools", "get_tool_definition", "list_tool_categories", "execute_code", "get_run"),
    *("save_skill", "load_skill", "list_skills", "run_skill", "delete_skill", "review_skills"),
    *("sanitize_pii", "restore_pii"),
    *("write_workspace_file", "read_workspace_file", "list_workspace_files", "delete_workspace_file"),
    *("add_schedule", "list_schedules", "remove_schedule", "get_execution_stats"),
}


async def test_the_tools_of_the_contract_are_listed_with_schemas_and_hints(caller: Caller) -> None:
    tools = {tool.name: tool for tool in (await caller.client.list_tools()).tools}
    assert tools.keys() == TOOLS
    for tool in tools.values():
        assert tool.description
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
    assert tools["execute_code"].meta == {"anthropic/alwaysLoad": True}
    properties = tools["execute_code"].input_schema["properties"]
    assert list(properties) == [
        "code",
        "context_vars",
        "timeout_seconds",
        "memory_mb",
        "session",
        "isolation",
        "dry_run",
        "background",
        "format",
    ]
    assert (properties["timeout_seconds"]["default"], properties["memory_mb"]["default"]) == (30, 500)
    reading = {name for name, tool in tools.items() if tool.annotations is not None and tool.annotations.read_only_hint}
    assert reading == {
        *("search_tools", "get_tool_definition", "list_tool_categories", "load_skill", "list_skills"),
        *("review_skills", "restore_pii", "read_workspace_file", "list_workspace_files", "get_execution_stats"),
        "list_schedules",
    }


async def test_code_that_works_gives_a_report_and_a_short_text(caller: Caller) -> None:
    answer = await caller.call("execute_code", code="print('hello')\nsum(range(10))")
    assert not answer.is_error
    report = answer.structured_content
    assert report is not None
    # On a busy machine it may have waited; the layers were perhaps told before.
    assert report.keys() - {"queued_ms", "layers"} == {
        "run_id", "success", "status", "result", "output", "error", "execution_time_ms", "isolation",
    }  # fmt: skip
    assert (report["success"], report["status"], report["result"], report["output"]) == (True, "ok", 45, "hello\n")
    assert report["error"] is None
    assert report["isolation"] == "restricted"
    assert report["execution_time_ms"] > 0
    assert re.fullmatch(r"ok in [\d.]+ ms \(run \w{26}\)\nresult: 45\noutput:\nhello", answer.content[0].text)  # type: ignore[union-attr]


async def test_a_result_of_none_is_there_as_null(in_process_caller: Caller) -> None:
    report = await in_process_caller.run("x = 1")
    assert report["result"] is None
    assert "result" in report
    assert (await in_process_caller.run("{'a': None, 'b': [None]}"))["result"] == {"a": None, "b": [None]}


async def test_code_that_fails_is_a_normal_result_with_its_error_and_the_output_up_to_it(caller: Caller) -> None:
    answer = await caller.call("execute_code", code="print('before')\nx = 1\nx.nothing")
    assert answer.is_error
    report = answer.structured_content
    assert report is not None
    assert (report["success"], report["status"], report["output"]) == (False, "error", "before\n")
    assert report["error"]["type"] == "AttributeError"
    assert report["error"]["line"] == 3
    assert "AttributeError (line 3)" in answer.content[0].text  # type: ignore[union-attr]


async def test_an_endless_loop_is_stopped_and_the_output_so_far_kept(in_process_caller: Caller) -> None:
    report = await in_process_caller.run("print('begun')\nwhile True:\n    pass", timeout_seconds=0.4)
    assert (report["status"], report["output"]) == ("timeout", "begun\n")
    assert (await in_process_caller.run("1 + 1"))["result"] == 2


async def test_context_vars_are_variables_of_the_code(in_process_caller: Caller) -> None:
    report = await in_process_caller.run("sum(rows) + offset", context_vars={"rows": [1, 2, 3], "offset": 10})
    assert report["result"] == 16
    assert (await in_process_caller.run("a + 1", context_vars='{"a": 1}'))["result"] == 2


async def test_a_session_remembers_and_other_calls_do_not_see_it(in_process_caller: Caller) -> None:
    await in_process_caller.run("import math\ndef area(r):\n    return round(math.pi * r * r, 2)", session="s1")
    assert (await in_process_caller.run("area(2)", session="s1"))["result"] == 12.57
    assert (await in_process_caller.run("area(2)", session="s2"))["error"]["type"] == "NameError"
    assert (await in_process_caller.run("area(2)"))["error"]["type"] == "NameError"


BAD_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"code": "1", "timeout": 3}, 'takes no argument "timeout". Did you mean timeout_seconds?'),
    ({"code": "1", "zzz": 3}, 'takes no argument "zzz". It takes code, context_vars'),
    ({"code": "1", "isolation": "none"}, "There is no isolation 'none'. Give one of auto, restricted"),
    ({"code": "1", "isolation": "process"}, "not allowed here: ALLOWED_ISOLATION is restricted,container"),
    ({}, "needs the argument code. Give it"),
    ({"code": 5}, 'The argument code of execute_code cannot be 5. Its schema is {"type": "string"}'),
    ({"code": None}, "The argument code of execute_code cannot be null"),
    ({"code": "1", "timeout_seconds": "soon"}, 'cannot be "soon". Its schema is {"type": "number", "default": 30}'),
    ({"code": "1", "timeout_seconds": True}, "cannot be true"),
    ({"code": "1", "memory_mb": 1.5}, "cannot be 1.5"),
    ({"code": "1", "context_vars": [1]}, "context_vars of execute_code cannot be [1]"),
    ({"code": "1", "session": 7}, "cannot be 7"),
    (
        {"code": "1", "timeout_seconds": 121},
        "timeout_seconds is 121, which is not allowed. Give more than 0 and at most 120",
    ),
    ({"code": "1", "timeout_seconds": 0}, "timeout_seconds is 0, which is not allowed"),
    ({"code": "1", "memory_mb": 2001}, "memory_mb is 2001, which is not allowed"),
    ({"code": "1", "session": "../x y"}, "The session's name cannot be used"),
]


async def test_a_bad_argument_is_a_tool_error_that_says_what_to_give(in_process_caller: Caller) -> None:
    for arguments, said in BAD_ARGUMENTS:
        answer = await in_process_caller.call("execute_code", **arguments)
        assert answer.is_error, arguments
        assert answer.structured_content is None, arguments
        text = answer.content[0].text  # type: ignore[union-attr]
        assert said in text
        assert "Traceback" not in text
        assert "pydantic" not in text


async def test_an_unknown_tool_is_an_error_not_a_crash(caller: Caller) -> None:
    text = await caller.refusal("no_such_tool")
    assert text.startswith('There is no tool "no_such_tool". Those that there are: execute_code, ')


async def test_workspace_files_are_written_read_listed_and_deleted(in_process_caller: Caller) -> None:
    written = await in_process_caller.call("write_workspace_file", filename="data/notes.txt", content="grüße\nzwei\n")
    assert written.structured_content == {"filename": "data/notes.txt", "size": 13}
    read = await in_process_caller.call("read_workspace_file", filename="data/notes.txt", offset=0, limit=5)
    assert read.structured_content == {
        "filename": "data/notes.txt", "content": "grüße", "size": 13, "truncated": True,
    }  # fmt: skip
    listed = await in_process_caller.told("list_workspace_files", subpath="data")
    assert listed.keys() == {"path", "files", "count", "used_bytes", "quota_bytes"}
    assert [(file["name"], file["size"]) for file in listed["files"]] == [("data/notes.txt", 13)]
    deleted = await in_process_caller.call("delete_workspace_file", filename="data/notes.txt")
    assert deleted.structured_content == {"filename": "data/notes.txt", "deleted": True}
    missing = await in_process_caller.call("read_workspace_file", filename="data/notes.txt")
    assert missing.is_error


async def test_the_text_of_a_file_says_what_follows_until_nothing_does(in_process_caller: Caller) -> None:
    whole = "".join(f"line {number}\n" for number in range(2000))
    await in_process_caller.call("write_workspace_file", filename="long.txt", content=whole)
    arguments: dict[str, Any] = {"filename": "long.txt", "limit": 10_000}
    seen = ""
    while True:
        text = (await in_process_caller.call("read_workspace_file", **arguments)).content[0].text  # type: ignore[union-attr]
        shown, _, following = text.partition(f"\n… [more follows, of {len(whole)} bytes in all: read_workspace_file(")
        seen += shown
        if not following:
            break
        arguments = eval(f"dict({following.removesuffix(')]')})")
    assert seen == whole


async def test_binary_files_travel_as_base64(in_process_caller: Caller) -> None:
    await in_process_caller.call("write_workspace_file", filename="b.bin", content="AP8Q", encoding="base64")
    read = await in_process_caller.told("read_workspace_file", filename="b.bin", encoding="base64")
    assert (read["content"], read["size"]) == ("AP8Q", 3)
    assert (await in_process_caller.run("list(read_file('b.bin', encoding=None))"))["result"] == [0, 255, 16]
    wrong = await in_process_caller.call("write_workspace_file", filename="b.bin", content="x", encoding="latin-1")
    assert wrong.is_error


async def test_names_outside_the_workspace_are_refused(in_process_caller: Caller) -> None:
    tools = {"read_workspace_file": {}, "write_workspace_file": {"content": "x"}, "delete_workspace_file": {}}
    for filename in ("../outside.txt", "/etc/hostname", "a/../../b", ""):
        for tool, more in tools.items():
            answer = await in_process_caller.call(tool, filename=filename, **more)
            assert answer.is_error, (tool, filename)
            assert str(in_process_caller.home) not in answer.content[0].text  # type: ignore[union-attr]
    assert not (in_process_caller.home.parent / "outside.txt").exists()


async def test_code_reaches_the_same_files_and_the_report_names_those_it_wrote(in_process_caller: Caller) -> None:
    await in_process_caller.call("write_workspace_file", filename="in.csv", content="1\n2\n3\n")
    code = "total = sum(int(line) for line in read_file('in.csv').split())\nwrite_file('out.txt', str(total))\ntotal"
    report = await in_process_caller.run(code)
    assert report["result"] == 6
    assert report["files"] == [{"name": "out.txt", "size": 1}]
    read = await in_process_caller.told("read_workspace_file", filename="out.txt")
    assert read["content"] == "6"
    assert "files" not in await in_process_caller.run("write_file('gone.txt', 'x')\ndelete_file('gone.txt')")


async def test_huge_output_is_cut_and_the_whole_can_be_read_back(in_process_caller: Caller) -> None:
    report = await in_process_caller.run("for n in range(20_000):\n    print('line', n)\nlist(range(30_000))")
    assert report["success"]
    cut = report["truncated"]
    assert len(report["output"]) + len(json.dumps(report["result"])) < 60_000
    whole = "".join(f"line {n}\n" for n in range(20_000))
    assert cut["output"]["total"] > cut["output"]["shown"]
    name = f".runs/{report['run_id']}/output.txt"
    assert name in cut["output"]["read_with"]
    read = await in_process_caller.told("read_workspace_file", filename=name, limit=len(whole))
    assert read["content"] == whole
    again = await in_process_caller.run(f"len(json.loads(read_file('.runs/{report['run_id']}/result.json')))")
    assert again["result"] == 30_000


async def test_the_code_of_every_run_is_kept_under_its_id_and_listed_as_soon_as_it_is_answered(
    in_process_caller: Caller,
) -> None:
    told = {(await in_process_caller.run(f"{number}"))["run_id"]: f"{number}" for number in range(5)}
    listing = await in_process_caller.told("list_workspace_files", subpath=".runs")
    assert {f".runs/{run_id}/code.py" for run_id in told} <= {file["name"] for file in listing["files"]}
    assert sorted(told) == list(told)
    for run_id, code in told.items():
        read = await in_process_caller.told("read_workspace_file", filename=f".runs/{run_id}/code.py")
        assert read["content"] == code


async def test_hard_values_survive_the_way_to_the_client(caller: Caller) -> None:
    code = """[10**50, "\\ud800", "\\x00", float("nan"), {1: {2, 1}}, b"ab", "é😀"]"""
    report = await caller.run(code)
    assert report["success"], report
    assert report["result"][0] == 10**50
    assert report["result"][3] is None
    assert report["result"][6] == "é😀"
    deep = await caller.run("x = []\nfor _ in range(500):\n    x = [x]\nprint('\\udcff')\nx")
    assert deep["success"], deep


async def test_a_call_that_the_client_calls_off_is_killed(caller: Caller, request: pytest.FixtureRequest) -> None:
    before = await caller.told("get_execution_stats")
    # Over HTTP the protocol of 2026 says it by closing the stream. A stream that broke looks the same, and its run goes
    # on to be joined: the bounds of the run end it.
    is_like_a_break = request.node.callspec.params["caller"] == "http-modern"
    status, seconds = ("timeout", 1) if is_like_a_break else ("cancelled", 40)
    with anyio.move_on_after(0.5) as scope:
        await caller.run("while True:\n    pass", timeout_seconds=seconds)
    assert scope.cancelled_caught

    async def ended() -> bool:
        now = await caller.told("get_execution_stats")
        return bool(now["runs"]["by_status"][status] > before["runs"]["by_status"][status])

    await until(ended)
    assert (await caller.told("get_execution_stats"))["pool"]["running"] == 0


async def test_progress_of_code_reaches_the_client_that_asked_for_it(caller: Caller) -> None:
    code = "progress(0.25, 'a quarter')\nawait asyncio.sleep(0.3)\nprogress(1, 'done')\nresult = 'ended'"
    report, seen = await run_and_hear(caller, code)
    assert report["result"] == "ended"
    await until(lambda: len(seen) >= 2)
    assert seen == [(0.25, 1.0, "a quarter"), (1.0, 1.0, "done")]
    assert (await caller.run(code))["result"] == "ended"  # nobody asked


async def test_calls_at_once_do_not_wait_for_each_other(caller: Caller) -> None:
    waits = """
while not told:
    try:
        told = read_file("told.txt")
    except FileNotFoundError:
        await asyncio.sleep(0.05)
told
"""
    heard: list[str] = []

    async def listen() -> None:
        heard.append((await caller.run(waits, context_vars={"told": ""}))["result"])

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await caller.run("write_file('told.txt', 'by a call that did not wait')\nNone")
    assert heard == ["by a call that did not wait"]
    await caller.call("delete_workspace_file", filename="told.txt")


async def test_the_statistics_tell_limits_layers_runs_and_use(in_process_caller: Caller) -> None:
    await in_process_caller.run("1")
    told = await in_process_caller.told("get_execution_stats")
    assert told["limits"]["max_timeout_seconds"] == 120
    assert "language" in told["isolation"]["layers"]
    assert told["isolation"]["required_level"] == "limits"
    assert told["isolation"]["level"] in {"limits", "landlock", "kernel"}
    assert told["runs"]["by_status"]["ok"] >= 1
    assert told["runs"]["latency_ms"]["p50"] <= told["runs"]["latency_ms"]["max"]
    assert told["server"]["memory_mb"] > 1
    assert told["workers"]["processes"] >= 1
    assert told["workspace"]["quota_bytes"] == 1_000_000_000
    assert told["pool"]["workers_made"] >= 1


async def test_a_client_is_told_what_matters_and_what_code_can_use_and_no_capability_that_is_empty(
    caller: Caller,
) -> None:
    start = (caller.client.instructions or "")[:512]
    for word in ("execute_code", "search_tools", "tools.<", "result", "write_file", "read_file", "session", "network"):
        assert word in start
    assert start.endswith((". ", "\n")) or "fresh" in start
    resources = (await caller.client.list_resources()).resources
    assert [str(each.uri) for each in resources] == ["resource://sealab/capabilities"]
    contents = (await caller.client.read_resource("resource://sealab/capabilities")).contents
    text = contents[0].text  # type: ignore[union-attr]
    for word in ("statistics", "read_file", "aggregate_stats", "session", "at most 120"):
        assert word in text
    capabilities = caller.client.server_capabilities
    assert capabilities.logging is None
    assert capabilities.completions is None
    assert (await caller.client.list_tools()).tools
    assert (await caller.client.list_resources()).resources
    prompts = {each.name: each for each in (await caller.client.list_prompts()).prompts}
    assert {name: [each.name for each in prompt.arguments or ()] for name, prompt in prompts.items()} == {
        "program": ["task"],
        "skill": ["name"],
    }
    asked = await caller.client.get_prompt("program", {"task": "count {commits}"})
    text = asked.messages[0].content
    assert text.type == "text"
    assert text.text.startswith("Do this with one program in sealab: count {commits}\n")


async def test_a_text_shows_fractions_of_milliseconds_where_they_count(in_process_caller: Caller) -> None:
    slow = await in_process_caller.call("execute_code", code="import time\ntime.sleep(0.02)")
    assert re.fullmatch(r"ok in \d{2,} ms \(run \w{26}\)\nresult: null", slow.content[0].text)  # type: ignore[union-attr]
    assert slow.structured_content is not None
    assert isinstance(slow.structured_content["execution_time_ms"], float)
