"""What the demonstration shows, step by step: a table, a session, upstream tools, skills, misbehaviour, privacy."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import distributions
from typing import cast

from mcp import Client
from typing_extensions import TypedDict

from ...runs.report import Report

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

CUSTOMERS = """\
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
    """The steps so far, and their figures; `say` prints a line, or nothing when only JSON is wanted."""

    client: Client
    say: Callable[[str], None]
    steps: list[Step] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    async def run(self, code: str, **arguments: object) -> Report:
        """Run code through the server's `execute_code`."""
        answer = await self.client.call_tool("execute_code", {"code": code, **arguments})
        return cast("Report", answer.structured_content)

    def show(self, shown: str, held: bool, detail: str, ms: float) -> None:
        """Keep a step and print it."""
        self.steps.append(Step(shown=shown, held=held, detail=detail, ms=round(ms, 1)))
        self.say(f"  {'✓' if held else '✗'} {shown:<36}{detail}")


async def table(demo: Demo) -> None:
    """Aggregate a large table in code, and count what the model would pay for it."""
    demo.say("\nA table that would not fit the context")
    content, rows = installed_files()
    written = await demo.client.call_tool("write_workspace_file", {"filename": TABLE, "content": content})
    size = len(content.encode())
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
    demo.figures.append(f"{rows:,} rows for about {paid:,} tokens instead of {raw:,}")


async def session(demo: Demo) -> None:
    """Use a variable of the call before, in a session and outside of it."""
    demo.say("\nA session remembers")
    await demo.run("squares = [n * n for n in range(10)]", session="demo")
    report = await demo.run("sum(squares)", session="demo")
    demo.show("a variable of the call before", report["result"] == 285, f"sum(squares) = {report['result']}", 0.0)  # noqa: PLR2004 - the sum of ten squares
    report = await demo.run("sum(squares)")
    error = report.get("error")
    unknown = error is not None and error["type"] == "NameError"
    demo.show("and no other call sees it", unknown, _message(report), 0.0)


async def upstream(demo: Demo) -> None:
    """Find a tool of another server, call it from code, and meet its policy."""
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
    demo.figures.append(f"{len(calls)} calls of tools in one program, {ms:.0f} ms")
    report = await demo.run("await tools.packages.uninstall_package(name='pip')", dry_run=True)
    noted = [each["tool"] for each in report.get("dry_run", [])]
    demo.show("a dry run only notes writes down", noted == ["packages.uninstall_package"], ", ".join(noted), 0.0)
    report = await demo.run("await tools.packages.uninstall_package(name='pip')")
    message = _message(report)
    demo.show("a write needs the user's yes", "approve" in message, f"{message[:70]}…", 0.0)


async def skills(demo: Demo) -> None:
    """Save a skill, find it by what it does, and call it."""
    demo.say("\nCode that worked is kept, found and called")
    arguments = {"name": "largest_packages", "code": SKILL, "tests": SKILL_TESTS}
    answer = await demo.client.call_tool("save_skill", arguments)
    saved = cast("dict[str, object]", answer.structured_content or {})
    demo.show("its tests passed, so it is saved", saved.get("version") == 1, str(saved.get("signature")), 0.0)
    answer = await demo.client.call_tool("search_tools", {"query": SKILL_WANTED, "limit": 1})
    found = cast("dict[str, list[dict[str, str]]]", answer.structured_content or {}).get("tools", [])
    name = found[0]["name"] if found else "nothing"
    demo.show(f'found by "{SKILL_WANTED}"', "largest_packages" in name, name, 0.0)
    began = time.perf_counter()
    report = await demo.run(f"skills.largest_packages(read_file({TABLE!r}), n=2)")
    ms = (time.perf_counter() - began) * 1000
    demo.show("any later program calls it", report["success"], f"{json.dumps(report['result'])} after {ms:.0f} ms", ms)
    demo.figures.append(f"a skill found by what it does, and run in {ms:.0f} ms")


async def privacy(demo: Demo) -> None:
    """Work on personal data through a server that hides it from the model."""
    demo.say("\nPersonal data that the model never sees (PRIVACY=auto)")
    report = await demo.run(CUSTOMERS)
    told = json.dumps([report["result"], report.get("output", "")], ensure_ascii=False)
    hidden = cast("dict[str, int]", report.get("privacy", {}).get("hidden", {}))
    tokens = re.findall(r"\[EMAIL_[0-9a-z]{10}\]", told)
    shown = sum(value in told for value in personal_values())
    held = report["success"] and bool(tokens) and not shown
    demo.show("code had values, the model tokens", held, report.get("output", "").strip(), 0.0)
    counted = ", ".join(f"{count} {kind}" for kind, count in hidden.items())
    demo.show("the report counts what it hid", bool(hidden), counted, 0.0)
    demo.figures.append(f"{sum(hidden.values())} personal values hidden, {shown} shown")
    report = await demo.run(ORDERS.format(token=tokens[0] if tokens else ""))
    detail = f"orders_of({tokens[0] if tokens else ''}) = {json.dumps(report['result'])}"
    demo.show("a tool got the value back", report["success"], detail, 0.0)


async def misbehaviour(demo: Demo) -> None:
    """Run code that is refused, and code that has to be stopped."""
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


def personal_values() -> list[str]:
    """Return the names and addresses of the customers of the demonstration, none of whom exists."""
    from .demo_upstream import CUSTOMERS

    return [value for each in CUSTOMERS for value in (each["name"], each["email"])]


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
