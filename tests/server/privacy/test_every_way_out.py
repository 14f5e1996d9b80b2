"""One flow in each isolation, and every way out of it: no value of a tool or a file leaves as it is."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult

from sealab.sandbox.container import image

from ...sandbox.containers import needs_podman
from ...sandbox.science import VARIABLE
from ..conftest import SEALAB, environment
from .crm import UPSTREAM, customers

COUNT = 40
PERSONAL = ("customer_name", "email", "phone", "card", "iban", "ssn", "api_key")
READ = {
    "restricted": "text = read_file('people.csv')\nlog = open('visits.log').read()\n",
    "process": "text = open('/workspace/people.csv').read()\nlog = open('/workspace/visits.log').read()\n",
    "container": "text = open('/workspace/people.csv').read()\nlog = open('/workspace/visits.log').read()\n",
}
FLOW = """
import csv, gzip, io, os, sys, warnings
rows = (await tools.customers.list_customers())["customers"]
people = list(csv.DictReader(io.StringIO(text)))
packed = list(csv.DictReader(io.StringIO(gzip.decompress(read_file('packed.csv.gz', encoding=None)).decode())))
every = [*rows, *people, *packed]
for row in every:
    print(row['customer_name'], '|', row['phone'], row['email'], sep=' ')
    sys.stderr.write(f"{row['customer_name']} <{row['email']}>\\n")
print(repr(every[:3]), json.dumps(every), log, end='')
progress(0.5, every[0]['customer_name'] + ' ' + every[-1]['email'])
kept = []
for row in (every[0], people[0], packed[0]):
    kept.append(write_file(f"{row['email']}.txt", json.dumps(row)))
    kept.append(write_file(f"shared/{row['email']}.json", sanitize_pii(json.dumps(row)), tokens=True))
with open('all.jsonl', 'w') if not full else open('/tmp/all.jsonl', 'w') as file:
    file.writelines(json.dumps(row) + '\\n' for row in every)
if full:
    keep('/tmp/all.jsonl')
await tools.mail.send(to=every[0]['email'], subject='for ' + every[0]['customer_name'], body=every[-1]['phone'])
refused = []
for call in (
    lambda: tools.mail.send(to='x', subject='', body=rows[1]['api_key']),
    lambda: tools.mail.send(to='[EMAIL_0000000000]', subject='', body=rows[1]['email']),
    lambda: call_tool('mail' + '.send', {'nobody': every[1]['email']}),
    lambda: tools.customers.fail_on(number=2),
    lambda: call_tool('mail.' + every[2]['email'], {}),
):
    try:
        await call()
    except Exception as error:
        refused.append(str(error))
warnings.warn(every[3]['email'])
"""
ALONE = """
import csv, gzip, io
people = list(csv.DictReader(io.StringIO(text)))
packed = list(csv.DictReader(io.StringIO(gzip.decompress(read_file('packed.csv.gz', encoding=None)).decode())))
for row in (*people, *packed):
    print(row['customer_name'])
result = people[-1]['customer_name']
"""
"""Where nothing but the file itself says that these are names."""
FIGURE = """
import matplotlib.pyplot as plt
plt.bar([row['customer_name'] for row in every[:3]], [1, 2, 3])
plt.show()
"""
FAILS = """
def check(row):
    who = row['customer_name']
    raise ValueError(f'cannot bill {who}', row)
check(people[1])
"""


def made_people(first: str, count: int) -> list[dict[str, str]]:
    return [
        {
            "customer_name": f"{first} Wendelgard{chr(97 + n)}",
            "email": f"{first.lower()}.w{n}@post.example",
            "phone": f"+49 30 90{first.__len__()}8{n:03}",
        }
        for n in range(count)
    ]


PEOPLE, PACKED, VISITORS = made_people("Ortrun", 12), made_people("Sieglinde", 12), made_people("Volkrad", 12)
VALUES = {str(row[key]) for row in customers(COUNT) for key in PERSONAL} | {
    value for row in (*PEOPLE, *PACKED, *VISITORS) for value in row.values()
}


def as_csv(rows: list[dict[str, str]]) -> str:
    file = io.StringIO()
    table = csv.DictWriter(file, ["customer_name", "email", "phone"], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return file.getvalue()


@dataclass
class Outside:
    """The client's side of a connection, and what stands on the disk for others than the user."""

    client: Client
    home: Path
    log: Path
    seen: dict[str, list[str]] = field(default_factory=dict)
    figures: int = 0

    def note(self, way: str, said: str) -> None:
        self.seen.setdefault(way, []).append(said)

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        async def progress(_done: float, _total: float | None, message: str | None) -> None:
            self.note("progress", message or "")

        answer = await self.client.call_tool(tool, arguments, progress_callback=progress)
        self.figures += sum(each.type == "image" for each in answer.content)
        self.note(tool, answer.model_dump_json())
        return answer

    async def run(self, code: str, **arguments: Any) -> dict[str, Any]:
        report = (await self.call("execute_code", code=code, **arguments)).structured_content
        assert report is not None
        return report

    def verbatim(self) -> dict[str, set[str]]:
        """Return the values that stand in what left, by the way on which they did."""
        found: dict[str, set[str]] = {}
        for way, texts in self.seen.items():
            text = "\n".join(texts)
            while "\\\\" in text:
                text = text.replace("\\\\", "\\")
            left = {value for value in VALUES if any(form in text for form in (value, ascii(value)[1:-1]))}
            if left:
                found[way] = left
        return found


@pytest.fixture(params=["restricted", "process", pytest.param("container", marks=needs_podman)])
async def outside(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Outside, str]]:
    home = tmp_path / "home"
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "people.csv").write_text(as_csv(PEOPLE), encoding="utf-8")
    (workspace / "packed.csv.gz").write_bytes(gzip.compress(as_csv(PACKED).encode()))
    (workspace / "visits.log").write_text(
        "".join(f"2026-11-0{n % 9 + 1} visit customer_name={json.dumps(row['customer_name'])} email={row['email']} "
                f"phone={json.dumps(row['phone'])}\n" for n, row in enumerate(VISITORS)), encoding="utf-8",
    )  # fmt: skip
    if request.param == "container":
        image.build(home / "container")
    python = {"command": sys.executable}
    servers = {
        "customers": {**python, "args": [str(UPSTREAM), "customers", str(COUNT)]},
        "mail": {**python, "args": [str(UPSTREAM), "mail", str(tmp_path / "sent.jsonl")]},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    settings = {
        "SEALAB_PRIVACY": "auto",
        "SEALAB_PRIVACY_MODE": "fast",
        "SEALAB_ALLOWED_ISOLATION": "restricted,process,container",
        "SEALAB_OUTPUT_MAX_CHARS": "100000",
        "SEALAB_LOG_LEVEL": "DEBUG",
    }
    science = environment().get(VARIABLE)
    if science:
        settings["SEALAB_PROCESS_PYTHON"] = science
    log = tmp_path / "log.txt"
    command = " ".join([*SEALAB, "serve", "--home", str(home), "2>", str(log)])
    served = StdioServerParameters(command="sh", args=["-c", f"exec {command}"], env=environment(**settings))
    asked: list[str] = []

    async def yes(_context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.model_dump_json())
        return ElicitResult(action="accept", content={"approve": True})

    async with Client(served, read_timeout_seconds=150, elicitation_callback=yes) as client:
        opened = Outside(client, home, log)
        opened.seen["questions"] = asked
        yield opened, request.param


async def test_no_value_leaves_on_any_way(outside: tuple[Outside, str]) -> None:
    seen, isolation = outside
    full, figures = isolation != "restricted", isolation == "process" and bool(environment().get(VARIABLE))
    given = {"isolation": isolation, "context_vars": {"full": full}, "timeout_seconds": 60}
    alone = await seen.run(READ[isolation] + ALONE, **given)
    assert alone["output"].count("[PERSON_") == len(PEOPLE) + len(PACKED), alone
    result = "result = {'rows': every, 'kept': kept, 'refused': refused, 'listed': list_files()}\n"
    report = await seen.run(READ[isolation] + FLOW + (FIGURE if figures else "") + result, **given)
    assert report["success"], report["error"]
    assert len(report["result"]["rows"]) == COUNT + len(PEOPLE) + len(PACKED)
    assert len(report["result"]["refused"]) == 5
    assert seen.figures == figures
    assert seen.seen["questions"]
    failed = await seen.run(READ[isolation] + FLOW + FAILS, **given)
    assert "cannot bill [PERSON_" in failed["error"]["message"]
    dry = await seen.run(READ[isolation] + FLOW, dry_run=True, **given)
    assert any(each["tool"] == "mail.send" for each in dry["dry_run"])

    listed = (await seen.call("list_workspace_files")).structured_content
    assert listed is not None
    for file in listed["files"]:
        await seen.call("read_workspace_file", filename=file["name"])
        await seen.call("read_workspace_file", filename=file["name"], encoding="base64")
    for kept in ("output.txt", "result.json", "code.py", "stderr.txt"):
        await seen.call("read_workspace_file", filename=f".runs/{report['run_id']}/{kept}")
    await seen.call("restore_pii", text=report["result"]["rows"][0]["email"])
    await seen.call("get_execution_stats")
    saved = await seen.run(
        f"save_skill('bill', {f'def bill(who=None):{chr(10)}    return who'!r})\nresult = list_skills()"
    )
    assert saved["success"], saved
    await seen.call("run_skill", name="bill", arguments={"who": report["result"]["rows"][1]["email"]})

    mails = [json.loads(line) for line in (seen.home.parent / "sent.jsonl").read_text().splitlines()]
    assert mails[0]["to"] == customers(COUNT)[0]["email"]
    assert not any(str(customers(COUNT)[1]["api_key"]) in json.dumps(mail) for mail in mails)
    await seen.client.__aexit__(None, None, None)
    for path in (seen.home / "workspace" / "shared").iterdir():
        seen.note("files of tokens", path.read_text(encoding="utf-8"))
    for path in (seen.home / "workspace.runs").rglob("*"):
        if path.is_file():
            seen.note("archive", path.read_bytes().decode("utf-8", "replace"))
    with sqlite3.connect(seen.home / "sealab.db") as database:
        seen.note("database", "\n".join(database.iterdump()))
    for path in (*seen.home.glob("sealab.db*"), *(seen.home / "registry").glob("**/*")):
        if path.is_file():
            seen.note("database", path.read_bytes().decode("latin-1"))
    assert seen.log.stat().st_size
    seen.note("log", seen.log.read_text(encoding="utf-8"))
    assert seen.verbatim() == {}
    assert {"execute_code", "progress", "read_workspace_file", "archive", "database", "log"} <= seen.seen.keys()
