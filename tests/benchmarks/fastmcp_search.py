"""Runs FastMCP's own BM25 search transform; it needs an environment of its own, since FastMCP brings its own packages.

Reads `{"tools": [...], "queries": [...], "limit": 5}` from standard input, writes what is found of each query: `[[name, …], …]`.
The transform is asked as its `search_tools` asks it, but without the server around it: that only makes it faster.

    .venv-clients-mcp2/bin/python tests/benchmarks/fastmcp_search.py < questions.json
"""

from __future__ import annotations

import asyncio
import json
import sys

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

NO_PARAMETERS = {"type": "object", "properties": {}}


async def main() -> None:
    asked = json.load(sys.stdin)
    tools = [
        Tool(name=each["name"], description=each["description"], parameters=each.get("input_schema") or NO_PARAMETERS)
        for each in asked["tools"]
    ]
    transform = BM25SearchTransform(max_results=asked["limit"])
    await transform._search(tools, "builds the index")
    found = [[hit.name for hit in await transform._search(tools, query)] for query in asked["queries"]]
    json.dump(found, sys.stdout)


asyncio.run(main())
