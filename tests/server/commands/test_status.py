"""`sealab status` and `sealab top`: one screen that says what runs, waits and fails, and since when."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from sealab.server.base.database import HomeDatabase
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.governance.caller import LOCAL
from sealab.server.privacy.privacy import Privacy
from sealab.server.use_cases.upstream_tools.registry_state import failing_servers, in_files, note_failing
from sealab.skills_db.journal.background_store import BackgroundStore
from sealab.tools_registry.errors import ConnectFailed

from ...waiting import until
from ..command_line import Ended, sealab
from ..conftest import in_this_process
from ..journal.test_journaled_runs import CLAIMED, store
from ..upstream_tools.test_registry import ONE_SPARE, configure


async def test_one_screen_says_what_runs_waits_and_fails_and_what_is_used(tmp_path: Path) -> None:
    async def asked(*words: str) -> Ended:
        return await asyncio.to_thread(sealab, *words, "--home", str(tmp_path), **CLAIMED)

    configure(tmp_path, gone={"command": str(tmp_path / "gone")})
    env = ONE_SPARE | CLAIMED | {"SEALAB_CALLER_CPU_SECONDS_PER_DAY": "100"}
    async with in_this_process(tmp_path, env) as caller:
        assert (await caller.run("await tools.gone.x()"))["status"] == "error"
        running = asyncio.create_task(caller.run("import asyncio\nawait asyncio.sleep(25)"))
        journals = store(tmp_path)
        await until(lambda: {each.ended is None for each in journals.runs()} == {True, False})
        told = (await asked("status", "--json")).told
        running.cancel()
    (foreground,), (failed,), (gone,), (share,) = (
        told[name] for name in ("running", "last_errors", "failing_servers", "shares")
    )
    assert foreground["code"] == "import asyncio"
    assert failed["code"] == "await tools.gone.x()"
    assert failed["reason"]
    assert gone["name"] == "gone"
    assert "gone" in gone["last_error"]
    assert (share["tenant"], share["who"]) == ("default", "local")
    assert told["disk"]["free_bytes"] > 0
    queued(tmp_path, "2")
    head, *rest = (await asked("top")).stdout.splitlines()
    assert "0 running, 1 waiting, 0 approvals, 1 failing server" in head
    assert {"waiting:", "last errors:", "failing servers:"} <= set(rest)


def queued(home: Path, code: str) -> None:
    """Queue a background run, which no server takes."""
    database = HomeDatabase(None, home)
    key = Privacy(Settings(vault_keyring=False), home, database).key()
    told = {"scope": LOCAL.scope, "code": code}
    assert BackgroundStore(database(), key, process="").put(
        "0" * 26, LOCAL.scope, told, expires=time.time() + 60, most=1
    )
    database.close()


def test_since_when_a_server_fails_is_kept_until_it_works_again(tmp_path: Path) -> None:
    state = in_files(Home(tmp_path))
    note_failing(state, "crm", ConnectFailed("It is gone."))
    before = failing_servers(state)["crm"]
    note_failing(state, "crm", ConnectFailed("It is gone still."))
    note_failing(state, "erp", None)
    assert failing_servers(state) == {"crm": {**before, "last_error": "It is gone still."}}
    note_failing(state, "crm", None)
    assert failing_servers(state) == {}
    assert json.loads((tmp_path / "registry" / "failing.json").read_text()) == {}
