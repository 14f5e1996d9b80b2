"""What `code-execution-mcp` promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from ..server.conftest import Caller, environment, in_this_process
from ..server.upstream_tools.test_registry import ONE_SPARE
from .conftest import FULL_PYTHON, done, read, result

BOTH = pytest.mark.parametrize("isolation", ["restricted", "process"])
SCANNER = {
    "name": "web_vuln_scanner",
    "description": "Scan a web application for vulnerabilities",
    "parameters": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    "use_cases": ["check a site"],
}
SKILL = "def filter_high_risk(vulns): return [v for v in vulns if v['severity'] in ['high', 'critical']]"


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    """A client of a server with one definition of a tool, in the category `security`."""
    home = tmp_path_factory.mktemp("home")
    (home / "tools" / "security").mkdir(parents=True)
    (home / "tools" / "security" / "web_vuln_scanner.json").write_text(json.dumps(SCANNER))
    async with in_this_process(home, ONE_SPARE | FULL_PYTHON) as caller:
        await caller.call("save_skill", name="filter_high_risk", code=SKILL, description="High and critical only")
        yield caller


async def told(caller: Caller, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await caller.call(tool, **arguments)
    assert not answer.is_error, answer
    assert answer.structured_content is not None
    return answer.structured_content


async def test_execute_code(caller: Caller) -> None:
    report = await told(caller, "execute_code", code="result = {'total': 2}")
    assert (report["success"], report["result"]) == (True, {"total": 2})


async def test_search_tools(caller: Caller) -> None:
    found = await told(caller, "search_tools", query="vulnerability", category="security", detail_level="summary")
    assert [each["name"] for each in found["tools"]] == ["web_vuln_scanner"]


async def test_get_tool_definition(caller: Caller) -> None:
    tool = await told(caller, "get_tool_definition", tool_name="web_vuln_scanner", category="security")
    assert tool["input_schema"]["required"] == ["url"]


def test_parameters_for_input_schema(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tools" / "security").mkdir(parents=True)
    odd = {key: value for key, value in SCANNER.items() if key != "parameters"} | {"args": {"url": "string"}}
    for name, definition in (("good", SCANNER), ("odd", odd)):
        (tmp_path / "tools" / "security" / f"{name}.json").write_text(json.dumps(definition | {"name": name}))
    found = read(done(tmp_path, "tools", "search", "vulnerability", "--json"))["tools"]
    assert [each["name"] for each in found] == ["good"]
    assert "url: str" in done(tmp_path, "tools", "show", "good")
    assert "odd has no input_schema, but args" in caplog.text


async def test_save_skill(caller: Caller) -> None:
    saved = await told(caller, "save_skill", name="twice", code="def twice(n: int): return 2 * n", description="Double")
    assert saved["name"] == "twice"


async def test_load_skill(caller: Caller) -> None:
    loaded = await told(caller, "load_skill", name="filter_high_risk")
    assert loaded["code"].startswith("def filter_high_risk")


async def test_list_skills(caller: Caller) -> None:
    listed = await told(caller, "list_skills")
    assert "filter_high_risk" in [each["name"] for each in listed["skills"]]


@BOTH
async def test_exec_of_load_skill(caller: Caller, isolation: str) -> None:
    await told(
        caller, "write_workspace_file", filename="scan.json", content='[{"severity": "high"}, {"severity": "low"}]'
    )
    code = """
skill = load_skill("filter_high_risk")
exec(skill)
vulns = json.loads(read_file("scan.json"))
result = filter_high_risk(vulns)
"""
    assert await result(caller, code, isolation=isolation) == [{"severity": "high"}]


@BOTH
async def test_exec_of_a_skill_runs_where_it_is_called(caller: Caller, isolation: str) -> None:
    code = """
space = {}
exec(load_skill("filter_high_risk"), space)
def inside():
    exec("made = 1")
    return "made" in locals() or "made" in globals()
inside()
["filter_high_risk" in space, "filter_high_risk" in globals(), load_skill("filter_high_risk")["name"]]
"""
    assert await result(caller, code, isolation=isolation) == [True, False, "filter_high_risk"]


async def test_exec_of_what_a_skill_was_made_into_is_judged(caller: Caller) -> None:
    code = 'skill = load_skill("filter_high_risk")\nskill["code"] = "import socket"\nexec(skill)'
    report = await caller.run(code, isolation="restricted")
    assert not report["success"]


async def test_sanitize_pii(caller: Caller) -> None:
    hidden = await told(caller, "sanitize_pii", text="Contact john@example.com at 212-555-0123")
    assert "john@example.com" not in hidden["sanitized_text"]
    assert hidden["sanitized_text"].startswith("Contact [EMAIL_")
    assert "[PHONE_" in hidden["sanitized_text"]


async def test_restore_pii(caller: Caller) -> None:
    hidden = await told(caller, "sanitize_pii", text="john@example.com")
    restored = await told(caller, "restore_pii", text=hidden["sanitized_text"])
    assert restored["restored_text"] == "john@example.com"


async def test_write_workspace_file(caller: Caller) -> None:
    assert (await told(caller, "write_workspace_file", filename="a.txt", content="abc"))["size"] == 3


async def test_read_workspace_file(caller: Caller) -> None:
    await told(caller, "write_workspace_file", filename="b.txt", content="abc")
    assert (await told(caller, "read_workspace_file", filename="b.txt"))["content"] == "abc"


async def test_list_workspace_files(caller: Caller) -> None:
    await told(caller, "write_workspace_file", filename="c.txt", content="abc")
    assert "c.txt" in [each["name"] for each in (await told(caller, "list_workspace_files"))["files"]]


async def test_get_execution_stats(caller: Caller) -> None:
    assert (await told(caller, "get_execution_stats"))["limits"]


async def test_30_seconds_and_500_mb(caller: Caller) -> None:
    limits = (await told(caller, "get_execution_stats"))["limits"]
    assert (limits["timeout_seconds"], limits["memory_mb"]) == (30, 500)


@pytest.mark.parametrize(
    "code", ["__import__('socket')", "open('/etc/passwd')", "exec('import socket')", "breakpoint()"]
)
async def test_restricted_builtins(caller: Caller, code: str) -> None:
    assert not (await caller.run(code, isolation="restricted"))["success"]


async def test_safe_modules_are_preloaded(caller: Caller) -> None:
    code = "[json.dumps(1), re.findall('a', 'aa'), math.floor(1.5), datetime.date(2026, 1, 1).year]"
    assert await result(caller, code) == ["1", ["a", "a"], 1, 2026]


async def test_categories_and_definitions_of_ones_own(caller: Caller) -> None:
    categories = (await told(caller, "list_tool_categories"))["categories"]
    assert categories["security"]["tool_count"] == 1


def test_example_registry(tmp_path: Path) -> None:
    done(tmp_path, "tools", "examples")
    counted = read(done(tmp_path, "tools", "categories", "--json"))["categories"]
    assert {"security", "memory"} <= set(counted)
    shown = done(tmp_path, "tools", "show", "web_vuln_scanner")
    assert "url: str" in shown
    (tmp_path / "tools" / "memory" / "recall.json").write_text("{}")
    done(tmp_path, "tools", "examples")
    assert (tmp_path / "tools" / "memory" / "recall.json").read_text() == "{}"


async def test_large_file_example(caller: Caller) -> None:
    rows = [{"id": n, "status": "active" if n % 2 else "gone"} for n in range(10_000)]
    await told(caller, "write_workspace_file", filename="large_dataset.json", content=json.dumps(rows))
    code = """
data = json.loads(read_file("large_dataset.json"))
filtered = [d for d in data if d['status'] == 'active']
result = {'total': len(data), 'active': len(filtered), 'sample': filtered[:5]}
"""
    answer = await result(caller, code)
    assert (answer["total"], answer["active"], len(answer["sample"])) == (10_000, 5_000, 5)


async def test_pii_example(caller: Caller) -> None:
    code = "restore_pii(sanitize_pii('john@example.com'))"
    assert await result(caller, code) == "john@example.com"


async def test_compound_skills_across_sessions(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE) as first:
        await first.call("save_skill", name="double", code="def double(n): return 2 * n")
        code = "from skills import double\ndef fourfold(n): return double(double(n))"
        await first.call("save_skill", name="fourfold", code=code)
    async with in_this_process(tmp_path, ONE_SPARE) as second:
        assert await result(second, "skills.fourfold(3)") == 12


@BOTH
async def test_no_network_and_the_workspace_only(caller: Caller, isolation: str) -> None:
    network = "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', timeout=1)"
    for code in (network, "open('/etc/passwd').read()"):
        report = await caller.run(code, isolation=isolation)
        assert not report["success"] or "root:" not in str(report["result"]), report


def test_installation_by_pip() -> None:
    assert distribution("sealab").version
    command = [sys.executable, "-m", "sealab.server", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert ended.stdout.startswith("sealab ")
