"""Which isolation a run gets: what the operator allows, what the caller asks for, and where a session lives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    refused = run(tmp_path, "1", "--isolation", "process")
    assert refused.returncode == 3
    assert "ALLOWED_ISOLATION" in refused.stderr
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
    ended = run(tmp_path, "1", SEALAB_ALLOWED_ISOLATION="restricted,process", SEALAB_PROCESS_PYTHON=python)
    assert ended.returncode == 2
    assert f"PROCESS_PYTHON is {python}" in ended.stderr
    assert said in ended.stderr


async def test_the_capabilities_tell_of_full_python_only_where_it_is_offered(
    with_process: Caller, only_restricted: Caller
) -> None:
    async def told(caller: Caller) -> str:
        (contents,) = (await caller.client.read_resource("resource://sealab/capabilities")).contents
        return contents.text  # type: ignore[union-attr]

    assert 'Full Python (isolation="process"): ' in await told(with_process)
    assert "Full Python" not in await told(only_restricted)
