"""A service with an OpenAPI document as a user meets it: added by a command, found, called, asked about and stubbed."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ...data.upstreams.shelter import DOCUMENT, PIXEL, Service, serving
from ..command_line import Ended, sealab
from ..conftest import in_this_process
from .test_approvals import NO, User, yes
from .test_registry import ONE_SPARE


@pytest.fixture
def shelter() -> Iterator[Service]:
    with serving(copy.deepcopy(DOCUMENT)) as service:
        yield service


def servers(home: Path, *arguments: str, **env: str) -> Ended:
    return sealab("servers", *arguments[:1], "--home", str(home), *arguments[1:], **env)


def add(home: Path, shelter: Service, *more: str) -> None:
    added = servers(home, "add", "shelter", "--openapi", f"{shelter.url}/openapi.json", *more)
    assert added.returncode == 0, added.stderr


def test_a_service_is_added_listed_tested_and_removed(shelter: Service, tmp_path: Path) -> None:
    add(tmp_path, shelter, "--header", "X-Key: ${SHELTER_KEY}")
    entry = json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]["shelter"]
    assert entry == {"openapi": f"{shelter.url}/openapi.json", "headers": {"X-Key": "${SHELTER_KEY}"}}
    key = {"SHELTER_KEY": "hunter2"}
    (listed,) = json.loads(servers(tmp_path, "list", "--json", **key).stdout)["servers"]
    assert (listed["type"], listed["openapi"], listed["headers"]) == ("openapi", entry["openapi"], ["X-Key"])
    assert entry["openapi"] in servers(tmp_path, "list", **key).stdout

    shelter.document["paths"]["/odd"] = {"get": {"parameters": [{"$ref": "file:///etc/passwd"}]}}
    tested = servers(tmp_path, "test", "shelter", **key)
    assert "ok: Shelter 4.2, protocol OpenAPI, 5 tools" in tested.stdout
    assert "left out: GET /odd: it refers to 'file:///etc/passwd'" in tested.stdout
    assert shelter.requests[-1].headers["x-key"] == "hunter2"
    found = sealab("tools", "show", "--home", str(tmp_path), "shelter.listAnimals", **key)
    assert "GET /animals" not in found.stderr
    assert "listAnimals" in found.stdout

    assert servers(tmp_path, "remove", "shelter").returncode == 0
    assert json.loads((tmp_path / "mcp.json").read_text())["mcpServers"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--openapi", "nowhere.json"], "There is no file"),
        (["--openapi", "ftp://x.example/a"], "'openapi' of the server 'x' cannot be used"),
        (["--openapi", "file:///etc/passwd"], "'openapi' of the server 'x' cannot be used"),
        (["--openapi", "."], "is not a file. Give the address or the file"),
        (["--openapi", "https://x.example/a", "--url", ""], "--url is empty. Give it a value"),
        (["--openapi", "https://x.example/a", "--", "cmd"], "cannot both be given"),
        (["--openapi", "https://me:secret@x.example/a"], "without a user; a password goes into a header"),
        (["--openapi", "https://x.example/a", "--url", "https://me@x.example"], "without a user"),
        (["--openapi", "https://x.example/a", "--transport", "sse"], "--transport is for MCP servers"),
        (
            ["--openapi", "https://x.example/a", "--env", "A=b"],
            "--env and --cwd are for a server that a command starts",
        ),
    ],
)
def test_a_document_that_cannot_be_meant_is_refused_in_a_sentence(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    assert said in servers(tmp_path, "add", "x", *arguments).refusal()
    assert not (tmp_path / "mcp.json").exists()


def test_a_file_is_kept_by_its_whole_path_and_its_service_may_be_given(shelter: Service, tmp_path: Path) -> None:
    file = tmp_path / "shelter.yaml"
    file.write_text(yaml.safe_dump(DOCUMENT))
    added = servers(tmp_path, "add", "shelter", "--openapi", str(file), "--url", f"{shelter.url}/v1")
    assert added.returncode == 0, added.stderr
    assert servers(tmp_path, "test", "shelter").returncode == 0
    program = "result = await tools.shelter.list_animals(limit=1)"
    ran = sealab("run", "--home", str(tmp_path), "-", "--json", stdin=program)
    assert json.loads(ran.stdout)["result"][0]["name"] == "Mia"


async def test_code_finds_and_calls_operations_and_a_user_is_asked_before_one_that_writes(
    shelter: Service, tmp_path: Path
) -> None:
    await asyncio.to_thread(add, tmp_path, shelter, "--category", "animals")
    user = User([yes(), NO])
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        query = {"query": "animals that look for a home", "detail_level": "signature"}
        found = (await caller.call("search_tools", **query)).structured_content
        assert found is not None
        first = found["tools"][0]
        assert (first["name"], first["category"]) == ("listAnimals", "animals")
        assert first["signature"].startswith(
            'tools.shelter.listAnimals(*, kind: str = ..., limit: int = 10) -> list[{"id": int, "name": str, "kind": '
        )
        reads = """
animals = await tools.shelter.listAnimals(kind="cat")
one = await tools.shelter.get_animals_animal_id(animal_id=animals[0]["id"])
picture = await tools.shelter.picture(animal_id=1)
try:
    await tools.shelter.get_animals_animal_id(animal_id=9)
except ToolError as error:
    said = str(error)
result = [one["name"], len(read_file(picture["handle"], encoding=None)), said]
"""
        report = await caller.run(reads)
        assert report["result"] == ["Mia", len(PIXEL), "HTTP 404 Not Found: there is nothing at /v1/animals/9."]
        assert user.asked == []
        taken = await caller.run("result = await tools.shelter.take_in(name='Bo', kind='dog')")
        assert (taken["result"]["id"], len(user.asked)) == (2, 1)
        refused = await caller.run("await tools.shelter.giveAway(animal_id=1)")
        assert refused["status"] == "refused"
        wrong = await caller.run("await tools.shelter.take_in(name='Bo', kind='whale')")
        assert (wrong["status"], len(user.asked)) == ("refused", 2)
        dry = await caller.run("result = sorted(await tools.shelter.take_in(name='Bo', kind='dog'))", dry_run=True)
        assert {"id", "kind", "name"} <= set(dry["result"])
        assert dry["dry_run"] == [{"tool": "shelter.take_in", "arguments": {"name": "Bo", "kind": "dog"}}]
    assert [each.method for each in shelter.calls] == ["GET", "GET", "GET", "GET", "POST"]


async def test_code_passes_bytes_where_the_document_takes_them_and_nowhere_else(
    shelter: Service, tmp_path: Path
) -> None:
    picture = {"type": "object", "properties": {"name": {"type": "string"}, "file": {"format": "binary"}}}
    body = {"content": {"multipart/form-data": {"schema": picture}}}
    shelter.document["paths"]["/up"] = {"post": {"operationId": "upload", "requestBody": body, "responses": {}}}
    shelter.says("POST /v1/up", {"ok": True})
    entry = {"openapi": f"{shelter.url}/openapi.json", "approve": "never"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"shelter": entry}}))
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        for file in ("b'\\x00PNG'", "{'data': bytearray(b'\\x00PNG'), 'filename': 'a.png'}"):
            report = await caller.run(f"await tools.shelter.upload(name='Mia', file={file})")
            assert report["result"] == {"ok": True}, report["error"]
            assert b"\r\n\r\n\x00PNG\r\n" in shelter.calls[-1].body
        assert b'filename="a.png"\r\nContent-Type: image/png' in shelter.calls[-1].body
        wrong = await caller.run("await tools.shelter.upload(name=b'Mia')")
    assert wrong["error"]["type"] == "TypeError"
    assert "shelter.upload cannot be passed name: it takes no bytes. Pass text" in wrong["error"]["message"]
