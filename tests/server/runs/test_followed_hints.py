"""Each hint of a failed program, followed to the letter, gives a program that works and an answer that is short."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from mcp.types import TextContent

from sealab.sandbox.dialect.imports import is_importable
from sealab.sandbox.report import hints_by_message
from sealab.sandbox.report.substitutes import OF_BUILTINS, SUBSTITUTES

from ..conftest import Caller, in_this_process
from ..upstream_tools.test_registry import ONE_SPARE, configure, upstream

TEXT_CHARS_MAX = 1_500


class Slip(NamedTuple):
    """A program that fails, what its hint says, and the program, or the arguments, that follow it."""

    code: str
    hint: str
    followed: str
    arguments: Mapping[str, Any] = MappingProxyType({})


RUN = "import asyncio\nasync def f(): return [1]\n"
AGEN = "async def g():\n    yield 1\n"
LOCK = "import asyncio\nlock = asyncio.Lock()\n"
OPEN = "import io\nfile = io.StringIO('a')\n"

BY_MESSAGE = [
    Slip("await len([1])", "leave out `await`", "len([1])"),
    Slip("async for n in [1]: print(n)", "write a plain `for`", "for n in [1]: print(n)"),
    Slip(f"{AGEN}for n in g(): print(n)", "Write `async for`", f"{AGEN}async for n in g(): print(n)"),
    Slip(f"{OPEN}async with file: pass", "Write a plain `with`", f"{OPEN}with file: pass"),
    Slip(f"{LOCK}with lock: pass", "`async with`", f"{LOCK}async with lock: pass"),
    Slip(f"{RUN}f()[0]", "Write `await` before the call", f"{RUN}(await f())[0]"),
    Slip(
        f"{RUN}asyncio.get_running_loop().run_until_complete(f())",
        "`await` works at the top level",
        f"{RUN}async def main(): return await f()\nawait main()",
    ),
    Slip(f"{RUN}c = f()\nawait c\nawait c", "Call the function again", f"{RUN}await f()\nawait f()"),
    Slip("import json\njson.loads({'a': 1})['a']", "use it as it is", "{'a': 1}['a']"),
    Slip("import json\njson.dumps({1}.union)", "default=str", "import json\njson.dumps({1}.union, default=str)"),
    Slip('t = \'{"a": 1}\'\nt["a"]', "json.loads(…)", 'import json\nt = \'{"a": 1}\'\njson.loads(t)["a"]'),
    Slip("rows = [{'a': 1}]\nrows['a']", "as in [0]", "rows = [{'a': 1}]\nrows[0]['a']"),
    Slip("x = [2, 1].sort()\nx[0]", "such as sort(), return None", "x = [2, 1]\nx.sort()\nx[0]"),
    Slip("'a' + 1", "str(…)", "'a' + str(1)"),
    Slip("max = 1\nmax(1, 2)", "rename the variable", "most = 1\nmax(1, 2)"),
    Slip("{[1]: 2}", "tuple(…)", "{tuple([1]): 2}"),
    Slip("d = {1: 2}\nfor k in d: d[k + 1] = 1", "list(…)", "d = {1: 2}\nfor k in list(d): d[k + 1] = 1"),
    Slip("str(10 ** 5000)", "`result` may be an int", "result = 10 ** 1000"),
    Slip("import json\ntext = ''\njson.loads(text)", "print(repr(text[:200]))", "text = ''\nprint(repr(text[:200]))"),
    Slip(
        "import json\ntext = \"{'a': 1}\"\njson.loads(text)",
        "ast.literal_eval(text)",
        "import ast\ntext = \"{'a': 1}\"\nast.literal_eval(text)",
    ),
]
BY_TYPE = [
    Slip("itertools.chan([1])", "'chain'", "list(itertools.chain([1]))"),
    Slip("np.mean([1])", "statistics", "statistics.mean([1])"),
    Slip("deque([1])", "Write `from collections import deque` first", "from collections import deque\ndeque([1])"),
    Slip("heapq.nlargest(1, [1])", "Write `import heapq` first", "import heapq\nheapq.nlargest(1, [1])"),
    Slip("import datetime\ndatetime.now()", "datetime.datetime.now", "import datetime\ndatetime.datetime.now()"),
    Slip("n = 1\ndef f():\n    n += 1\nf()", "`global`", "n = 1\ndef f():\n    global n\n    n += 1\nf()"),
    Slip("d = {'name': 1}\nd.name", "write ['name']", "d = {'name': 1}\nd['name']"),
    Slip("d = {'name': 1}\nd['nam']", "'name'", "d = {'name': 1}\nd['name']"),
    Slip("d = {'a': 1}\nd['zzz']", ".get(key)", "d = {'a': 1}\nd.get('zzz')"),
    Slip("d = {1: 2}\nd['1']", "int(…)", "d = {1: 2}\nd[int('1')]"),
    Slip("x = [1]\nx[3]", "last index is 0", "x = [1]\nx[0]"),
    Slip("open('nowhere.txt')", "list_files()", "list_files()"),
    Slip(
        "import os\nos.mkdir('new/a')",
        "mkdir(parents=True, exist_ok=True)` makes it",
        "import os\nfrom pathlib import Path; Path('new').mkdir(parents=True, exist_ok=True)\nos.mkdir('new/a')",
    ),
    Slip("```python\n1\n```\nand\n```python\n2\n```", "Leave out the Markdown fences", "1"),
    Slip("return 1", "value of the last line", "1"),
    Slip("def f():\n    await g()", "`async def`", "async def f():\n    await g()"),
    Slip("  x = 1\nx", "first column", "x = 1\nx"),
    Slip("print(“a”)", "plain ASCII", 'print("a")'),
    Slip("!ls", "write Python", "list_files()"),
    Slip("def f(n): return f(n + 1)\nf(0)", "write a loop", "n = 0\nwhile n < 10: n += 1\nn"),
    Slip(
        "import csv\nrows = [r['b'] for r in csv.DictReader('a,b\\n1,2')]",
        "splitlines()",
        "import csv\nrows = [r['b'] for r in csv.DictReader('a,b\\n1,2'.splitlines())]",
    ),
    Slip("for t in search_tools('add'): t['name']", "['tools']", "for t in search_tools('add')['tools']: t['name']"),
]
OF_TOOLS = [
    Slip("await tools.up.ad(left=1)", "Correct these calls", "await tools.up.add(left=1)"),
    Slip("tools.up.add(left=1)['a']", "Correct these calls", "await tools.up.add(left=1)"),
    Slip("await tools.up.add(lft=1)", "Correct these calls", "await tools.up.add(left=1)"),
    Slip("p = await tools.up.people()\np[0]", 'returned {"people": list[', "(await tools.up.people())['people'][0]"),
    Slip("d = search_tools('add')\nd['hits']", "'tools'", "d = search_tools('add')\nlen(d['tools'])"),
]
WRITE = "await tools.asks.append(path='/nowhere/x', line='y')"
OF_APPROVALS = [
    Slip(WRITE, "With dry_run=true", WRITE, {"dry_run": True}),
    Slip(
        f"{WRITE}\nawait tools.asks.add(lft=1)",
        "Correct the calls that are wrong. With dry_run=true",
        f"{WRITE}\nawait tools.asks.add(left=1)",
        {"dry_run": True},
    ),
]


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = configure(tmp_path_factory.mktemp("home"), up=upstream(approve="never"), asks=upstream())
    async with in_this_process(home, ONE_SPARE) as caller:
        await caller.run("await tools.up.add(left=1)")
        yield caller


@pytest.mark.parametrize("slip", [*BY_MESSAGE, *BY_TYPE, *OF_TOOLS, *OF_APPROVALS], ids=lambda slip: slip.code)
async def test_a_hint_that_is_followed_works_and_is_cheap(caller: Caller, slip: Slip) -> None:
    failed = (await caller.run(slip.code))["error"]
    assert slip.hint in (failed["hint"] or ""), failed
    answer = await caller.call("execute_code", code=slip.followed, **slip.arguments)
    text = "\n".join(block.text for block in answer.content if isinstance(block, TextContent))
    assert not answer.is_error, text
    assert len(text) <= TEXT_CHARS_MAX


def test_every_hint_that_a_message_alone_gives_is_followed() -> None:
    hints = {hint for _, hint in hints_by_message._MESSAGES}
    assert {hint for hint in hints if not any(slip.hint in hint for slip in BY_MESSAGE)} == set()


CLAUSES = sorted({*SUBSTITUTES.values(), *OF_BUILTINS.values()})
IN_CODE = re.compile(
    r'(?<![\w.<"/`])((?:text|bytes)\.\w+|[a-z_0-9]+(?:\.[A-Za-z_]\w*)+(?=\W|$)'
    r"|(?:search_tools|float|open|dir|exec|eval|print)(?=\())"
)
GIVEN = "text, name, value, source, variables, expression, path, format = ('a',) * 8\n"


async def test_all_that_a_hint_names_in_place_of_what_is_missing_is_there(caller: Caller) -> None:
    followed = 0
    for clause in CLAUSES:
        told = re.search(r"`(from \w+ import [\w, ]+)`", clause)
        for each in IN_CODE.findall(clause):
            root = each if is_importable(each) else each.rpartition(".")[0]
            needs = told[1] if told else f"import {root}" if root and root not in {"text", "bytes", "value"} else ""
            report = await caller.run(f"{GIVEN}{needs}\n{each}\n1")
            assert report["success"], (each, report["error"])
            followed += 1
    assert followed > 30
