"""`sealab status` and `sealab top`: one screen that says what runs, waits and fails, and since when."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from sealab.server.home import Home
from sealab.server.upstream_tools.registry_state import failing_servers, in_files, note_failing
from sealab.tools_registry.errors import ConnectFailed

from ..command_line import Ended, sealab
from ..conftest import in_this_process
from ..journal.test_journaled_runs import CLAIMED
from ..runs.background.test_background import begun
from ..upstream_tools.test_registry import ONE_SPARE, configure


async def test_one_screen_says_what_runs_waits_and_fails_and_what_is_used(tmp_path: Path) -> None:
    async def asked(*words: str) -> Ended:
        return await asyncio.to_thread(sealab, *words, "--home", str(tmp_path), **CLAIMED)

    configure(tmp_path, gone={"command": str(tmp_path / "gone")})
    shares = {"SEALAB_CALLER_CPU_SECONDS_PER_DAY": "100", "SEALAB_BACKGROUND_RUNS_MAX": "1"}
    began = time.time()
    async with in_this_process(tmp_path, ONE_SPARE | CLAIMED | shares) as caller:
        assert (await caller.run("await tools.gone.x()"))["status"] == "error"
        running = asyncio.create_task(caller.run("import asyncio\nawait asyncio.sleep(25)"))
        first, second = await begun(caller, "import time\ntime.sleep(50)"), await begun(caller, "2")
        while True:
            told = (await asked("status", "--json")).told
            if len(told["running"]) == 2 and told["last_errors"] and told["shares"]:
                break
            assert time.time() < began + 20, told
        lines = (await asked("status")).stdout
        screens = [(await asked("top", *words)).stdout for words in ((), ("--once",))]
        (foreground,) = [run for run in told["running"] if not run.get("background")]
        for run_id in (foreground["run_id"], first, second):
            assert (await asked("runs", "cancel", run_id)).returncode == 0
        await running
    assert foreground["code"] == "import asyncio"
    assert [run["run_id"] for run in told["waiting"]] == [second]
    (failed,) = told["last_errors"]
    assert failed["code"] == "await tools.gone.x()"
    assert failed["reason"]
    (gone,) = told["failing_servers"]
    assert gone["name"] == "gone"
    assert "gone" in gone["last_error"]
    assert told["shares"][0]["tenant"] == "default"
    assert told["disk"]["free_bytes"] > 0
    for screen in (lines, *screens):
        head, *rest = screen.splitlines()
        assert "2 running, 1 waiting, 0 approvals, 1 failing server" in head
        assert {"running:", "waiting:", "last errors:", "failing servers:"} <= set(rest)


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
