"""What `mcp-server-code-execution-mode` promised its users: each test is one promise, kept here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ..server.conftest import Caller, in_this_process
from ..server.upstream_tools.test_registry import ONE_SPARE, configure, upstream

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
