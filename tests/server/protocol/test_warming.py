"""What the first call needs is built when a client has its list of tools."""

from __future__ import annotations

import json
import subprocess
import sys

_WARMED = """
import asyncio, json, sys
from sealab.server.startup.light_import import imported

def load():
    from sealab.server.protocol import warming
    from sealab.server.protocol.answers import READS, answered
    from sealab.server.protocol.strict_tool import StrictTool
    return warming, StrictTool, READS, answered

warming, StrictTool, READS, answered = imported(load, http=False)
from mcp.types import CallToolResult, methods
from mcp_types import version

async def shown(text: str) -> CallToolResult:
    return answered({}, text)

async def hidden(text: str) -> CallToolResult:
    return answered({}, text)

tools = [StrictTool.published(shown, "", READS, always_loaded=True), StrictTool.published(hidden, "", READS)]
models = [methods.CLIENT_REQUESTS["tools/call", version] for version in ("2026-07-28", "2025-11-25")]
models += [methods.MONOLITH_REQUESTS["tools/call"], CallToolResult]

def built():
    return [model.__pydantic_complete__ for model in models] + [tool._arguments is not None for tool in tools]

async def main():
    told = [built()]
    with warming.warming(tools):
        while not built()[-2]:
            await asyncio.sleep(0.01)
    told.append(built())
    print(json.dumps(told))

if sys.argv[1:]:
    delattr(version, sys.argv[1])
asyncio.run(asyncio.wait_for(main(), 30))
"""


def test_what_the_first_call_needs_is_built_a_moment_after_the_start() -> None:
    told = subprocess.run([sys.executable, "-c", _WARMED], capture_output=True, check=True, text=True).stdout
    before, after = json.loads(told)
    assert before == [False] * 6
    assert after == [True] * 5 + [False]


def test_a_step_that_fails_leaves_the_others_to_be_done() -> None:
    command = [sys.executable, "-c", _WARMED, "LATEST_MODERN_VERSION"]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    _before, after = json.loads(told)
    assert after == [False, *[True] * 4, False]
