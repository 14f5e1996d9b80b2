"""What the operator sets is what callers get."""

from __future__ import annotations

from pathlib import Path

from ..conftest import Caller, in_process_server, in_this_process

TIGHT = {
    "SEALAB_MAX_TIMEOUT_SECONDS": "20",
    "SEALAB_MAX_MEMORY_MB": "100",
    "SEALAB_SESSIONS_MAX": "1",
    "SEALAB_TOOL_CALLS_MAX": "3",
    "SEALAB_OUTPUT_MAX_CHARS": "300",
    "SEALAB_RUNS_KEPT": "2",
    "SEALAB_WORKERS_SPARE": "0",
}


tight = in_process_server(TIGHT, lambda home: (home / "sealab.toml").write_text("WORKSPACE_QUOTA_MB = 1\n"))


async def test_the_defaults_in_the_schema_are_the_operators_and_more_than_the_maximum_is_refused_not_clamped(
    tight: Caller,
) -> None:
    tool = next(tool for tool in (await tight.client.list_tools()).tools if tool.name == "execute_code")
    assert tool.input_schema["properties"]["timeout_seconds"]["default"] == 20
    assert tool.input_schema["properties"]["memory_mb"]["default"] == 100
    assert "at most 20" in await tight.refusal("execute_code", code="1", timeout_seconds=20.5)
    assert "at most 100" in await tight.refusal("execute_code", code="1", memory_mb=101)


async def test_as_many_sessions_as_allowed_and_no_more(tight: Caller) -> None:
    assert (await tight.run("x = 1", session="one"))["success"]
    assert (await tight.run("x = 2", session="two"))["success"]
    assert (await tight.run("[each['name'] for each in list_sessions()]"))["result"] == ["two"]
    told = await tight.run("x", session="one")
    assert told["result"] == 1
    assert told["session"]["rebuilt"]


async def test_the_budget_of_host_calls_is_per_run(tight: Caller) -> None:
    report = await tight.run("for _ in range(4):\n    list_skills()")
    assert report["status"] == "error"
    assert "more than 3 calls" in report["error"]["message"]
    assert (await tight.run("list_skills()"))["success"]


async def test_the_quota_holds_for_tools_and_for_code_alike(tight: Caller) -> None:
    assert "workspace is full" in await tight.refusal("write_workspace_file", filename="big", content="x" * 1_000_001)
    report = await tight.run("write_file('big', 'x' * 1_000_001)")
    assert report["error"]["type"] == "OSError"


async def test_only_the_last_runs_are_kept(tight: Caller) -> None:
    ids = [(await tight.run(str(number)))["run_id"] for number in range(3)]
    kept = await tight.told("list_workspace_files", subpath=".runs")
    assert [file["name"] for file in kept["files"]] == [f".runs/{run_id}/code.py" for run_id in ids[1:]]


async def test_the_code_surface_shows_one_tool_that_teaches_the_helpers(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_SURFACE": "code"}) as caller:
        (tool,) = (await caller.client.list_tools()).tools
        assert tool.name == "execute_code"
        for helper in ("read_file", "write_file", "list_files", "aggregate_stats", "session"):
            assert helper in (tool.description or "")
        assert (await caller.call("write_workspace_file", filename="a", content="b")).is_error
        assert (await caller.run("write_file('a', 'b')\nread_file('a')"))["result"] == "b"
