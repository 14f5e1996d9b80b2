"""Names of skills that hold personal data: a model sees tokens in them wherever they stand, and can give them back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any, Literal
from urllib.parse import unquote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, Request, Result
from pydantic import AnyUrl, ConfigDict

from ....waiting import until
from ...conftest import Caller, in_this_process
from .test_tool_gate import ENVIRONMENT, TOKEN

WHO = "brannock"
SAVE = """
row = json.loads(read_file("people.json"))
name = "bill_" + row["customer_name"].lower().replace(" ", "_")
save_skill(name, f"async def {name}():\\n    return await tools.mail.send(to='a')\\n", description="Bill somebody.")["version"]
"""


class Asked(Request[dict[str, Any], str]):
    method: str
    params: dict[str, Any]


class Told(Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["complete"] = "complete"


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    """A client of a server with one skill that is named after somebody who stands in a file."""
    home = tmp_path_factory.mktemp("home")
    (home / "workspace").mkdir()
    (home / "workspace" / "people.json").write_text(json.dumps({"customer_name": "Ines Brannock"}))
    (home / "tools" / "mail").mkdir(parents=True)
    takes = {"type": "object", "properties": {"to": {"type": "string"}}}
    (home / "tools" / "mail" / "send.json").write_text(
        json.dumps({"name": "send", "server": "mail", "description": "Send it.", "input_schema": takes})
    )
    (home / "mcp.json").write_text(
        json.dumps({"mcpServers": {"mail": {"command": "/nonexistent", "approve": "always"}}})
    )
    async with in_this_process(home, ENVIRONMENT) as opened:
        assert (await opened.run(SAVE))["result"] == 1
        yield opened


async def told(caller: Caller, method: str, **params: Any) -> dict[str, Any]:
    answer = await caller.client.session.send_request(Asked(method=method, params=params), Told)
    return answer.model_dump(by_alias=True, mode="json")


async def test_names_stand_in_questions_about_the_tests_of_a_skill_as_tokens(caller: Caller) -> None:
    asked: list[str] = []

    async def user(_context: object, question: Any) -> ElicitResult:
        asked.append(question.message)
        return ElicitResult(action="decline")

    async with Client(caller.client.server, mode="legacy", elicitation_callback=user) as client:
        tests = f"await skills.bill_ines_{WHO}()"
        said = await Caller(client, caller.home).refusal("save_skill", name="f", code="def f(): pass", tests=tests)
    assert asked, said
    assert "skill bill_[PERSON_" in asked[0], asked
    assert WHO not in f"{asked} {said}".lower()


async def test_names_leave_as_tokens_and_are_taken_as_they_were_shown(caller: Caller) -> None:
    seen: list[str] = []

    def see(answer: Any) -> Any:
        seen.append(answer if isinstance(answer, str) else json.dumps(answer))
        return answer

    listed = see(await told(caller, "skills/list"))
    uri = listed["skills"][0]["uri"]
    assert TOKEN.search(unquote(uri)), uri
    assert str(AnyUrl(uri)) == uri, "it is a URI that clients can read"
    resources = see(await told(caller, "resources/list"))["resources"]
    assert uri in {each["uri"] for each in resources}
    assert see(await told(caller, "skills/get", uri=uri))["skill"]["uri"] == uri
    for each in listed["skills"][0]["resources"]:
        [content] = see(await told(caller, "resources/read", uri=each["uri"]))["contents"]
        assert content["uri"] == each["uri"]
    folder = uri.removesuffix("SKILL.md")
    [scripts] = [
        each["uri"]
        for each in see(await told(caller, "resources/directory/read", uri=folder))["resources"]
        if each["mimeType"] == "inode/directory"
    ]
    assert see(await told(caller, "resources/directory/read", uri=scripts))["resources"]

    [skill] = see(await caller.told("list_skills"))["skills"]
    assert TOKEN.search(skill["name"]), skill
    loaded = await caller.call("load_skill", name=skill["name"])
    assert see(loaded.model_dump_json(by_alias=True))
    assert not loaded.is_error, loaded.content
    ran = see(await caller.told("run_skill", name=skill["name"]))
    assert f"The skill {skill['name']}@1 makes a call" in ran["error"]["message"], ran
    with pytest.raises(MCPError) as failed:
        await told(caller, "resources/read", uri=f"{folder}nowhere")
    see(f"{failed.value.error}")
    see((await caller.call("load_skill", name=f"{skill['name']}x")).model_dump_json())
    saved = await caller.call("save_skill", name=skill["name"], code="def f(): pass")
    see(saved.model_dump_json())
    assert not [each for each in seen if WHO in each.lower()]


async def test_names_stand_in_the_audit_log_as_tokens(caller: Caller) -> None:
    [skill] = (await caller.told("list_skills"))["skills"]
    assert (await caller.told("delete_skill", name=skill["name"]))["deleted_versions"] == 1
    await caller.run("save_skill('plain', 'def plain(): pass')")

    def lines() -> list[tuple[str, str]]:
        with closing(sqlite3.connect(caller.home / "sealab.db")) as database:
            return database.execute(
                "SELECT event, details FROM sealab_audit_line WHERE event LIKE 'skill.%' ORDER BY number"
            ).fetchall()

    await until(lambda: len(lines()) == 3)
    assert WHO not in str(lines()).lower()
    names = [(event, json.loads(details)["skill"]) for event, details in lines()]
    assert names == [("skill.saved", skill["name"]), ("skill.deleted", skill["name"]), ("skill.saved", "plain")]


async def test_an_answer_quotes_a_name_of_a_file_as_it_was_asked_for(caller: Caller) -> None:
    shown = (await caller.run('print(json.loads(read_file("people.json"))["customer_name"])'))["output"]
    token = TOKEN.search(shown)
    assert token is not None
    answer = await caller.client.call_tool("read_workspace_file", {"filename": f"{token[0]}x.txt"})
    assert f"{token[0]}x.txt" in answer.content[0].text
    assert "Brannock" not in answer.model_dump_json()
