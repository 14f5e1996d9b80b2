"""Questions to the user, in the era in which a question ends the call."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp.types import ElicitResult

from sealab.server.protocol.elicitation import chosen
from tests.waiting import until

from ..conftest import http_server
from ..upstream_tools.test_registry import configure, upstream

ENDS_WHILE_IT_ASKS = """
import asyncio
async def fail():
    await asyncio.sleep(1)
    raise ValueError("over")
await tools.up.add(left=1)
name = ".".join(["up", "append"])  # which nobody can know before it runs
await asyncio.gather(call_tool(name, {{"path": {!r}, "line": "x"}}), fail())
"""


async def test_a_run_that_ended_while_its_user_was_asked_is_reported_all_the_same(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    asked: list[bool] = []
    with http_server(tmp_path) as url:
        async with Client(url, read_timeout_seconds=200) as other:

            async def ended() -> bool:
                content = (await other.call_tool("get_execution_stats", {})).structured_content
                return content is not None and content["runs"]["by_status"]["error"] == 1

            async def user(_context: object, _question: object) -> ElicitResult:
                asked.append(await ended())
                await until(ended)
                return ElicitResult(action="accept", content={"approve": True})

            async with Client(url, read_timeout_seconds=200, elicitation_callback=user) as asking:
                code = ENDS_WHILE_IT_ASKS.format(str(tmp_path / "file"))
                report = (await asking.call_tool("execute_code", {"code": code})).structured_content
                assert report is not None
                assert report["error"]["message"] == "over"
    assert asked == [False]
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("action", "content", "meant"),
    [
        ("accept", {"approve": True, "covers": "the run"}, "the run"),
        ("accept", {"approve": True}, "this call"),
        ("accept", {"approve": True, "covers": "everything"}, "this call"),
        ("accept", {"approve": False, "covers": "the run"}, None),
        ("accept", {"covers": "the run"}, None),
        ("accept", None, None),
        ("decline", {"approve": True}, None),
        ("cancel", {"approve": True}, None),
    ],
)
def test_only_a_form_that_says_yes_is_one_and_it_covers_no_more_than_it_says(
    action: str, content: dict[str, object] | None, meant: str | None
) -> None:
    answer = ElicitResult.model_validate({"action": action, "content": content})
    assert chosen(answer, ["this call", "the run"]) == meant
    assert chosen(answer, []) == (None if meant is None else "")
