"""`sealab pii forget --principal`: what is kept of a person who leaves goes, and nothing of anybody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.identity import ALL_RIGHTS, Identity
from sealab.server.governance.caller import Caller
from sealab.server.governance.scopes import of_principal
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest

from ..command_line import sealab
from ..conftest import settings_of

ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEYRING": "false"}


def told(home: Path, *words: str) -> Any:
    return sealab(*words, "--home", str(home), "--json", SEALAB_VAULT_KEYRING="false").told


async def test_runs_tokens_and_limits_of_one_person_are_erased_and_those_of_others_stay(tmp_path: Path) -> None:
    runs: dict[str, str] = {}
    async with running(settings_of(tmp_path, ENV), Home(tmp_path), serves=True) as app:
        for name in ("ben", "benny"):
            caller = Caller(of_principal(name), identity=Identity("default", name, ALL_RIGHTS))
            runs[name] = (await execute(app.executor, replace(CodeRequest(code="1 + 1"), caller=caller))).report[
                "run_id"
            ]
    for name in runs:
        told(tmp_path, "tokens", "create", name)
        told(tmp_path, "limits", "set", "runs_max", "2", "--who", name)
    shown = told(tmp_path, "pii", "forget", "--principal", "ben")
    assert (shown["erased"], shown["runs"], shown["kept_runs"]) == (False, [runs["ben"]], [runs["ben"]])
    assert (shown["tokens"], shown["limits"]) == (1, 1)
    erased = told(tmp_path, "pii", "forget", "--principal", "ben", "--yes")
    assert {**shown, "erased": True} == erased
    again = told(tmp_path, "pii", "forget", "--principal", "ben")
    assert (again["runs"], again["kept_runs"], again["tokens"], again["limits"]) == ([], [], 0, 0)
    of_benny = told(tmp_path, "pii", "forget", "--principal", "benny")
    assert (of_benny["runs"], of_benny["tokens"], of_benny["limits"]) == ([runs["benny"]], 1, 1)
    states = {each["principal"]: each["state"] for each in told(tmp_path, "tokens", "list")["tokens"]}
    assert states == {"ben": "revoked", "benny": "valid"}
    said = sealab("audit", "list", "--home", str(tmp_path), "--json", SEALAB_VAULT_KEYRING="false").stdout
    [line] = [
        each
        for each in map(json.loads, said.splitlines())
        if each.get("details", {}).get("of") == "ben" and "runs" in each["details"]
    ]
    assert (line["details"]["runs"], line["details"]["command"]) == (1, "pii forget")


def test_the_home_itself_is_no_principal_and_one_thing_is_forgotten_at_a_time(tmp_path: Path) -> None:
    env = {"SEALAB_VAULT_KEYRING": "false"}
    local = sealab("pii", "forget", "--principal", "local", "--home", str(tmp_path), **env)
    assert "Give --scope home" in local.refusal()
    both = sealab("pii", "forget", "Ada", "--principal", "ben", "--home", str(tmp_path), **env)
    assert "or --principal NAME" in both.refusal()
