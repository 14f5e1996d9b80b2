"""Requests at once to one HTTP upstream are bounded over all servers on one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ...skills_db.conftest import Place, cluster, postgres_place  # noqa: F401 - fixtures
from ..conftest import in_this_process

PATHS = {"/work": {"get": {"operationId": "work", "responses": {"200": {"description": "done"}}}}}
TEN = """
import asyncio
answers = await asyncio.gather(*(tools.slow.work() for _ in range(10)))
result = len(answers)
"""


@dataclass
class Service:
    """A service that counts how many requests it has at once."""

    port: int = 0
    now: int = 0
    most: int = 0
    seen: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.now, self.seen = self.now + 1, self.seen + 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(0.02)
                self.now -= 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    made = Service()
    listener = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        listener.close()


async def test_two_servers_together_send_no_more_at_once_than_the_entry_says(
    postgres_place: Place,  # noqa: F811
    tmp_path: Path,
) -> None:
    assert postgres_place.url is not None
    env = {"SEALAB_DATABASE_URL": postgres_place.url, "SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEY": "ab" * 32}
    async with service() as slow, AsyncExitStack() as stack:
        document = {"openapi": "3.1.0", "info": {"title": "slow", "version": "1"}, "paths": PATHS}
        (tmp_path / "slow.json").write_text(json.dumps(document))
        entry = {
            "openapi": str(tmp_path / "slow.json"),
            "url": f"http://127.0.0.1:{slow.port}",
            "max_connections": 3,
            "approve": "never",
        }
        callers = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "mcp.json").write_text(json.dumps({"mcpServers": {"slow": entry}}))
            callers.append(await stack.enter_async_context(in_this_process(tmp_path / name, env)))
        reports = await asyncio.gather(*(caller.run(TEN) for caller in callers))
    assert [report["result"] for report in reports] == [10, 10], reports
    assert slow.seen == 20
    assert 1 <= slow.most <= 3
