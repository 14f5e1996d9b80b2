"""What the review of skills finds, and that archived skills leave lists and searches, and come back."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import App, running
from sealab.server.base.database import HomeDatabase
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.use_cases.skills.review import _differs, review
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.runs import RunRecord
from sealab.skills_db.skills import SkillStore
from sealab.skills_db.sql import sa
from sealab.skills_db.tables import SKILL, VERSION

from ..command_line import sealab
from ..conftest import Caller, in_process_server

UPSTREAM = """
import json, sys
TOOLS = [{"name": name, "inputSchema": {"type": "object", "properties": {"article": {"type": "string"}}},
          "annotations": {"readOnlyHint": name == "level"}} for name in ("level", "order")]
for line in sys.stdin:
    asked, failed = json.loads(line), None
    if asked["method"] == "initialize":
        told = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "stock", "version": "1"}}
    elif asked["method"] == "tools/list":
        told = {"tools": TOOLS}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "level":
        answer = {"level": 3, "units": 1}
        told = {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}
    elif asked["method"] == "tools/call":
        told = {"content": [{"type": "text", "text": open("ordered", "w").name}]}
    else:
        failed = {"error": {"code": -32601, "message": "no"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **(failed or {"result": told})}), flush=True)
"""


def skill(name: str, about: str = "", **more: Any) -> SkillDraft:
    code = f"def {name}(x): return 1"
    extra = {"entry": name}
    return SkillDraft(name=name, code=code, signature=f"{name}(x)", description=about, extra=extra, **more)


def saved(home: Path, *drafts: SkillDraft) -> None:
    with closing(HomeDatabase(None, home)) as database:
        for draft in drafts:
            SkillStore(database()).save(draft)


def ran(app: App, name: str, *runs: tuple[str, float]) -> None:
    for number, (status, ms) in enumerate(runs):
        record = RunRecord(
            run_id=f"{name}{number}",
            started_at=datetime.now(UTC),
            duration_ms=ms,
            status=status,
            isolation="restricted",
            kind="skill",
            skill=name,
        )
        app.skills.service.run_store().record(record)


async def test_the_review_finds_what_is_to_be_tended_and_says_with_which_command(tmp_path: Path) -> None:
    level = {"tool": "stock.level", "arguments": {"article": "a"}}
    order = {"tool": "stock.order", "arguments": {"article": "b"}, "answer": "ordered"}
    saved(
        tmp_path,
        skill("old"),
        skill("failing"),
        skill("slow"),
        skill("count_lines", "Count the lines of a file."),
        skill("lines_count", "Count the lines of a file."),
        skill("orphan", skills=("missing", "old"), tools=("stock.gone", "stock.level")),
        skill("drifted", recordings=[order, {**level, "answer": {"level": 2, "unit": 1}}]),
        skill("sound", recordings=[{**level, "answer": {"level": 2}}]),
    )
    (tmp_path / "up.py").write_text(UPSTREAM)
    entry = {"command": sys.executable, "args": [str(tmp_path / "up.py")], "cwd": str(tmp_path), "approve": "never"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"stock": entry}}))
    async with running(Settings(workers_spare=0), Home(tmp_path), serves=True) as app:
        ran(app, "failing", ("ok", 1.0), ("error", 1.0), ("timeout", 1.0))
        ran(app, "slow", *[("ok", 20_000.0)] * 3)
        ran(app, "count_lines", ("ok", 1.0))
        with app.database().transaction() as connection:
            old = sa.select(SKILL.c.id).where(SKILL.c.name == "old").scalar_subquery()
            created = {"created_at": datetime.now(UTC) - timedelta(days=40)}
            connection.execute(sa.update(VERSION).where(VERSION.c.skill_id == old).values(created))
        found = await review(app.skills)
    assert (found["calls"], found["skills"], found["count"]) == (2, 8, 6)
    told = {each["name"]: (each["finding"], each["proposal"], each["command"]) for each in found["findings"]}
    assert told == {
        "old": ("unused", "archive", "sealab skills archive old"),
        "failing": ("failing", "mend", "sealab skills test failing"),
        "slow": ("slow", "mend", "sealab skills show slow"),
        "lines_count": ("duplicate", "merge", "sealab skills archive lines_count"),
        "orphan": ("orphan", "mend", "sealab skills show orphan"),
        "drifted": ("drifted", "mend", "sealab skills test --record drifted"),
    }
    why = {each["name"]: each["why"] for each in found["findings"]}
    assert why["old"] == "was never run, and is 40 days old"
    assert why["failing"] == "its last 2 runs ended with timeout"
    assert why["orphan"] == "uses the skill missing, the tool stock.gone, which are not there"
    assert why["drifted"] == (
        'stock.level({"article": "a"}) answers otherwise than was recorded: it has no \'unit\' any more'
    )
    assert not (tmp_path / "ordered").exists(), "a tool that writes was called"


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


def two_skills(home: Path) -> None:
    saved(home, *(skill(name, "Weigh parcels.") for name in ("kept", "put_away")))


served = in_process_server({}, two_skills)


async def test_an_archived_skill_leaves_lists_and_searches_and_can_be_called(served: Caller) -> None:
    with closing(HomeDatabase(None, served.home)) as database:
        SkillStore(database()).archive("put_away")
    for tool, more in (
        ("list_skills", {}),
        ("list_skills", {"query": "parcels"}),
        ("search_tools", {"query": "parcels"}),
    ):
        found = await served.told(tool, **more)
        assert [each["name"] for each in found.get("skills") or found["tools"]] == ["kept"]
    archived = await served.told("list_skills", archived=True, query="weigh")
    assert [each["name"] for each in archived["skills"]] == ["put_away"]
    report = await served.run("[skills.put_away(1), len(list_skills(archived=True)['skills'])]")
    assert report["result"] == [1, 1]
    assert "Nothing to tend among 1 skills." in (await served.call("review_skills")).content[0].text  # type: ignore[union-attr]


def test_what_was_archived_or_deleted_comes_back_by_one_command(tmp_path: Path) -> None:
    two_skills(tmp_path)
    with closing(HomeDatabase(None, tmp_path)) as database:
        SkillStore(database()).delete("kept")
    for words, told in (
        (("archive", "put_away"), {"name": "put_away", "archived": True}),
        (("restore", "put_away"), {"name": "put_away", "restored": "archived"}),
        (("restore", "kept"), {"name": "kept", "restored": "deleted"}),
    ):
        assert sealab("skills", *words, "--home", str(tmp_path), "--json").told == told
    with closing(HomeDatabase(None, tmp_path)) as database:
        assert list(SkillStore(database()).summaries()) == ["kept", "put_away"]
