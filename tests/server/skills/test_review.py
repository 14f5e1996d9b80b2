"""What the review of skills finds, and that archived skills leave lists and searches, and come back."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.use_cases.skills import use_cases as skills
from sealab.server.use_cases.skills.review import _differs, review
from sealab.server.use_cases.skills.use_cases import SaveRequest
from sealab.skills_db.runs import RunRecord
from sealab.skills_db.sql import sa
from sealab.skills_db.tables import SKILL, VERSION

from ..command_line import sealab
from ..conftest import Caller, in_process_server

UPSTREAM = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer("stock")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def level(article: str) -> dict[str, object]:
    return {"level": 3, open("key").read(): 1}

@server.tool()
def order(article: str) -> str:
    open("ordered", "a").write(article)
    return "ordered"

server.run("stdio")
"""
SETTINGS = Settings(workers_spare=0)
served = in_process_server({})


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    (tmp_path / "up.py").write_text(UPSTREAM)
    (tmp_path / "key").write_text("unit")
    entry = {"command": sys.executable, "args": [str(tmp_path / "up.py")], "cwd": str(tmp_path), "approve": "never"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"stock": entry}}))
    async with running(SETTINGS, Home(tmp_path), serves=True) as app:
        yield app


def ran(app: App, name: str, *runs: tuple[str, float]) -> None:
    now = datetime.now(UTC)
    records = [
        RunRecord(run_id=f"{name}{number}", started_at=now, duration_ms=ms, status=status, isolation="restricted", kind="skill", skill=name)
        for number, (status, ms) in enumerate(runs)
    ]  # fmt: skip
    for record in records:
        app.skills.service.run_store().record(record)


async def test_the_review_finds_what_is_to_be_tended_and_says_with_which_command(app: App) -> None:
    async def saved(
        name: str, body: str = "return 1", about: str = "", tests: str = "", *, record: bool = False
    ) -> None:
        code = f'async def {name}(x: int = 1):\n    """{about}"""\n    {body}\n'
        await skills.save(app.skills, SaveRequest(name, code, tests=tests, record=record, force=True))

    await saved("old", "return 'old'")
    await saved("failing", "return 'f'")
    await saved("slow", "return 's'")
    await saved("count_lines", "return 0 + x", "Count the lines of a file.")
    await saved("lines_count", "return x + 0", "Count the lines of a file.")
    await saved("orphan", "return await tools.stock.gone(a=x) + skills.missing()")
    calls = "a = await tools.stock.level(article='a')\n    await tools.stock.order(article='b')\n    return a['unit']"
    await saved("levels", calls, tests="assert await levels() == 1", record=True)
    assert (app.home.root / "ordered").read_text() == "b"
    ran(app, "failing", ("ok", 1.0), ("error", 1.0), ("timeout", 1.0))
    ran(app, "slow", *[("ok", 20_000.0)] * 3)
    ran(app, "count_lines", ("ok", 1.0))
    with app.database().transaction() as connection:
        old = sa.select(SKILL.c.id).where(SKILL.c.name == "old").scalar_subquery()
        connection.execute(
            sa.update(VERSION)
            .where(VERSION.c.skill_id == old)
            .values(created_at=datetime.now(UTC) - timedelta(days=40))
        )
    found = await review(app.skills)
    assert found["calls"] == 1
    told = {each["name"]: (each["finding"], each["proposal"], each["command"]) for each in found["findings"]}
    assert told == {
        "old": ("unused", "archive", "sealab skills archive old"),
        "failing": ("failing", "mend", "sealab skills test failing"),
        "slow": ("slow", "mend", "sealab skills show slow"),
        "lines_count": ("duplicate", "merge", "sealab skills archive lines_count"),
        "orphan": ("orphan", "mend", "sealab skills show orphan"),
    }
    why = {each["name"]: each["why"] for each in found["findings"]}
    assert why["old"] == "was never run, and is 40 days old"
    assert why["failing"] == "its last 2 runs ended with timeout"
    assert why["orphan"] == "uses the skill missing, the tool stock.gone, which are not there"
    (app.home.root / "key").write_text("units")
    (drifted,) = [each for each in (await review(app.skills))["findings"] if each["finding"] == "drifted"]
    assert drifted["why"] == (
        'stock.level({"article": "a"}) answers otherwise than was recorded: it has no \'unit\' any more'
    )
    assert drifted["command"] == "sealab skills test --record levels"
    assert (app.home.root / "ordered").read_text() == "b", "no tool that writes was called"


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({"a": [1]}, {"a": [2.5, 3], "b": 1}, None),
        ({"a": None}, {"a": {}}, None),
        ([], [1], None),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, "a has no 'b' any more"),
        ([{"a": "x"}], [{"a": 1}], "[0].a was str and is int"),
        ({"a": True}, {"a": 1}, "a was bool and is int"),
        ("x", ["x"], "it was str and is list"),
    ],
)
def test_answers_differ_where_something_is_gone_or_of_another_type(
    before: object, now: object, told: str | None
) -> None:
    assert _differs(before, now) == told  # type: ignore[arg-type]  # JSON


def command(home: Path, *words: str) -> Any:
    return sealab("skills", *words, "--home", str(home), "--json").told


async def test_an_archived_skill_leaves_lists_and_searches_and_can_be_called(served: Caller) -> None:
    for name in ("kept", "put_away"):
        code = f"def {name}():\n    'Weigh parcels.'\n    return '{name}'"
        await served.told("save_skill", name=name, code=code, force=True)
    assert (await served.told("review_skills"))["skills"] == 2
    assert (await asyncio.to_thread(command, served.home, "archive", "put_away"))["archived"] is True
    for tool, more in (
        ("list_skills", {}),
        ("list_skills", {"query": "parcels"}),
        ("search_tools", {"query": "parcels"}),
    ):
        found = await served.told(tool, **more)
        assert [each["name"] for each in found.get("skills") or found["tools"]] == ["kept"]
    archived = await served.told("list_skills", archived=True, query="weigh")
    assert [each["name"] for each in archived["skills"]] == ["put_away"]
    report = await served.run("[skills.put_away(), len(list_skills(archived=True)['skills'])]")
    assert report["result"] == ["put_away", 1]


def test_what_was_archived_or_deleted_comes_back_by_one_command(tmp_path: Path) -> None:
    (tmp_path / "away.py").write_text("def away(): return 1")
    command(tmp_path, "save", "away", str(tmp_path / "away.py"))
    for how, was in (("archive", "archived"), ("delete", "deleted")):
        command(tmp_path, how, "away")
        assert command(tmp_path, "list")["count"] == 0
        assert command(tmp_path, "list", "--archived")["count"] == int(how == "archive")
        assert command(tmp_path, "restore", "away") == {"name": "away", "restored": was}
    assert command(tmp_path, "list")["count"] == 1
    assert command(tmp_path, "review") == {"count": 0, "findings": [], "skills": 1, "calls": 0}
