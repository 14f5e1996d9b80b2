"""What `mcp-server-code-execution-mode` promised its users: each test is one promise, kept here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sealab.sandbox.container import engine
from sealab.sandbox.container.image import ContainerImage
from sealab.sandbox.errors import ContainerMissing
from sealab.server.former_settings import of_bridge

from ..sandbox.science import science_python
from ..server.command_line import sealab, sealab_process
from ..server.conftest import Caller, in_this_process, stdio
from ..server.upstream_tools.test_registry import ONE_SPARE, configure, upstream
from ..waiting import until
from .conftest import FULL_PYTHON, done, echoing, read

pytestmark = pytest.mark.slow

RUNTIME = "from mcp import runtime\n"


@pytest.fixture(scope="module", params=["restricted", "process"])
async def caller(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    folder = tmp_path_factory.mktemp("home")
    home = configure(folder, up=upstream(), elsewhere=upstream(cwd=str(folder)), **{"my-server": upstream()})
    env = ONE_SPARE | {"SEALAB_ALLOWED_ISOLATION": request.param, "SEALAB_MAX_MEMORY_MB": "2000"}
    async with in_this_process(home, env) as caller:
        yield caller


@pytest.fixture
def restricted(caller: Caller, request: pytest.FixtureRequest) -> Caller:
    if "process" in request.node.name:
        pytest.skip("full Python writes the workspace through write_file and keep()")
    return caller


async def result(caller: Caller, code: str) -> Any:
    report = (await caller.call("execute_code", code=code)).structured_content
    assert report is not None
    assert report["success"], report
    return report["result"]


async def test_mcp_servers_by_name(caller: Caller) -> None:
    assert await result(caller, "await mcp_servers['up'].add(left=1, right=2)") == 3


async def test_mcp_alias(caller: Caller) -> None:
    assert await result(caller, "await mcp_up.add(left=1, right=2) + await mcp_my_server.add(left=1)") == 5


@pytest.mark.parametrize(
    "code",
    [
        "from mcp.servers.up import *\nawait add(left=1, right=2)",
        "from mcp.servers.up import add\nawait add(left=1, right=2)",
        "import mcp.servers.up\nawait mcp.servers.up.add(left=1, right=2)",
        "from mcp.servers import up\nawait up.add(left=1, right=2)",
        "from tools.up import add\nawait add(left=1, right=2)",
        "from servers.up import add\nawait add(left=1, right=2)",
        "import servers.up as u\nawait u.add(left=1, right=2)",
    ],
)
async def test_from_mcp_servers_import(caller: Caller, code: str) -> None:
    assert await result(caller, code) == 3


async def test_a_star_import_replaces_nothing_that_the_code_has(restricted: Caller) -> None:
    caller = restricted
    code = "add, before = 7, print\nfrom mcp.servers.up import *\n[add, print is before, callable(people)]"
    assert await result(caller, code) == [7, True, True]


async def test_discovered_servers_and_list_servers(caller: Caller) -> None:
    names = ["elsewhere", "my-server", "up"]
    told = await result(
        caller,
        f"{RUNTIME}[runtime.discovered_servers(), runtime.list_servers_sync(), await runtime.list_servers()]",
    )
    assert [sorted(each) for each in told] == [names] * 3


async def test_list_loaded_server_metadata(caller: Caller) -> None:
    loaded = await result(caller, f"{RUNTIME}await tools.up.add(left=1)\nruntime.list_loaded_server_metadata()")
    [up] = [each for each in loaded if each["name"] == "up"]
    [add] = [each for each in up["tools"] if each["name"] == "add"]
    assert (up["alias"], up["cwd"], add["alias"]) == ("up", None, "add")
    assert add["input_schema"]["required"] == ["left"]


async def test_describe_server_with_tools_alias_and_cwd(caller: Caller) -> None:
    told = await result(caller, f"{RUNTIME}first = runtime.describe_server('elsewhere')\nfirst")
    assert told["cwd"].startswith("/")
    assert {"name", "alias", "description", "input_schema"} == set(told["tools"][0])
    assert "add" in [tool["alias"] for tool in told["tools"]]
    assert told["tool_count"] == len(told["tools"])


async def test_list_tools_sync(caller: Caller) -> None:
    assert "add" in await result(caller, f"{RUNTIME}runtime.list_tools_sync('up')")


async def test_query_tool_docs_tells_tool_alias(caller: Caller) -> None:
    summaries = await result(caller, f"{RUNTIME}await runtime.query_tool_docs('up')")
    assert {"add"} <= {each["toolAlias"] for each in summaries}
    assert all(each["server"] == "up" and each["tool"] for each in summaries)
    code = "(await runtime.query_tool_docs('up', tool=summaries[0]['toolAlias'], detail='full'))[0]['input_schema']"
    detailed = await result(caller, f"{RUNTIME}summaries = await runtime.query_tool_docs('up')\n{code}")
    assert detailed["type"] == "object"


@pytest.mark.parametrize("form", ["await runtime.search_tool_docs", "runtime.search_tool_docs_sync"])
async def test_search_tool_docs_tells_server_tool_and_description(caller: Caller, form: str) -> None:
    hits = await result(caller, f"{RUNTIME}{form}('add two numbers', limit=3)")
    assert 0 < len(hits) <= 3
    assert {"server", "tool", "toolAlias", "description"} <= set(hits[0])
    assert "add" in [hit["tool"] for hit in hits]


async def test_capability_summary(caller: Caller) -> None:
    assert "up" in await result(caller, f"{RUNTIME}runtime.capability_summary()")


async def test_attribute_access_on_results(caller: Caller) -> None:
    code = "told = await tools.up.people()\nfirst = told.people[1]\n[first.firstName, first.first_name, hasattr(first, 'nowhere'), isinstance(first, dict)]"
    assert await result(caller, code) == ["P1", "P1", False, True]


async def test_a_missing_field_is_an_attribute_error(caller: Caller) -> None:
    code = "try:\n    (await tools.up.people()).nowhere\nexcept AttributeError as error:\n    result = str(error)"
    assert await result(caller, code) == "'dict' object has no attribute 'nowhere'"


async def test_an_unknown_server_is_an_error_that_names_those_there_are(caller: Caller) -> None:
    report = (await caller.call("execute_code", code="await mcp_nowhere.add(left=1)")).structured_content
    assert report is not None
    assert not report["success"]
    assert "nowhere" in report["error"]["message"]


async def test_parallel_calls_task_group_and_wait_for(caller: Caller) -> None:
    code = """
import asyncio
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(tools.up.add(left=n)) for n in range(3)]
[task.result() for task in tasks] + [await asyncio.wait_for(tools.up.add(left=5), 30)]
"""
    assert await result(caller, code) == [1, 2, 3, 6]


async def test_files_in_tmp_and_workspace(restricted: Caller) -> None:
    caller = restricted
    code = """
with open("/tmp/note.txt", "w") as file:
    file.write("one")
with open("/workspace/kept.txt", "w") as file:
    file.write("two")
[open("/tmp/note.txt").read(), open("/workspace/kept.txt").read()]
"""
    assert await result(caller, code) == ["one", "two"]


async def test_top_level_await(caller: Caller) -> None:
    assert await result(caller, "import asyncio\nawait asyncio.sleep(0, 'awaited')") == "awaited"


async def test_from_mcp_import_runtime(caller: Caller) -> None:
    assert await result(
        caller, "from mcp import runtime\nimport mcp.runtime\nmcp.runtime is runtime or 'up' in dir(mcp)"
    )


@pytest.mark.parametrize("form", ["await runtime.query_tool_docs", "runtime.query_tool_docs_sync"])
async def test_query_tool_docs_for_one_tool_in_full(caller: Caller, form: str) -> None:
    [told] = await result(caller, f"{RUNTIME}{form}('up', tool='add', detail='full')")
    assert told["input_schema"]["required"] == ["left"]


async def test_fuzzy_search(caller: Caller) -> None:
    hits = await result(caller, f"{RUNTIME}runtime.search_tool_docs_sync('lsit the poeple of a departmnet')")
    assert "people" in [hit["tool"] for hit in hits]


async def test_capability_resource(caller: Caller) -> None:
    told = await caller.client.read_resource("resource://sealab/capabilities")
    assert "runtime" in told.contents[0].text  # type: ignore[union-attr]  # it is a text


async def test_type_safe_signatures(caller: Caller) -> None:
    [told] = await result(caller, f"{RUNTIME}runtime.query_tool_docs_sync('up', tool='add', detail='signature')")
    assert "left: int, right: int = 1" in told["signature"]


async def test_stdlib_imports(caller: Caller) -> None:
    code = "import csv, io, sqlite3, zipfile, argparse\n[next(csv.reader(io.StringIO('a,b'))), sqlite3.connect(':memory:').execute('SELECT 1').fetchone()[0]]"
    assert await result(caller, code) == [["a", "b"], 1]


async def test_what_a_run_leaves_in_tmp_is_gone(restricted: Caller) -> None:
    caller = restricted
    assert await result(caller, "open('/tmp/left.txt', 'w').write('x')") == 1
    assert await result(caller, "import os\nos.path.exists('/tmp/left.txt')") is False


async def test_call_limits_and_budgets(tmp_path: Path) -> None:
    home = configure(tmp_path, up=upstream())
    async with in_this_process(home, ONE_SPARE | {"SEALAB_TOOL_CALLS_MAX": "3"}) as caller:
        report = await caller.run("for n in range(9):\n    await tools.up.add(left=n)")
    assert not report["success"]
    assert "3" in report["error"]["message"]


# The one tool of the bridge


BRIDGE = ONE_SPARE | {"SEALAB_SURFACE": "bridge"}


async def test_run_python_with_servers(tmp_path: Path) -> None:
    home = configure(tmp_path, up=upstream())
    async with in_this_process(home, BRIDGE) as caller:
        [tool] = (await caller.client.list_tools()).tools
        assert tool.name == "run_python"
        answer = await caller.call("run_python", code="print(await mcp_up.add(left=4))", servers=["up"], timeout=20)
        assert answer.structured_content is not None
        assert answer.structured_content["output"] == "5\n"
        unknown = await caller.call("run_python", code="1", servers=["nowhere"])
        assert unknown.is_error
        assert "nowhere" in unknown.content[0].text  # type: ignore[union-attr]  # it is a text
        assert (await caller.call("execute_code", code="1")).is_error, "that tool is not shown"


async def test_single_tool_surface(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE | {"SEALAB_SURFACE": "code"}) as caller:
        assert [tool.name for tool in (await caller.client.list_tools()).tools] == ["execute_code"]


async def _chars(home: Path) -> int:
    async with in_this_process(home, BRIDGE) as caller:
        [tool] = (await caller.client.list_tools()).tools
        return len(json.dumps([tool.name, tool.description, tool.input_schema]))


async def test_about_200_tokens_up_front_whatever_is_attached(tmp_path: Path) -> None:
    for name in ("none", "many"):
        (tmp_path / name).mkdir()
    none = await _chars(configure(tmp_path / "none"))
    many = await _chars(configure(tmp_path / "many", **{f"server{n}": upstream(disabled=n > 3) for n in range(20)}))
    assert none < 4 * 260, "a token is about four characters"
    assert many < none + 4 * 150


async def test_helper_summary_in_the_tool_description(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, BRIDGE) as caller:
        [tool] = (await caller.client.list_tools()).tools
        for helper in ("discovered_servers()", "list_servers()", "query_tool_docs(", "search_tool_docs("):
            assert helper in (tool.description or "")


async def test_compact_text_and_fields_that_are_not_empty(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, BRIDGE) as caller:
        answer = await caller.call("run_python", code="print('hello')")
    text = answer.content[0].text  # type: ignore[union-attr]  # it is a text
    assert text.strip().endswith("hello")
    assert len(text) < 60
    assert answer.structured_content is not None
    assert not {"tool_calls", "truncated", "files", "images", "stderr"} & answer.structured_content.keys()


@pytest.mark.parametrize("value", ["toon", "compact"])
async def test_output_mode(tmp_path: Path, value: str) -> None:
    [told] = of_bridge({"MCP_BRIDGE_OUTPUT_MODE": value})
    setting, _, chosen = told.split("Set ")[1].split(" instead")[0].partition("=")
    assert setting == "SEALAB_OUTPUT_FORMAT"
    async with in_this_process(tmp_path, BRIDGE | {setting: chosen}) as caller:
        answer = await caller.call("run_python", code="[{'id': n, 'name': f'n{n}'} for n in range(3)]")
    text = answer.content[0].text  # type: ignore[union-attr]  # it is a text
    assert ("[3]{id,name}:" in text) or value == "compact"


# Servers


async def test_clients_are_kept_and_ended_when_idle(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    home = configure(tmp_path, up=upstream(env={"STARTED": str(starts)}, idle_seconds=1))
    async with in_this_process(home, ONE_SPARE) as caller:
        for _ in range(2):
            assert await result(caller, "await tools.up.add(left=1)") == 2
        [pid] = map(int, starts.read_text().split())
        await until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_cwd_of_a_server_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    home = configure(tmp_path, echo=echoing(cwd=str(tmp_path / "there")))
    async with in_this_process(home, ONE_SPARE) as caller:
        assert await result(caller, "await tools.echo.folder()") == str(tmp_path / "there")


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


def test_all_eight_configuration_places(found: Path) -> None:
    told = read(done(found / "home", "servers", "import", "--json", HOME=str(found / "user")))
    assert sorted(told["added"]) == NAMES


def test_servers_in_mcps(found: Path) -> None:
    _written(found / "user", found, "mcps", upstream())
    told = read(done(found / "home", "servers", "import", "--json", HOME=str(found / "user")))
    assert "mcps" in told["added"]


@pytest.mark.parametrize(
    "command", ["sealab", "uvx sealab", "uvx --from sealab sealab serve", "python -m sealab.server"]
)
def test_sealab_itself_is_no_server_of_its_own(tmp_path: Path, command: str) -> None:
    words = ["servers", "add", "me", "--home", str(tmp_path)]
    refused = sealab(*words, "--", *command.split())
    assert refused.returncode == 2, refused
    assert "start itself" in refused.stderr
    assert sealab(*words, "--allow-self", "--", *command.split()).returncode == 0
    program, *arguments = command.split()
    configure(tmp_path, me={"command": program, "args": arguments})
    [me] = read(done(tmp_path, "servers", "list", "--json"))["servers"]
    assert "start itself" in me["problem"], "nor by hand"
    [told] = of_bridge({"MCP_BRIDGE_ALLOW_SELF_SERVER": "1"})
    assert "allow_self" in told


# Settings


VARIABLES = {
    "RUNTIME": ("podman", "SEALAB_CONTAINER_RUNTIME=podman"),
    "IMAGE": ("python:3.14-slim", "container build"),
    "TIMEOUT": ("30s", "SEALAB_TIMEOUT_SECONDS=30"),
    "MAX_TIMEOUT": ("120", "SEALAB_MAX_TIMEOUT_SECONDS=120"),
    "MEMORY": ("1g", "SEALAB_MEMORY_MB=1024"),
    "PIDS": ("128", "SEALAB_PIDS_MAX=128"),
    "CPUS": ("2", "SEALAB_CPUS=2"),
    "CONTAINER_USER": ("65534:65534", "65534:65534"),
    "RUNTIME_IDLE_TIMEOUT": ("300s", "idle_seconds"),
    "STATE_DIR": ("./.mcp-bridge", "SEALAB_HOME"),
    "OUTPUT_MODE": ("toon", "SEALAB_OUTPUT_FORMAT=toon"),
    "LOG_LEVEL": ("INFO", "SEALAB_LOG_LEVEL=INFO"),
}


def test_variables_of_the_bridge_are_named_with_their_successor(tmp_path: Path) -> None:
    env = {f"MCP_BRIDGE_{name}": value for name, (value, _) in VARIABLES.items()}
    ended = sealab("run", "-", "--home", str(tmp_path), stdin="1", **env)
    lines = {line.split()[1]: line for line in ended.stderr.splitlines() if "MCP_BRIDGE_" in line}
    assert len(lines) == len(VARIABLES)
    for name, (_, successor) in VARIABLES.items():
        assert successor in lines[f"MCP_BRIDGE_{name}"]


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_every_successor_is_a_setting_with_that_value(tmp_path: Path, name: str) -> None:
    [told] = of_bridge({f"MCP_BRIDGE_{name}": VARIABLES[name][0]})
    named = [word for word in told.split() if word.startswith("SEALAB_") and "=" in word]
    for word in named:
        setting, _, value = word.partition("=")
        assert sealab("run", "-", "--home", str(tmp_path), stdin="1", **{setting: value}).returncode == 0


def test_log_level(tmp_path: Path) -> None:
    assert sealab("run", "-", "--home", str(tmp_path), stdin="1", SEALAB_LOG_LEVEL="DEBUG").returncode == 0
    assert sealab("run", "-", "--home", str(tmp_path), stdin="1", SEALAB_LOG_LEVEL="LOUD").returncode == 2


def test_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert sealab("run", "-", stdin="write_file('a', 'b')", SEALAB_HOME=str(tmp_path / "state")).returncode == 0
    assert (tmp_path / "state" / "workspace" / "a").read_text() == "b"
    assert list((tmp_path / "here").iterdir()) == []


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


async def test_registering_with_claude_code(tmp_path: Path) -> None:
    assert "claude mcp add sealab -- uvx sealab" in (Path(__file__).parents[2] / "README.md").read_text()
    async with Client(stdio(tmp_path), read_timeout_seconds=200) as client:
        assert "execute_code" in [tool.name for tool in (await client.list_tools()).tools]


def test_no_command_at_all_serves(tmp_path: Path) -> None:
    ended = sealab_process(stdin="", SEALAB_HOME=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "")


# A page on the bridge


def test_pandas_and_numpy_in_the_sandbox(tmp_path: Path) -> None:
    env = FULL_PYTHON | {"SEALAB_PROCESS_PYTHON": science_python()}
    code = "import numpy, pandas\nint(pandas.DataFrame({'a': numpy.arange(4)})['a'].sum())"
    assert done(tmp_path, "run", "-", "--isolation", "process", stdin=code, **env) == "6\n"


def test_advice_on_scikit_learn(tmp_path: Path) -> None:
    ended = sealab("run", "-", "--home", str(tmp_path), stdin="import sklearn", SEALAB_ALLOWED_ISOLATION="restricted")
    assert ended.returncode == 3
    assert "statistics" in ended.stderr
    assert "pip install sklearn" not in ended.stderr


def test_this_python(tmp_path: Path) -> None:
    code = "import sys\nlist(sys.version_info[:2])"
    assert read(done(tmp_path, "run", "-", stdin=code)) == list(sys.version_info[:2])


def test_documents_on_use_history_and_state() -> None:
    root = Path(__file__).parents[2]
    for page in ("docs/tools.md", "docs/migration.md", "CHANGELOG.md"):
        assert (root / page).stat().st_size > 1000


def test_servers_that_are_found_are_there_on_the_command_line(found: Path) -> None:
    env = {"HOME": str(found / "user"), "SEALAB_DISCOVER": "true"}
    assert "folder.add" in done(found / "home", "tools", "show", "folder.add", **env)
