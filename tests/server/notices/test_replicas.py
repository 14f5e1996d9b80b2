"""What changes through one server reaches the clients of another on the same PostgreSQL database, in both eras."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ResourceListChangedNotification, ToolListChangedNotification

from ...skills_db.postgres import Cluster
from ..conftest import http_server

UPSTREAM = Path(__file__).parents[2] / "data" / "bridged_upstream.py"
WAIT_SECONDS = 40
TWICE = """def twice(n: int) -> int:
    'Double a number.'
    return 2 * n
"""


@dataclass
class Replicas:
    """Two servers with a home each and one database, and where their upstream server notes its starts."""

    first: str
    second: str
    starts: dict[str, Path]


@pytest.fixture(scope="module")
def replicas(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    url, starts, urls = cluster.create("replicas"), {}, []
    with ExitStack() as stack:
        for name in ("first", "second"):
            home = tmp_path_factory.mktemp(name)
            starts[name] = home / "starts"
            entry = {"command": sys.executable, "args": [str(UPSTREAM)], "env": {"STARTED": str(starts[name])}}
            (home / "mcp.json").write_text(json.dumps({"mcpServers": {"zoo": entry}}))
            env = {"SEALAB_DATABASE_URL": url, "SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEY": "ab" * 32}
            urls.append(stack.enter_context(http_server(home, **env)))
        yield Replicas(urls[0], urls[1], starts)


@dataclass
class Heard:
    """What a client was notified of."""

    tools: asyncio.Event = field(default_factory=asyncio.Event)
    resources: asyncio.Event = field(default_factory=asyncio.Event)

    async def message(self, message: object) -> None:
        root = getattr(message, "root", message)
        if isinstance(root, ToolListChangedNotification):
            self.tools.set()
        if isinstance(root, ResourceListChangedNotification):
            self.resources.set()


@asynccontextmanager
async def listening(url: str, mode: Any) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that has read both lists, and hears when they change."""
    heard = Heard()
    async with Client(url, mode=mode, read_timeout_seconds=50, message_handler=heard.message) as client:
        await client.list_tools(cache_mode="bypass")
        await client.list_resources(cache_mode="bypass")
        if mode == "legacy":
            yield client, heard
            return
        ready = asyncio.Event()

        async def listen() -> None:
            async with client.listen(tools_list_changed=True, resources_list_changed=True) as events:
                ready.set()
                async for event in events:
                    (heard.tools if "Tools" in type(event).__name__ else heard.resources).set()

        task = asyncio.create_task(listen())
        await asyncio.wait_for(ready.wait(), WAIT_SECONDS)
        try:
            yield client, heard
        finally:
            task.cancel()


async def described(client: Client) -> str:
    listed = await client.list_tools(cache_mode="bypass")
    return next(tool.description or "" for tool in listed.tools if tool.name == "execute_code")


async def test_what_one_server_learns_and_saves_reaches_the_clients_of_the_other(replicas: Replicas) -> None:
    async with (
        Client(replicas.first, read_timeout_seconds=50) as first,
        listening(replicas.second, "legacy") as (legacy, legacy_heard),
        listening(replicas.second, "auto") as (modern, modern_heard),
    ):
        assert " Servers: zoo." in await described(legacy)
        await first.call_tool("search_tools", {"query": "people"})  # which asks the upstream server what it has
        for heard in (legacy_heard, modern_heard):
            await asyncio.wait_for(heard.tools.wait(), WAIT_SECONDS)
        assert " Servers: zoo (" in await described(legacy)
        assert " Servers: zoo (" in await described(modern)
        found = (await modern.call_tool("search_tools", {"query": "people"})).structured_content
        assert found is not None
        assert found["tools"][0]["name"] == "people"
        assert not replicas.starts["second"].exists(), "the second server asked what the first had asked"

        await first.call_tool("save_skill", {"name": "twice", "code": TWICE})
        for heard in (legacy_heard, modern_heard):
            await asyncio.wait_for(heard.resources.wait(), WAIT_SECONDS)
        listed = (await modern.call_tool("list_skills", {})).structured_content
        assert listed is not None
        assert [each["name"] for each in listed["skills"]] == ["twice"]
        run = (await legacy.call_tool("run_skill", {"name": "twice", "arguments": {"n": 4}})).structured_content
        assert run is not None
        assert run["result"] == 8
        hits = (await modern.call_tool("search_tools", {"query": "twice"})).structured_content
        assert hits is not None
        assert "skills.twice" in json.dumps(hits) or "twice" in {each["name"] for each in hits["tools"]}
