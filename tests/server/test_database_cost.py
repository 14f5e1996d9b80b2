"""What a run that calls nothing costs a PostgreSQL server, alone: nothing that it could share with others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from mcp import Client

from ..skills_db.postgres import Cluster
from ..waiting import until
from .conftest import http_server

STATEMENTS_MAX = 3
"""The journal, the audit log and the record, of which each is written behind the reply."""
WRITTEN = ("sealab_journal_", "sealab_audit_", "sealab_run")
TRIES = 5
"""On a busy machine what belongs to one run may be written at two moments."""


def of_runs(counts: Counter[str]) -> Counter[str]:
    """Leave out what a server asks the database that nobody calls."""
    return Counter({what: count for what, count in counts.items() if what.split()[-1].startswith(WRITTEN)})


async def test_a_lone_run_costs_three_statements_none_of_them_before_its_reply(
    cluster: Cluster, tmp_path: Path
) -> None:
    url = cluster.create("cost_of_a_run")
    cluster.set_for(url, "log_statement = 'all'")
    with http_server(tmp_path, SEALAB_DATABASE_URL=url, SEALAB_VAULT_KEY="ab" * 32) as server:
        async with Client(server, read_timeout_seconds=60) as client:

            async def costs(since: int) -> tuple[Counter[str], Counter[str], int]:
                """Run a program; return what it cost before its reply, what in all, and where the log ends then."""
                answer = await client.call_tool("execute_code", {"code": "6 * 7"})
                before_reply, _ = cluster.statements(since)
                assert answer.structured_content is not None
                assert answer.structured_content["result"] == 42

                def is_written() -> bool:
                    return all(any(table in what for what in cluster.statements(since)[0]) for table in WRITTEN)

                await until(is_written)
                counts, end = cluster.statements(since)
                return of_runs(before_reply), of_runs(counts), end

            *_, end = await costs(cluster.statements(0)[1])  # opens the database
            seen = []
            for _ in range(TRIES):
                before_reply, counts, end = await costs(end)
                seen.append((before_reply.total(), counts))
                if not before_reply and counts.total() <= STATEMENTS_MAX:
                    return
    pytest.fail(f"{STATEMENTS_MAX} statements at most, behind the reply: {seen}")
