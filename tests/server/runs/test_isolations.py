"""What the operator sets is what callers get; which isolation a run gets, and where a session lives."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from sealab.sandbox.job import Isolation
from sealab.server.base.home import find_home
from sealab.server.base.settings import Settings
from sealab.server.use_cases.managed_python import full_python

from ..command_line import run, sealab
from ..conftest import Caller, in_process_server, in_this_process


async def choices(caller: Caller) -> object:
    (tool,) = (tool for tool in (await caller.client.list_tools()).tools if tool.name == "execute_code")
    schema = tool.input_schema["properties"]["isolation"]
    assert (schema["type"], schema["default"]) == ("string", "auto")
    return schema["enum"]


only_restricted = in_process_server({"SEALAB_ALLOWED_ISOLATION": "restricted"})


@pytest.mark.parametrize("asked", ["process", "container"])
async def test_an_isolation_that_is_not_allowed_is_refused_by_the_settings_name(
    only_restricted: Caller, asked: str
) -> None:
    said = await only_restricted.refusal("execute_code", code="1", isolation=asked)
    assert f"isolation='{asked}' is not allowed here: ALLOWED_ISOLATION is restricted." in said
    assert f"ask the operator to add {asked}" in said


async def test_the_schema_shows_only_what_the_operator_allows_and_auto_is_restricted(only_restricted: Caller) -> None:
    assert await choices(only_restricted) == ["auto", "restricted"]
    assert (await only_restricted.run("1"))["isolation"] == "restricted"
    assert (await only_restricted.run("1", isolation="restricted"))["isolation"] == "restricted"


def test_the_command_line_refuses_what_is_not_allowed_with_3_and_what_there_is_not_with_2(tmp_path: Path) -> None:
    assert "ALLOWED_ISOLATION" in run(tmp_path, "1", "--isolation", "process").refusal(3)
    assert run(tmp_path, "1", "--isolation", "none").returncode == 2
    assert run(tmp_path, "1", "--isolation", "restricted").returncode == 0


async def test_a_share_of_the_processors_is_told_among_the_layers_of_a_run_and_the_limits(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_CPUS": "1"}) as caller:
        assert "cpus" in (await caller.run("1"))["layers"]
        told = await caller.told("get_execution_stats")
        assert told["limits"]["cpus"] == 1
        assert "cpus" in told["isolation"]["layers"]


with_process = in_process_server({"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_WORKERS_SPARE": "1"})


async def test_full_python_runs_where_it_is_allowed_and_only_when_asked_for(with_process: Caller) -> None:
    assert await choices(with_process) == ["auto", "restricted", "process"]
    code = "import ctypes\nctypes.__name__"
    refused = await with_process.run(code)
    assert (refused["status"], refused["isolation"]) == ("refused", "restricted")
    assert 'Or ask for isolation="process".' in refused["error"]["hint"]
    report = await with_process.run(code, isolation="process")
    assert (report["result"], report["isolation"]) == ("ctypes", "process")
    assert "language" not in report.get("layers", ())


async def test_the_modules_of_full_python_are_looked_for_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def modules_in(_: Path) -> tuple[str, ...]:
        threads.append(threading.current_thread())
        return ("found",)

    monkeypatch.setattr(full_python, "modules_in", modules_in)
    monkeypatch.setattr(full_python, "_modules_of", full_python._modules_of.__wrapped__)
    settings = Settings(allowed_isolation=(Isolation.RESTRICTED, Isolation.PROCESS))
    interpreter = full_python.FullPythonInterpreter(settings, find_home(str(tmp_path), {}))
    await interpreter.know_modules()
    assert interpreter.modules() == {"found"}
    assert threads
    assert threading.main_thread() not in threads


async def test_helpers_reach_the_workspace_that_full_python_also_sees(with_process: Caller) -> None:
    code = "write_file('a.txt', 'text')\nopen('b.txt', 'w').write(open('/workspace/a.txt').read() * 2)\nkeep('b.txt')"
    report = await with_process.run(code, isolation="process")
    assert report["result"] == {"filename": "b.txt", "size": 8}
    assert report["files"] == {"new": [{"name": "a.txt", "size": 4}, {"name": "b.txt", "size": 8}]}
    assert (await with_process.run("read_file('b.txt')"))["result"] == "texttext"


async def test_a_session_belongs_to_the_isolation_it_began_in(with_process: Caller) -> None:
    await with_process.run("import ctypes\nkept = 5", session="full", isolation="process")
    assert (await with_process.run("kept", session="full"))["isolation"] == "process"
    answer = await with_process.refusal("execute_code", code="kept", session="full", isolation="restricted")
    assert "runs at the isolation process, and cannot go on at restricted" in answer
    await with_process.run("kept = 6", session="tight")
    assert (await with_process.call("execute_code", code="1", session="tight", isolation="process")).is_error
    assert (await with_process.run("kept", session="tight"))["result"] == 6


async def test_the_statistics_tell_about_each_isolation_that_was_used(with_process: Caller) -> None:
    await with_process.run("1", isolation="process")
    told = await with_process.told("get_execution_stats")
    isolation = told["isolation"]
    assert isolation["available"] == ["restricted", "process"]
    assert "language" in isolation["used"]["restricted"]["layers"]
    assert "language" not in isolation["used"]["process"]["layers"]
    assert isolation["missing"] == {}


def test_the_command_line_runs_full_python_and_the_doctor_tries_it(tmp_path: Path) -> None:
    allowed = {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}
    ended = run(tmp_path, "import os\nos.write(1, b'raw')\n6 * 7", "--isolation", "process", **allowed)
    assert (ended.returncode, ended.stdout) == (0, "raw\n42\n"), ended.stderr
    told = json.loads(sealab("doctor", "--json", "--home", str(tmp_path), **allowed).stdout)
    assert told["ok"]
    assert [(each["isolation"], each["offered"], each["problem"]) for each in told["isolations"]] == [
        ("restricted", True, None),
        ("process", True, None),
    ]


def test_full_python_alone_can_be_allowed_and_is_then_what_auto_means(tmp_path: Path) -> None:
    ended = run(tmp_path, "import ctypes\nctypes.__name__", SEALAB_ALLOWED_ISOLATION="process")
    assert (ended.returncode, ended.stdout) == (0, '"ctypes"\n'), ended.stderr


@pytest.mark.parametrize(
    ("python", "said"),
    [("/nowhere/python", "cannot be run"), ("python3", "must be an absolute path"), ("/bin/echo", "is too old")],
)
def test_a_process_python_that_cannot_be_used_stops_the_start(tmp_path: Path, python: str, said: str) -> None:
    refusal = run(tmp_path, "1", SEALAB_ALLOWED_ISOLATION="restricted,process", SEALAB_PROCESS_PYTHON=python).refusal()
    assert f"PROCESS_PYTHON is {python}" in refusal
    assert said in refusal


async def test_the_capabilities_tell_of_full_python_only_where_it_is_offered(
    with_process: Caller, only_restricted: Caller
) -> None:
    async def told(caller: Caller) -> str:
        (contents,) = (await caller.client.read_resource("resource://sealab/capabilities")).contents
        return contents.text  # type: ignore[union-attr]

    assert 'Full Python (isolation="process"): ' in await told(with_process)
    assert "Full Python" not in await told(only_restricted)


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
