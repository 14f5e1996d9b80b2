"""What full Python writes in its current directory comes home when the run ends well, and is kept where it fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sealab.server.use_cases.host_functions import call_log

from ..conftest import Caller, in_this_process

ALLOWED = {
    "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    "SEALAB_WORKERS_SPARE": "1",
    "SEALAB_WORKSPACE_QUOTA_MB": "5",
}


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    async with in_this_process(tmp_path_factory.mktemp("home"), ALLOWED) as caller:
        where = await caller.run("import os\nos.getcwd()", isolation="process")
        if where["result"] != "/workspace":
            pytest.skip("this machine has no overlays for users, or not on this file system")
        yield caller
    assert os.listdir(caller.home / "scratch" / "runs") == []


@pytest.fixture
def caller(home: Caller) -> Caller:
    """Give the client of a server whose workspace holds two files."""
    workspace = home.home / "workspace"
    for path in sorted(workspace.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (workspace / "table.csv").write_text("a,b\n1,2\n")
    (workspace / "old.txt").write_text("old")
    return home


async def full(caller: Caller, code: str, **arguments: Any) -> dict[str, Any]:
    return await caller.run(code, isolation="process", **arguments)


def names(caller: Caller) -> list[str]:
    folder = caller.home / "workspace"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


WRITES = """
import os, sqlite3
with open("table.csv", "a") as table:
    table.write("3,4\\n")
os.makedirs("out/deep")
with open("out/deep/x.bin", "wb") as file:
    file.write(bytes(1000))
os.remove("old.txt")
with sqlite3.connect("data.sqlite") as database:
    database.execute("create table t (a)")
"""


async def test_the_report_lists_what_is_new_changed_and_deleted_and_it_is_there(caller: Caller) -> None:
    report = await full(caller, WRITES)
    assert report["success"], report
    assert report["files"] == {
        "new": [{"name": "data.sqlite", "size": 8192}, {"name": "out/deep/x.bin", "size": 1000}],
        "changed": [{"name": "table.csv", "size": 12}],
        "deleted": ["old.txt"],
    }
    assert names(caller) == ["data.sqlite", "out/deep/x.bin", "table.csv"]
    assert (await caller.run("read_file('table.csv')"))["result"] == "a,b\n1,2\n3,4\n"
    listed = await caller.told("list_workspace_files")
    assert listed["used_bytes"] == 8192 + 1000 + 12


async def test_a_failed_run_leaves_the_workspace_as_it_was_and_keeps_what_it_wrote(caller: Caller) -> None:
    report = await full(caller, WRITES + "1 / 0")
    run = report["run_id"]
    assert names(caller) == ["old.txt", "table.csv"]
    kept = f".runs/{run}/files"
    assert [each["name"] for each in report["files"]["kept"]] == [
        f"{kept}/data.sqlite",
        f"{kept}/out/deep/x.bin",
        f"{kept}/table.csv",
    ]
    assert "since the run failed" in report["truncated"]["files"]["note"]
    assert "deleted is still there" in report["truncated"]["files"]["note"]
    assert (await caller.run(f"read_file('{kept}/table.csv')"))["result"] == "a,b\n1,2\n3,4\n"
    assert (await full(caller, f"len(read_file('{kept}/out/deep/x.bin', encoding=None))"))["result"] == 1000


WAITS = """
import os, time
with open("table.csv", "a") as table:
    table.write("3,4\\n")
with open("new.txt", "w") as file:
    file.write("x" * 100)
os.remove("old.txt")
progress(0.5, "written")
while True: time.sleep(0.01)
"""


async def test_what_a_cancelled_background_run_wrote_is_kept_and_its_report_says_so(caller: Caller) -> None:
    begun = await caller.told("execute_code", code=WAITS, isolation="process", background=True)
    run_id = begun["run_id"]
    while "progress" not in (state := await caller.told("get_run", run_id=run_id)):
        assert state["status"] in {"queued", "running"}, state
        await asyncio.sleep(0.02)
    report = await caller.told("get_run", run_id=run_id, cancel=True)
    kept = f".runs/{run_id}/files"
    assert report["status"] == "cancelled", report
    assert report["files"] == {
        "kept": [{"name": f"{kept}/new.txt", "size": 100}, {"name": f"{kept}/table.csv", "size": 12}]
    }
    assert "since the run was cancelled" in report["truncated"]["files"]["note"]
    assert (await caller.run(f"read_file('{kept}/table.csv')"))["result"] == "a,b\n1,2\n3,4\n"
    assert names(caller) == ["old.txt", "table.csv"]
    assert await caller.told("get_run", run_id=run_id) == report


@pytest.mark.parametrize("session", [None, "cancelled"])
async def test_what_a_run_wrote_is_kept_though_its_client_cancels_the_call(caller: Caller, session: str | None) -> None:
    began = asyncio.Event()

    async def seen(_done: float, _total: float | None, message: str | None) -> None:
        if message == "written":
            began.set()

    arguments = {"code": WAITS, "isolation": "process"} | ({} if session is None else {"session": session})
    call = asyncio.create_task(caller.client.call_tool("execute_code", arguments, progress_callback=seen))
    await began.wait()
    place = caller.home / "workspace.runs"
    before = set(place.glob("[!.]*/files"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(60):
        while not (there := set(place.glob("[!.]*/files")) - before):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.02)
    run_id = there.pop().parent.name
    kept = f".runs/{run_id}/files"
    assert (await caller.run(f"read_file('{kept}/new.txt')"))["result"] == "x" * 100
    assert kept in (await caller.told("get_run", run_id=run_id))["error"]["message"]
    assert names(caller) == ["old.txt", "table.csv"]


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("os.kill(os.getpid(), 9)", "crashed"),
        ("os._exit(3)", "crashed"),
        ("while True: pass", "timeout"),
        ("x = bytearray(1 << 40)", "error"),
        ("x = []\nwhile True: x.append(bytearray(10_000_000))", "error"),
    ],
)
async def test_however_a_run_ends_that_does_not_end_well_what_it_wrote_is_kept(
    caller: Caller, ends: str, status: str
) -> None:
    report = await full(
        caller, f"import os\nopen('a', 'w').write('x')\nopen('a').read()\n{ends}", memory_mb=200, timeout_seconds=2
    )
    assert report["status"] in {status, "memory"}, report
    assert report["files"]["kept"] == [{"name": f".runs/{report['run_id']}/files/a", "size": 1}], report


async def test_more_than_the_quota_takes_nothing_home_and_says_so(caller: Caller) -> None:
    report = await full(caller, "open('small', 'w').write('s')\nopen('large', 'wb').write(bytes(6_000_000))")
    assert (report["success"], report["status"]) == (False, "error")
    assert "Nothing that the code wrote is in the workspace" in report["error"]["message"]
    assert names(caller) == ["old.txt", "table.csv"]
    assert {each["size"] for each in report["files"]["kept"]} == {1, 6_000_000}


async def test_folders_are_moved_and_copied_by_shutil_also_such_as_were_there_before(caller: Caller) -> None:
    report = await full(caller, "import os\nos.makedirs('d/e')\nopen('d/e/f', 'w').write('f')\nos.rename('d', 'g')")
    assert report["files"] == {"new": [{"name": "g/e/f", "size": 1}]}
    code = """
import os, shutil
try:
    os.rename("g", "h")
except OSError as error:
    number = error.errno
shutil.move("g", "h")
shutil.copytree("h", "copy")
shutil.copy2("table.csv", "table2.csv")
number
"""
    report = await full(caller, code)
    assert (report["result"], report["error"]) == (18, None)
    assert report["files"]["deleted"] == ["g/e/f"]
    assert names(caller) == ["copy/e/f", "h/e/f", "old.txt", "table.csv", "table2.csv"]


WAL = """
import sqlite3
database = sqlite3.connect("w.sqlite")
database.execute("pragma journal_mode=wal")
database.execute("create table t (a)")
database.execute("insert into t values (1)")
database.commit()
"""
READS = "import sqlite3\ndatabase = sqlite3.connect('w.sqlite')\ndatabase.execute('select * from t').fetchall()"


async def test_a_database_with_a_write_ahead_log_is_whole_for_the_next_run_and_never_read_in_part(
    caller: Caller,
) -> None:
    assert (await full(caller, WAL))["success"]
    assert names(caller) == ["old.txt", "table.csv", "w.sqlite", "w.sqlite-shm", "w.sqlite-wal"]
    assert "write-ahead log" in (await caller.run(READS))["error"]["message"]
    assert (
        await full(caller, READS + "\nrows = database.execute('select * from t').fetchall()\ndatabase.close()\nrows")
    )["result"] == [[1]]
    assert names(caller) == ["old.txt", "table.csv", "w.sqlite"]
    assert (await caller.run(READS))["result"] == [[1]]


async def test_the_helpers_see_what_open_wrote_and_the_other_way_round(caller: Caller) -> None:
    code = """
import os
with open("by_open.txt", "w") as file: file.write("o")
write_file("by_helper.txt", "h")
open("/tmp/t", "w").write("t")
keep("/tmp/t", "kept.txt")
delete_file("old.txt")
try:
    read_file("../x")
except ValueError as error:
    refused = str(error)
[read_file("by_open.txt"), open("by_helper.txt").read(), sorted(each["name"] for each in list_files()), os.path.exists("old.txt")]
"""
    report = await full(caller, code)
    assert report["result"] == ["o", "h", ["by_helper.txt", "by_open.txt", "kept.txt", "table.csv"], False], report
    assert names(caller) == ["by_helper.txt", "by_open.txt", "kept.txt", "table.csv"]


async def test_a_dry_run_changes_nothing_and_says_what_it_would_have(caller: Caller) -> None:
    report = await full(caller, "import os\nopen('new', 'w').write('n')\nos.remove('old.txt')", dry_run=True)
    assert names(caller) == ["old.txt", "table.csv"]
    assert sorted((each["tool"], each["arguments"]["filename"]) for each in report["dry_run"]) == [
        ("delete_file", "old.txt"),
        ("write_file", "new"),
    ]


async def test_a_session_takes_home_what_each_call_wrote(caller: Caller) -> None:
    begun = await full(caller, "log = open('log', 'w')\nlog.write('1'); log.flush()", session="s")
    assert begun["files"] == {"new": [{"name": "log", "size": 1}]}
    failed = await full(caller, "log.write('2'); log.flush()\n1 / 0", session="s")
    assert [each["size"] for each in failed["files"]["kept"]] == [2]
    assert (caller.home / "workspace" / "log").read_text() == "1"
    nothing = await full(caller, "open('table.csv').read()", session="s")
    assert nothing["files"] == {"changed": [{"name": "log", "size": 2}]}  # what the failed call wrote is part of it
    assert "files" not in await full(caller, "1", session="s")
    await caller.call("write_workspace_file", filename="later.txt", content="later")
    assert (await full(caller, "open('later.txt').read()", session="s"))["result"] == "later"


async def test_what_a_dry_run_wrote_in_a_session_never_comes_home_however_it_ended(caller: Caller) -> None:
    await full(caller, "open('dry', 'w').write('n')", session="dry", dry_run=True)
    report = await full(caller, "open('wet', 'w').write('w')", session="dry")
    assert report["files"] == {"new": [{"name": "wet", "size": 1}]}
    failed = await full(caller, "open('dry', 'w').write('n')\n1 / 0", session="failed", dry_run=True)
    assert [each["name"] for each in failed["files"]["kept"]] == [f".runs/{failed['run_id']}/files/dry"]
    assert "files" not in await full(caller, "1", session="failed")
    assert names(caller) == ["old.txt", "table.csv", "wet"]


async def test_a_dry_run_says_how_many_changes_it_leaves_out_and_what_could_not_come_home(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "DRY_CALLS_MAX", 10)
    code = "import os\nos.symlink('table.csv', 'link')\nos.remove('old.txt')\nfor n in range(14): open(f'{n}', 'w').close()"
    report = await full(caller, code, dry_run=True)
    assert report["success"], report
    assert len(report["dry_run"]) == 10
    note = report["truncated"]["files"]["note"]
    assert "5 more changes of files are not listed" in note, note
    assert "link (it is a symbolic link" in note


async def test_of_many_files_some_are_named_and_all_are_counted(caller: Caller) -> None:
    report = await full(caller, "for n in range(100): open(f'{n:03}', 'w').close()")
    assert len(report["files"]["new"]) == 20
    assert report["truncated"]["files"] == {"shown": 20, "total": 100, "read_with": "list_files() in code"}
    assert len(names(caller)) == 102


async def test_what_is_read_is_learned_also_under_another_name(tmp_path: Path) -> None:
    env = {**ALLOWED, "SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"}
    async with in_this_process(tmp_path, env) as caller:
        (tmp_path / "workspace" / "people.csv").write_text("name,mail\nAda,ada.lovelace@example.org\n")
        code = "import os\nos.rename('people.csv', 'moved.csv')\nopen('moved.csv').read().split()[1]"
        report = await full(caller, code, timeout_seconds=100)
        assert report["success"], report
        assert "lovelace" not in str(report["result"])
        assert report["files"]["deleted"] == ["people.csv"]
        assert "lovelace" in (tmp_path / "workspace" / "moved.csv").read_text()
