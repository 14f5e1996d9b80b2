"""`sealab demo`: the main job end to end, by a real client and a real server, step by step, in a throw-away home."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, cast

from mcp import Client, MCPError, StdioServerParameters
from typing_extensions import TypedDict

from ...base.errors import Exit, ServerError
from ...use_cases.runs.report import Report
from .command import Command
from .demo_upstream import CUSTOMERS
from .terminal import Here, Output

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

REQUIREMENTS_CALLS = 1 + 12 + 1
"""A list, twelve packages and one that is not there."""
SKILL = '''\
def largest_packages(table: str, n: int = 3) -> list[str]:
    """Return the packages whose files take the most room on disk.

    Args:
        table: A CSV with the columns package and size.
        n: How many to return.
    """
    sizes = collections.Counter()
    for line in table.splitlines()[1:]:
        cells = line.split(",")
        sizes[cells[0]] += int(cells[-1] or 0)
    return [name for name, _ in sizes.most_common(n)]
'''
SKILL_TESTS = r"assert largest_packages('package,size\na,1\nb,2\na,2\n', n=1) == ['a']"
SKILL_WANTED = "what fills the disk"

FIRST_CUSTOMER = """\
rows = await tools.customers.list_customers()
print("first:", rows[0]["name"])
result = [row for row in rows if row["plan"] == "pro"]
"""

ORDERS = "await tools.customers.orders_of(email={token!r})"


class Step(TypedDict):
    """One thing that was shown: what it was meant to prove, whether it did, and in how many milliseconds."""

    shown: str
    held: bool
    detail: str
    ms: float


@dataclass(slots=True)
class Demo:
    """The steps so far, and their figures; with `quiet` nothing is printed of them."""

    quiet: bool
    steps: list[Step] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    ms: float = 0.0
    """How long the last call took."""

    def say(self, line: str) -> None:
        """Print a line."""
        if not self.quiet:
            print(line)

    def show(self, shown: str, held: bool, detail: str) -> None:
        """Keep a step and print it."""
        self.steps.append(Step(shown=shown, held=held, detail=detail, ms=round(self.ms, 1)))
        self.say(f"  {'✓' if held else '✗'} {shown:<36}{detail}")

    async def call(self, client: Client, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool of the server."""
        began = time.perf_counter()
        answer = await client.call_tool(tool, arguments)
        self.ms = (time.perf_counter() - began) * 1000
        return answer.structured_content or {}

    async def run(self, client: Client, code: str, **arguments: object) -> Report:
        """Run code."""
        return cast("Report", await self.call(client, "execute_code", code=code, **arguments))


async def _demo(here: Here) -> Output:
    """Run the main use case end to end, in a temporary home."""
    demo = Demo(here.json)
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="sealab-demo-") as home:
            upstream = ["-P", "-m", "sealab.server.interfaces.commands.demo_upstream"]
            servers = {
                name: {"command": sys.executable, "args": [*upstream, name]} for name in ("packages", "customers")
            }
            (Path(home) / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
            demo.say("sealab demo: an MCP client talks to a real server on stdio, in a throw-away home.\n")
            async with _client(home) as client:
                tools = (await client.list_tools()).tools
                demo.ms = (time.perf_counter() - began) * 1000
                demo.show("the server is up", bool(tools), f"{len(tools)} tools after {demo.ms:.0f} ms")
                for part in (_table, _session, _upstream, _skills, _misbehaviour):
                    await part(demo, client)
            async with _client(home, SEALAB_PRIVACY="auto", SEALAB_VAULT_KEYRING="false") as client:
                await _privacy(demo, client)
    except* MCPError as errors:
        raise ServerError(
            "The demonstration server ended early. Its output on stderr above says why; `sealab doctor` says more."
        ) from errors
    held = all(step["held"] for step in demo.steps)
    lines = ["\nIn figures, of this run", *(f"  {figure}" for figure in demo.figures)]
    took = f"in {time.perf_counter() - began:.1f} s"
    lines.append(f"\n{'All of it happened' if held else 'Not all of it happened'}, {took}.")
    summary = {"ok": held, "steps": demo.steps, "figures": demo.figures}
    return Output(summary, lines, Exit.OK if held else Exit.FAILED)


demo = Command(_demo, needs_home=False)


@asynccontextmanager
async def _client(home: str, **settings: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "sealab.server", "serve", "--surface", "full", "--home", home],
        env=dict(os.environ) | settings,
    )
    async with Client(server, read_timeout_seconds=60) as client:
        yield client


async def _table(demo: Demo, client: Client) -> None:
    """Aggregate a large table in code, and count what the model would pay for it."""
    demo.say("\nA table that would not fit the context")
    content, rows = installed_files()
    written = await demo.call(client, "write_workspace_file", filename=TABLE, content=content)
    size = len(content.encode())
    demo.show("the table is in the workspace", bool(written), f"{rows:,} rows, {size:,} bytes")
    report = await demo.run(client, AGGREGATE)
    result = cast("dict[str, Any]", report["result"] or {})
    demo.show("code aggregated it", result.get("rows") == rows, f"{demo.ms:.0f} ms; what came back, whole:")
    for name, files, total in result.get("largest", []):
        demo.say(f"      {name:<24}{files:>6} files {total:>13,} bytes")
    raw, paid = size // BYTES_PER_TOKEN, (len(AGGREGATE) + len(json.dumps(result))) // BYTES_PER_TOKEN
    detail = f"about {paid:,} tokens (code and result), not {raw:,}"
    demo.show("the model paid for the answer only", paid < raw, detail)
    demo.figures.append(f"{rows:,} rows for about {paid:,} tokens instead of {raw:,}")


async def _session(demo: Demo, client: Client) -> None:
    """Use a variable of the call before, in a session and outside of it."""
    demo.say("\nA session remembers")
    await demo.run(client, "squares = [n * n for n in range(10)]", session="demo")
    result = (await demo.run(client, "sum(squares)", session="demo"))["result"]
    demo.show("a variable of the call before", result == sum(n * n for n in range(10)), f"sum(squares) = {result}")
    report = await demo.run(client, "sum(squares)")
    error = report.get("error")
    demo.show("and no other call sees it", error is not None and error["type"] == "NameError", _message(report))


async def _upstream(demo: Demo, client: Client) -> None:
    """Find a tool of another server, call it from code, and meet its policy."""
    demo.say("\nTools of another MCP server, found, read and called")
    answer = await demo.call(client, "search_tools", query=QUESTION, detail_level="signature", limit=1)
    signature = "".join(each["signature"] for each in answer.get("tools", ()))
    demo.show("one search finds the tool", "package_requirements" in signature, signature)
    report = await demo.run(client, REQUIREMENTS)
    calls, result = len(report.get("tool_calls", [])), cast("dict[str, object]", report["result"] or {})
    held = report["success"] and calls == REQUIREMENTS_CALLS and result["missing"] != ""
    demo.show("code called it, all at once", held, f"{calls} calls in {demo.ms:.0f} ms: {json.dumps(result)[:60]}…")
    demo.figures.append(f"{calls} calls of tools in one program, {demo.ms:.0f} ms")
    uninstalls = "await tools.packages.uninstall_package(name='pip')"
    noted = [each["tool"] for each in (await demo.run(client, uninstalls, dry_run=True)).get("dry_run", [])]
    demo.show("a dry run only notes writes down", noted == ["packages.uninstall_package"], ", ".join(noted))
    message = _message(await demo.run(client, uninstalls))
    demo.show("a write needs the user's yes", "approve" in message, f"{message[:70]}…")


async def _skills(demo: Demo, client: Client) -> None:
    """Save a skill, find it by what it does, and call it."""
    demo.say("\nCode that worked is kept, found and called")
    saved = await demo.call(client, "save_skill", name="largest_packages", code=SKILL, tests=SKILL_TESTS)
    demo.show("its tests passed, so it is saved", saved.get("version") == 1, str(saved.get("signature")))
    answer = await demo.call(client, "search_tools", query=SKILL_WANTED, limit=1)
    name = "".join(each["name"] for each in answer.get("tools", ()))
    demo.show(f'found by "{SKILL_WANTED}"', "largest_packages" in name, name)
    report = await demo.run(client, f"skills.largest_packages(read_file({TABLE!r}), n=2)")
    detail = f"{json.dumps(report['result'])} after {demo.ms:.0f} ms"
    demo.show("any later program calls it", report["success"], detail)
    demo.figures.append(f"a skill found by what it does, and run in {demo.ms:.0f} ms")


async def _privacy(demo: Demo, client: Client) -> None:
    """Work on personal data through a server that hides it from the model."""
    demo.say("\nPersonal data that the model never sees (PRIVACY=auto)")
    report = await demo.run(client, FIRST_CUSTOMER)
    report_text = json.dumps([report["result"], report.get("output", "")], ensure_ascii=False)
    hidden = cast("dict[str, int]", report.get("privacy", {}).get("hidden", {}))
    tokens = [*re.findall(r"\[EMAIL_[0-9a-z]{10}\]", report_text), ""]
    shown = sum(value in report_text for each in CUSTOMERS for value in (each["name"], each["email"]))
    held = report["success"] and len(tokens) > 1 and not shown
    demo.show("code had values, the model tokens", held, report.get("output", "").strip())
    demo.show("the report counts what it hid", bool(hidden), ", ".join(f"{n} {kind}" for kind, n in hidden.items()))
    demo.figures.append(f"{sum(hidden.values())} personal values hidden, {shown} shown")
    report = await demo.run(client, ORDERS.format(token=tokens[0]))
    detail = f"orders_of({tokens[0]}) = {json.dumps(report['result'])}"
    demo.show("a tool got the value back", report["success"], detail)


async def _misbehaviour(demo: Demo, client: Client) -> None:
    """Run code that is refused, and code that has to be stopped."""
    demo.say("\nCode that misbehaves")
    bomb = "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 20))"
    for shown, code, status, arguments in (
        ("a forbidden import is refused", "import subprocess\nsubprocess.run('id')", "refused", {}),
        ("an endless loop is stopped", "while True:\n    pass", "timeout", {"timeout_seconds": 1}),
        ("a memory bomb is stopped", bomb, "memory", {"memory_mb": 64}),
    ):
        report = await demo.run(client, code, **arguments)
        detail = f"{report['status']} after {demo.ms:.0f} ms: {_message(report)}"
        demo.show(shown, report["status"] == status, detail)
    result = (await demo.run(client, "6 * 7"))["result"]
    demo.show("the server still answers", result == 6 * 7, f"6 * 7 = {result} after {demo.ms:.1f} ms")


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
