"""Files of real runs: streamed in little memory, shared by runs, kept in sessions, and cleaned up after each."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ..conftest import Caller, in_process_server, in_this_process

LINES = 700_000
LINE = "y" * 99 + "\n"


served = in_process_server({"SEALAB_ALLOWED_ISOLATION": "restricted"})


@pytest.fixture
def caller(served: Caller) -> Caller:
    """Give the client of a server whose workspace is empty."""
    for path in (served.home / "workspace").iterdir():
        path.unlink()
    return served


def left(caller: Caller) -> list[str]:
    return sorted(path.name for path in (caller.home / "workspace").iterdir())


def write_lines(path: Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(LINE * 10_000 for _ in range(LINES // 10_000))


async def test_a_large_file_is_read_line_by_line_in_little_memory(caller: Caller) -> None:
    write_lines(caller.home / "workspace" / "large.txt")
    report = await caller.run(
        "result = [0, 0]\nwith open('large.txt') as f:\n    for line in f:\n        result[0] += 1\n        result[1] += len(line)",
        memory_mb=64,
        timeout_seconds=100,
    )
    assert report["result"] == [LINES, LINES * len(LINE)], report


async def test_temporary_files_go_with_their_run_however_it_ends(caller: Caller) -> None:
    make = (
        "import tempfile\nfolder = tempfile.mkdtemp()\nopen(folder + '/a', 'w').write('x')\nopen('kept', 'w').close()\n"
    )
    for rest in ("1", "1 / 0", "import os; os.remove(folder + '/a')", "while True: pass"):
        report = await caller.run(make + rest, timeout_seconds=3)
        assert report["files"] == [{"name": "kept", "size": 0}]
        assert left(caller) == ["kept"]


async def test_a_file_stays_open_from_one_call_of_a_session_to_the_next(caller: Caller) -> None:
    await caller.run("f = open('log', 'w+')\nf.write('one\\n')", session="s")
    assert (caller.home / "workspace" / "log").read_text() == "one\n"
    report = await caller.run("f.write('two\\n')\nf.seek(0)\nresult = f.read()", session="s")
    assert report["result"] == "one\ntwo\n", report
    (caller.home / "workspace" / "log").unlink()
    (caller.home / "workspace" / "log").write_text("another")
    report = await caller.run("f.seek(0)\nf.read()", session="s")
    assert report["success"] is False or report["result"] == "another"  # a number of a file may be given again


async def test_runs_that_append_to_one_file_at_once_lose_nothing(caller: Caller) -> None:
    code = "for n in range(50):\n    with open('shared', 'a') as f: f.write(f'{name}{n}\\n')"
    await asyncio.gather(*(caller.run(code, context_vars={"name": name}) for name in "abc"))
    lines = (caller.home / "workspace" / "shared").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name}{n}" for name in "abc" for n in range(50))


async def test_what_could_not_be_written_at_the_end_is_said(tmp_path: Path) -> None:
    limits = {"SEALAB_ALLOWED_ISOLATION": "restricted", "SEALAB_WORKSPACE_QUOTA_MB": "1"}
    async with in_this_process(tmp_path, limits) as caller:
        report = await caller.run(
            "f = open('big', 'w')\nf.write('x' * 100)\ng = open('full', 'wb')\ng.write(bytes(999_950)); g.flush()"
        )
        assert report["success"]
        assert "No space left" in str(report["truncated"]), report


async def test_a_refused_name_says_what_is_wrong_with_it(caller: Caller) -> None:
    report = await caller.run("open('a\\\\b', 'w')")
    assert report["error"]["type"] == "OSError"
    assert "backslash" in report["error"]["message"]
