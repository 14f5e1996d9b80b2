"""Whose tokens are whose, and what guessing brings: over HTTP and standard input, with real servers."""

from __future__ import annotations

import gc
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sealab.server.app import running, running_tenant
from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import RequestRefused
from sealab.server.base.home import Home
from sealab.server.base.settings import PrivacyLevel as Mode
from sealab.server.base.settings import PrivacyMode, Settings
from sealab.server.governance.caller import Caller
from sealab.server.privacy import privacy as privacy_module
from sealab.server.privacy.detection.detect import Detector
from sealab.server.privacy.gates.answer_gate import AnswerFilter
from sealab.server.privacy.privacy import Privacy
from sealab.skills_db.vault import AuditLine, Vault

from ...waiting import until
from ..conftest import http_server, in_this_process, server_over_http

MAIL = "jane.roe@corp.example"
FAST = {"SEALAB_PRIVACY_MODE": "fast"}


url = server_over_http(**FAST)


def noted(privacy: Privacy, limit: int) -> list[AuditLine]:
    """Return what the audit says once all is written."""
    privacy.close()
    return privacy.vault().audit(limit)


async def answer(client: Client, tool: str, text: str) -> dict[str, Any]:
    result = await client.call_tool(tool, {"text": text})
    assert result.structured_content is not None, result
    return result.structured_content


async def test_the_tools_hide_and_give_back_and_name_what_they_do_not_know(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, FAST) as caller:
        hidden = await answer(caller.client, "sanitize_pii", f"write to {MAIL}, SSN: 536-90-4399; again {MAIL}")
        assert hidden["pii_found"] == 2
        assert hidden["pii_types"] == ["EMAIL", "SSN"]
        assert MAIL not in hidden["sanitized_text"]
        unknown = "[EMAIL_0123456789]"
        restored = await answer(caller.client, "restore_pii", f"{hidden['sanitized_text']} {unknown}")
        assert restored == {
            "restored_text": f"write to {MAIL}, SSN: 536-90-4399; again {MAIL} {unknown}",
            "restored": 3,
            "unknown_tokens": [unknown],
        }
        nothing = {"sanitized_text": "nothing", "pii_found": 0, "pii_types": []}
        assert await answer(caller.client, "sanitize_pii", "nothing") == nothing
    async with in_this_process(tmp_path, FAST) as later:
        again = (await answer(later.client, "sanitize_pii", MAIL))["sanitized_text"]
        assert again in hidden["sanitized_text"]
        assert (await answer(later.client, "restore_pii", again))["restored_text"] == MAIL


async def test_values_are_given_back_only_where_the_model_may_have_them(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_RESTORE_TO_MODEL": "false", **FAST}) as caller:
        assert (await caller.run("restore_pii('[EMAIL_0123456789]')"))["error"]["type"] == "PermissionError"
        assert (await caller.call("restore_pii", text="[EMAIL_0123456789]")).is_error


async def test_with_privacy_off_there_is_no_vault_to_ask(tmp_path: Path) -> None:
    # The keys of journals and of the audit log are derived from the vault's.
    env = {"SEALAB_PRIVACY": "off", "SEALAB_JOURNAL": "off", "SEALAB_AUDIT": "off"}
    async with in_this_process(tmp_path, env) as caller:
        shown = {tool.name for tool in (await caller.client.list_tools()).tools}
        assert not {"sanitize_pii", "restore_pii"} & shown
        assert "PRIVACY is off" in (await caller.run("sanitize_pii('x')"))["error"]["message"]
    assert not (tmp_path / "vault.key").exists()


@asynccontextmanager
async def credited(url: str, credentials: str | None = None, mode: Any = "auto") -> AsyncIterator[Client]:
    """Give a client with these credentials."""
    headers = {} if credentials is None else {"Authorization": credentials}
    async with httpx2.AsyncClient(headers=headers, timeout=50) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=200) as client:
            yield client


async def test_sessions_over_http_have_vaults_of_their_own(url: str) -> None:
    async with Client(url, mode="legacy", read_timeout_seconds=200) as one, Client(url, mode="legacy") as other:
        mine = (await answer(one, "sanitize_pii", MAIL))["sanitized_text"]
        theirs = (await answer(other, "sanitize_pii", MAIL))["sanitized_text"]
        assert mine != theirs
        assert (await answer(other, "restore_pii", mine))["unknown_tokens"] == [mine]
        assert (await answer(one, "restore_pii", mine))["restored_text"] == MAIL


async def test_the_values_of_a_session_go_with_it_and_those_of_credentials_stay(tmp_path: Path) -> None:
    async def hide(url: str, credentials: str | None = None) -> list[int]:
        async with credited(url, credentials, "legacy") as client:
            await answer(client, "sanitize_pii", MAIL)
            return lives_in(tmp_path)

    with http_server(tmp_path, **FAST) as url:
        for _ in range(3):
            assert 1 in await hide(url)
            assert 90 in await hide(url, "Bearer one")
    # Not the session's own, but the caller's: the same value is one row, however often it comes back.
    assert lives_in(tmp_path) == [90]


def lives_in(home: Path) -> list[int]:
    """Return for how many days each value in the vault of a home lives."""
    with closing(sqlite3.connect(home / "sealab.db")) as database:
        rows = database.execute("SELECT expires FROM sealab_vault_value").fetchall()
    return [round((expires - time.time()) / 86_400) for (expires,) in rows]


async def test_what_outlives_its_time_is_removed_from_the_disk_while_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy_module, "PURGE_SECONDS", 0.05)
    env = {"SEALAB_PRIVACY_TTL_DAYS": "0.00001", "SEALAB_VAULT_KEYRING": "false", **FAST}
    async with in_this_process(tmp_path, env) as caller:
        await caller.call("sanitize_pii", text=MAIL)
        await until(lambda: not lives_in(tmp_path))
        assert not (await caller.call("sanitize_pii", text=MAIL)).is_error


async def test_many_scopes_at_once_are_all_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = HomeDatabase(None, tmp_path)
    privacy = Privacy(Settings(privacy=Mode.TOOLS, privacy_mode=PrivacyMode.FAST), tmp_path, database)
    texts = {f"scope {number}": f"{number}: mail jane{number}@corp.example" for number in range(100)}
    for _ in range(2):
        shown = {scope: await privacy.hide_text(scope, text) for scope, text in texts.items()}
    looked_for: list[int] = []
    find_leaves = Detector.find_leaves
    monkeypatch.setattr(Detector, "find_leaves", lambda *given: looked_for.append(1) or find_leaves(*given))
    opened: list[int] = []
    plain = Vault._opened
    monkeypatch.setattr(Vault, "_opened", lambda *given: opened.append(1) or plain(*given))
    assert {scope: await privacy.hide_text(scope, text) for scope, text in texts.items()} == shown
    assert (looked_for, opened) == ([], [])
    privacy.close()
    database.close()


async def test_credentials_tell_callers_apart_and_outlive_their_sessions(url: str) -> None:
    async def asked(tool: str, text: str, credentials: str) -> dict[str, Any]:
        async with credited(url, credentials) as client:
            return await answer(client, tool, text)

    token = (await asked("sanitize_pii", MAIL, "Bearer one"))["sanitized_text"]
    assert (await asked("restore_pii", token, "Bearer one"))["restored_text"] == MAIL
    assert (await asked("restore_pii", token, "Bearer two"))["unknown_tokens"] == [token]


@pytest.fixture
async def privacy(tmp_path: Path) -> AsyncIterator[Privacy]:
    database = HomeDatabase(None, tmp_path)
    yield Privacy(Settings(privacy=Mode.TOOLS, privacy_mode=PrivacyMode.FAST), tmp_path, database)
    database.close()


async def test_guesses_find_nothing_are_told_alike_and_cost_a_wait(
    privacy: Privacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy._guesses, "most", 40)
    real = await privacy.hide_text("home", MAIL)
    guesses = [real[:-2] + letter + "]" for letter in "0123456789abcdefghjkmnpqrstvwxyz" if letter != real[-2]]
    guesses += [real.replace("EMAIL", kind) for kind in ("PERSON", "SSN", "X")]
    for guess in guesses:
        answered = await privacy.restored_for_model(Caller("home"), guess)
        assert (answered.content, answered.unknown, answered.count) == (guess, (guess,), 0)
    while len(guesses) < 40:
        guesses.append("[EMAIL_0000000000]")
        await privacy.restored_for_model(Caller("home"), guesses[-1])
    with pytest.raises(RequestRefused, match="Wait a minute"):
        await privacy.restored_for_model(Caller("home"), real)
    assert (await privacy.restored_for_model(Caller("another"), real)).unknown == (real,)
    assert "unknown" in {line.action for line in noted(privacy, 100)}


async def test_no_token_comes_back_for_what_was_said_of_another(privacy: Privacy, tmp_path: Path) -> None:
    first = await privacy.hide_text("home", MAIL)
    database = HomeDatabase(None, tmp_path)
    restarted = Privacy(Settings(privacy=Mode.TOOLS, privacy_mode=PrivacyMode.FAST), tmp_path, database)
    second = await restarted.hide_text("home", "john.doe@corp.example")
    assert first != second
    assert (
        await restarted.restored_for_model(Caller("home"), f"{first} {second}")
    ).content == f"{MAIL} john.doe@corp.example"
    database.close()


async def test_what_callers_with_credentials_keep_in_a_session_no_others_find_there(url: str) -> None:
    async def run(credentials: str | None, code: str) -> object:
        async with credited(url, credentials) as client:
            report = (await client.call_tool("execute_code", {"code": code, "session": "a"})).structured_content
            return report and report["result"]

    callers = ("Bearer a", "Bearer b", None)
    for number, caller in enumerate(callers):
        await run(caller, f"kept = {number}")
    assert [await run(caller, "kept") for caller in callers] == [0, 1, 2]


async def test_what_is_kept_of_a_run_is_found_by_its_caller_alone(url: str) -> None:
    async def call(credentials: str, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        async with credited(url, credentials) as client:
            result = await client.call_tool(tool, arguments)
            return bool(result.is_error), result.structured_content or result.model_dump_json()

    _, report = await call("Bearer a", "execute_code", {"code": "print('kept ' * 20_000)"})
    run_id, file = report["run_id"], f".runs/{report['run_id']}/output.txt"
    assert file in report["truncated"]["output"]["read_with"]
    ways: list[tuple[str, dict[str, Any]]] = [
        ("read_workspace_file", {"filename": file}),
        ("list_workspace_files", {"subpath": f".runs/{run_id}"}),
        ("save_skill", {"name": "taken", "from_run": run_id}),
        ("execute_code", {"code": f"read_file({file!r})[:4]"}),
        ("execute_code", {"code": f"list_files('.runs/{run_id}')"}),
    ]
    for tool, arguments in ways:
        failed, said = await call("Bearer b", tool, arguments)
        assert failed, (tool, said)
        assert "kept kept" not in str(said)
    for tool, arguments in ways:
        failed, said = await call("Bearer a", tool, arguments)
        assert not failed, (tool, said)
    for credentials, found in (("Bearer a", True), ("Bearer b", False)):
        _, listed = await call(credentials, "list_workspace_files", {"subpath": ".runs"})
        assert (file in [each["name"] for each in listed["files"]]) is found
        _, report = await call(credentials, "execute_code", {"code": "[f['name'] for f in list_files('.runs')]"})
        assert (file in report["result"]) is found, report


async def test_all_of_a_skills_frontmatter_is_hidden_and_not_its_description_alone(privacy: Privacy) -> None:
    front = {"name": "mailer", "description": f"for {MAIL}", "metadata": {"author": MAIL, "notes": [f"ask {MAIL}"]}}

    async def listed(_ctx: Any) -> Any:
        return {"skills": [{"uri": "skill://mailer/SKILL.md", "frontmatter": front, "resources": []}]}

    request: Any = SimpleNamespace(method="skills/list", request_id=1, params={})
    answered: Any = await AnswerFilter(privacy, lambda _ctx: Caller("home"), frozenset())(request, listed)
    assert MAIL not in json.dumps(answered)
    assert answered["skills"][0]["frontmatter"]["name"] == "mailer"
    assert answered["skills"][0]["uri"] == "skill://mailer/SKILL.md"


async def test_the_cursor_of_a_list_of_skills_is_hidden_and_taken_back(privacy: Privacy) -> None:
    last, cursors = f"mail_{MAIL}", []

    @dataclass(frozen=True)
    class Asked:
        params: dict[str, Any]
        method: str = "skills/list"
        request_id: int = 1

    async def listed(ctx: Any) -> Any:
        cursors.append(ctx.params.get("cursor"))
        return {"skills": [], "nextCursor": last}

    filtering = AnswerFilter(privacy, lambda _ctx: Caller("home"), frozenset())
    shown = cast("Any", await filtering(cast("Any", Asked({})), listed))["nextCursor"]
    assert MAIL not in shown
    for given, taken in ((shown, last), (f"{shown}x", f"{shown}x")):
        await filtering(cast("Any", Asked({"cursor": given})), listed)
        assert cursors[-1] == taken, "what was not shown so is not restored, since an error could quote it"


async def test_the_audit_and_the_log_hold_no_values(privacy: Privacy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        token = await privacy.hide_text("home", MAIL)
        await privacy.restored_for_model(Caller("home"), token)
    assert MAIL not in caplog.text
    assert MAIL not in json.dumps([str(line) for line in noted(privacy, 10)])
    assert [(line.action, line.type) for line in noted(privacy, 10)] == [("restore", "EMAIL"), ("hide", "EMAIL")]


async def hidden(privacy: Privacy) -> str:
    return str(await privacy.hide_value("home", f"Write to {MAIL}."))


async def test_a_second_tenant_loads_nothing_and_keeps_nothing_from_being_collected(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with running(Settings(privacy_mode=PrivacyMode.FAST), home) as operators:
        assert MAIL not in await hidden(operators.privacy)
        kept = gc.get_freeze_count()
        assert kept
        for tenant in ("acme", "globex"):
            async with running_tenant(operators, home.of_tenant(tenant)) as app:
                assert app.privacy.detectors is operators.privacy.detectors
                assert MAIL not in await hidden(app.privacy)
                assert gc.get_freeze_count() <= kept  # what was frozen may end
