"""Code is told which failed calls may have been done: those alone that were sent and may change something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..conftest import Caller, in_process_server
from ..upstream_tools.test_registry import ONE_SPARE, configure, result

DYING = """
import os, time
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('dying', log_level='ERROR')
READS, WRITES = ToolAnnotations(read_only_hint=True), ToolAnnotations(read_only_hint=False)

@server.tool(annotations=READS)
def look_and_die() -> str:
    os._exit(1)

@server.tool(annotations=WRITES)
def send_and_die() -> str:
    os._exit(1)

@server.tool(annotations=WRITES)
def send_slowly() -> str:
    time.sleep(600)

@server.tool(annotations=WRITES)
def send_and_fail() -> str:
    raise RuntimeError('it is not allowed')

server.run()
"""
CODE = """
try:
    await call_tool('{tool}', {arguments})
except ToolError as error:
    result = type(error).__name__
"""


def served(home: Path) -> None:
    (home / "dying.py").write_text(DYING)
    dying = {"command": sys.executable, "args": [str(home / "dying.py")], "approve": "never"}
    gone = {"command": "/no/such/command", "approve": "never"}
    configure(home, dying=dying, slow={**dying, "call_timeout_seconds": 0.5}, gone=gone)


caller = in_process_server(ONE_SPARE, served)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("dying.send_and_die", {}, "OutcomeUnknown"),
        ("slow.send_slowly", {}, "OutcomeUnknown"),
        ("dying.look_and_die", {}, "ToolError"),
        ("dying.send_and_fail", {}, "ToolError"),
        ("dying.nothing", {}, "ToolError"),
        ("gone.send", {}, "ToolError"),
    ],
)
async def test_a_call_that_may_have_been_done_is_told_apart_from_one_that_was_not(
    caller: Caller, tool: str, arguments: dict[str, object], expected: str
) -> None:
    assert await result(caller, CODE.format(tool=tool, arguments=arguments)) == expected
