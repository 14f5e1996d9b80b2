"""A list of runs costs what it shows, however many there are."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

from sealab.server.base.database import HomeDatabase
from sealab.server.base.home import Home
from sealab.server.base.settings import PrivacyLevel, Settings
from sealab.server.governance.caller import LOCAL
from sealab.server.interfaces.commands.opened import HereInServer, OpenedHome
from sealab.server.interfaces.commands.runs import hidden_runs
from sealab.server.interfaces.console.rendering import rendered
from sealab.server.privacy.privacy import Privacy
from sealab.server.use_cases.journal.journal import Journal
from sealab.server.use_cases.runs.background.background_listing import RunFilter
from sealab.skills_db.journal.records import RunBegin, RunChange

RUNS = 10_000
SECONDS_MAX = 0.2


def many_runs(home: OpenedHome) -> float:
    """Write so many runs, none of which has an end, and return when the first began."""
    now = time.time()
    begins = []
    for number in range(RUNS):
        run_id, header = f"{number:026d}", json.dumps({"code": f"result = {number}"}).encode()
        begun = RunBegin(run_id, LOCAL.scope, "restricted", now - RUNS + number, now + 600, 30.0, 500, header)
        begins.append(RunChange(run_id, 0, begun))
    home.journal.store().write(begins, dict.fromkeys((each.run_id for each in begins), LOCAL.scope), durable=False)
    return now - RUNS


def test_ten_thousand_runs_are_listed_within_200_ms_of_processor_time(tmp_path: Path) -> None:
    settings = Settings(vault_keyring=False, journal_quota_mb=10_000, privacy=PrivacyLevel.OFF)
    database = HomeDatabase(None, tmp_path)
    privacy = Privacy(settings, tmp_path, database)
    home = OpenedHome(Home(tmp_path), database, privacy, Journal(settings, database, privacy.key, keeps=False))
    try:
        first = many_runs(home)
        here = HereInServer(settings, home.home, {"default": home})
        rendered("runs.html", base="/console", data={"count": 0, "runs": []}, query={})  # templates are compiled once
        gc.collect()
        began = time.process_time()
        runs = hidden_runs(here, RunFilter(limit=50))
        page = rendered("runs.html", base="/console", data={"count": 50, "runs": runs}, query={})
        assert time.process_time() - began < SECONDS_MAX
        assert page.count("<tr>") == 51
        assert "Older ones" in page
        before = hidden_runs(here, RunFilter(limit=3, until=first + 3))
        assert [each["run_id"][-2:] for each in before] == ["02", "01", "00"]
    finally:
        privacy.close()
        database.close()
