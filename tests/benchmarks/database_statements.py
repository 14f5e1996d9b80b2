"""What a run costs PostgreSQL in statements, and what an idle server does: counted in the database's own log.

    python -m tests.benchmarks.database_statements [RUNS] [SETTING=VALUE …]

A table of statements per run by kind, for runs that call nothing, one after another and 16 at once, and of statements
a second of a server that nobody calls. BEGIN and COMMIT, the settings of a change, and empty statements, which show that
an idle connection still lives, are counted apart.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mcp import Client

from ..server.conftest import http_process
from ..skills_db.postgres import Cluster, throwaway_cluster

IDLE_SECONDS = 20
AT_ONCE = 16
ALONE = 8
_STATEMENT = re.compile(r"LOG:\s+(?:statement|execute [^:]*): (.*)")
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SELECT SET_CONFIG", "SET SESSION", "SHOW", "RELEASE", "SAVEPOINT")
"""What marks out a transaction, and the settings of a connection or of one change."""
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(sealab_\w+)", re.IGNORECASE)


def told(cluster: Cluster, since: int) -> tuple[Counter[str], int]:
    """Count the statements in the log from there on by what they do, and return where it ends."""
    text = (cluster.folder / "log").read_bytes()
    counts: Counter[str] = Counter()
    for line in text[since:].decode(errors="replace").splitlines():
        if (found := _STATEMENT.search(line)) is None:
            continue
        statement = found[1].strip()
        if statement.upper().startswith(_CONTROL) or not statement.strip("; "):  # empty: whether a connection lives
            counts["(begin, commit and settings)"] += 1
            continue
        table = _TABLE.search(statement)
        counts[f"{statement.split()[0].upper()} {table[1] if table else statement[:50]}"] += 1
    return counts, len(text)


def show(title: str, counts: Counter[str], divisor: float, unit: str) -> None:
    control = counts.pop("(begin, commit and settings)", 0)
    print(
        f"\n{title}: {counts.total() / divisor:.2f} statements {unit}, and {control / divisor:.2f} that mark out changes"
    )
    for what, count in counts.most_common(14):
        print(f"  {count / divisor:8.3f}  {what}")


async def measure(cluster: Cluster, url: str, runs: int) -> None:
    async with Client(url, read_timeout_seconds=120) as client:

        async def run(number: int) -> None:
            answer = await client.call_tool("execute_code", {"code": f"{number} + 1"})
            assert answer.structured_content is not None, answer
            assert answer.structured_content["result"] == number + 1, answer

        for number in range(20):
            await run(number)
        await asyncio.sleep(4)  # what is written behind the first runs is written
        _, since = told(cluster, 0)
        for number in range(runs):
            await run(number)
        await asyncio.sleep(4)
        counts, since = told(cluster, since)
        show("One after another", counts, runs, "a run")

        turns = asyncio.Semaphore(AT_ONCE)

        async def turn(number: int) -> None:
            async with turns:
                await run(number)

        await asyncio.gather(*(turn(number) for number in range(runs)))
        await asyncio.sleep(4)
        counts, since = told(cluster, since)
        show(f"{AT_ONCE} at once", counts, runs, "a run")
        for number in range(ALONE):
            await run(number)
            await asyncio.sleep(3)
        counts, since = told(cluster, since)
        show("One every 3 seconds", counts, ALONE, "a run")
        began = time.monotonic()
        await asyncio.sleep(IDLE_SECONDS)
        counts, _ = told(cluster, since)
        show("Idle, with one client", counts, time.monotonic() - began, "a second")


def main(runs: int, settings: dict[str, str]) -> None:
    with throwaway_cluster(durable=False) as cluster, tempfile.TemporaryDirectory() as home:
        url = cluster.create("statements")
        cluster.set_for(url, "log_statement = 'all'")
        env = {"SEALAB_DATABASE_URL": url, "SEALAB_VAULT_KEY": "ab" * 32}
        env |= {f"SEALAB_{name}": value for name, value in settings.items()}
        with http_process(Path(home), **env) as server:
            asyncio.run(measure(cluster, server.url, runs))


if __name__ == "__main__":
    given = dict(each.split("=", 1) for each in sys.argv[1:] if "=" in each)
    main(next((int(each) for each in sys.argv[1:] if "=" not in each), 200), given)
