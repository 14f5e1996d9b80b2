"""Programs that import what only full Python has run there, decided before anything runs."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sealab.sandbox.confine import Level
from sealab.sandbox.host.run_folders import RunFolders
from sealab.sandbox.job import Isolation
from sealab.server.app import App, running
from sealab.server.base.errors import RequestRefused
from sealab.server.base.home import Home
from sealab.server.base.identity import Right
from sealab.server.base.settings import Settings, Switch
from sealab.server.governance.caller import LOCAL
from sealab.server.use_cases.managed_python import building, first_need
from sealab.server.use_cases.managed_python.full_python import BELOW_KERNEL, READ_ONLY, FullPythonInterpreter
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.placement.routing import can_start
from sealab.server.use_cases.runs.report import Report
from sealab.server.use_cases.runs.request import CodeRequest

from ...command_line import sealab
from ...managed_python.kernel import needs_kernel
from ...managed_python.wheels import lock, wheel
from .conftest import PANDAS

CODE = "import pandas as pd\npd.total(40, 2)"
ALONE = Settings(workers_spare=0)


@pytest.fixture(scope="module")
async def app(home: Home) -> AsyncIterator[App]:
    async with running(ALONE, home, serves=True) as app:
        yield app


async def ran(app: App, code: str, **request: object) -> Report:
    return (await execute(app.executor, CodeRequest(code, **request))).report  # type: ignore[arg-type]  # as given


@needs_kernel
@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "import json, pandas\npandas.total(42)",
        "def later():\n    from pandas import total\n    return total(42)\nlater()",
        "import \\\n  pandas\npandas.total(42)",
        "import ctypes\nimport pandas\npandas.total(42)",
    ],
)
async def test_a_program_that_imports_a_package_of_full_python_runs_in_it(app: App, code: str) -> None:
    report = await ran(app, code)
    assert (report["status"], report["result"], report["isolation"]) == ("ok", 42, "process")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("'import pandas'", "import pandas"),
        ("import json\njson.loads('7')", 7),
        ("try:\n    import pandas\nexcept ImportError:\n    pandas = None\npandas is None", True),
        ("# import pandas\n1", 1),
    ],
)
async def test_any_other_program_stays_in_the_dialect(app: App, code: str, result: object) -> None:
    report = await ran(app, code)
    assert (report["result"], report["isolation"]) == (result, "restricted")


@pytest.mark.parametrize(("code", "isolation"), [("import ctypes", "auto"), (CODE, "restricted")])
async def test_neither_the_standard_library_alone_nor_what_is_asked_to_stay_is_moved(
    app: App, code: str, isolation: str
) -> None:
    report = await ran(app, code, isolation=isolation)
    assert (report["status"], report["isolation"]) == ("refused", "restricted")


@needs_kernel
async def test_a_session_begins_where_its_first_program_can_run_and_goes_on_there(app: App) -> None:
    await ran(app, "import pandas\nkept = pandas.total(40)", session="new")
    report = await ran(app, "kept + 2", session="new")
    assert (report["result"], report["isolation"]) == (42, "process")


@needs_kernel
async def test_a_session_of_the_dialect_stays_and_the_answer_says_what_to_do(app: App) -> None:
    await ran(app, "kept = 5", session="old")
    refused = await ran(app, CODE, session="old")
    assert (refused["status"], refused["isolation"]) == ("refused", "restricted")
    assert refused["error"] is not None
    assert "Give another session name" in str(refused["error"]["hint"])
    assert 'isolation="process"' not in str(refused["error"]["hint"])  # which that session is refused too
    assert (await ran(app, "kept", session="old"))["result"] == 5
    assert (await ran(app, CODE, session="another"))["result"] == 42


@needs_kernel
async def test_a_session_of_the_dialect_that_lost_its_worker_is_not_taken_for_a_new_one(app: App) -> None:
    await ran(app, "kept = 6", session="lost")
    assert await app.pools.end_session("lost")
    assert (await ran(app, CODE, session="lost"))["isolation"] == "restricted"
    assert (await ran(app, "kept", session="lost"))["result"] == 6


@needs_kernel
async def test_a_session_of_full_python_that_lost_its_worker_begins_anew_there(app: App) -> None:
    await ran(app, CODE, session="full")
    assert await app.pools.end_session("full")
    report = await ran(app, CODE, session="full")
    assert (report["result"], report["isolation"]) == (42, "process")
    assert "ended" in report["session_ended"]


@needs_kernel
async def test_a_caller_without_the_scope_is_told_which_it_lacks(app: App) -> None:
    rights = frozenset(Right) - {Right.RUN_PROCESS}
    caller = dataclasses.replace(LOCAL, identity=dataclasses.replace(LOCAL.identity, rights=rights))
    report = await ran(app, CODE, caller=caller)
    assert (report["status"], report["isolation"]) == ("refused", "restricted")
    assert report["error"] is not None
    assert "the token lacks the scope run:process" in str(report["error"]["hint"])


@needs_kernel
async def test_the_journal_and_the_report_say_where_it_ran(app: App) -> None:
    report = await ran(app, CODE)
    await app.executor.journal.stored(durable=True)
    newest = app.executor.journal.store().runs(limit=1)[0]
    assert (newest.run_id, newest.isolation) == (report["run_id"], "process")


def test_by_default_no_worker_starts_below_kernel_and_by_name_it_starts_where_the_rest_does(home: Home) -> None:
    assert FullPythonInterpreter(Settings(required_level=Level.LIMITS), home).required_level is Level.KERNEL
    named = Settings(required_level=Level.LIMITS, allowed_isolation=(*_all(),))
    assert FullPythonInterpreter(named, home).required_level is Level.LIMITS


def _all() -> tuple[object, ...]:
    return tuple(Isolation)


async def test_where_it_cannot_start_the_program_stays_in_the_dialect_and_the_reason_is_told(home: Home) -> None:
    async with running(ALONE, home) as app:
        app.executor.offer.full_python.cannot(BELOW_KERNEL)
        assert (await ran(app, CODE))["isolation"] == "restricted"
        assert "process" not in app.pools.offered
        with pytest.raises(Exception, match="only where the level is `kernel`"):
            await ran(app, CODE, isolation="process")


@needs_kernel
async def test_a_set_up_that_failed_says_why_and_when_and_is_tried_again_after_a_pause_that_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "wheels"
    monkeypatch.setattr(first_need, "LOCK_FILE", lock(tmp_path / "lock.txt", wheel(folder, "pandas", "9.1", PANDAS)))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", os.fspath(tmp_path / "away"))
    need = first_need.first_need_of(tmp_path / "python")

    async def hint_when_it_ended(app: App) -> str:
        assert "is being set up" in await hint_now(app)
        assert need._building is not None
        await asyncio.to_thread(need._building.join)
        return await hint_now(app)

    async def hint_now(app: App) -> str:
        refused = await ran(app, CODE)
        assert refused["error"] is not None
        return str(refused["error"]["hint"])

    async with running(dataclasses.replace(ALONE, data_setup=Switch.ON), Home(tmp_path)) as app:
        told = await hint_when_it_ended(app)
        assert "No matching distribution found for pandas==9.1" in told
        assert re.search(r"Code that needs it in \d+ seconds has it tried again", told)
        assert str(tmp_path) not in told
        assert "in 60 seconds" in caplog.text
        assert "No matching distribution found" in sealab("data", "status", "--home", str(tmp_path)).stdout
        assert "could not be set up" in await hint_now(app)  # none is begun before the pause is over
        need._try_again = 0.0
        assert "in 5 minutes has it tried again" in await hint_when_it_ended(app)
        monkeypatch.setenv("PIP_FIND_LINKS", os.fspath(folder))
        need._try_again = 0.0
        assert "is being set up" in await hint_now(app)
        await asyncio.to_thread(need._building.join)
        assert (await ran(app, CODE))["result"] == 42


class Broken:
    """Takes the interpreter of an environment away for as long as it lasts, as one that does not start in time."""

    def __init__(self, home: Path) -> None:
        self._python = Path(os.path.realpath(home / "python" / "current")) / "bin" / "python"
        self._kept = self._python.with_name("kept")

    def __enter__(self) -> None:
        self._python.rename(self._kept)
        self._python.write_text("#!/bin/sh\necho the disk is slow >&2\nexit 1\n")
        self._python.chmod(0o700)

    def __exit__(self, *_: object) -> None:
        self._kept.replace(self._python)


@pytest.fixture
def own_home(home: Home, tmp_path: Path) -> Path:
    """A home of the test's own, with the same environment."""
    shutil.copytree(home.python, tmp_path / "python", symlinks=True)
    return tmp_path


@needs_kernel
async def test_a_package_that_is_added_while_a_server_runs_is_there_for_the_next_program(own_home: Path) -> None:
    folder = own_home / "wheels"
    async with running(Settings(workers_spare=1), Home(own_home)) as app:
        assert (await ran(app, CODE))["result"] == 42
        assert (await ran(app, "import ratios"))["status"] == "refused"
        wheel(folder, "ratios", "1.0", {"ratios.py": "half = 0.5\n"})
        building.add(own_home / "python", ["ratios"], lambda _step: None, wheels=[folder])
        report = await ran(app, "import pandas, ratios\nratios.half * pandas.total(84)")
        assert (report["result"], report["isolation"]) == (42, "process")


@needs_kernel
async def test_one_start_that_failed_is_told_with_its_cause_and_the_next_call_tries_again(
    own_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(ALONE, Home(own_home)) as app:
        with Broken(own_home):
            refused = await ran(app, CODE)
            assert (refused["status"], refused["isolation"]) == ("refused", "restricted")
            assert refused["error"] is not None
            assert "the disk is slow" in str(refused["error"]["hint"])
        assert "the next call tries again" in caplog.text
        assert "process" in app.pools.offered
        report = await ran(app, CODE)
        assert (report["result"], report["isolation"]) == (42, "process")
        assert "can be offered again" in caplog.text


@needs_kernel
async def test_process_asked_for_by_name_names_the_cause_and_the_next_call_tries_again(own_home: Path) -> None:
    async with running(ALONE, Home(own_home)) as app:
        with Broken(own_home), pytest.raises(RequestRefused, match=r"the disk is slow.* Give one of auto"):
            await ran(app, CODE, isolation="process")
        assert (await ran(app, CODE, isolation="process"))["result"] == 42


@needs_kernel
async def test_after_several_failures_calls_are_answered_at_once_until_a_new_attempt_is_due(own_home: Path) -> None:
    async with running(ALONE, Home(own_home)) as app:
        with Broken(own_home):
            for _ in range(2):
                await ran(app, CODE)
            full_python = app.executor.offer.full_python
            assert full_python.failures == 2
            told = await ran(app, CODE)
            with pytest.raises(RequestRefused, match=r"the disk is slow.* A call in \d seconds tries again"):
                await ran(app, CODE, isolation="process")
        assert full_python.failures == 2
        assert told["error"] is not None
        assert "tries again" in str(told["error"]["hint"])
        full_python._try_again = 0.0
        assert (await ran(app, CODE))["result"] == 42
        assert (full_python.failed, full_python.failures) == (None, 0)


@needs_kernel
async def test_whether_a_worker_can_start_is_found_out_by_one_attempt_for_all_that_ask(own_home: Path) -> None:
    async with running(ALONE, Home(own_home)) as app:
        full_python = app.executor.offer.full_python
        with Broken(own_home):
            assert await asyncio.gather(*(can_start(app.executor) for _ in range(4))) == [False] * 4
            assert full_python.failures == 1
        assert not full_python.has_started()
        assert await can_start(app.executor)
        assert full_python.has_started()


async def test_that_a_worker_can_start_is_found_out_once(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    async with running(ALONE, Home(own_home)) as app:
        app.executor.offer.full_python.has_worked()
        monkeypatch.setattr(app.pools, "ready", None)
        assert await can_start(app.executor)


@needs_kernel
@pytest.mark.parametrize("isolation", ["auto", "process"])
async def test_without_a_workspace_to_write_to_it_is_not_offered_by_default_however_it_is_asked_for(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setattr(RunFolders, "trial", lambda _folders: SimpleNamespace(name="missing"))  # so no overlay is made
    async with running(ALONE, Home(own_home)) as app:
        if isolation == "auto":
            refused = await ran(app, CODE)
            assert (refused["status"], refused["isolation"]) == ("refused", "restricted")
            assert refused["error"] is not None
            assert READ_ONLY in str(refused["error"]["hint"])
            assert 'isolation="process"' not in str(refused["error"]["hint"])
        else:
            with pytest.raises(RequestRefused, match="only where it can write to the workspace"):
                await ran(app, CODE, isolation="process")
        assert "process" not in app.pools.offered


@needs_kernel
async def test_where_there_was_no_folder_for_what_code_writes_a_later_call_tries_again(own_home: Path) -> None:
    (own_home / "scratch").write_text("a file is in its place")
    async with running(ALONE, Home(own_home)) as app:
        refused = await ran(app, CODE)
        assert refused["error"] is not None
        assert "cannot write to the workspace: the folder for what code writes cannot be" in str(
            refused["error"]["hint"]
        )
        assert str(own_home) not in str(refused["error"]["hint"])
        (own_home / "scratch").unlink()
        pool = await app.pools.runner(Isolation.PROCESS)
        pool._run_folders._due = 0.0
        report = await ran(app, f"{CODE}\nopen('kept.txt', 'w').write('x')")
        assert (report["status"], report["files"]) == ("ok", {"new": [{"name": "kept.txt", "size": 1}]})


@needs_kernel
def test_doctor_says_what_keeps_full_python_from_writing_to_the_workspace(own_home: Path) -> None:
    (own_home / "scratch").write_text("a file is in its place")
    told = sealab("doctor", "--home", str(own_home)).stdout
    assert f"Have {own_home / 'scratch'} be a folder that the user who runs sealab can write to" in told


@needs_kernel
async def test_an_operator_who_allows_process_by_name_has_it_without_writing_to_the_workspace(own_home: Path) -> None:
    (own_home / "scratch").write_text("a file is in its place")
    named = dataclasses.replace(ALONE, allowed_isolation=tuple(Isolation))
    async with running(named, Home(own_home)) as app:
        assert (await ran(app, CODE, isolation="process"))["result"] == 42
        assert (await ran(app, CODE))["isolation"] == "process"
