"""What programs write that meet the server for the first time, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import in_this_process
from .test_registry import ONE_SPARE, configure, upstream


@pytest.mark.parametrize("write", ["import os\nos.mkdir('o3/deep')", "open('o3/x.csv', 'w')"])
async def test_a_folder_that_is_missing_is_told_to_be_made(write: str, tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run(write)
    assert report["error"]["type"] == "FileNotFoundError"
    assert "Path('o3').mkdir(parents=True, exist_ok=True)" in report["error"]["hint"]


async def test_write_file_makes_the_folders_that_are_missing(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run("write_file('o3/deep/x.txt', 'x')")
    assert report["error"] is None
    assert [each["name"] for each in report["files"]] == ["o3/deep/x.txt"]


async def test_a_home_folder_is_told_to_be_left_out(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run("open('~/x.csv', 'w')")
        assert report["error"]["hint"].startswith("`~` is no folder here: leave it out.")


async def test_a_function_of_code_is_named_to_those_who_look_for_it_among_the_tools(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        found = await caller.call("search_tools", query="read a resource of a server")
        none = await caller.call("search_tools", query="rename a customer")
        report = await caller.run("await tools.up.list_resources()")
    said = "Code also has list_resources(server), read_resource(server, uri), which are no tools."
    assert found.structured_content["in_code"] == said
    assert said in found.content[0].text
    assert "in_code" not in none.structured_content
    assert "in code, call list_resources(server)" in report["error"]["message"]


async def test_what_discovery_answers_can_be_gathered(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    code = "servers, tools = await asyncio.gather(list_servers(), tools.list_tools())\nresult = [len(servers), len(tools) > 1]"
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run(code)
    assert report["result"] == [1, True], report
