"""Schedules as people and agents reach them: by commands and over MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.types import ElicitRequestParams, ElicitResult

from ..command_line import sealab
from ..conftest import in_this_process

NOTE = "def note(word: str = 'x') -> str:\n    'Note a word.'\n    return word"
SPARE = {"SEALAB_WORKERS_SPARE": "1"}


def test_commands_add_list_run_and_remove_a_schedule(tmp_path: Path) -> None:
    (tmp_path / "note.py").write_text(NOTE)
    home = ("--home", str(tmp_path / "home"))
    assert sealab("skills", "save", "note", str(tmp_path / "note.py"), *home).returncode == 0
    added = sealab(
        "schedules", "add", "tick", "--skill", "note", "--every", "weekdays 07:00 Europe/Berlin", "--word", "y", *home
    )
    assert added.returncode == 0
    assert "weekdays 07:00 Europe/Berlin  next 2" in added.stdout
    assert "over stdio does so only while its client runs" in added.stderr
    (told,) = sealab("schedules", "list", "--json", *home).told["schedules"]
    assert (told["skill"], told["version"], told["arguments"], told["owner"]) == ("note", 1, {"word": "y"}, "local")
    assert "has no option --other" in sealab(
        "schedules", "add", "tock", "--skill", "note", "--every", "15 minutes", "--other", "1", *home
    ).refusal(2)
    assert "is no set time" in sealab("schedules", "add", "tock", "--skill", "note", "--every", "now", *home).refusal(2)
    assert sealab("schedules", "remove", "tick", *home).returncode == 0
    assert "You have no schedule tick" in sealab("schedules", "remove", "tick", *home).refusal(2)


async def test_an_agent_needs_the_users_yes_to_add_to_change_and_to_remove_one(tmp_path: Path) -> None:
    asked: list[str] = []
    answers = ["decline", "accept", "decline", "accept", "decline", "accept"]

    async def user(_context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        action = answers.pop(0)
        return ElicitResult(action=action, content={"approve": True} if action == "accept" else None)  # type: ignore[arg-type]  # a literal

    async with in_this_process(tmp_path, SPARE, elicitation_callback=user) as caller:
        await caller.told("save_skill", name="note", code=NOTE)
        times = {"name": "tick", "skill": "note", "every": "daily 07:00 UTC"}
        assert "needs the user's yes" in await caller.refusal("add_schedule", **times)
        assert (await caller.told("list_schedules"))["count"] == 0
        added = await caller.call("add_schedule", **times)
        assert added.structured_content is not None
        assert added.structured_content["version"] == 1
        assert "fires only while its client runs it" in str(added.content[1])
        await caller.told("save_skill", name="note", code=f"{NOTE}.upper()")
        (told,) = (await caller.told("list_schedules"))["schedules"]
        assert "version 2 of note waits for a yes" in told["waits"]
        assert "needs the user's yes" in await caller.refusal("add_schedule", name="tick")
        assert (await caller.told("add_schedule", name="tick"))["version"] == 2
        assert "needs the user's yes" in await caller.refusal("remove_schedule", name="tick")
        assert (await caller.told("list_schedules"))["count"] == 1
        assert await caller.told("remove_schedule", name="tick") == {"name": "tick", "removed": True}
        assert asked[0] == "Run version 1 of the skill note at set times, as the schedule tick: daily 07:00 UTC?"
        assert asked[2] == "Change the schedule tick, and have it run version 2 of the skill note?"
        assert asked[-1] == "Remove the schedule tick?"
        assert len(asked) == 6


async def test_an_agent_whose_user_cannot_be_asked_is_told_what_the_user_can_do(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, SPARE) as caller:
        await caller.told("save_skill", name="note", code=NOTE)
        await caller.told("add_schedule", name="tick", skill="note", every="daily 07:00 UTC")
        said = await caller.refusal("add_schedule", name="tick", every="hourly UTC")
        assert "Have the user run sealab schedules add tick --skill-version 1." in said
        said = await caller.refusal("remove_schedule", name="tick")
        assert "Have the user run sealab schedules remove tick." in said
