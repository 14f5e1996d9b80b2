"""What "MCP Code Execution, Enhanced Edition" promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sealab.server.former_settings import of_sandbox

from ..sandbox.containers import needs_podman
from ..server.command_line import sealab
from ..server.conftest import Caller, environment, in_this_process
from ..server.upstream_tools.test_registry import ONE_SPARE, configure, upstream
from .conftest import FULL_PYTHON, done, echoing, listening, read, result

pytestmark = pytest.mark.slow

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


def test_reusable_workflows_with_cli_parameters(home: Path) -> None:
    for left in ("2", "5"):
        assert done(home, "skills", "run", "adding", "--left", left) == f"{int(left) + 1} m\n{int(left) + 1}\n"


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


def test_discover_scripts_by_listing(home: Path) -> None:
    listed = read(done(home, "skills", "list", "--json"))["skills"]
    assert "adding" in [each["name"] for each in listed]


def test_read_the_docs_of_a_script(home: Path) -> None:
    told = done(home, "skills", "run", "adding", "--help")
    assert "Adds two numbers by an upstream server." in told
    assert "--left INTEGER" in told
    assert "the first number (required)" in told
    assert "{m,km}" in told


def test_simple_fetch_template(home: Path) -> None:
    done(home, "skills", "import", "--examples")
    assert "ok" in done(home, "skills", "test", "simple_fetch")


def test_multi_tool_pipeline_template(home: Path) -> None:
    done(home, "skills", "import", "--examples")
    assert "ok" in done(home, "skills", "test", "project_changes")


def test_skills_folder_with_skill_md(home: Path, tmp_path: Path) -> None:
    done(home, "skills", "export", str(tmp_path / ".claude" / "skills"), "adding")
    head, front, _body = (tmp_path / ".claude/skills/adding/SKILL.md").read_text().split("---", 2)
    assert head == ""
    assert "name: adding" in front
    assert "description: " in front


@pytest.mark.parametrize("name", ["Bad Name", "print", "tools"])
def test_skill_name_and_description_are_validated(home: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "f.py").write_text("def f():\n    return 1\n")
    refused = sealab("skills", "save", name, str(tmp_path / "f.py"), "--home", str(home))
    assert refused.returncode == 2
    assert name in refused.stderr


def test_import_of_skills_folders(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills" / "halve-it"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: halve-it\ndescription: Halve a number.\n---\n")
    (folder / "scripts" / "halve_it.py").write_text("def halve_it(number: float) -> float:\n    return number / 2\n")
    done(home, "skills", "import", str(tmp_path))
    assert done(home, "skills", "run", "halve_it", "--number", "5") == "2.5\n"


def test_workflow_py_as_a_link(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills" / "linked-adding"
    folder.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "linked_adding.py").write_text(SCRIPT)
    (folder / "SKILL.md").write_text("---\nname: linked-adding\ndescription: Add.\n---\n")
    (folder / "workflow.py").symlink_to("../../../scripts/linked_adding.py")
    done(home, "skills", "import", str(tmp_path))
    assert done(home, "skills", "run", "linked_adding", "--left", "1").startswith("2 m\n")


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../secret.env", "../../../../outside.py"])
def test_a_link_that_leads_elsewhere_is_refused(home: Path, tmp_path: Path, target: str) -> None:
    project = tmp_path / "project"
    folder = project / ".claude" / "skills" / "leaving"
    folder.mkdir(parents=True)
    (project / "secret.env").write_text("KEY=1")
    (tmp_path / "outside.py").write_text("def leaving():\n    return 1\n")
    (folder / "SKILL.md").write_text("---\nname: leaving\ndescription: Leave.\n---\n")
    (folder / "workflow.py").symlink_to(target)
    refused = sealab("skills", "import", str(project), "--home", str(home))
    assert refused.returncode == 1
    assert "symbolic link" in refused.stderr


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


def test_progressive_disclosure_of_skills(home: Path) -> None:
    listed = done(home, "skills", "list", "--json")
    assert "parse_args" not in listed, "a list has no code"
    assert "parse_args" in done(home, "skills", "show", "adding")


def test_run_a_script_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print(6 * 7)\n")
    assert done(home, "run", str(tmp_path / "script.py")) == "42\n"


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
    for line in ("from runtime.mcp_client import call_mcp_tool", "import runtime.mcp_client", ""):
        call = "runtime.mcp_client.call_mcp_tool" if line.startswith("import") else "call_mcp_tool"
        code = f"{line}\nawait {call}('up__add', {{'left': 2, 'right': 2}})"
        assert await result(caller, code, isolation=isolation) == 4


async def test_server_tool_names_with_two_underscores(caller: Caller) -> None:
    assert await result(caller, "await call_tool('up__add', {'left': 1})") == 2


# Servers


def test_stdio_with_env(tmp_path: Path) -> None:
    home = configure(tmp_path, echo=echoing(env={"API_KEY": "k-1"}))
    assert done(home, "run", "-", stdin="await tools.echo.variable(name='API_KEY')") == '"k-1"\n'


def _with_headers(tmp_path: Path, kind: str) -> None:
    with listening(kind, tmp_path) as url:
        home = configure(tmp_path, echo={"type": kind, "url": url, "headers": {"x-api-key": "k-2"}})
        assert done(home, "run", "-", stdin="await tools.echo.header(name='x-api-key')") == '"k-2"\n'


def test_sse_with_headers(tmp_path: Path) -> None:
    _with_headers(tmp_path, "sse")


def test_http_with_headers(tmp_path: Path) -> None:
    _with_headers(tmp_path, "http")


def test_the_transport_is_detected(tmp_path: Path) -> None:
    with listening("sse", tmp_path) as sse, listening("http", tmp_path) as http:
        home = configure(tmp_path, a={"url": sse}, b={"url": http}, c=echoing())
        listed = read(done(home, "servers", "list", "--json"))["servers"]
        assert [each["type"] for each in listed] == ["sse", "http", "stdio"]


def test_one_client_for_all_transports(tmp_path: Path) -> None:
    with listening("sse", tmp_path) as sse, listening("http", tmp_path) as http:
        home = configure(tmp_path, a={"url": sse}, b={"url": http}, c=echoing())
        code = "[await tools[name].variable(name='NOWHERE') for name in 'abc']"
        assert read(done(home, "run", "-", stdin=code)) == ["", "", ""]


def _project(folder: Path, **more: Any) -> Path:
    """A project with an `mcp_config.json` as the enhanced edition has it."""
    folder.mkdir()
    document = {"mcpServers": {"up": upstream(), "off": upstream(disabled=True)}, **more}
    (folder / "mcp_config.json").write_text(json.dumps(document))
    return folder


def _imported(home: Path, project: Path) -> Any:
    return read(done(home, "servers", "import", "--from", "mcp", "--project", str(project), "--json"))


def test_mcp_config_json_is_read(tmp_path: Path) -> None:
    told = _imported(tmp_path / "home", _project(tmp_path / "project"))
    assert told["added"] == ["up", "off"]
    assert done(tmp_path / "home", "run", "-", stdin="await tools.up.add(left=1)") == "2\n"


def test_disabled_servers(tmp_path: Path) -> None:
    _imported(tmp_path / "home", _project(tmp_path / "project"))
    listed = read(done(tmp_path / "home", "servers", "list", "--json"))["servers"]
    assert [(each["name"], each["disabled"]) for each in listed] == [("up", False), ("off", True)]


SANDBOX = {
    "enabled": False,
    "runtime": "podman",
    "image": "python:3.11-slim",
    "memory_limit": "512m",
    "cpu_limit": "1.0",
    "timeout": 30,
    "max_timeout": 120,
}


def test_sandbox_block_of_mcp_config_json(tmp_path: Path) -> None:
    told = _imported(tmp_path / "home", _project(tmp_path / "project", sandbox=SANDBOX))
    said = " ".join(told["sandbox"])
    for line in (
        "CONTAINER_RUNTIME=podman",
        "MEMORY_MB=512",
        "CPUS=1.0",
        "TIMEOUT_SECONDS=30",
        "MAX_TIMEOUT_SECONDS=120",
    ):
        assert line in said
    assert "always runs in a sandbox" in said
    home = tmp_path / "home"
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {}, "sandbox": {"timeout": 5}}))
    ended = sealab("run", "-", "--home", str(home), stdin="1")
    assert "Set TIMEOUT_SECONDS=5 instead." in ended.stderr


def test_every_key_of_a_sandbox_block_is_named() -> None:
    assert len(of_sandbox(SANDBOX | {"network": "none"}, Path("mcp.json"))) == len(SANDBOX) + 1


def test_configuration_errors_are_named(tmp_path: Path) -> None:
    home = configure(tmp_path, bad={"type": "carrier-pigeon", "command": "x"})
    [bad] = read(done(home, "servers", "list", "--json"))["servers"]
    assert "bad" in bad["problem"]
    assert "type" in bad["problem"]


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


def test_typed_wrappers(home: Path, tmp_path: Path) -> None:
    folder = _generated(home, tmp_path / "servers")
    assert "async def add(*, left: int, right: int = 1) -> int:" in (folder / "up" / "add.py").read_text()


def test_barrel_exports(home: Path, tmp_path: Path) -> None:
    folder = _generated(home, tmp_path / "servers")
    code = "import asyncio\nfrom servers.up import add, people\nprint(asyncio.run(add(left=1)))"
    assert _python(home, folder, code) == "2\n"


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


def test_wrappers_with_pydantic_models_pass_strict_types(home: Path, tmp_path: Path) -> None:
    _generated(home, tmp_path / "servers", "--style", "pydantic")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "servers"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@BOTH
async def test_wrappers_importable_from_agents_code(caller: Caller, isolation: str) -> None:
    for code in (
        "from servers.up import add\nawait add(left=1)",
        "from servers.up.add import add, AddInput\nawait add(AddInput(left=1))",
        "from tools.up import add\nawait add(left=1)",
        "import servers\n2 if 'up' in dir(servers) else 0",
    ):
        assert await result(caller, code, isolation=isolation) == 2


def test_regeneration_leaves_files_of_users(home: Path, tmp_path: Path) -> None:
    folder = _generated(home, tmp_path / "servers")
    (folder / "up" / "mine.py").write_text("MINE = 1\n")
    (folder / "up" / "add.py").write_text("ALSO_MINE = 1\n")
    ended = sealab("tools", "generate", str(folder), "--home", str(home))
    assert "add.py was not made here" in ended.stderr
    assert (folder / "up" / "mine.py").read_text() == "MINE = 1\n"
    assert (folder / "up" / "add.py").read_text() == "ALSO_MINE = 1\n"


# Discovery of schemas


def test_arguments_for_discovery_are_proposed(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "discovery_config.json"
    done(home, "tools", "learn", "--propose", str(file))
    proposed = read(file.read_text())
    assert proposed["up__add"] == {"left": 1}
    assert "up__append" not in proposed, "it writes"
    assert sealab("tools", "learn", "--propose", str(file), "--home", str(home)).returncode == 2, "it is there"


def _discovered(home: Path, folder: Path, **tools: Any) -> tuple[int, list[dict[str, Any]]]:
    (folder / "discovery_config.json").write_text(json.dumps(tools))
    ended = sealab("tools", "learn", "--from", str(folder / "discovery_config.json"), "--json", "--home", str(home))
    return ended.returncode, read(ended.stdout)["tools"]


def test_discovery_over_discovery_config_json(home: Path, tmp_path: Path) -> None:
    code, told = _discovered(home, tmp_path, up__as_json_text={"size": 3}, up__add={"left": 1})
    assert (code, [each["ok"] for each in told]) == (0, [True, True])


def test_commands_of_the_enhanced_edition(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"SEALAB_HOME": str(home)}
    assert sealab("mcp-exec", str(home / "adding.py"), "--left", "1", "--sandbox", **env).stdout == "2 m\n"
    assert sealab("mcp-generate-discovery", **env).returncode == 0
    (tmp_path / "discovery_config.json").write_text('{"up__add": {"left": 1}}')
    assert sealab("mcp-discover", **env).returncode == 0
    assert sealab("mcp-generate", **env).returncode == 0
    assert (tmp_path / "servers" / "up" / "add.py").exists()


def test_safe_tools_only_are_executed(home: Path, tmp_path: Path) -> None:
    code, [told] = _discovered(home, tmp_path, up__append={"path": str(tmp_path / "never"), "line": "x"})
    assert (code, told["ok"]) == (1, False)
    assert "read-only" in told["problem"]
    assert not (tmp_path / "never").exists()


def test_discovered_types_are_merged_into_wrappers(home: Path, tmp_path: Path) -> None:
    _discovered(home, tmp_path, up__as_json_text={"size": 3})
    folder = _generated(home, tmp_path / "servers")
    assert "value: str" in (folder / "up" / "as_json_text.py").read_text()


def test_schemas_are_inferred_from_answers(home: Path, tmp_path: Path) -> None:
    _, [told] = _discovered(home, tmp_path, up__as_json_text={"size": 3})
    assert '{"value": str}' in told["signature"]


async def test_field_names_are_normalised(caller: Caller) -> None:
    code = "row = (await tools.up.people())['people'][0]\n[row['first_name'], row['firstName']]"
    assert await result(caller, code) == ["P0", "P0"]


async def test_answers_are_unwrapped(caller: Caller) -> None:
    assert await result(caller, "[await tools.up.add(left=1), (await tools.up.as_json_text())['value']]") == [2, "x"]


# The run time


def _starts(folder: Path) -> int:
    file = folder / "starts"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_servers_are_connected_lazily_and_their_tools_cached(tmp_path: Path) -> None:
    home = configure(tmp_path, up=upstream(env={"STARTED": str(tmp_path / "starts")}))
    async with in_this_process(home, ONE_SPARE) as caller:
        assert await result(caller, "1 + 1") == 2
        assert _starts(tmp_path) == 0
        for _ in range(2):
            assert await result(caller, "await tools.up.add(left=1)") == 2
            await result(caller, "search_tools('add two numbers')")
        assert _starts(tmp_path) == 1


async def test_a_bad_server_leaves_the_others_alone(caller: Caller) -> None:
    code = """
try:
    await tools.broken.anything()
except ToolError as error:
    told = str(error)
[await tools.up.add(left=1), 'broken' in told]
"""
    assert await result(caller, code) == [2, True]


def test_servers_are_ended_with_the_program(tmp_path: Path) -> None:
    home = configure(tmp_path, up=upstream(env={"STARTED": str(tmp_path / "starts")}))
    done(home, "run", "-", stdin="await tools.up.add(left=1)")
    [pid] = map(int, (tmp_path / "starts").read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_calls_are_cancelled_in_time(caller: Caller, tmp_path: Path) -> None:
    code = f"""
import asyncio
try:
    await asyncio.wait_for(tools.up.slow(seconds=30, mark={str(tmp_path / "mark")!r}), 0.2)
except TimeoutError:
    result = "in time"
"""
    assert await result(caller, code) == "in time"


def test_the_sandbox_flag(home: Path, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import socket\n")
    ended = sealab("mcp-exec", str(tmp_path / "s.py"), "--sandbox", SEALAB_HOME=str(home))
    assert ended.returncode == 3, "and without the flag too"


def test_a_direct_mode_that_is_said_aloud(home: Path) -> None:
    report = read(done(home, "run", "-", "--json", stdin="1", SEALAB_REQUIRED_LEVEL="limits"))
    assert "limits" in report["layers"]
    refused = sealab("run", "-", "--home", str(home), stdin="1", SEALAB_REQUIRED_LEVEL="nothing")
    assert "SEALAB_REQUIRED_LEVEL" in refused.stderr


@pytest.fixture(scope="module")
def container_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("contained")
    assert read(done(home, "container", "build", "--json"))["usable"] is True
    return home


def _contained(home: Path, code: str, **env: str) -> Any:
    report = read(done(home, "run", "-", "--json", "--isolation", "container", stdin=code, **env))
    assert report["isolation"] == "container"
    return report["result"]


@needs_podman
def test_the_runtime_is_found(container_home: Path) -> None:
    assert "podman" in done(container_home, "container", "status").lower()


@needs_podman
def test_the_image_is_built_when_asked_and_can_be_another(container_home: Path) -> None:
    assert _contained(container_home, "1 + 1") == 2
    other = sealab(
        *("run", "-", "--home", str(container_home), "--isolation", "container"),
        stdin="1",
        SEALAB_CONTAINER_IMAGE="localhost/no-such-image",
    )
    assert other.returncode != 0
    assert "no-such-image" in other.stderr


@needs_podman
def test_memory_cpu_and_process_limits(container_home: Path) -> None:
    ended = sealab(
        *("run", "-", "--json", "--home", str(container_home), "--isolation", "container", "--memory", "100"),
        stdin="len(bytearray(400_000_000))",
        SEALAB_CPUS="1.0",
    )
    assert read(ended.stdout)["status"] == "memory"
    code = """
import threading
done = threading.Event()
started = 0
try:
    for _ in range(100):
        threading.Thread(target=done.wait).start()
        started += 1
except RuntimeError:
    pass
done.set()
started < 100
"""
    assert _contained(container_home, code, SEALAB_PIDS_MAX="32") is True


@needs_podman
def test_uid_65534_that_gains_no_privileges(container_home: Path) -> None:
    code = """
import os
try:
    os.setuid(0)
    told = 'became root'
except OSError:
    told = 'refused'
[os.getuid(), os.getgid(), told]
"""
    assert _contained(container_home, code) == [65534, 65534, "refused"]


@needs_podman
def test_no_network_a_read_only_root_and_a_writable_tmp(container_home: Path) -> None:
    code = """
import socket
told = []
for attempt in (lambda: socket.create_connection(('192.0.2.1', 80), 1), lambda: open('/usr/x', 'w')):
    try:
        attempt()
        told.append('done')
    except OSError:
        told.append('refused')
with open('/tmp/x', 'w') as file:
    told.append(file.write('abc'))
told
"""
    assert _contained(container_home, code) == ["refused", "refused", 3]


async def test_timeout_and_max_timeout(caller: Caller) -> None:
    report = await caller.run("while True: pass", timeout_seconds=0.3)
    assert report["status"] == "timeout"
    refused = await caller.call("execute_code", code="1", timeout_seconds=500)
    assert refused.is_error
    assert "at most 120" in refused.content[0].text  # type: ignore[union-attr]  # it is a text


async def test_errors_of_the_sandbox_are_told_apart(caller: Caller) -> None:
    programs = {
        "timeout": "while True: pass",
        "memory": "x = 'x' * 10**9",
        "error": "1 / 0",
        "refused": "import socket",
    }
    for status, code in programs.items():
        report = await caller.run(code, timeout_seconds=5, memory_mb=100, isolation="restricted")
        assert report["status"] == status, report
    crash = "import ctypes\nctypes.string_at(0)"
    assert (await caller.run(crash, isolation="process"))["status"] == "crashed"


def test_a_configuration_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    home = configure(tmp_path / "home", up=upstream())
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"other": upstream()}}))
    told = done(home, "run", "-", stdin="[each['name'] for each in list_servers()]", HOME=str(tmp_path))
    assert read(told) == ["up"]


@BOTH
async def test_a_workspace_for_files(caller: Caller, isolation: str) -> None:
    assert await result(caller, "write_file('kept.txt', 'x')\nread_file('kept.txt')", isolation=isolation) == "x"


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        ((), "1", 0),
        ((), "1 / 0", 1),
        (("--no-such-option",), "1", 2),
        ((), "import socket", 3),
        (("--timeout", "0.3"), "while True: pass", 4),
    ],
)
def test_exit_codes_of_failure_and_wrong_usage(
    home: Path, arguments: tuple[str, ...], code: str, exit_code: int
) -> None:
    assert sealab("run", "-", "--home", str(home), *arguments, stdin=code).returncode == exit_code


# Documents


async def test_token_reduction_is_demonstrated(caller: Caller) -> None:
    told = (await caller.call("get_execution_stats")).structured_content
    assert told is not None
    assert "tokens" in json.dumps(told)


async def test_a_skill_runs_within_a_second(caller: Caller) -> None:
    await result(caller, "save_skill(name='one', code='def one():\\n    return 1')")
    report = (await caller.call("run_skill", name="one", timeout_seconds=1)).structured_content
    assert report is not None
    assert report["result"] == 1


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


def test_examples(home: Path) -> None:
    imported = read(done(home, "skills", "import", "--examples", "--json"))["skills"]
    assert len(imported) >= 7
    assert all(each["refused"] is None for each in imported)


def test_security_md_contributing_and_changelog() -> None:
    for page in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        assert (ROOT / page).stat().st_size > 1000


def test_strict_types_lint_and_tests() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert "strict = true" in project
    assert 'requires-python = ">=3.11' in project
    for version in ("3.11", "3.12", "3.13"):
        assert f"Python :: {version}" in project
