"""The main job end to end: a real client and a real server, step by step, in a throw-away home."""
# ruff: noqa: T201 - printing is what a demonstration does

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, MCPError, StdioServerParameters

from ..errors import ServerError
from .demonstration import demo_steps
from .demonstration.demo_steps import Demo, Step


async def show(*, as_json: bool) -> bool:
    """Run the whole demonstration. Return whether all of it really happened.

    Raises `ServerError` where the server ended on the way.
    """
    try:
        return await _show(as_json=as_json)
    except* MCPError as errors:
        raise ServerError(
            "The demonstration server ended early. Its output on stderr above says why; `sealab doctor` says more."
        ) from errors


async def _show(*, as_json: bool) -> bool:
    say: Callable[[str], None] = (lambda _line: None) if as_json else print
    began = time.perf_counter()
    steps: list[Step] = []
    figures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sealab-demo-") as home:
        servers = {
            name: {
                "command": sys.executable,
                "args": ["-P", "-m", "sealab.server.commands.demonstration.demo_upstream", name],
            }
            for name in ("packages", "customers")
        }
        (Path(home) / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        say("sealab demo: an MCP client talks to a real server on stdio, in a throw-away home.\n")
        async with _client(home) as client:
            tools = (await client.list_tools()).tools
            ready_ms = (time.perf_counter() - began) * 1000
            demo = Demo(client, say, steps, figures)
            demo.show("the server is up", bool(tools), f"{len(tools)} tools after {ready_ms:.0f} ms", ready_ms)
            await demo_steps.table(demo)
            await demo_steps.session(demo)
            await demo_steps.upstream(demo)
            await demo_steps.skills(demo)
            await demo_steps.misbehaviour(demo)
        async with _client(home, SEALAB_PRIVACY="auto", SEALAB_VAULT_KEYRING="false") as client:
            await demo_steps.privacy(Demo(client, say, steps, figures))
    held = all(step["held"] for step in steps)
    if as_json:
        print(json.dumps({"ok": held, "steps": steps, "figures": figures}, ensure_ascii=False))
    say("\nIn figures, of this run")
    for figure in figures:
        say(f"  {figure}")
    seconds = time.perf_counter() - began
    say(f"\n{'All of it happened' if held else 'Not all of it happened'}, in {seconds:.1f} s.")
    return held


@asynccontextmanager
async def _client(home: str, **settings: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "sealab.server", "serve", "--surface", "full", "--home", home],
        env=dict(os.environ) | settings,
    )
    async with Client(server, read_timeout_seconds=60) as client:
        yield client
