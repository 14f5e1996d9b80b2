"""How long another caller waits for `6 * 7` while one caller sends hostile input: the worst of many, input by input.

    python -m tests.benchmarks.hostile_delay [SECONDS] [NAME…]

Starts a real server over HTTP and two clients in processes of their own. Prints a table, with a run that only computes
and one that sleeps beside the hostile ones: what a busy processor costs is no delay by hostile input. The goal is 250 ms
more than without. Runs attack code: only on a throw-away machine (`make fuzz-host WRAPPER=…`).
"""

from __future__ import annotations

import asyncio
import gzip
import json
import lzma
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import closing
from pathlib import Path

from mcp import Client

from tests.server.conftest import http_process

GOAL_MS = 250.0
SECONDS = 4.0
PAUSE_SECONDS = 0.02
READY = "begun"
TOOLS = 400

# The channel of a worker of full Python, and the buffer that it prints to, which it shares with the host.
FIND = """
import os, select, stat, struct, sys, time
def is_socket(fd):
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False
channel = next(fd for fd in range(3, 64) if is_socket(fd))
printed = sys.modules["sealab.sandbox.guest.guest"].GUEST.write.__self__._memory
def send_bytes(rest):
    while rest:
        select.select([], [channel], [])
        rest = rest[os.write(channel, rest[:65536]):]
def send(body):
    send_bytes(memoryview(struct.pack(">I", len(body)) + body))
def done(result):
    send(b'{"t":"done","status":"ok","result":' + result + b',"error":null,"notes":{}}')
    time.sleep(60)
def call(value):
    send(b'{"t":"call","name":"list_files","args":{"subpath":' + value + b"}}")
"""

PROCESS = {
    "frame: escaped quotes without end, 160 KB": "send(b'[' * 101 + b'\"' + b'\\\\\"' * 80_000)",
    "frame: escaped quotes without end, 5 MB": "send(b'[' * 101 + b'\"' + b'\\\\\"' * 2_600_000)",
    "report: escaped quotes without end, 31 MB": "done(b'[' * 101 + b'\"' + b'\\\\\"' * 15_500_000)",
    "report: a text of escapes, 31 MB": "done(b'\"' + b'\\\\n' * 15_500_000 + b'\"')",
    "report: half characters, 31 MB": "done(b'\"' + b'\\\\ud834 ' * 4_400_000 + b'\"')",
    "report: 990,000 names": "done(b'{' + b','.join(b'\"k%d\":1' % n for n in range(990_000)) + b'}')",
    "report: 480,000 empty objects": "done(b'[' + b'{},' * 480_000 + b'1]')",
    "report: 990,000 numbers": "done(b'[' + b'1.2345678901234567,' * 990_000 + b'1]')",
    "report: numbers of 4,300 digits, 31 MB": "done(b'[' + b','.join([b'9' * 4300] * 7_400) + b']')",
    "report: lists 90 deep": "done(b'[' + (b'[' * 90 + b'1' + b']' * 90 + b',') * 10_000 + b'1]')",
    "calls: 5 MB each": "while True: call(b'\"' + b'\\\\n' * 2_600_000 + b'\"')",
    "calls: 240,000 values each": "while True: call(b'[' + b'1,' * 240_000 + b'1]')",
    "calls: very many": "while True: call(b'1')",
    "bytes of a frame, one by one": "send_bytes(struct.pack('>I', 4_000_000))\nwhile True: send_bytes(b' ')",
    "output: 16 MB that are no text": (
        "printed[8:] = b'\\xff' * (len(printed) - 8)\nprinted[:8] = (len(printed) - 8).to_bytes(8, 'little')"
    ),
}
RESTRICTED = {
    "result: a million numbers": "result = [n / 7 for n in range(480_000)]",
    "result: a text of 19 MB": "result = 'a\\n' * 6_500_000",
    "result: objects": "result = [{'a': n, 'b': str(n)} for n in range(150_000)]",
    "output: 15 MB": "print('é\\n' * 5_000_000)",
    "source: brackets": "CODE:" + "(" * 200_000,
    "source: a long sum": "CODE:x = " + "1+" * 200_000 + "1",
    "search: a query of 4 MB": "while True:\n    try: search_tools('aB ' * 1_300_000)\n    except ValueError: pass",
    "search: a query of 9,000 characters": "import random\nwhile True: search_tools(' '.join(random.choice('abcdefgh') * random.randint(4, 9) + str(n) for n in range(900)))",
    "search: many": "while True: search_tools('send a file and then create an issue')",
    "definition: a name of 4 MB": "while True:\n    try: get_tool_definition('a' * 4_000_000)\n    except (ToolError, ValueError): pass",
    "definition: a name of 9,000 characters": "while True:\n    try: get_tool_definition('a_b.' * 2_200)\n    except (ToolError, ValueError): pass",
    "tool: an unknown name and 4 MB of arguments": "while True:\n    try: await call_tool('up.none', {'a': ['x\\n'] * 200_000})\n    except (ToolError, ValueError, TypeError): pass",
    "skill: a name of 4 MB": "while True:\n    try: load_skill('a' * 4_000_000)\n    except (LookupError, ValueError): pass",
    "skill: a query of 4 MB": "while True:\n    try: list_skills('a b ' * 1_000_000)\n    except ValueError: pass",
    "skill: 490,000 characters of source": "save_skill('long', 'def long():\\n    return 1\\n' + '\\n' * 480_000)",
    "skill: a docstring of 200,000 characters": "save_skill('told', 'def told(a: int):\\n    \"\"\"Say.\\n\\n' + '    :param a: b\\n' * 15_000 + '    \"\"\"\\n    return 1\\n')",
    "skill: a schema of 3,000 fields": "save_skill('wide', 'def wide(' + ', '.join(f'a{n}: list[dict[str, int]] = None' for n in range(3_000)) + '):\\n    return 1\\n')",
    "file: a name of 4 MB": "while True:\n    try: write_file('a/' * 2_000_000, 'x')\n    except (ValueError, PermissionError, OSError): pass",
    "file: 30 MB written and read": "write_file('big.txt', 'line é\\n' * 4_000_000)\nread_file('big.txt')",
    "file: 2,000 files listed": "for n in range(500): write_file(f'f/{n}.txt', 'x')\nwhile True: list_files()",
    "sanitize: 1 MB": "sanitize_pii('a@b.example.org, +49 30 123456 Jane Doe\\n' * 25_000)",
    "sanitize: hostile, 200 KB": "sanitize_pii('1 Aa ' * 40_000)",
    "sanitize: 200,000 values": "sanitize_pii([['x', 1]] * 66_000)",
}
# What an expression or a parser of personal data was found, or may be expected, to take long for.
SHOWN = {
    "phones: apostrophes before a number": "('tel' + \"'\" * 48 + '     212-555-0123\\n') * 8",
    "phones: apostrophes, 200 KB": "(\"tel'\" * 12 + '     212-555-0123\\n') * 3_000",
    "text: apostrophes": '"\'" * 200_000',
    "text: addresses without an end": "('a.' * 50 + '@') * 2_000",
    "text: single digits": "'1 ' * 100_000",
    "text: titles": "'Dr. ' * 40_000",
    "text: capitals": "('A' * 60 + ' ') * 3_000",
    "text: blanks": "'\\t' * 200_000 + 'x'",
    "text: URLs without a host": "'http://' * 30_000",
    "text: an IBAN without an end": "'DE89' + ' 3704' * 30_000",
    "text: tokens without an end": "'[PERSON_' * 30_000",
    "text: escapes": "'\\\\u00e9' * 40_000",
    "text: braces": "'{\"a\":' * 30_000",
    "text: keys": "'name: ' * 40_000",
    "text: a table of 2,000 columns": "'\\n'.join(['a,' * 2_000] * 60)",
    "text: base64": "'QUFB' * 60_000",
}
READ = {
    "file: a workbook of open tags": "workbook.xlsx",
    "file: Latin-1": "latin.txt",
    "file: Latin-1, packed": "latin.gz",
    "file: a database that computes": "computes.db",
    "file: a database that grows": "grows.db",
    "file: a virtual table behind a line break": "virtual.db",
    "file: a directory of 200,000 names": "names.zip",
    "file: 300 MB of nothing, packed": "nothing.xz",
    "file: packed in packed": "packed.gz",
    "file: UTF-16 without a mark": "wide.txt",
}
PERSONAL = {
    **{name: f"print({text})" for name, text in SHOWN.items()},
    **{name: f"print(len(open({file!r}, 'rb').read()))" for name, file in READ.items()},
    "files: 15,000 come home": "PROCESS:for n in range(15_000):\n    open(f'f{n}', 'w').close()",
}
BESIDE = {
    "(nothing)": None,
    "(a run that sleeps)": "import asyncio\nawait asyncio.sleep(60)",
    "(a run that computes)": "while True: pass",
}


def write_file(path: Path) -> None:
    """Write a file that takes long to read, or would."""
    latin = b"a" * 100_000 + b" \xe9t\xe9 " * 100
    match path.name:
        case "workbook.xlsx":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("xl/sharedStrings.xml", "<t " * 60_000 + "</si>")
        case "latin.txt":
            path.write_bytes(latin)
        case "latin.gz":
            path.write_bytes(gzip.compress(latin * 10))
        case "computes.db":
            write_database(path, "instr(hex(zeroblob(2e7)), hex(zeroblob(1e7)) || '1')")
        case "grows.db":
            write_database(path, "hex(zeroblob(2e8))")
        case "virtual.db":
            with closing(sqlite3.connect(path)) as database:
                database.execute("CREATE\nVIRTUAL TABLE t USING fts5(a)")
        case "names.zip":
            with zipfile.ZipFile(path, "w") as archive:
                for number in range(200_000):
                    archive.writestr(f"a{number}", b"")
        case "nothing.xz":
            path.write_bytes(lzma.compress(bytes(300_000_000), preset=0))
        case "packed.gz":
            path.write_bytes(gzip.compress(gzip.compress(gzip.compress(bytes(100_000_000)))))
        case "wide.txt":
            path.write_bytes("Jane Roe, jane@corp.example\n".encode("utf-16-le") * 20_000)
        case _:
            raise ValueError(path.name)


def write_database(path: Path, expression: str) -> None:
    """Write a database with 40 rows whose second column is computed when it is read."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (a)")
        database.executemany("INSERT INTO t (a) VALUES (?)", [(number,) for number in range(40)])
        database.execute(f"ALTER TABLE t ADD COLUMN b AS ({expression})")  # last, since an INSERT computes it too


async def attack(url: str, name: str, seconds: float) -> None:
    """Send one hostile input over and over, from a process of its own."""
    code = PROCESS.get(name) or RESTRICTED.get(name) or PERSONAL.get(name) or BESIDE[name]
    assert code is not None
    isolation = "process" if name in PROCESS or code.startswith("PROCESS:") else "restricted"
    source = FIND + code if name in PROCESS else code.removeprefix("CODE:").removeprefix("PROCESS:")
    given = {"code": source, "isolation": isolation, "timeout_seconds": seconds, "memory_mb": 700}
    async with Client(url, read_timeout_seconds=120) as client:
        print(READY, flush=True)
        ends, times, last = time.monotonic() + seconds, 0, ""
        while time.monotonic() < ends:
            answer = await client.call_tool("execute_code", given)
            times += 1
            report = answer.structured_content or {}
            last = str((report.get("error") or {}).get("message", report.get("status")))[:100]
        print(json.dumps([times, last]), flush=True)


async def delays(url: str, seconds: float) -> list[float]:
    """Return the milliseconds of each `6 * 7` of a caller, one after another."""
    found = []
    async with Client(url, read_timeout_seconds=300) as client:
        for _ in range(5):
            await client.call_tool("execute_code", {"code": "6 * 7"})
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            began = time.perf_counter()
            answer = await client.call_tool("execute_code", {"code": "6 * 7"})
            found.append((time.perf_counter() - began) * 1000)
            if (answer.structured_content or {}).get("result") != 42:
                print(f"  another caller's call failed: {answer.content}", flush=True)
                return [*found, math.inf]
            await asyncio.sleep(PAUSE_SECONDS)
    return found


def measured(name: str, seconds: float) -> tuple[list[float], int, str]:
    """Return the other caller's delays under one input, how often it was sent, and what came of it."""
    privacy = "auto" if name in PERSONAL else "tools"
    env = {"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_PRIVACY": privacy}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "tools").mkdir()
        tools = [
            {"name": f"tool_{n}", "description": f"Send file {n} to a board", "inputSchema": {"type": "object"}}
            for n in range(TOOLS)
        ]
        (home / "tools" / "up.json").write_text(json.dumps({"tools": tools}))
        if name in READ:
            (home / "workspace").mkdir()
            write_file(home / "workspace" / READ[name])
        with http_process(home, **env) as server:
            url = server.url
            if BESIDE.get(name, "") is None:
                return asyncio.run(delays(url, seconds)), 0, ""
            command = [sys.executable, "-m", "tests.benchmarks.hostile_delay", "--attack", url, name, str(seconds)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as attacker:
                assert attacker.stdout is not None
                assert attacker.stdout.readline().strip() == READY
                found = asyncio.run(delays(url, seconds))
                times, last = json.loads(attacker.stdout.readline() or '[0, "the attacker ended"]')
    return found, times, last


def main() -> None:
    if sys.argv[1:2] == ["--attack"]:
        asyncio.run(attack(sys.argv[2], sys.argv[3], float(sys.argv[4])))
        return
    if os.environ.get("SEALAB_DISPOSABLE") != "1":
        sys.exit("This runs attack code: say make fuzz-host WRAPPER=/path/to/command.")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    wanted = sys.argv[2:]
    print(f"{'milliseconds until another caller has 6 * 7':<52}{'p50':>8}{'p95':>8}{'worst':>8}{'sent':>6}")
    beside: list[float] = []
    above = 0
    for name in (*BESIDE, *PROCESS, *RESTRICTED, *PERSONAL):
        if wanted and name not in BESIDE and not any(word in name for word in wanted):
            continue
        found, times, last = measured(name, seconds)
        worst = max(found)
        if name in BESIDE:
            beside.append(worst)
        usual = statistics.median(beside)
        slow = name not in BESIDE and worst > usual + GOAL_MS
        above += slow
        p95 = sorted(found)[int(len(found) * 0.95)]
        mark = "  above the goal" if slow else ""
        print(f"{name:<52}{statistics.median(found):>8.0f}{p95:>8.0f}{worst:>8.0f}{times:>6}  {last}{mark}", flush=True)
    print(f"{above} inputs delay another caller by more than {GOAL_MS:g} ms beyond the {usual:.0f} ms without them")


if __name__ == "__main__":
    main()
