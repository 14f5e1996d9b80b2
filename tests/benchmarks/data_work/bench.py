"""Forty tasks of data work as code interpreters get them, in sealab and in plain CPython with the same packages.

    python -m tests.benchmarks.data_work.bench PYTHON [--isolation auto|process] [--rounds N] [--privacy] [--without-plain]
        [--task NAME] [--group NAME] [--verbose]

PYTHON is an interpreter with the packages of `sealab[data]`. Each task is a program as models write it, with files beside
it; what must come of it is worked out by plain Python (`task.py`), and compared by value (`judging.py`). Each side gets
one try. Plain CPython is a process that is started for the program; its time ends with the program. sealab's is that of
one call of `execute_code` over stdio, from the call to the answer. Of several rounds the shortest time counts.

With `--privacy` sealab runs them with `PRIVACY=auto` instead, each with the first lines of its files printed before. What
the model reads must then hold no name, address or number of the people in the files, and must be right once its tokens
are restored.

Ends with 1 where less than `RIGHT_MIN` are right, where sealab takes more than `TIME_MAX` of plain CPython's time, or
where something raw went to the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult

from .judging import Observed, ReadByLibrary, judge
from .looking import LOOK, raw_in
from .served import serving
from .task import Sheets, Task
from .tasks import GROUPS, all_tasks

HERE = Path(__file__).parent
RIGHT_MIN = 0.98
TIME_MAX = 1.15
TIMEOUT_SECONDS = 100
CLIENT_SECONDS = 300
_PRIVATE = {"PRIVACY": "auto", "VAULT_KEY": "a key for this alone", "RESTORE_TO_MODEL": "true"}
_WARM = "import numpy, pandas\npandas.DataFrame({'a': [1, 2]}).groupby('a').size().sum()"


def write_inputs(tasks: Iterable[Task], python: str, folder: Path) -> None:
    """Write the files of each task into a folder of its number."""
    orders = []
    for task in tasks:
        for name, content in task.case.files.items():
            path = folder / str(task.number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Sheets):
                orders.append({"path": str(path), "kind": content.kind, "sheets": dict(content.sheets)})
            else:
                path.write_bytes(content)
    by_library("make", orders, python, folder)


def by_library(action: str, orders: Sequence[Any], python: str, folder: Path) -> list[Any]:
    """Make or read files in the other environment."""
    asked, answer = folder / "orders.json", folder / "answer.json"
    asked.write_text(json.dumps(orders))
    subprocess.run([python, HERE / "table_files.py", action, asked, answer], check=True)
    found: list[Any] = json.loads(answer.read_text())
    return found


def run_plain(task: Task, python: str, inputs: Path, folder: Path) -> Observed:
    """Run a task's program in a process of its own."""
    shutil.copytree(inputs, folder)
    program, answer = folder.with_suffix(".py"), folder.with_suffix(".json")
    program.write_text(task.case.program, encoding="utf-8")
    command = [python, "-W", "ignore", str(HERE / "plain_run.py"), str(program), str(answer)]
    began = time.monotonic()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=CLIENT_SECONDS)
    if ended.returncode:
        return Observed(ended.stderr[-300:], None, ended.stdout, 0, folder)
    told = json.loads(answer.read_text())
    ms = (told["ended"] - began) * 1000
    return Observed(told["error"], told["result"], ended.stdout, told["shown"], folder, ms=ms)


class Server:
    """A sealab of its own, spoken to over stdio; its workspace holds the files of one task at a time."""

    def __init__(self, client: Client, home: Path, isolation: str) -> None:
        self._client = client
        self._workspace = home / "workspace"
        self._isolation = isolation

    async def warm(self) -> None:
        """Prepare spares, as in a server that has been asked before."""
        for _ in range(3):
            await self._call(_WARM)

    async def run(self, task: Task, inputs: Path, folder: Path, *, looks: bool = False) -> Observed:
        """Run a task's program in sealab; its files are taken away to `folder`."""
        shutil.copytree(inputs, self._workspace, dirs_exist_ok=True)
        program = (LOOK if looks else "") + task.case.program
        began = time.monotonic()
        answer = await self._call(program)
        ms = (time.monotonic() - began) * 1000
        _take_away(self._workspace, folder)
        report: dict[str, Any] | None = answer.structured_content
        shown = "\n".join(block.text for block in answer.content if block.type == "text")
        if report is None:
            return Observed(shown, None, "", 0, folder, ms=ms)
        shown += json.dumps(report, ensure_ascii=False)
        images = sum(block.type == "image" for block in answer.content)
        if not looks:
            return _observed(report, images, folder, ms)
        return replace(_observed(await self._restored(report), images, folder, ms), leaks=raw_in(shown, task.people))

    async def _call(self, program: str) -> CallToolResult:
        return await self._client.call_tool(
            "execute_code", {"code": program, "isolation": self._isolation, "timeout_seconds": TIMEOUT_SECONDS}
        )

    async def _restored(self, report: dict[str, Any]) -> dict[str, Any]:
        """Return a report with values in place of its tokens."""
        text = json.dumps(report, ensure_ascii=False)
        told = (await self._client.call_tool("restore_pii", {"text": text})).structured_content
        assert told is not None
        restored: dict[str, Any] = json.loads(told["restored_text"])
        return restored


def _take_away(workspace: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for each in list(workspace.iterdir()):
        shutil.move(each, folder / each.name)


def _observed(report: dict[str, Any], images: int, folder: Path, ms: float) -> Observed:
    error = None
    if not report["success"]:
        told = report.get("error") or {}
        error = f"{report['status']}: {told.get('type')}: {told.get('message')}"
    captions = "\n".join(each.get("shows", "") for each in report.get("images", ()))
    return Observed(
        error, report.get("result"), report.get("output", ""), images, folder, report.get("tables", ()), captions, ms
    )


class Measured:
    """What each task gave on each side."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[int, Observed]] = {"plain": {}, "sealab": {}}
        self.wrong: dict[str, dict[int, list[str]]] = {"plain": {}, "sealab": {}}

    def add(self, side: str, task: Task, seen: Observed) -> None:
        """Keep the first try of a task, and the shortest time of all."""
        first = self.seen[side].setdefault(task.number, seen)
        first.ms = min(first.ms, seen.ms)

    def judge(self, tasks: Sequence[Task], python: str, folder: Path) -> None:
        """Judge all that was seen; what only a library reads, at the end and at once."""
        later: list[tuple[list[str], ReadByLibrary]] = []
        for side, seen in self.seen.items():
            for task in tasks:
                if task.number in seen:
                    wrong, to_read = judge(task.case, seen[task.number])
                    self.wrong[side][task.number] = wrong
                    later += [(wrong, each) for each in to_read]
        orders = [{"path": str(each.path), "kind": each.kind, "query": each.query} for _, each in later]
        for (wrong, each), found in zip(later, by_library("read", orders, python, folder), strict=True):
            why = each.judge(found)
            if why is not None:
                wrong.append(why)


async def measured(tasks: Sequence[Task], options: argparse.Namespace, folder: Path) -> Measured:
    """Run every task, by turns on both sides; with `--privacy`, in sealab alone."""
    python, result = options.python, Measured()
    write_inputs(tasks, python, folder / "inputs")
    home = folder / "home"
    home.mkdir()
    settings = {"MAX_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS), **(_PRIVATE if options.privacy else {})}
    async with Client(serving(home, python, **settings), read_timeout_seconds=CLIENT_SECONDS) as client:
        server = Server(client, home, options.isolation)
        await server.warm()
        for number in range(options.rounds):
            for task in tasks:
                inputs = folder / "inputs" / str(task.number)
                if not options.privacy and not options.without_plain:
                    seen = run_plain(task, python, inputs, folder / f"plain-{number}" / str(task.number))
                    result.add("plain", task, seen)
                place = folder / f"sealab-{number}" / str(task.number)
                result.add("sealab", task, await server.run(task, inputs, place, looks=options.privacy))
    result.judge(tasks, python, folder)
    return result


def print_table(tasks: Sequence[Task], found: Measured) -> tuple[float, float, int]:
    """Print a line for each group; return the share of right ones, the share of time, and the leaks."""
    print(
        "| group | tasks | plain CPython: right | sealab: right | raw to the model | seconds: plain | sealab | ratio |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in (*(group.name for group in GROUPS), "all"):
        chosen = [task.number for task in tasks if name in (task.group, "all")]
        if not chosen:
            continue
        right = {side: sum(not wrong.get(n, [""]) for n in chosen) for side, wrong in found.wrong.items()}
        seconds = {side: sum(seen[n].ms for n in chosen if n in seen) / 1000 for side, seen in found.seen.items()}
        leaks = sum(bool(found.seen["sealab"][n].leaks) for n in chosen)
        ratio = seconds["sealab"] / seconds["plain"] if seconds["plain"] else 0.0
        plain = right["plain"] if found.seen["plain"] else "-"
        print(
            f"| {name} | {len(chosen)} | {plain} | {right['sealab']} | {leaks} "
            f"| {seconds['plain']:.1f} | {seconds['sealab']:.1f} | {ratio:.2f} |"
        )
    return right["sealab"] / len(chosen), ratio, leaks


def print_wrong(tasks: Sequence[Task], found: Measured, *, verbose: bool) -> None:
    """Print what is not as wanted, and why."""
    for task in tasks:
        for side, wrong in found.wrong.items():
            for why in wrong.get(task.number, []):
                print(f"{task.group}, {task.name}: {side}: {why if verbose else ' '.join(why.split())[:230]}")
        leaks = found.seen["sealab"][task.number].leaks
        if leaks:
            print(f"{task.group}, {task.name}: raw to the model: {leaks[:3]}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("python", help="an interpreter with the packages of sealab[data]")
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--privacy", action="store_true")
    parser.add_argument("--without-plain", action="store_true", help="run sealab alone, so that no times are compared")
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.python = os.path.abspath(options.python)
    tasks = [
        task
        for task in all_tasks()
        if (not options.task or task.name in options.task) and (not options.group or task.group in options.group)
    ]
    with tempfile.TemporaryDirectory(prefix="data-work-") as folder:
        found = asyncio.run(measured(tasks, options, Path(folder)))
    print_wrong(tasks, found, verbose=options.verbose)
    share, ratio, leaks = print_table(tasks, found)
    print(f"right at the first try: {share:.1%} (at least {RIGHT_MIN:.0%})")
    if found.seen["plain"]:
        print(f"time beside plain CPython, start and imports included: {ratio:.2f} (at most {TIME_MAX})")
    return 1 if share < RIGHT_MIN or ratio > TIME_MAX or leaks else 0


if __name__ == "__main__":
    sys.exit(main())
