"""Definitions of tools in an object store are those of every server, without a file of theirs on its disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from mcp import Client

from sealab.server.base.storage.stored_definitions import StoredDefinitions
from sealab.tools_registry.definitions import FETCHED, last_change, read_folder

from ...object_stores import S3Server, moto
from ...waiting import until
from ..command_line import sealab_process
from ..conftest import http_process


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with moto() as server:
        yield server


def definition(name: str, description: str = "Answers.") -> bytes:
    return json.dumps({"name": name, "description": description, "input_schema": {"type": "object"}}).encode()


def described(tools: Path) -> dict[str, str]:
    definitions, problems = read_folder(tools)
    assert problems == []
    return {each.tool.full_name: each.tool.description for each in definitions}


def test_the_folder_holds_what_the_store_has_and_what_a_home_has_stays(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    other = s3.client(bucket, "team/.sealab-tools")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tool.json").write_bytes(definition("tool", "Of the home."))
    stored = StoredDefinitions(s3.opened(bucket, "team", monkeypatch), tmp_path / FETCHED)
    stored.bring()
    assert not (tmp_path / FETCHED).exists()
    obstore.put(other, "files/get.json", definition("get"))
    obstore.put(other, "files/put.json", definition("put"))
    obstore.put(other, "notes.json", json.dumps({"tools": [json.loads(definition("look"))]}).encode())
    stored.bring()
    assert described(tmp_path) == {
        "own.tool": "Of the home.",
        "files.get": "Answers.",
        "files.put": "Answers.",
        "notes.look": "Answers.",
    }
    os.utime(tmp_path / FETCHED, ns=(0, 0))
    before = last_change(tmp_path, depth=1)
    obstore.put(other, "files/get.json", definition("get", "Changed."))
    obstore.delete(other, ["files/put.json", "notes.json"])
    stored.bring()
    assert last_change(tmp_path, depth=1) > before, "the registry notices it at its cheapest look"
    assert described(tmp_path) == {"own.tool": "Of the home.", "files.get": "Changed."}
    obstore.delete(other, "files/get.json")
    stored.bring()
    assert list((tmp_path / FETCHED).iterdir()) == []


def test_what_is_no_definition_leads_nowhere_and_is_told(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = s3.bucket()
    other = s3.client(bucket, "team/.sealab-tools")
    for name in ("a/b/c.json", ".hidden.json", "a/.hidden/b.json", "a/readme.md", "a/back\\slash.json"):
        obstore.put(other, name, definition("x"))
    obstore.put(other, "a/good.json", definition("good"))
    stored = StoredDefinitions(s3.opened(bucket, "team", monkeypatch), tmp_path / "tools" / FETCHED)
    stored.bring()
    stored.bring()
    assert described(tmp_path / "tools") == {"a.good": "Answers."}
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["good.json"]
    assert caplog.text.count("is no definition of a tool") == 5


def test_a_store_that_does_not_answer_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with moto() as s3:
        bucket = s3.bucket()
        obstore.put(s3.client(bucket, "team/.sealab-tools"), "a/good.json", definition("good"))
        stored = StoredDefinitions(s3.opened(bucket, "team", monkeypatch), tmp_path / FETCHED)
        stored.bring_if_answered()
    stored.bring_if_answered()
    assert described(tmp_path) == {"a.good": "Answers."}
    assert "could not be had" in caplog.text


@pytest.mark.timeout(150)
async def test_servers_and_commands_find_what_the_store_defines_and_code_cannot_reach_it(
    s3: S3Server, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    other = s3.client(bucket, "team/.sealab-tools")
    obstore.put(other, "weather/forecast.json", definition("forecast", "Tells the weather of tomorrow."))
    env = {**s3.environment, "SEALAB_WORKSPACE_URL": f"s3://{bucket}/team"}
    shown = sealab_process("tools", "categories", "--json", "--home", str(tmp_path / "command"), **env)
    assert "weather" in shown.stdout, shown.stderr
    with http_process(tmp_path / "one", **env) as server:
        async with Client(server.url, read_timeout_seconds=55) as client:

            async def definition_of(name: str) -> Any:
                answer = await client.call_tool("get_tool_definition", {"tool_name": name})
                return answer.structured_content

            assert (await definition_of("weather.forecast"))["description"] == "Tells the weather of tomorrow."
            reached = await client.call_tool("read_workspace_file", {"filename": ".sealab-tools/weather/forecast.json"})
            assert reached.is_error
            listed = await client.call_tool("list_workspace_files", {})
            assert listed.structured_content is not None
            assert listed.structured_content["count"] == 0
            obstore.put(other, "weather/past.json", definition("past", "Tells the weather of yesterday."))

            async def is_there() -> bool:
                return "yesterday" in json.dumps(await definition_of("weather.past"))

            await until(is_there)
