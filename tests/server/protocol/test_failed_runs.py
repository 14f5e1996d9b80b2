"""A failure says what happened: its lines with their source, what was called before it, and the run's id."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mcp.types import TextContent

from ..conftest import Caller, in_process_server

UPSTREAM = """
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("counter")


@server.tool()
def count(n: int) -> int:
    if n >= 30:
        raise ToolError("a long story: " + "x" * 20_000 + " the limit is 30")
    return n


server.run()
"""


def counting(home: Path) -> None:
    (home / "counter.py").write_text(UPSTREAM)
    entry = {"command": sys.executable, "args": [str(home / "counter.py")], "approve": "never"}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"counter": entry}}))


server = in_process_server(prepare=counting)


LOOP = "async def ask(n):\n    return await tools.counter.count(n=n)\n\nfor n in range({upto}):\n    await ask(n)\n"


async def test_a_failed_run_shows_its_lines_with_their_source_its_id_and_the_calls_that_were_done_and_failed(
    server: Caller,
) -> None:
    answer = await server.call("execute_code", code=LOOP.format(upto=40))
    report, block = answer.structured_content, answer.content[0]
    assert report is not None
    assert isinstance(block, TextContent)
    assert report["error"]["calls"] == {"counter.count": {"done": 30, "failed": 1}}
    assert [(each["ok"], each["count"]) for each in report["tool_calls"]] == [(True, 30), (False, 1)]
    lines = [line.strip() for line in block.text.splitlines()]
    assert lines.index("await ask(n)") < lines.index("return await tools.counter.count(n=n)")
    assert "calls made: counter.count 30 done, 1 failed" in lines
    run_id = lines[0].partition("(run ")[2].removesuffix(")")
    kept = await server.run(f"read_file('.runs/{run_id}/code.py')")
    assert kept["result"] == LOOP.format(upto=40)
    few = await server.run(LOOP.format(upto=3) + "tools.nothing\n1 / 0")
    assert few["error"]["calls"] == {"counter.count": {"done": 3, "failed": 0}}
    assert [each["tool"] for each in few["tool_calls"]] == ["counter.count"] * 3
    assert "calls" not in (await server.run("1 / 0"))["error"]


async def test_the_long_error_of_a_server_keeps_its_start_and_its_end(server: Caller) -> None:
    error = (await server.run("await tools.counter.count(n=99)"))["error"]
    assert "a long story" in error["message"]
    assert error["message"].endswith("the limit is 30")
    assert len(error["message"]) < 2100


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ('def unfit(n: int):\n    """Count."""\n    return reckon(n)\n', "reckon"),
        ('def unfit(n: int):\n    """Count."""\n    return [Counter2(n), other]\n', "Counter2, other"),
    ],
)
async def test_a_skill_that_uses_what_nothing_defines_warns_when_it_is_saved(
    server: Caller, code: str, named: str
) -> None:
    saved = await server.told("save_skill", name="unfit", code=code)
    assert (
        f"It uses {named}, which nothing defines: a call that comes there fails with a NameError." in saved["warnings"]
    )


@pytest.mark.parametrize(
    "code",
    [
        'import math\nLEAST = 2\ndef fit(n: int):\n    """Count."""\n    return max(LEAST, math.floor(n), key=lambda x: x)\n',
        'def fit(n: int):\n    """Count."""\n    return [json.dumps(m) for m in range(n)]\n',
        'from math import *\ndef fit(n: int):\n    """Count."""\n    return floor(n)\n',
        'async def fit(n: int):\n    """Count."""\n    return await tools.counter.count(n=n)\n',
        'class P:\n    x = 1\n    def y(self) -> "P":\n        return self\ndef fit(n: int):\n    """Count."""\n    return P().y()\n',
        'def fit(n: int):\n    """Count."""\n    progress(0.5)\n    try:\n        return mcp_counter\n    except NameError as error:\n        return error\n',
    ],
)
async def test_a_skill_that_finds_all_its_names_does_not(server: Caller, code: str) -> None:
    saved = await server.told("save_skill", name="fit", code=code)
    assert not [warning for warning in saved["warnings"] if "nothing defines" in warning]
