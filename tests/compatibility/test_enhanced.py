"""What "MCP Code Execution, Enhanced Edition" promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ..server.command_line import sealab
from ..server.conftest import Caller, environment, in_this_process
from ..server.upstream_tools.test_registry import ONE_SPARE, configure, upstream
from .conftest import FULL_PYTHON, done, echoing, listening, read, result

ROOT = Path(__file__).parents[2]
BOTH = pytest.mark.parametrize("isolation", ["restricted", "process"])
SCRIPT = '''
"""
SCRIPT: Adding
DESCRIPTION: Adds two numbers by an upstream server.
CLI ARGUMENTS:
    --left     The first number (required)
    --right    The second number (default: 1)
"""
import argparse
import asyncio
import sys

from runtime.mcp_client import call_mcp_tool


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--left", type=int, required=True, help="the first number")
    parser.add_argument("--right", type=int, default=1)
    parser.add_argument("--unit", choices=["m", "km"], default="m")
    parser.add_argument("--loud", action="store_true")
    args_to_parse = [arg for arg in sys.argv[1:] if not arg.endswith(".py")]
    return parser.parse_args(args_to_parse)


async def main():
    args = parse_args()
    total = await call_mcp_tool("up__add", {"left": args.left, "right": args.right})
    print(f"{total} {args.unit}{'!' if args.loud else ''}")
    return total


if __name__ == "__main__":
    asyncio.run(main())
'''.lstrip()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an upstream server, and the script as a skill of the name `adding`."""
    home = configure(tmp_path_factory.mktemp("home"), up=upstream())
    (home / "adding.py").write_text(SCRIPT)
    done(home, "skills", "import", str(home / "adding.py"))
    return home


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = configure(
        tmp_path_factory.mktemp("called"),
        up=upstream(),
        broken={"command": "/no/such/command"},
        off=upstream(disabled=True),
    )
    async with in_this_process(home, ONE_SPARE | FULL_PYTHON) as caller:
        yield caller


# Scripts and skills


@BOTH
def test_argparse_scripts_run_and_import(home: Path, isolation: str) -> None:
    words = ["--left", "4", "--unit", "km", "--loud", "--isolation", isolation]
    assert done(home, "skills", "run", "adding", *words, **FULL_PYTHON).startswith("5 km!\n")
    code = "from skills import adding\nawait adding(left=1, right=1)"
    ended = done(home, "run", "-", "--isolation", isolation, stdin=code, **FULL_PYTHON)
    assert ended.splitlines()[-1] == "2"


@BOTH
def test_arguments_to_a_script_file(home: Path, isolation: str) -> None:
    script = ["run", str(home / "adding.py"), "--home", str(home), "--isolation", isolation]
    ended = sealab(*script, "--", "--left", "20", "--right", "3", **FULL_PYTHON)
    assert (ended.returncode, ended.stdout) == (0, "23 m\n"), ended.stderr
    assert sealab(*script, "--", "--right", "3", **FULL_PYTHON).returncode == 1, "a required option is missing"


def test_read_the_docs_of_a_script(home: Path) -> None:
    told = done(home, "skills", "run", "adding", "--help")
    assert "Adds two numbers by an upstream server." in told
    assert "--left INTEGER" in told
    assert "the first number (required)" in told
    assert "{m,km}" in told


def test_workflow_py_as_a_link(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills" / "linked-adding"
    folder.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "linked_adding.py").write_text(SCRIPT)
    (folder / "SKILL.md").write_text("---\nname: linked-adding\ndescription: Add.\n---\n")
    (folder / "workflow.py").symlink_to("../../../scripts/linked_adding.py")
    done(home, "skills", "import", str(tmp_path))
    assert done(home, "skills", "run", "linked_adding", "--left", "1").startswith("2 m\n")


def test_skill_md_gives_a_command_that_runs(home: Path, tmp_path: Path) -> None:
    done(home, "skills", "export", str(tmp_path), "adding")
    [line] = [each for each in (tmp_path / "adding/SKILL.md").read_text().splitlines() if "sealab skills run" in each]
    assert line.split()[:5] == ["sealab", "skills", "run", "adding", "--left"]
    words = line.replace("LEFT", "7").partition(" [")[0].split()[1:]
    assert done(home, *words).startswith("8 m\n")


def test_an_exported_script_still_reads_its_own_options(home: Path, tmp_path: Path) -> None:
    done(home, "skills", "export", str(tmp_path), "adding")
    command = [str(tmp_path / "adding/scripts/adding.py"), "--", "--left", "1"]
    ended = sealab("run", "--home", str(home), *command)
    assert ended.stdout == "2 m\n", ended.stderr


@BOTH
async def test_async_main_asyncio_run_and_main_guard(caller: Caller, isolation: str) -> None:
    code = """
import asyncio
from runtime.mcp_client import call_mcp_tool

async def main():
    result = await call_mcp_tool("up__people", {"maxCount": 3})
    print(f"Fetched {len(result['people'])} people")
    return result

if __name__ == "__main__":
    asyncio.run(main())
"""
    report = await caller.run(code, isolation=isolation)
    assert report["output"] == "Fetched 3 people\n", report


@BOTH
async def test_import_of_call_mcp_tool(caller: Caller, isolation: str) -> None:
    assert await result(caller, "await call_tool('up__add', {'left': 1})", isolation=isolation) == 2
    for line in ("from runtime.mcp_client import call_mcp_tool", "import runtime.mcp_client", ""):
        call = "runtime.mcp_client.call_mcp_tool" if line.startswith("import") else "call_mcp_tool"
        code = f"{line}\nawait {call}('up__add', {{'left': 2, 'right': 2}})"
        assert await result(caller, code, isolation=isolation) == 4


# Servers


def test_one_client_for_all_transports_with_env_and_headers(tmp_path: Path) -> None:
    with listening("sse", tmp_path) as sse, listening("http", tmp_path) as http:
        sent = {"headers": {"x-api-key": "k-2"}}
        home = configure(tmp_path, a={"url": sse, **sent}, b={"url": http, **sent}, c=echoing(env={"API_KEY": "k-1"}))
        listed = read(done(home, "servers", "list", "--json"))["servers"]
        assert [each["type"] for each in listed] == ["sse", "http", "stdio"], "the transport is detected"
        code = (
            "[await tools[name].header(name='x-api-key') for name in 'ab'] + [await tools.c.variable(name='API_KEY')]"
        )
        assert read(done(home, "run", "-", stdin=code)) == ["k-2", "k-2", "k-1"]


def _project(folder: Path) -> Path:
    """A project with an `mcp_config.json` as the enhanced edition has it."""
    folder.mkdir()
    document = {"mcpServers": {"up": upstream(), "off": upstream(disabled=True)}}
    (folder / "mcp_config.json").write_text(json.dumps(document))
    return folder


def _imported(home: Path, project: Path) -> Any:
    return read(done(home, "servers", "import", "--from", "mcp", "--project", str(project), "--json"))


def test_mcp_config_json_is_read(tmp_path: Path) -> None:
    told = _imported(tmp_path / "home", _project(tmp_path / "project"))
    assert told["added"] == ["up", "off"]
    listed = read(done(tmp_path / "home", "servers", "list", "--json"))["servers"]
    assert [(each["name"], each["disabled"]) for each in listed] == [("up", False), ("off", True)]
    assert done(tmp_path / "home", "run", "-", stdin="await tools.up.add(left=1)") == "2\n"


# Typed wrappers


def _generated(home: Path, folder: Path, *arguments: str) -> Path:
    done(home, "tools", "generate", str(folder), *arguments)
    return folder


def _python(home: Path, folder: Path, code: str) -> str:
    """Run a program that imports the wrappers, as their user does."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder.parent,
        env=environment(SEALAB_HOME=str(home)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_pydantic_models_in_wrappers(home: Path, tmp_path: Path) -> None:
    folder = _generated(home, tmp_path / "servers", "--style", "pydantic")
    code = """
import asyncio
from pydantic import BaseModel, ValidationError
from servers.up import AddInput, add

assert issubclass(AddInput, BaseModel)
try:
    asyncio.run(add(left="many"))
except ValidationError:
    print(asyncio.run(add(left=2, right=3)))
"""
    assert _python(home, folder, code) == "5\n"


@BOTH
async def test_wrappers_importable_from_agents_code(caller: Caller, isolation: str) -> None:
    for code in (
        "from servers.up import add\nawait add(left=1)",
        "from servers.up.add import add, AddInput\nawait add(AddInput(left=1))",
        "from tools.up import add\nawait add(left=1)",
        "import servers\n2 if 'up' in dir(servers) else 0",
    ):
        assert await result(caller, code, isolation=isolation) == 2


# Discovery of schemas


def _discovered(home: Path, folder: Path, **tools: Any) -> tuple[int, list[dict[str, Any]]]:
    (folder / "discovery_config.json").write_text(json.dumps(tools))
    ended = sealab("tools", "learn", "--from", str(folder / "discovery_config.json"), "--json", "--home", str(home))
    return ended.returncode, read(ended.stdout)["tools"]


def test_discovery_over_discovery_config_json(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "discovery_config.json"
    done(home, "tools", "learn", "--propose", str(file))
    proposed = read(file.read_text())
    assert proposed["up__add"] == {"left": 1}
    assert "up__append" not in proposed, "it writes"
    assert sealab("tools", "learn", "--propose", str(file), "--home", str(home)).returncode == 2, "it is there"
    code, [shaped, plain] = _discovered(home, tmp_path, up__as_json_text={"size": 3}, up__add={"left": 1})
    assert (code, shaped["ok"], plain["ok"]) == (0, True, True)
    assert '{"value": str}' in shaped["signature"]
    folder = _generated(home, tmp_path / "servers")
    assert "value: str" in (folder / "up" / "as_json_text.py").read_text()
    code, [told] = _discovered(home, tmp_path, up__append={"path": str(tmp_path / "never"), "line": "x"})
    assert (code, told["ok"]) == (1, False)
    assert "read-only" in told["problem"]
    assert not (tmp_path / "never").exists()


def test_a_script_runs_with_arguments_and_always_in_the_sandbox(home: Path) -> None:
    env = {"SEALAB_HOME": str(home)}
    assert sealab("run", str(home / "adding.py"), "--", "--left", "1", **env).stdout == "2 m\n"
    assert sealab("run", "-", stdin="import socket\n", **env).returncode == 3


# The run time


# Documents


def test_figures_can_be_reproduced() -> None:
    targets = (ROOT / "Makefile").read_text()
    assert "tests/benchmarks/tools_tokens.py" in targets
    assert "tests/benchmarks/skills_tokens.py" in targets


def test_agents_md(home: Path) -> None:
    text = (ROOT / "docs" / "AGENTS.md").read_text()
    programs = [each.partition("```")[0] for each in text.split("```python\n")[1:]]
    assert programs
    for program in programs:
        done(home, "run", "-", stdin=program)


@pytest.mark.parametrize("page", ["architecture.md", "tools.md", "skills.md", "sandbox.md", "privacy.md", "http.md"])
def test_guides(page: str) -> None:
    assert (ROOT / "docs" / page).stat().st_size > 1000


def test_strict_types_lint_and_tests() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert "strict = true" in project
    assert 'requires-python = ">=3.11' in project
    for version in ("3.11", "3.12", "3.13"):
        assert f"Python :: {version}" in project
