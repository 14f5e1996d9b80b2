"""What real servers write into the audit log, and what they refuse when it cannot be written; never a value."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult

from sealab.server.governance.audit import audit_log

from ...waiting import until
from ..command_line import sealab
from ..conftest import Caller, http_process, http_server, in_this_process
from ..upstream_tools.test_registry import ONE_SPARE, configure, upstream

CANARY = "canary7f3a"
SIGNED = "canary.person@corp.example"


def lines(home: Path, **more: str) -> list[dict[str, Any]]:
    ended = sealab("audit", "--home", str(home), "--json", "--limit", "100000", **more)
    assert ended.returncode == 0, ended.stderr
    return [each for each in map(json.loads, ended.stdout.splitlines()) if "head" not in each]


def verified(home: Path) -> dict[str, Any]:
    told: dict[str, Any] = sealab("audit", "verify", "--home", str(home), "--json").told
    return told


async def test_a_server_writes_down_runs_calls_and_decisions_and_no_value_of_them(tmp_path: Path) -> None:
    home = configure(tmp_path, up=upstream(approve="never", deny=["as_text"]))
    code = (
        f"# {CANARY}\n"
        f"write_file('{CANARY}.txt', '{CANARY}')\n"
        f"print('{CANARY}')\n"
        f"await tools.up.append(path={str(home / CANARY)!r}, line='{CANARY}')\n"
        "try:\n    await call_tool('up.as_text', {})\nexcept ToolError:\n    pass\n"
        f"try:\n    await call_tool('{CANARY}.{CANARY}', {{}})\nexcept ToolError:\n    pass\n"
        f"restored = restore_pii(sanitize_pii('write to {SIGNED}'))\n"
        f"result = ['{CANARY}', restored]\n"
    )

    with http_server(home, SEALAB_PRIVACY_MODE="fast", **ONE_SPARE) as url:
        async with Client(url, read_timeout_seconds=120) as client:
            answer = await client.call_tool(
                "execute_code", {"code": code, "context_vars": {CANARY: CANARY}, "timeout_seconds": 110}
            )
            assert answer.structured_content is not None
            assert answer.structured_content["success"], answer.structured_content
            await client.call_tool("execute_code", {"code": f"raise ValueError('{CANARY}')"})
            await client.call_tool("execute_code", {"code": "await tools.up.as_text()"})
            await client.call_tool("execute_code", {"code": "1", "timeout_seconds": 9999})
            saved = {"name": "kept", "code": f"def kept():\n    return '{CANARY}'\n", "description": CANARY}
            await client.call_tool("save_skill", saved)
            await client.call_tool("delete_skill", {"name": "kept"})
    found = lines(home)
    kinds = [each["event"] for each in found]
    assert kinds[0] == "server.started"
    assert kinds[-1] == "server.stopped"
    assert kinds.count("run.began") == kinds.count("run.ended") == 3
    assert [each["outcome"] for each in found if each["event"] == "run.ended"] == ["ok", "error", "refused"]
    [refused] = [each for each in found if each["event"] == "run.refused"]
    assert refused["rule"] == "request"
    calls = [(each["tool"], each["decision"], each["outcome"]) for each in found if each["event"] == "tool.called"]
    assert calls == [
        ("up.append", "allowed", "ok"),
        ("up.?", "refused", "error"),
        ("", "unknown tool", "error"),
        ("up.?", "refused", "not sent"),
    ]
    run = next(each["run"] for each in found if each["event"] == "run.began")
    assert [each["run"] == run for each in found if each["event"] == "tool.called"] == [True, True, True, False]
    [restored] = [each for each in found if each["event"] == "privacy.restored"]
    assert restored["details"] == {"to": "code", "EMAIL": 1}
    assert [each["details"]["skill"] for each in found if each["event"].startswith("skill.")] == ["kept", "kept"]
    assert all(each["tenant"] == "default" for each in found)
    assert verified(home)["lines"] == len(found)
    with closing(sqlite3.connect(home / "sealab.db")) as database:
        kept = json.dumps(database.execute("SELECT * FROM sealab_audit_line").fetchall())
    assert CANARY not in kept
    assert SIGNED not in kept


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (ElicitResult(action="accept", content={"approve": True}), "approved"),
        (ElicitResult(action="decline"), "declined"),
    ],
)
async def test_a_question_and_its_answer_are_written_down(tmp_path: Path, answer: ElicitResult, decision: str) -> None:
    home = configure(tmp_path, up=upstream())

    async def user(_context: object, _question: Any) -> ElicitResult:
        return answer

    async with in_this_process(home, ONE_SPARE, elicitation_callback=user) as caller:
        await caller.run(f"await tools.up.append(path={str(home / 'file')!r}, line='x')")
    found = {each["event"]: each for each in lines(home)}
    assert found["approval.asked"]["tool"] == "up.append"
    assert found["approval.answered"]["decision"].partition(":")[0] == decision
    assert found["approval.answered"]["details"]["by"] == "client"
    assert ("tool.called" in found) is (decision == "approved")


async def test_nothing_is_written_where_the_log_is_off(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_AUDIT": "off", **ONE_SPARE}) as caller:
        await caller.run("1 + 1")
    assert lines(tmp_path) == []


def refuse_lines(home: Path) -> None:
    """Make the database refuse each new line of the log, and nothing else."""
    with closing(sqlite3.connect(home / "sealab.db", timeout=30)) as database:
        database.execute(
            "CREATE TRIGGER no_more BEFORE INSERT ON sealab_audit_line BEGIN SELECT RAISE(ABORT, 'no more'); END"
        )


def readiness(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url.replace("/mcp", "/readyz"), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def run_once(caller: Caller, code: str) -> Any:
    return await caller.client.call_tool("execute_code", {"code": code})


async def test_where_lines_are_required_a_run_is_refused_whose_line_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "GIVE_UP_SECONDS", 0.2)
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.05)
    async with in_this_process(tmp_path, {"SEALAB_AUDIT": "required", **ONE_SPARE}) as caller:
        first = await run_once(caller, "write_file('first.txt', 'x')")
        assert not first.is_error
        refuse_lines(tmp_path)
        second = await run_once(caller, "write_file('second.txt', 'x')")
        assert second.is_error
        assert "This was refused, since AUDIT is required. The audit log cannot be written." in second.content[0].text
        assert sorted(each.name for each in (tmp_path / "workspace").glob("*.txt")) == ["first.txt"]


async def test_else_runs_go_on_and_the_server_says_that_it_is_not_ready(tmp_path: Path) -> None:
    with http_server(tmp_path, **ONE_SPARE) as url:
        async with Client(url, read_timeout_seconds=200) as client:
            await client.call_tool("execute_code", {"code": "1 + 1"})
            await until(lambda: (tmp_path / "sealab.db").exists() and len(lines(tmp_path)) >= 2)
            assert readiness(url)[0] == 200
            refuse_lines(tmp_path)
            answer = await client.call_tool("execute_code", {"code": "6 * 7"})
            assert answer.structured_content is not None
            assert answer.structured_content["result"] == 42

            def is_told() -> bool:
                status, text = readiness(url)
                return status == 503 and "The audit log cannot be written" in text

            await until(is_told)
            answer = await client.call_tool("execute_code", {"code": "6 * 7"})
            assert answer.structured_content is not None


async def test_a_killed_server_leaves_a_chain_that_holds_with_the_line_of_each_run_that_it_began(
    tmp_path: Path,
) -> None:
    with http_process(tmp_path, SEALAB_AUDIT="required", **ONE_SPARE) as server:
        async with Client(server.url, read_timeout_seconds=200) as client:
            for number in range(3):
                await client.call_tool("execute_code", {"code": f"{number}"})
            waiting = asyncio.create_task(
                client.call_tool("execute_code", {"code": "import asyncio\nawait asyncio.sleep(30)"})
            )
            await until(lambda: [each["event"] for each in lines(tmp_path)].count("run.began") == 4)
            server.process.kill()
            waiting.cancel()
            await asyncio.wait({waiting}, timeout=10)
    assert [each["event"] for each in lines(tmp_path)].count("run.began") == 4
    assert verified(tmp_path)["ok"]


async def test_two_servers_of_one_home_keep_one_chain(tmp_path: Path) -> None:
    async def many(url: str) -> None:
        async with Client(url, read_timeout_seconds=200) as client:
            for number in range(15):
                answer = await client.call_tool("execute_code", {"code": f"{number}"})
                assert answer.structured_content is not None
                assert answer.structured_content["result"] == number, answer.structured_content

    options = {"SEALAB_AUDIT": "required", **ONE_SPARE}
    with http_server(tmp_path, **options) as one, http_process(tmp_path, **options) as other:
        await asyncio.gather(many(one), many(other.url))
    found = lines(tmp_path)
    assert [each["number"] for each in found] == list(range(1, len(found) + 1))
    kinds = [each["event"] for each in found]
    assert (kinds.count("run.began"), kinds.count("run.ended"), kinds.count("server.stopped")) == (30, 30, 2)
    assert verified(tmp_path)["lines"] == len(found)


def test_a_server_that_requires_a_log_which_it_cannot_write_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "sealab.db").write_text("no database" * 1000)
    refusal = sealab("serve", "--home", str(tmp_path), SEALAB_AUDIT="required").refusal(3)
    assert "This was refused, since AUDIT is required." in refusal
