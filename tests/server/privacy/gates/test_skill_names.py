"""Names of skills that hold personal data: a model sees tokens in them wherever they stand, and can give them back."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, Request, Result
from pydantic import AnyUrl, ConfigDict

from ...conftest import Caller, in_this_process
from ..crm import UPSTREAM, customers
from .test_tool_gate import ENVIRONMENT, TOKEN

SAVE = """
rows = (await tools.customers.list_customers())["customers"]
name = "bill_" + rows[5]["customer_name"].lower().replace(" ", "_")
save_skill(name, f"def {name}():\\n    return {name!r}\\n", description="Bill somebody.")["version"]
"""
WHO = "brannock"
"""A part of the name in the sixth row."""


class Asked(Request[dict[str, Any], str]):
    method: str
    params: dict[str, Any]


class Told(Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["complete"] = "complete"


@asynccontextmanager
async def served(home: Path, **options: Any) -> AsyncIterator[Caller]:
    """Give a client of a server that knows the customers, with one skill that is named after one of them."""
    crm = {"command": sys.executable, "args": [str(UPSTREAM), "customers", "12"], "approve": "never"}
    mail = {"command": sys.executable, "args": [str(UPSTREAM), "mail", str(home / "sent")], "approve": "always"}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"customers": crm, "mail": mail}}))
    async with in_this_process(home, ENVIRONMENT, **options) as caller:
        assert (await caller.run(SAVE))["result"] == 1
        yield caller


async def told(caller: Caller, method: str, **params: Any) -> dict[str, Any]:
    answer = await caller.client.session.send_request(Asked(method=method, params=params), Told)
    return answer.model_dump(by_alias=True, mode="json")


async def test_names_leave_as_tokens_and_are_taken_as_they_were_shown(tmp_path: Path) -> None:
    async with served(tmp_path) as caller:
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
        assert ran["result"] == skill["name"], ran
        with pytest.raises(MCPError) as failed:
            await told(caller, "resources/read", uri=f"{folder}nowhere")
        see(f"{failed.value.error}")
        see((await caller.call("load_skill", name=f"{skill['name']}x")).model_dump_json())
        saved = await caller.call("save_skill", name=skill["name"], code="def f(): pass")
        see(saved.model_dump_json())
        assert (await caller.told("delete_skill", name=skill["name"]))["deleted_versions"] == 1
        assert not [each for each in seen if WHO in each.lower()]


async def test_names_stand_in_the_audit_log_as_tokens(tmp_path: Path) -> None:
    async with served(tmp_path) as caller:
        [skill] = (await caller.told("list_skills"))["skills"]
        await caller.told("delete_skill", name=skill["name"])
        await caller.run("save_skill('plain', 'def plain(): pass')")
    with closing(sqlite3.connect(tmp_path / "sealab.db")) as database:
        lines = database.execute("SELECT event, details FROM sealab_audit_line ORDER BY number").fetchall()
    assert WHO not in str(lines).lower()
    names = [(event, json.loads(details)["skill"]) for event, details in lines if event.startswith("skill.")]
    assert names == [("skill.saved", skill["name"]), ("skill.deleted", skill["name"]), ("skill.saved", "plain")]


async def test_names_stand_in_questions_about_the_tests_of_a_skill_as_tokens(tmp_path: Path) -> None:
    asked: list[str] = []

    async def user(_context: object, question: Any) -> ElicitResult:
        asked.append(question.message)
        return ElicitResult(action="decline")

    async with served(tmp_path, elicitation_callback=user, mode="legacy") as caller:
        tells = SAVE.replace("return {name!r}", "return tools.mail.send(to='a', subject='b', body='c')")
        assert (await caller.run(tells.replace("bill_", "tell_")))["success"]
        name = f"tell_{customers(6)[5]['customer_name'].lower().replace(' ', '_')}"
        said = await caller.refusal("save_skill", name="f", code="def f(): pass", tests=f"await skills.{name}()")
    assert asked, said
    assert "skill tell_[PERSON_" in asked[0], asked
    assert WHO not in f"{asked} {said}".lower()
