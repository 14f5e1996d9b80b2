"""What `sealab guard` adds to an answer of 5 KB in fast mode, in one run beside the same server without it.

    python tests/benchmarks/guard.py [ROUNDS]

Each answer is new to the guard: other rows, other lines, other sentences. Of a picture nothing is looked through, so it
shows the relay itself. The goal is 3 ms. `CPU` is the processor time of the guard's process for one answer, which other
work on the machine does not change as much.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from mcp import Client, StdioServerParameters

GOAL_MS = 3.0
WARM_UPS = 5
TURNS = 10
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "b", "version": "1"}}
    elif message.get("method") == "tools/call":
        result = json.loads(message["params"]["_meta"]["answer"])
    else:
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
SENTENCE = "the order was sent back since a part of it did not fit and we will look at it again on the next day"
PICTURE, KNOWN = "a picture", "rows of known people"
KINDS = (PICTURE, "log", "prose", KNOWN, "rows of new people")


Times = list[tuple[float, float, float]]
"""For each answer the milliseconds that it takes alone and behind the guard, and the guard's CPU milliseconds."""


def text_of(kind: str, draw: random.Random) -> str:
    """Return about 5 KB of one kind."""
    if kind == "log":
        return "\n".join(
            f"2026-11-25T10:{at:02}:07Z INFO worker-{draw.randrange(9)} GET /api/items/{draw.randrange(10**6)} 200 "
            f"{draw.randrange(900)}ms"
            for at in range(60)
        )
    if kind == "prose":
        return "\n".join(" ".join(draw.choices(SENTENCE.split(), k=14)).capitalize() + "." for _ in range(80))
    people = draw.sample(range(40), 28) if kind == KNOWN else [draw.randrange(10**9) for _ in range(28)]
    rows = [
        {"id": at, "customer_name": f"Jane{n} Doe{n}", "email": f"jane{n}@corp.example", "city": "Berlin",
         "status": "open", "total": n % 900 / 2}
        for at, n in enumerate(people)
    ]  # fmt: skip
    return json.dumps(rows)


def answer_of(kind: str, draw: random.Random) -> str:
    if kind == PICTURE:
        data = base64.b64encode(b"\x89PNG" + draw.randbytes(3800)).decode()
        return json.dumps({"content": [{"type": "image", "mimeType": "image/png", "data": data}]})
    return json.dumps({"content": [{"type": "text", "text": text_of(kind, draw)}]})


async def timed(client: Client, answer: str) -> float:
    began = time.perf_counter()
    await client.call_tool("t", {}, meta={"answer": answer})
    return (time.perf_counter() - began) * 1000


async def measured(rounds: int, folder: str) -> dict[str, Times]:
    draw = random.Random(1)
    script = Path(folder, "server.py")
    script.write_text(SERVER)  # noqa: ASYNC240 - nothing else runs
    command = [sys.executable, str(script)]
    guard = [sys.executable, "-P", "-m", "sealab.server", "guard", "--home", f"{folder}/home", "--mode", "fast", "--"]
    alone, behind = (
        StdioServerParameters(command=each[0], args=each[1:], env={"SEALAB_VAULT_KEYRING": "false"})
        for each in (command, [*guard, *command])
    )
    times: dict[str, Times] = {kind: [] for kind in KINDS}
    async with Client(alone, mode="legacy") as plain, Client(behind, mode="legacy") as guarded:
        (process,) = [each for each in psutil.Process().children() if "guard" in each.cmdline()]
        for _ in range(WARM_UPS):
            for kind in KINDS:
                await timed(guarded, answer_of(kind, draw))
        for _ in range(TURNS):  # in turns, since the machine may be busier at one time than at another
            for kind in KINDS:
                for _ in range(max(rounds // TURNS, 1)):
                    answer = answer_of(kind, draw)
                    by_itself, before = await timed(plain, answer), sum(process.cpu_times()[:2])
                    guarded_ms = await timed(guarded, answer)
                    times[kind].append((by_itself, guarded_ms, (sum(process.cpu_times()[:2]) - before) * 1000))
    return times


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        measures = await measured(rounds, folder)
    columns = ("alone p50 ms", "guarded p50", "added p50", "added p95", "CPU")
    print(f"{'5 KB of':<24}{''.join(f'{each:>14}' for each in columns)}   goal {GOAL_MS:g}")
    for kind, each in measures.items():
        alone, guarded, cpu = zip(*each, strict=True)
        added = [behind - plain for plain, behind, _ in each]
        shown = [*map(statistics.median, (alone, guarded, added)), statistics.quantiles(added, n=20)[18]]
        shown.append(statistics.mean(cpu))
        print(f"{kind:<24}{''.join(f'{figure:>14.2f}' for figure in shown)}")


if __name__ == "__main__":
    asyncio.run(main())
