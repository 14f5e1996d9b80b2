"""Draws the moving picture of the README from a real run: `python -m tests.docs.moving_picture FILE`.

A client and a server talk over standard streams: a table of customers that stays masked, a call that asks first, and a
skill that a new conversation finds. The picture is an SVG whose lines appear one after another, without a script.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

MAIL = """
from mcp.server import MCPServer
server = MCPServer("mail")
@server.tool()
def send_invoice(to: str, amount: int) -> str:
    \"\"\"Send an invoice by mail.\"\"\"
    return f"sent: {amount} EUR"
server.run()
"""
CUSTOMERS = "name,email,plan,due\nJane Roe,jane.roe@example.com,pro,120\nAnders Holm,anders@example.org,free,0\nMei Tanaka,mei@example.net,pro,80\n"
READ = """\
import csv, io

rows = list(csv.DictReader(io.StringIO(read_file("customers.csv"))))
[{"name": row["name"], "email": row["email"], "due": row["due"]} for row in rows]"""
SEND = """\
pro = [row for row in rows if row["plan"] == "pro"]
await tools.mail.send_invoice(to=pro[0]["email"], amount=int(pro[0]["due"]))"""
SKILL = '''\
def due(table: str) -> int:
    """Return what all customers of a table owe together."""
    return sum(int(line.split(",")[3]) for line in table.splitlines()[1:])'''
FOUND = "what do our customers owe"
COLUMNS, LINE, CHARACTER, MARGIN, BAR = 100, 19, 8.05, 20, 38
SECONDS, PAUSE, ENDS = 0.36, 0.72, 2.5
COLOURS = {"agent": "#8ecbff", "sealab": "#d6e2e5", "user": "#ffd479"}
_TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-z]{10}\]")
_MARKED = r'<tspan fill="#7ee0a5">\g<0></tspan>'
Scene = list[tuple[str, str]]
"""Who says what, line by line."""


async def played() -> Scene:
    """Return what was said in a real conversation."""
    said: Scene = []

    async def ask(_context: Any, asked: Any) -> ElicitResult:
        said.extend(("sealab", line) for line in asked.message.splitlines() if line.strip())
        said.append(("user", "yes"))
        return ElicitResult(action="accept", content={"approve": True, "decision": "yes", "answer": "yes"})

    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "workspace").mkdir()
        (home / "workspace" / "customers.csv").write_text(CUSTOMERS)
        (home / "mail.py").write_text(MAIL)
        mail = {"command": sys.executable, "args": [str(home / "mail.py")], "restore": ["send_invoice"]}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"mail": mail}}))
        env = {"SEALAB_HOME": name, "SEALAB_PRIVACY": "auto", "PATH": "/usr/bin:/bin"}
        parameters = StdioServerParameters(command=sys.executable, args=["-P", "-m", "sealab.server"], env=env)
        for session, programs in (("first", [READ, SEND, None]), ("second", [FOUND])):
            # Named, since a busy machine may not answer the question for the version in time.
            async with Client(stdio_client(parameters), mode="2026-07-28", elicitation_callback=ask) as client:
                for program in programs:
                    await _step(client, said, program, session)
    return said


async def _step(client: Client, said: Scene, program: str | None, session: str) -> None:
    if program is None:
        said.append(("agent", f"save_skill(\"due\", '''{SKILL.splitlines()[0]} …''')"))
        tests = r"assert due('name,email,plan,due\na,b,c,2\nd,e,f,3\n') == 5"
        answer = await client.call_tool("save_skill", {"name": "due", "code": SKILL, "tests": tests})
        said.append(("sealab", f"saved, version {_data(answer)['version']}: its tests pass"))
    elif program == FOUND:
        said.append(("agent", f"# a new conversation\nsearch_tools({FOUND!r})"))
        found = _data(
            await client.call_tool("search_tools", {"query": program, "limit": 1, "detail_level": "signature"})
        )["tools"][0]
        said.append(("sealab", str(found.get("signature") or found.get("call") or found["name"])))
        said.append(("agent", 'skills.due(read_file("customers.csv"))'))
        said.append(("sealab", str(await _ran(client, 'skills.due(read_file("customers.csv"))', session))))
    else:
        at = len(said)
        result = await _ran(client, program, session)
        said.insert(at, ("agent", program))
        lines = [json.dumps(each) for each in result] if isinstance(result, list) else [json.dumps(result)]
        said.extend(("sealab", line) for line in lines)


async def _ran(client: Client, code: str, session: str) -> Any:
    answer = _data(await client.call_tool("execute_code", {"code": code, "session": session}))
    assert answer["success"], answer
    return answer["result"]


def _data(answer: Any) -> Any:
    assert not answer.is_error, answer
    return answer.structured_content


def drawn(said: Scene) -> str:
    """Return an SVG in which the lines appear in turn, each for as long as it takes to read."""
    lines: list[tuple[str, str, float]] = []
    at = 0.0
    before = ""
    for who, text in said:
        at += PAUSE if who != before else 0.0
        wrapped = [part for line in text.splitlines() for part in (textwrap.wrap(line, COLUMNS - 2) or [""])]
        for number, line in enumerate(wrapped if who != "agent" else text.splitlines()):
            mark = {"agent": "›", "user": "you:", "sealab": " "}[who] if number == 0 else " "
            lines.append((who, f"{mark} {line}", at))
            at += SECONDS
        before = who
    whole = at + ENDS
    width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{BAR + n * LINE + 14}" fill="{COLOURS[who]}" class="l" style="animation-name:l{n}">'
        f"{_TOKEN.sub(_MARKED, escape(line, quote=False))}</text>"
        for n, (who, line, _) in enumerate(lines)
    )
    frames = "\n".join(
        f"@keyframes l{n} {{ 0%, {100 * at / whole:.2f}% {{ opacity: 0 }} {100 * at / whole + 0.01:.2f}%, 100% {{ opacity: 1 }} }}"
        for n, (_, _, at) in enumerate(lines)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A program reads a table of customers, which stay masked; a call that writes asks first; a skill is found again">
<style>
text {{ font: 13.4px ui-monospace, Menlo, Consolas, monospace; white-space: pre }}
.l {{ animation-duration: {whole:.1f}s; animation-iteration-count: infinite; animation-timing-function: step-end }}
{frames}
@media (prefers-reduced-motion: reduce) {{ .l {{ animation: none }} }}
</style>
<rect width="{width}" height="{height}" rx="10" fill="#15252b"/>
{"".join(f'<circle cx="{MARGIN + 18 * n}" cy="18" r="5.5" fill="#5a6b72"/>' for n in range(3))}
{rows}
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    chosen.file.write_text(drawn(asyncio.run(played())), encoding="utf-8")


if __name__ == "__main__":
    main()
