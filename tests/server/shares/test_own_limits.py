"""Limits that `sealab limits set` gives, and a changed settings file, count in servers that run."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.host.repl_sessions import SessionRoom
from sealab.sandbox.host.scheduler import RunBounds
from sealab.sandbox.job import Owner
from sealab.server.base.startup import watched_settings
from sealab.server.base.startup.watched_settings import WatchedSettings
from sealab.server.governance.shares import limits
from sealab.server.governance.shares.limits import OwnLimits
from sealab.skills_db.engine import open_database
from sealab.skills_db.tenants.tenant_store import LimitOf, LimitStore

from ...waiting import until
from ..command_line import sealab
from ..conftest import in_this_process, settings_of
from .test_shares import ONE_SPARE, shares


def test_a_limit_is_set_listed_audited_and_taken_back(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path), "--json")
    done = sealab("limits", "set", "runs_per_minute", "3", "--tenant", "acme", "--who", "ben", *home)
    assert done.told == {"tenant": "acme", "who": "ben", "name": "caller_runs_per_minute", "value": 3}
    assert sealab("limits", "set", "RUNS-MAX", "0", "--tenant", "acme", *home).returncode == 0
    told = sealab("limits", "list", *home).told
    assert [(each["tenant"], each["who"], each["name"], each["value"]) for each in told["limits"]] == [
        ("acme", None, "tenant_runs_max", 0),
        ("acme", "ben", "caller_runs_per_minute", 3),
    ]
    assert told["settings"]["caller_runs_max"] == 0
    of_ben = sealab("limits", "list", "--who", "ben", *home).told
    assert of_ben["count"] == 1
    assert sealab("limits", "set", "runs_max", "default", "--tenant", "acme", *home).returncode == 0
    assert sealab("limits", "list", "--tenant", "acme", *home).told["count"] == 1
    lines = map(json.loads, sealab("audit", "list", *home).stdout.splitlines())
    assert [line["details"]["value"] for line in lines if line.get("event") == "limit.set"] == ["3", "0", "default"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("runs", "3"), "Did you mean runs_max? The limits are runs_max, runs_per_minute"),
        (("caller_runs_max", "3"), "not a limit of a tenant"),
        (("runs_max", "many"), "TENANT_RUNS_MAX is 'many', which cannot be used. Give a whole number from 0 up."),
        (("runs_max", "1", "--tenant", "No"), "not the name of a tenant"),
    ],
)
def test_what_is_no_limit_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = sealab("limits", "set", *words, "--home", str(tmp_path))
    assert done.returncode != 0
    assert said in done.stderr


async def test_a_running_server_takes_a_limit_up_and_loses_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFRESH_SECONDS", 0.0)
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        assert (await caller.run("1"))["success"]
        store = LimitStore(open_database(None, tmp_path))
        store.put(LimitOf("default", "local", "caller_runs_per_minute"), 1)
        store.put(LimitOf("default", "other", "caller_sessions_max"), 1)
        refused = await caller.run("1")
        told = (await shares(caller))["limits"]
        store.put(LimitOf("default", "local", "caller_runs_per_minute"), None)
        again = await caller.run("1")
        store.put(LimitOf("default", "", "tenant_cpu_seconds_per_day"), 1e-9)
        await caller.run("sum(range(100_000))")
        spent = await caller.run("1")
    assert refused["status"] == "busy"
    assert (
        "has begun 1 runs within a minute, as many as one may (CALLER_RUNS_PER_MINUTE)" in refused["error"]["message"]
    )
    assert (told["caller_runs_per_minute"], told["caller_sessions_max"]) == (1, 0)
    assert again["success"]
    assert "TENANT_CPU_SECONDS_PER_DAY" in spent["error"]["message"]


async def test_runs_and_sessions_at_once_have_limits_of_their_own(tmp_path: Path) -> None:
    database = open_database(None, tmp_path)
    store = LimitStore(database)
    store.put(LimitOf("default", "ben", "caller_runs_max"), 1)
    store.put(LimitOf("acme", "", "tenant_sessions_max"), 2)
    known = OwnLimits(settings_of(tmp_path, {"SEALAB_CALLER_SESSIONS_MAX": "3"}), lambda: database)
    await known.refreshed()
    own = known.of_home("default")
    bounds = RunBounds(own=own)
    bounds.runs_of = lambda _owner: 1  # type: ignore[method-assign]
    assert "1 runs at once already" in (bounds.refusal(Owner("", "principal ben")) or "")
    assert bounds.refusal(Owner("", "principal ann")) is None
    assert SessionRoom(8, own=own).of(Owner("", "principal ben")) == (3, 8)
    assert SessionRoom(8, own=own).of(Owner("acme", "principal ann")) == (2, 2)
    database.close()


async def test_a_changed_settings_file_is_taken_up_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watched_settings, "LOOK_SECONDS", 0.01)
    file = tmp_path / "sealab.toml"

    def read() -> Any:
        return settings_of(tmp_path, {})

    known = OwnLimits(read())
    watched = WatchedSettings(file, read, read())
    watching = asyncio.create_task(watched.watch(known.take))
    level = logging.getLogger().level
    try:
        file.write_text("CALLER_RUNS_MAX = 2\nWORKERS_MAX = 3\n")
        await until(lambda: bool(caplog.messages))
        file.write_text("CALLER_RUNS_MAX = [")
        await until(lambda: len(caplog.messages) > 1)
    finally:
        watching.cancel()
        logging.getLogger().setLevel(level)
    assert known.most("caller_runs_max", Owner("", "home")) == 2
    first, second = caplog.messages
    assert first.endswith("has changed. In force from now on: CALLER_RUNS_MAX. Only a restart takes up WORKERS_MAX.")
    assert "is not valid TOML" in second
    assert second.endswith("The settings before stay in force.")
