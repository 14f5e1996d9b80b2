"""What a server for many writes into the audit log of who is let in, who is not, and who has used up a share."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from sealab.server.base.errors import AuditUnwritten
from sealab.server.base.identity import ALL_RIGHTS, IDENTITY, Identity, Right
from sealab.server.governance.access.guesses import GUESSES_MAX
from sealab.server.governance.access.token_text import new_token
from sealab.server.governance.audit import audit_log
from sealab.server.governance.audit.audit_log import AuditLog
from sealab.server.governance.audit.trail import AuditTrail, DenialReason
from sealab.server.interfaces.protocol.web import authentication
from sealab.server.interfaces.protocol.web.authentication import Authentication
from sealab.skills_db.audit.audit_store import AuditStore, LineFilter
from sealab.skills_db.engine import open_database

from ...waiting import until, wait_until
from ..command_line import sealab
from ..protocol.web.asgi import Passed, asked_of
from ..protocol.web.tokens import made, revoked
from ..tenants.team import Member, command, team_server, token, told
from ..upstream_tools.test_registry import ONE_SPARE
from .test_audited_requests import lines, refuse_lines, verified

CANARY = "canary7f3a"


def of(found: list[dict[str, Any]], *events: str) -> list[dict[str, Any]]:
    return [each for each in found if each["event"] in events]


def many(some: list[dict[str, Any]]) -> int:
    """How many requests some lines stand for."""
    return sum(int(each["details"].get("more", 1)) for each in some)


def stored(home: Path) -> str:
    """All that the table has, as text."""
    with closing(sqlite3.connect(home / "sealab.db")) as database:
        return json.dumps(database.execute("SELECT * FROM sealab_audit_line").fetchall())


def test_sign_ins_denials_and_limits_are_written_down_with_who_it_was_and_never_the_token(tmp_path: Path) -> None:
    ana = made(tmp_path, "ana", "--tenant", "acme", "--scope", "run")
    bob = made(tmp_path, "bob", "--tenant", "globex", "--scope", "run,files")
    gone = made(tmp_path, "gone", "--tenant", "acme")
    wrong = new_token()
    with team_server(tmp_path, SEALAB_CALLER_RUNS_PER_MINUTE="2", **ONE_SPARE) as url:
        for _ in range(2):
            assert Member(url, ana.token).run("6 * 7") == 42
        assert Member(url, bob.token).run("6 * 7") == 42
        for _ in range(3):
            busy = Member(url, ana.token).call("execute_code", code=f"'{CANARY}'")
            assert "CALLER_RUNS_PER_MINUTE" in busy.said
        missing = Member(url, ana.token).call("write_workspace_file", filename=f"{CANARY}.txt", content=CANARY)
        assert missing.status == 403

        def is_refused() -> bool:
            return Member(url, gone.token).request("tools/list", {}).status == 401

        assert not is_refused()
        revoked(tmp_path, gone)
        wait_until(is_refused)
        assert Member(url, None).request("tools/list", {}).status == 401
        statuses = [Member(url, wrong).request("tools/list", {}).status for _ in range(GUESSES_MAX + 5)]
        assert {401, 429} == set(statuses)
        assert Member(url, ana.token).http("POST", f"/mcp?access_token={wrong}", "{}").status == 400
    found = lines(tmp_path)
    assert [
        (each["tenant"], each["principal"], each["rule"], each["credential"]) for each in of(found, "access.signed_in")
    ] == [
        ("acme", "ana", "token", ana.told["id"]),
        ("globex", "bob", "token", bob.told["id"]),
        ("acme", "gone", "token", gone.told["id"]),
    ]
    limited = of(found, "access.limited")
    assert {(each["tenant"], each["principal"], each["rule"]) for each in limited} == {
        ("acme", "ana", "CALLER_RUNS_PER_MINUTE")
    }
    assert many(limited) == 3
    denied = of(found, "access.denied")
    [scope] = [each for each in denied if each["rule"].startswith("scope missing")]
    assert (scope["rule"], scope["principal"], scope["details"]["status"]) == ("scope missing: files", "ana", 403)
    assert scope["details"]["from"] == "127.0.0.1"
    by_reason = {rule: [each for each in denied if each["rule"] == rule] for rule in DenialReason}
    assert many(by_reason[DenialReason.NO_TOKEN]) == many(by_reason[DenialReason.MISPLACED]) == 1
    invalid = by_reason[DenialReason.INVALID]
    assert many(invalid) + many(by_reason[DenialReason.TOO_MANY]) == len(statuses) + 1
    assert len(invalid) < GUESSES_MAX / 3
    table = stored(tmp_path)
    for secret in (ana.token, bob.token, gone.token, wrong, CANARY):
        assert secret not in table
    assert verified(tmp_path)["ok"]


async def test_where_lines_are_required_a_request_is_refused_whose_sign_in_or_denial_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "GIVE_UP_SECONDS", 0.1)
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.02)
    served: list[str] = []
    ana = Identity("acme", "ana", ALL_RIGHTS, "credential")

    class Known:
        async def identity_of(self, token: str) -> Identity | None:
            return ana if token == "good" else None

        async def close(self) -> None:
            pass

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        served.append(scope[IDENTITY].principal)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with open_database(None, tmp_path) as database:
        log = AuditLog(lambda: AuditStore(database, b"k" * 32))
        guarded = Authentication(app, Known(), audit=AuditTrail(log, is_required=True))
        assert (await status_of(guarded, "good"), await status_of(guarded, "bad")) == (200, 401)
        refuse_lines(tmp_path)
        again = Authentication(app, Known(), audit=AuditTrail(log, is_required=True))
        assert (await status_of(again, "good"), await status_of(again, "bad")) == (503, 503)
        assert await status_of(again, "good") == 503
        with closing(sqlite3.connect(tmp_path / "sealab.db", timeout=30)) as connection:
            connection.execute("DROP TRIGGER no_more")

        async def is_written() -> bool:
            with suppress(AuditUnwritten):
                await log.stored()
                return True
            return False

        await until(is_written)
        assert (await status_of(again, "good"), await status_of(again, "bad")) == (200, 401)
        await asyncio.to_thread(log.close)
    assert served == ["ana", "ana"]


def test_a_server_that_requires_lines_answers_503_in_place_of_letting_in_or_denying(tmp_path: Path) -> None:
    known, new = (made(tmp_path, name, "--scope", "run").token for name in ("known", "new"))
    with team_server(tmp_path, SEALAB_AUDIT="required", **ONE_SPARE) as url:
        assert Member(url, known).run("6 * 7") == 42
        refuse_lines(tmp_path)
        refused = [Member(url, sent).request("tools/list", {}) for sent in (new, new_token(), None)]
        refused.append(Member(url, known).call("write_workspace_file", filename="x", content="x"))
        assert [each.status for each in refused] == [503] * 4
        assert all("This was refused, since AUDIT is required." in each.text for each in refused)
        assert Member(url, known).request("tools/list", {}).status == 200  # its line is kept


async def status_of(app: ASGIApp, token: str) -> int:
    """How a request with a token is answered."""
    return (await asked_of(app, ("authorization", f"Bearer {token}"))).status


class Named:
    """Takes every token for the name of its principal."""

    async def identity_of(self, token: str) -> Identity | None:
        return Identity("acme", token, ALL_RIGHTS)

    async def close(self) -> None:
        pass


async def test_a_credential_is_noted_again_only_once_it_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "ACCEPTED_MAX", 2)
    with open_database(None, tmp_path) as database:
        store = AuditStore(database, b"k" * 32)
        log = AuditLog(lambda: store)
        app = Authentication(Passed(), Named(), audit=AuditTrail(log))
        for token in ("a", "b", "a", "c", "a", "b"):
            assert await status_of(app, token) == 200
        await asyncio.to_thread(log.close)
        assert [each.event.principal for each in store.lines(LineFilter())] == ["a", "b", "c", "b"]


def test_commands_on_tokens_and_tenants_leave_lines_of_that_tenant_with_ids_and_proofs_and_no_secret(
    tmp_path: Path,
) -> None:
    ana = made(tmp_path, "ana", "--tenant", "acme", "--scope", "run,files")
    told(tmp_path, "tenants", "create", "acme")
    with team_server(tmp_path, **ONE_SPARE) as url:
        Member(url, ana.token).run(f"write_file('{CANARY}.txt', '{CANARY}')")
    archive = tmp_path / f"{CANARY}.zip"
    told(tmp_path, "tenants", "export", "acme", str(archive))
    assert command(tmp_path, "tokens", "revoke", ana.token, SEALAB_AUDIT="required").returncode == 2
    revoked(tmp_path, ana)
    assert command(tmp_path, "tenants", "delete", "acme").returncode == 2
    proof = told(tmp_path, "tenants", "delete", "acme", "--yes")
    found = lines(tmp_path)
    acts = {each["event"]: each for each in found if each["event"].startswith(("token.", "tenant."))}
    assert list(acts) == ["token.created", "tenant.created", "tenant.exported", "token.revoked", "tenant.deleted"]
    assert {each["principal"] for each in acts.values()} == {"local"}
    assert acts["token.created"]["tenant"] == acts["tenant.deleted"]["tenant"] == "acme"
    assert acts["token.created"]["details"]["token"] == acts["token.revoked"]["details"]["token"] == ana.told["id"]
    assert acts["tenant.exported"]["details"]["files"] >= 1
    removed = acts["tenant.deleted"]["details"]
    assert removed["sha256"] == proof["sha256"]
    assert removed["counted.runs"] == proof["counted"]["runs"]
    assert [each["principal"] for each in of(found, "run.began")] == ["ana"]  # they outlive the tenant
    of_acme = [json.loads(each) for each in command_audit(tmp_path, "--tenant", "acme")][:-1]
    assert {each["tenant"] for each in of_acme} == {"acme"}
    assert {"access.signed_in", "run.began", "tenant.deleted"} <= {each["event"] for each in of_acme}
    table = stored(tmp_path)
    assert ana.token not in table
    assert CANARY not in table
    assert verified(tmp_path)["ok"]


def command_audit(home: Path, *arguments: str) -> list[str]:
    ended = sealab("audit", "--home", str(home), "--json", *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_background_run_is_written_down_as_that_of_who_began_it_also_after_a_restart(tmp_path: Path) -> None:
    ana = made(tmp_path, "ana", "--tenant", "acme", "--scope", "run")
    late = "import asyncio\nfor _ in range(3000):\n    await asyncio.sleep(0.1)\nresult = 1"
    with team_server(tmp_path, **ONE_SPARE) as url:
        reply = Member(url, ana.token).call("execute_code", code=late, background=True)
        assert not reply.failed, reply.said
        wait_until(lambda: of(lines(tmp_path), "run.began"))
    with team_server(tmp_path, **ONE_SPARE) as url:
        member = Member(url, ana.token)
        wait_until(lambda: len(of(lines(tmp_path), "run.began")) == 2)
        member.call("get_run", run_id=reply.structured["run_id"], cancel=True)
    began = of(lines(tmp_path), "run.began")
    assert {(each["tenant"], each["principal"], each["credential"]) for each in began} == {
        ("acme", "ana", ana.told["id"])
    }


def test_a_principal_reads_no_line_of_the_log_whatever_its_rights(tmp_path: Path) -> None:
    everything = ",".join(Right)
    ana = token(tmp_path, "acme", "ana", everything)
    root = token(tmp_path, "default", "root", everything)
    with team_server(tmp_path, **ONE_SPARE) as url:
        for who in (Member(url, ana), Member(url, root)):
            tools = who.request("tools/list", {}).message["result"]["tools"]
            resources = who.request("resources/list", {}).message["result"]["resources"]
            assert not [each["name"] for each in tools if "audit" in each["name"]]
            assert not [each["uri"] for each in resources if "audit" in each["uri"]]
            assert who.request("resources/read", {"uri": "resource://sealab/audit"}, "resource://sealab/audit").failed
            names = who.run("result = [name for name in dir() if 'audit' in name]")
            assert names == []
            assert who.call("read_workspace_file", filename="../sealab.db").failed


def test_what_the_policy_does_not_let_be_restored_is_written_down_with_its_rule_and_who_asked(tmp_path: Path) -> None:
    (tmp_path / "policy.cedar").write_text(
        '@id("all")\npermit (principal, action, resource);\n'
        '@id("no-mail")\nforbid (principal, action == Action::"restore", resource == PersonalDataType::"EMAIL");\n'
    )
    ana = token(tmp_path, "acme", "ana", "run", "privacy:restore")
    env = {"SEALAB_POLICY": str(tmp_path / "policy.cedar"), "SEALAB_PRIVACY_MODE": "fast", **ONE_SPARE}
    with team_server(tmp_path, **env) as url:
        member = Member(url, ana)
        asked = member.call("execute_code", code="result = restore_pii(sanitize_pii('write to canary@corp.example'))")
        assert "no-mail" in json.dumps(asked.message)
    [refused] = of(lines(tmp_path), "privacy.refused")
    assert (refused["tenant"], refused["principal"]) == ("acme", "ana")
    assert (refused["rule"], refused["details"]) == ("policy: no-mail", {"to": "code", "EMAIL": 1})
    assert "canary@corp.example" not in stored(tmp_path)
