"""What `mcp-server-code-execution-mode` promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.container import engine
from sealab.sandbox.container.image import ContainerImage
from sealab.sandbox.errors import ContainerMissing

from ..server.command_line import sealab
from ..server.conftest import Caller, in_this_process
from ..server.upstream_tools.test_registry import ONE_SPARE, configure, upstream
from .conftest import FULL_PYTHON, result

RUNTIME = "from mcp import runtime\n"
ISOLATIONS = ("restricted", "process")


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    folder = tmp_path_factory.mktemp("home")
    home = configure(folder, up=upstream(), elsewhere=upstream(cwd=str(folder)), **{"my-server": upstream()})
    async with in_this_process(home, ONE_SPARE | FULL_PYTHON) as caller:
        yield caller


SERVERS = ["elsewhere", "my-server", "up"]
IN_FULL = "('up', tool='add', detail='full'))[0]['input_schema']['required']"
SEARCH = "search_tool_docs{}('add two numbers', limit=3)\n[len(hits) <= 3, 'add' in [hit['tool'] for hit in hits], {}]"
KEYS = "{'server', 'tool', 'toolAlias', 'description'} <= set(hits[0])"
FORMS = [
    ("await mcp_servers['up'].add(left=1, right=2)", 3),
    ("await mcp_up.add(left=1, right=2) + await mcp_my_server.add(left=1)", 5),
    ("from mcp.servers.up import *\nawait add(left=1, right=2)", 3),
    ("from mcp.servers.up import add\nawait add(left=1, right=2)", 3),
    ("import mcp.servers.up\nawait mcp.servers.up.add(left=1, right=2)", 3),
    ("from mcp.servers import up\nawait up.add(left=1, right=2)", 3),
    ("from tools.up import add\nawait add(left=1, right=2)", 3),
    ("from servers.up import add\nawait add(left=1, right=2)", 3),
    ("import servers.up as u\nawait u.add(left=1, right=2)", 3),
    (f"{RUNTIME}import mcp.runtime\nmcp.runtime is runtime or 'up' in dir(mcp)", True),
    (f"{RUNTIME}[sorted(runtime.discovered_servers()), sorted(runtime.list_servers_sync())]", [SERVERS] * 2),
    (f"{RUNTIME}sorted(await runtime.list_servers())", SERVERS),
    (f"{RUNTIME}'add' in runtime.list_tools_sync('up')", True),
    (f"{RUNTIME}'add' in [each['toolAlias'] for each in await runtime.query_tool_docs('up')]", True),
    (f"{RUNTIME}{{each['server'] for each in await runtime.query_tool_docs('up') if each['tool']}} == {{'up'}}", True),
    (f"{RUNTIME}(await runtime.query_tool_docs{IN_FULL}", ["left"]),
    (f"{RUNTIME}(runtime.query_tool_docs_sync{IN_FULL}", ["left"]),
    (f"{RUNTIME}hits = await runtime.{SEARCH.format('', KEYS)}", [True] * 3),
    (f"{RUNTIME}hits = runtime.{SEARCH.format('_sync', KEYS)}", [True] * 3),
    (f"{RUNTIME}'people' in [hit['tool'] for hit in runtime.search_tool_docs_sync('lsit the poeple of a town')]", True),
    (f"{RUNTIME}'up' in runtime.capability_summary()", True),
    (f"{RUNTIME}found = runtime.query_tool_docs_sync('up', tool='add', detail='signature')\nfound[0]['signature'][:47]",
     "tools.up.add(*, left: int, right: int = 1) -> i"),
    ("told = (await tools.up.people()).people[1]\n[told.firstName, told.first_name, hasattr(told, 'nowhere')]",
     ["P1", "P1", False]),
    ("try:\n    (await tools.up.people()).nowhere\nexcept AttributeError as error:\n    result = str(error)",
     "'dict' object has no attribute 'nowhere'"),
    (("async with asyncio.TaskGroup() as group:\n    task = group.create_task(tools.up.add(left=1))\n"
     "[task.result(), await asyncio.wait_for(tools.up.add(left=5), 30)]"), [2, 6]),
    (("import csv, io, sqlite3, zipfile, argparse\n[next(csv.reader(io.StringIO('a,b'))), "
     "sqlite3.connect(':memory:').execute('SELECT 1').fetchone()[0]]"), [["a", "b"], 1]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), FORMS)
async def test_code_that_was_written_for_the_bridge_runs(caller: Caller, code: str, expected: object) -> None:
    for isolation in ISOLATIONS:
        needs = "import asyncio\n" if "asyncio." in code else ""
        assert await result(caller, needs + code, isolation=isolation) == expected, isolation


async def test_a_server_is_described_with_its_tools_aliases_and_cwd(caller: Caller) -> None:
    for isolation in ISOLATIONS:
        code = f"{RUNTIME}await tools.up.add(left=1)\n"
        loaded = await result(caller, f"{code}runtime.list_loaded_server_metadata()", isolation=isolation)
        [up] = [each for each in loaded if each["name"] == "up"]
        [add] = [each for each in up["tools"] if each["name"] == "add"]
        assert (up["alias"], up["cwd"], add["alias"]) == ("up", None, "add")
        assert add["input_schema"]["required"] == ["left"]
        told = await result(
            caller, f"{RUNTIME}first = runtime.describe_server('elsewhere')\nfirst", isolation=isolation
        )
        assert told["cwd"] is None  # where its program runs is its operator's
        assert {"name", "alias", "description", "input_schema"} == set(told["tools"][0])
        assert "add" in [tool["alias"] for tool in told["tools"]]
        assert told["tool_count"] == len(told["tools"])


async def test_names_that_the_code_has_are_kept_and_files_of_a_run_are_gone(caller: Caller) -> None:
    code = "add, before = 7, print\nfrom mcp.servers.up import *\n[add, print is before, callable(people)]"
    assert await result(caller, code) == [7, True, True]
    code = "for name in ('/tmp/left.txt', '/workspace/kept.txt'):\n    open(name, 'w').write('x')\nopen(name).read()"
    assert await result(caller, code) == "x"
    gone = "import os\n[os.path.exists(name) for name in ('/tmp/left.txt', '/workspace/kept.txt')]"
    assert await result(caller, gone) == [False, True]


# The one tool of the bridge


BRIDGE = ONE_SPARE | {"SEALAB_SURFACE": "bridge"}


async def test_run_python_is_one_short_tool_whatever_is_attached(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    async with in_this_process(tmp_path / "none", BRIDGE | {"SEALAB_OUTPUT_FORMAT": "toon"}) as caller:
        [tool] = (await caller.client.list_tools()).tools
        none = len(json.dumps([tool.name, tool.description, tool.input_schema]))
        assert none < 4 * 260, "a token is about four characters"
        answer = await caller.call("run_python", code="[{'id': n, 'name': f'n{n}'} for n in range(3)]")
        assert "[3]{id,name}:" in answer.content[0].text  # type: ignore[union-attr]  # it is a text
    home = configure(tmp_path, **{f"server{n}": upstream(disabled=n > 3) for n in range(20)})
    async with in_this_process(home, BRIDGE) as caller:
        [tool] = (await caller.client.list_tools()).tools
        assert tool.name == "run_python"
        for helper in ("discovered_servers()", "list_servers()", "query_tool_docs(", "search_tool_docs("):
            assert helper in (tool.description or "")
        assert len(json.dumps([tool.name, tool.description, tool.input_schema])) < none + 4 * 150
        code = "print(await mcp_server1.add(left=4))"
        answer = await caller.call("run_python", code=code, servers=["server1"], timeout=20)
        assert answer.structured_content is not None
        assert answer.structured_content["output"] == "5\n"
        unknown = await caller.call("run_python", code="1", servers=["nowhere"])
        assert unknown.is_error
        assert "nowhere" in unknown.content[0].text  # type: ignore[union-attr]  # it is a text
        assert (await caller.call("execute_code", code="1")).is_error, "that tool is not shown"
        answer = await caller.call("run_python", code="print('hello')")
    text = answer.content[0].text  # type: ignore[union-attr]  # it is a text
    assert text.strip().endswith("hello")
    assert len(text) < 80
    assert answer.structured_content is not None
    assert not {"tool_calls", "truncated", "files", "images", "stderr"} & answer.structured_content.keys()


# Servers


PLACES = {
    "claude": "~/.claude.json",
    "code": "~/Library/Application Support/Claude Code/claude_code_config.json",
    "early": "~/Library/Application Support/Claude/claude_code_config.json",
    "desktop": "~/Library/Application Support/Claude/claude_desktop_config.json",
    "servers": "~/.config/mcp/servers/any.json",
    "own": "./claude_code_config.json",
    "owndesktop": "./claude_desktop_config.json",
    "folder": "./mcp-servers/any.json",
    "mcps": "~/MCPs/any.json",
}


def _written(user: Path, project: Path, name: str, entry: dict[str, Any]) -> None:
    file = Path(PLACES[name].replace("~", str(user)).replace("./", f"{project}/", 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {name: entry}}))


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user and a project with one server in each place, and sealab itself in one of them."""
    user, project = tmp_path / "user", tmp_path / "project"
    for name in PLACES:
        _written(user, project, name, upstream() if name != "mcps" else {"command": "uvx", "args": ["sealab"]})
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


NAMES = sorted(name for name in PLACES if name != "mcps")


async def test_configurations_are_found_at_start(found: Path) -> None:
    home = configure(found, mine=upstream())
    async with in_this_process(home, ONE_SPARE | {"SEALAB_DISCOVER": "true"}) as caller:
        names = await result(caller, f"{RUNTIME}sorted(runtime.discovered_servers())")
        assert names == sorted([*NAMES, "mine"]), "all, but not sealab itself"
        assert await result(caller, "await mcp_folder.add(left=1)") == 2
    assert json.loads((home / "mcp.json").read_text())["mcpServers"].keys() == {"mine"}, "nothing is written"
    async with in_this_process(home, ONE_SPARE) as caller:
        assert await result(caller, f"{RUNTIME}runtime.discovered_servers()") == ["mine"], "only if told to"


# Settings


async def test_help_with_a_podman_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "podman").write_text("#!/bin/sh\nexit 125\n")
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engine.sys, "platform", "darwin")
    with pytest.raises(ContainerMissing, match="podman machine start"):
        await engine.find("podman", ContainerImage("python3", name="localhost/none"), tmp_path, tmp_path / "state")


def test_help_with_the_docker_mcp_gateway(tmp_path: Path) -> None:
    gateway = tmp_path / "docker"
    gateway.write_text("#!/bin/sh\nexit 1\n")
    gateway.chmod(0o755)
    home = configure(tmp_path, gateway={"command": str(gateway), "args": ["mcp", "gateway", "run"]})
    ended = sealab("servers", "test", "gateway", "--home", str(home))
    assert "docker login" in ended.stdout + ended.stderr
    assert "secrets" in ended.stdout + ended.stderr
