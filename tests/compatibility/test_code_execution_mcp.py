"""What `code-execution-mcp` promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ..server.conftest import Caller, in_this_process
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


def test_parameters_for_input_schema(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tools" / "security").mkdir(parents=True)
    odd = {key: value for key, value in SCANNER.items() if key != "parameters"} | {"args": {"url": "string"}}
    for name, definition in (("good", SCANNER), ("odd", odd)):
        (tmp_path / "tools" / "security" / f"{name}.json").write_text(json.dumps(definition | {"name": name}))
    found = read(done(tmp_path, "tools", "search", "vulnerability", "--json"))["tools"]
    assert [each["name"] for each in found] == ["good"]
    assert "url: str" in done(tmp_path, "tools", "show", "good")
    assert "odd has no input_schema, but args" in caplog.text


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


def test_example_registry(tmp_path: Path) -> None:
    done(tmp_path, "tools", "examples")
    counted = read(done(tmp_path, "tools", "categories", "--json"))["categories"]
    assert {"security", "memory"} <= set(counted)
    shown = done(tmp_path, "tools", "show", "web_vuln_scanner")
    assert "url: str" in shown
    (tmp_path / "tools" / "memory" / "recall.json").write_text("{}")
    done(tmp_path, "tools", "examples")
    assert (tmp_path / "tools" / "memory" / "recall.json").read_text() == "{}"


async def test_modules_need_no_import_and_personal_data_is_hidden_and_restored(caller: Caller) -> None:
    code = "[json.dumps(1), re.findall('a', 'aa'), math.floor(1.5), datetime.date(2026, 1, 1).year]"
    assert await result(caller, code) == ["1", ["a", "a"], 1, 2026]
    hidden = await told(caller, "sanitize_pii", text="Contact john@example.com at 212-555-0123")
    assert hidden["sanitized_text"].startswith("Contact [EMAIL_")
    assert "[PHONE_" in hidden["sanitized_text"]
    restored = await told(caller, "restore_pii", text=hidden["sanitized_text"])
    assert restored["restored_text"] == "Contact john@example.com at 212-555-0123"
    assert await result(caller, "restore_pii(sanitize_pii('john@example.com'))") == "john@example.com"
