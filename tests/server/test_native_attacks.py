"""Native code with the workspace in sight, against the host's own work: each case is harmless where it succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .conftest import Caller, in_this_process

pytestmark = pytest.mark.adversarial

PROCESS = {"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_REQUIRED_LEVEL": "landlock"}

HOLD_EVERYTHING = """
import ctypes, fcntl, os, struct
held = []
refused = {}
def attempt(name, call):
    try:
        call()
    except (OSError, ValueError) as error:
        refused[name] = type(error).__name__
places = ["/workspace"]
for folder, folders, files in os.walk("/workspace"):
    places += [os.path.join(folder, each) for each in (*folders, *files)]
for place in places:
    fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    held.append(fd)
    attempt("flock", lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))
    attempt("lock", lambda: fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0)))
    attempt("lease", lambda: fcntl.fcntl(fd, 1024, fcntl.F_RDLCK))
    attempt("notify", lambda: fcntl.fcntl(fd, 1026, 0x3F))
    attempt("write", lambda: os.open(place, os.O_RDWR))
    attempt("mode", lambda: os.chmod(place, 0o777))
    attempt("times", lambda: os.utime(place))
attempt("made", lambda: os.mkfifo("/workspace/pipe"))
attempt("folder", lambda: os.mkdir("/workspace/folder"))
attempt("linked", lambda: os.link("/workspace/data/f", "/tmp/f"))
result = {"places": sorted(places), "refused": sorted(refused)}
"""


@pytest.fixture
async def native(tmp_path: Path) -> AsyncIterator[Caller]:
    home = tmp_path / "home"
    async with in_this_process(home, PROCESS) as caller:
        await caller.call("write_workspace_file", filename="data/f", content="before")
        # Where a file system cannot translate owners, code of root's server sees what everybody may read.
        for place in (home / "workspace", home / "workspace" / "data", home / "workspace" / "data" / "f"):
            place.chmod(0o755)
        yield caller


async def test_code_that_locks_all_it_sees_holds_up_nobody(native: Caller) -> None:
    await native.run("print('of another run')" * 2000)
    report = await native.run(HOLD_EVERYTHING, isolation="process", session="holder")
    assert report["success"], report["error"]
    assert report["result"]["places"] == ["/workspace", "/workspace/data", "/workspace/data/f"]
    assert {"lease", "notify", "write", "mode", "times", "made", "folder", "linked"} <= set(report["result"]["refused"])
    for content in ("replaced", "again"):
        written = await native.call("write_workspace_file", filename="data/f", content=content)
        assert not written.is_error, written
    assert not (await native.call("write_workspace_file", filename="data/new", content="x")).is_error
    assert (await native.run("write_file('of-code', 'x'); read_file('data/f')"))["result"] == "again"
    assert not (await native.call("list_workspace_files")).is_error
    for filename in ("data/f", "data/new"):
        assert not (await native.call("delete_workspace_file", filename=filename)).is_error
    assert (await native.run("len(held)", isolation="process", session="holder"))["result"] == 3


async def test_code_sees_no_run_but_by_the_helper_and_only_its_callers(native: Caller) -> None:
    kept = await native.run("print('kept ' * 20_000)")
    code = f"""
import os
names = [os.path.join(folder, each) for folder, folders, files in os.walk("/") for each in (*folders, *files)]
found = [name for name in names if {kept["run_id"]!r} in name or ".ledger" in name or ".runs" in name]
[found, read_file(".runs/{kept["run_id"]}/output.txt")[:4]]
"""
    report = await native.run(code, isolation="process")
    assert report["result"] == [[], "kept"], report["error"]


async def test_code_sees_no_temporary_file_of_another_run(native: Caller) -> None:
    holds = """
import os, time
for folder in ("/tmp", "/workspace"):
    with open(f"{folder}/secret.txt", "w") as file:
        file.write("of this run alone")
while "looked" not in os.listdir("/workspace"):
    time.sleep(0.05)
[open(f"{folder}/secret.txt").read() for folder in ("/tmp", "/workspace")]
"""
    looks = "import os\n[os.path.join(top, each) for top, *found in os.walk('/workspace') for each in sum(found, [])]"
    holding = asyncio.create_task(native.run(holds, dry_run=True))
    while not holding.done() and len(list(native.home.rglob("secret.txt"))) < 2:
        await asyncio.wait([holding], timeout=0.05)
    looking = await native.run(looks, isolation="process")
    await native.call("write_workspace_file", filename="looked", content="")
    held = await holding
    assert held["result"] == ["of this run alone"] * 2, held["error"]
    assert looking["result"] == ["/workspace/data", "/workspace/data/f"], looking["error"]
