"""What programs write that meet the server for the first time, and what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ..conftest import Caller, in_this_process
from .test_registry import ONE_SPARE, configure, upstream


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    async with in_this_process(configure(tmp_path_factory.mktemp("home"), up=upstream()), ONE_SPARE) as caller:
        yield caller


async def test_a_folder_that_is_missing_or_of_a_user_is_told_what_to_do_about(caller: Caller) -> None:
    failed = (await caller.run("open('o3/x.csv', 'w')"))["error"]
    assert failed["type"] == "FileNotFoundError"
    assert "Path('o3').mkdir(parents=True, exist_ok=True)" in failed["hint"]
    report = await caller.run("write_file('o4/deep/x.txt', 'x')")
    assert [each["name"] for each in report["files"]] == ["o4/deep/x.txt"], report["error"]
    report = await caller.run("open('~/x.csv', 'w')")
    assert report["error"]["hint"].startswith("`~` is no folder here: leave it out.")


async def test_a_function_of_code_is_named_to_those_who_look_for_it_among_the_tools(caller: Caller) -> None:
    found = await caller.call("search_tools", query="read a resource of a server")
    none = await caller.call("search_tools", query="rename a customer")
    report = await caller.run("await tools.up.list_resources()")
    said = "Code also has list_resources(server), read_resource(server, uri), which are no tools."
    assert found.structured_content["in_code"] == said
    assert said in found.content[0].text
    assert "in_code" not in none.structured_content
    assert "in code, call list_resources(server)" in report["error"]["message"]


async def test_what_discovery_answers_can_be_gathered(caller: Caller) -> None:
    code = "servers, tools = await asyncio.gather(list_servers(), tools.list_tools())\nresult = [len(servers), len(tools) > 1]"
    report = await caller.run(code)
    assert report["result"] == [1, True], report
