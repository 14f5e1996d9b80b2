"""The main job end to end: a real client, a real server, a real table, and what happens to code that misbehaves."""
# ruff: noqa: T201 - printing is what a demonstration does

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import cast

from mcp import Client, MCPError, StdioServerParameters
from typing_extensions import TypedDict

from ..errors import ServerError
from ..runs.report import Report

TABLE = "installed_files.csv"
ROWS_MAX = 20_000
BYTES_PER_TOKEN = 4
"""The usual estimate for English text and code; a tokenizer would count more for hashes."""

AGGREGATE = f"""\
import csv, io
from collections import Counter

rows = list(csv.DictReader(io.StringIO(read_file("{TABLE}"))))
files, sizes, kinds = Counter(), Counter(), Counter()
for row in rows:
    files[row["package"]] += 1
    sizes[row["package"]] += int(row["size"] or 0)
    kinds[row["path"].rpartition(".")[2] if "." in row["path"] else "none"] += 1

result = {{
    "rows": len(rows),
    "packages": len(files),
    "largest": [[name, files[name], size] for name, size in sizes.most_common(5)],
    "kinds": kinds.most_common(4),
}}
"""


QUESTION = "which packages does a package depend on"

REQUIREMENTS = """\
import asyncio

names = await tools.packages.list_packages(limit=12)
required = await asyncio.gather(*[tools.packages.package_requirements(name=name) for name in names])
try:
    await tools.packages.package_requirements(name="no such package")
except ToolError as error:
    missing = str(error)
result = {"packages": len(names), "requirements": sum(map(len, required)), "missing": missing}
"""


class Step(TypedDict):
    """One thing that was shown: what it was meant to prove, whether it did, and in how many milliseconds."""

    shown: str
    held: bool
    detail: str
    ms: float


@dataclass(slots=True)
class Demo:
    """The steps so far; `say` prints a line, or nothing when only JSON is wanted."""

    client: Client
    say: Callable[[str], None]
    steps: list[Step] = field(default_factory=list)

    async def run(self, code: str, **arguments: object) -> Report:
        """Run code through the server's `execute_code`."""
        answer = await self.client.call_tool("execute_code", {"code": code, **arguments})
        return cast("Report", answer.structured_content)

    def show(self, shown: str, held: bool, detail: str, ms: float) -> None:
        """Keep a step and print it."""
        self.steps.append(Step(shown=shown, held=held, detail=detail, ms=round(ms, 1)))
        self.say(f"  {'✓' if held else '✗'} {shown:<36}{detail}")


async def show(*, as_json: bool) -> bool:
    """Run the whole demonstration. Return whether all of it really happened.

    Raises `ServerError` where the server ended on the way.
    """
    try:
        return await _show(as_json=as_json)
    except* MCPError as errors:
        raise ServerError(
            "The demonstration server ended early. Its output on stderr above says why; `sealab doctor` says more."
        ) from errors


async def _show(*, as_json: bool) -> bool:
    say: Callable[[str], None] = (lambda _line: None) if as_json else print
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="sealab-demo-") as home:
        upstream = {"command": sys.executable, "args": ["-P", "-m", "sealab.server.commands.demo_upstream"]}
        (Path(home) / "mcp.json").write_text(json.dumps({"mcpServers": {"packages": upstream}}), encoding="utf-8")
        say("sealab demo: an MCP client talks to a real server on stdio, in a throw-away home.\n")
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "sealab.server", "serve", "--surface", "full", "--home", home],
            env=dict(os.environ),
        )
        async with Client(server, read_timeout_seconds=60) as client:
            tools = (await client.list_tools()).tools
            ready_ms = (time.perf_counter() - began) * 1000
            demo = Demo(client, say)
            demo.show("the server is up", bool(tools), f"{len(tools)} tools after {ready_ms:.0f} ms", ready_ms)
            await _table(demo)
            await _session(demo)
            await _upstream(demo)
            await _misbehaviour(demo)
    held = all(step["held"] for step in demo.steps)
    if as_json:
        print(json.dumps({"ok": held, "steps": demo.steps}, ensure_ascii=False))
    seconds = time.perf_counter() - began
    say(f"\n{'All of it happened' if held else 'Not all of it happened'}, in {seconds:.1f} s.")
    return held


async def _table(demo: Demo) -> None:
    demo.say("\nA table that would not fit the context")
    table, rows = installed_files()
    written = await demo.client.call_tool("write_workspace_file", {"filename": TABLE, "content": table})
    size = len(table.encode())
    demo.show("the table is in the workspace", not written.is_error, f"{rows:,} rows, {size:,} bytes", 0.0)

    began = time.perf_counter()
    report = await demo.run(AGGREGATE)
    ms = (time.perf_counter() - began) * 1000
    result = cast("dict[str, list[list[object]] | int]", report["result"] or {})
    answer = json.dumps(result)
    counted = result.get("rows") == rows
    demo.show("code aggregated it", counted, f"{ms:.0f} ms; what came back, whole:", ms)
    for name, files, total in cast("list[tuple[str, int, int]]", result.get("largest", [])):
        demo.say(f"      {name:<24}{files:>6} files {total:>13,} bytes")
    raw, paid = size // BYTES_PER_TOKEN, (len(AGGREGATE) + len(answer)) // BYTES_PER_TOKEN
    demo.show(
        "the model paid for the answer only", paid < raw, f"about {paid:,} tokens (code and result), not {raw:,}", 0.0
    )


async def _session(demo: Demo) -> None:
    demo.say("\nA session remembers")
    await demo.run("squares = [n * n for n in range(10)]", session="demo")
    report = await demo.run("sum(squares)", session="demo")
    demo.show("a variable of the call before", report["result"] == 285, f"sum(squares) = {report['result']}", 0.0)  # noqa: PLR2004 - the sum of ten squares
    report = await demo.run("sum(squares)")
    error = report.get("error")
    unknown = error is not None and error["type"] == "NameError"
    demo.show("and no other call sees it", unknown, _message(report), 0.0)


async def _upstream(demo: Demo) -> None:
    demo.say("\nTools of another MCP server, found, read and called")
    began = time.perf_counter()
    answer = await demo.client.call_tool("search_tools", {"query": QUESTION, "detail_level": "signature", "limit": 1})
    found = cast("dict[str, list[dict[str, str]]]", answer.structured_content or {}).get("tools", [])
    ms = (time.perf_counter() - began) * 1000
    signature = found[0]["signature"] if found else ""
    demo.show("one search finds the tool", "package_requirements" in signature, signature, ms)
    began = time.perf_counter()
    report = await demo.run(REQUIREMENTS)
    ms = (time.perf_counter() - began) * 1000
    calls = report.get("tool_calls", [])
    result = cast("dict[str, object]", report["result"] or {})
    held = report["success"] and len(calls) == 14 and result["missing"] != ""  # noqa: PLR2004 - a list, twelve packages, one miss
    demo.show("code called it, all at once", held, f"{len(calls)} calls in {ms:.0f} ms: {json.dumps(result)[:60]}…", ms)
    report = await demo.run("await tools.packages.uninstall_package(name='pip')", dry_run=True)
    noted = [each["tool"] for each in report.get("dry_run", [])]
    demo.show("a dry run only notes writes down", noted == ["packages.uninstall_package"], ", ".join(noted), 0.0)
    report = await demo.run("await tools.packages.uninstall_package(name='pip')")
    message = _message(report)
    demo.show("a write needs the user's yes", "approve" in message, f"{message[:70]}…", 0.0)


async def _misbehaviour(demo: Demo) -> None:
    demo.say("\nCode that misbehaves")
    for shown, code, status, arguments in (
        ("a forbidden import is refused", "import subprocess\nsubprocess.run('id')", "refused", {}),
        ("an endless loop is stopped", "while True:\n    pass", "timeout", {"timeout_seconds": 1}),
        (
            "a memory bomb is stopped",
            "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 20))",
            "memory",
            {"memory_mb": 64},
        ),
    ):
        began = time.perf_counter()
        report = await demo.run(code, **arguments)
        ms = (time.perf_counter() - began) * 1000
        message = _message(report)
        demo.show(shown, report["status"] == status, f"{report['status']} after {ms:.0f} ms: {message}", ms)
    began = time.perf_counter()
    report = await demo.run("6 * 7")
    ms = (time.perf_counter() - began) * 1000
    answers = report["result"] == 42  # noqa: PLR2004 - 6 * 7
    demo.show("the server still answers", answers, f"6 * 7 = {report['result']} after {ms:.1f} ms", ms)


def _message(report: Report) -> str:
    error = report.get("error")
    return error["message"] if error else ""


def installed_files() -> tuple[str, int]:
    """Return a CSV of what the installed packages say they installed, and how many rows it has.

    The columns are `package`, `path`, `hash` and `size`, as in each distribution's RECORD (PEP 376, PEP 427).
    """
    rows = [
        (each.metadata["Name"], str(path), path.hash.value if path.hash else "", path.size or "")
        for each in distributions()
        for path in each.files or ()
    ][:ROWS_MAX]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("package", "path", "hash", "size"))
    writer.writerows(rows)
    return text.getvalue(), len(rows)
