"""`save_to=` and attachments: answers of tools and resources that become files without passing the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.server.use_cases.host_functions import attachments
from sealab.server.use_cases.host_functions.attachments import FILES_MAX, Attachments

from ..conftest import Caller, in_process_server
from ..upstream_tools.test_registry import ONE_SPARE, configure

UPSTREAM = """
import asyncio, base64
from mcp.server import MCPServer
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent, ToolAnnotations

server = MCPServer('web', log_level='ERROR')
READS = ToolAnnotations(read_only_hint=True)

@server.resource('web://page', name='page', mime_type='text/html')
def page() -> str:
    return '<html>1</html>'

@server.resource('web://blob', name='blob', mime_type='application/octet-stream')
def blob() -> bytes:
    return bytes(range(256))

@server.tool(annotations=READS, structured_output=False)
def fetch(url: str) -> str:
    'Fetch a page.'
    return '{"spelled":  1.0}\\n' + url * 20_000

@server.tool(annotations=READS)
def rows(count: int) -> list[dict[str, int]]:
    'Rows.'
    return [{'n': n} for n in range(count)]

@server.tool(annotations=READS, structured_output=False)
def picture(count: int = 1) -> CallToolResult:
    'A picture.'
    image = ImageContent(type='image', data=base64.b64encode(bytes(500)).decode(), mime_type='image/png')
    return CallToolResult(content=[TextContent(type='text', text='see'), *[image] * count])

@server.tool(annotations=READS, structured_output=False)
def link() -> CallToolResult:
    'A link.'
    return CallToolResult(content=[ResourceLink(type='resource_link', uri='web://blob', name='blob')])

@server.tool(annotations=READS, structured_output=False)
def own(save_to: str) -> str:
    'A tool that has the argument itself.'
    return 'saved to ' + save_to

@server.tool()
def change() -> str:
    'It may write.'
    return 'changed'

@server.tool(annotations=READS)
async def slow() -> str:
    'It takes long.'
    await asyncio.sleep(60)
    return ''

calls = []

@server.tool(annotations=READS)
def count() -> int:
    'Count a call.'
    calls.append(1)
    return len(calls)

@server.tool(annotations=READS)
def counted() -> int:
    'Calls that were counted.'
    return len(calls)

server.run()
"""


def served(home: Path) -> None:
    (home / "web.py").write_text(UPSTREAM)
    configure(home, web={"command": sys.executable, "args": [str(home / "web.py")]})


caller = in_process_server({**ONE_SPARE, "SEALAB_ALLOWED_ISOLATION": "restricted,process"}, served)


def content(caller: Caller, name: str) -> bytes:
    return (caller.home / "workspace" / name).read_bytes()


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_what_a_tool_answers_becomes_a_file_byte_for_byte(caller: Caller, isolation: str) -> None:
    code = """
import os
seen = os.path.exists(folder + "/page.json")  # what was looked for in vain must be found afterwards
answers = [
    await tools.web.fetch(url="x", save_to=folder + "/page.json"),
    await call_tool("web.rows", {"count": 3}, save_to=folder + "/rows.json"),
    await tools.web.picture(save_to=folder + "/p.png"),
    await tools.web.link(save_to=folder + "/blob"),
    read_resource("web", "web://page", save_to=folder + "/page.html"),
]
[seen, answers, open(folder + "/page.json").read()[:10]]
"""
    report = await caller.run(code, context_vars={"folder": isolation}, isolation=isolation)
    assert report["success"], report
    seen, answers, read = report["result"]
    assert (seen, read) == (False, '{"spelled"')
    assert [(each["filename"], each["size"]) for each in answers] == [
        (f"{isolation}/page.json", 18 + 20_000),
        (f"{isolation}/rows.json", 30),
        (f"{isolation}/p.png", 500),
        (f"{isolation}/blob", 256),
        (f"{isolation}/page.html", 14),
    ]
    assert content(caller, f"{isolation}/page.json").startswith(b'{"spelled":  1.0}\nxx')
    assert content(caller, f"{isolation}/rows.json") == b'[{"n": 0}, {"n": 1}, {"n": 2}]'
    assert content(caller, f"{isolation}/blob") == bytes(range(256))
    files = report["files"] if isolation == "restricted" else report["files"]["new"]
    assert {each["name"] for each in files} == {each["filename"] for each in answers}


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_several_answers_that_come_at_once_are_all_saved(caller: Caller, isolation: str) -> None:
    code = f"""
saved = await asyncio.gather(*(tools.web.rows(count=n, save_to=f"{isolation}/at-once-{{n}}.json") for n in range(8)))
[len(json.loads(open(each["filename"]).read())) for each in saved]
"""
    report = await caller.run(code, isolation=isolation)
    assert report["result"] == list(range(8)), report


async def test_full_python_that_is_stopped_while_it_waits_for_a_tool_says_nothing_of_its_own_end(
    caller: Caller,
) -> None:
    report = await caller.run("await tools.web.slow()", isolation="process", timeout_seconds=1)
    assert (report["status"], report.get("stderr", "")) == ("timeout", "")


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_no_tool_is_called_whose_answer_could_not_be_saved(caller: Caller, isolation: str) -> None:
    for name in ("../outside", ".runs/x", "/etc/x", "a/../b", ""):
        report = await caller.run(
            "await tools.web.count(save_to=name)", isolation=isolation, context_vars={"name": name}
        )
        assert not report["success"]
    assert (await caller.run("await tools.web.counted()", isolation=isolation))["result"] == 0


async def test_a_tool_that_takes_the_argument_itself_is_given_it(caller: Caller) -> None:
    assert (await caller.run("await tools.web.own(save_to='x')"))["result"] == "saved to x"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tools.web.picture(count=2, save_to='two.png')", "encoding=None)), where the handles are '.runs/"),
        ("tools.web.fetch(url='x', save_to='../outside')", "component"),
        ("tools.web.fetch(url='x', save_to='.runs/x')", "kept by sealab"),
        ("tools.web.fetch(url='x', save_to=7)", "name of a file"),
        ("tools.web.fetch(address='x', save_to='y')", "address"),
    ],
)
async def test_what_cannot_be_saved_is_an_error_and_leaves_no_file(caller: Caller, call: str, message: str) -> None:
    report = await caller.run(f"await {call}")
    assert not report["success"]
    assert message in report["error"]["message"] + str(report["error"]["hint"])
    assert not (caller.home / "workspace" / "two.png").exists()


async def test_a_dry_run_notes_down_the_file_and_the_code_finds_it(caller: Caller) -> None:
    report = await caller.run(
        "await tools.web.fetch(url='x', save_to='dry.txt')\nlen(read_file('dry.txt'))", dry_run=True
    )
    assert report["result"] == 18 + 20_000, report
    assert {"tool": "write_file", "arguments": {"filename": "dry.txt", "size": 20_018}} in report["dry_run"]
    assert not (caller.home / "workspace" / "dry.txt").exists()


async def test_a_picture_that_was_saved_is_not_kept_a_second_time(caller: Caller) -> None:
    report = await caller.run("await tools.web.picture(save_to='once.png')")
    kept = caller.home / "workspace.runs" / report["run_id"]
    assert not kept.exists() or [each.name for each in kept.iterdir()] == ["code.py"]


async def test_what_cannot_be_saved_for_lack_of_room_is_still_there_to_be_read(caller: Caller) -> None:
    code = """
try:
    await tools.web.picture(save_to="table.csv/x.png")
except Exception as error:
    failed = str(error)
picture = await tools.web.picture()
[failed, len(read_file(picture[-1]["handle"].replace("-2.png", ".png"), encoding=None))]
"""
    (caller.home / "workspace" / "table.csv").write_text("a")
    report = await caller.run(code)
    assert report["result"][0].startswith("The tool answered, and that could not be saved: "), report
    assert report["result"][1] == 500


LONG = "t" * 100


class Counted(dict[str, bytes]):
    """Files that count how often a name was looked for."""

    looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return super().__contains__(name)


async def test_files_of_one_name_are_numbered_without_trying_all_numbers() -> None:
    files = Counted()
    kept = Attachments("r", files)
    handles = [await kept.keep(b"", "image/png", f"{LONG}{n}.png") for n in range(FILES_MAX)]
    assert len(set(handles)) == FILES_MAX
    assert handles[:3] == [f".runs/r/{LONG[:80]}{end}.png" for end in ("", "-2", "-3")]
    assert files.looks <= 2 * FILES_MAX
    assert await Attachments("r").keep(b"", "text/plain", "code.py") == ".runs/r/code-2.py"


async def test_a_number_that_a_tool_gave_itself_is_passed_over() -> None:
    kept = Attachments("r")
    names = [await kept.keep(b"", "image/png", name) for name in ("a.png", "a-2.png", "a.png", "a.png")]
    assert names == [f".runs/r/{name}.png" for name in ("a", "a-2", "a-3", "a-4")]


async def test_a_run_holds_so_many_files_and_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Attachments("r")
    for _ in range(FILES_MAX):
        await kept.keep(b"", "image/png", "a.png")
    with pytest.raises(HostCallError, match="Ask for less in one run"):
        await kept.keep(b"", "image/png", "a.png")
    monkeypatch.setattr(attachments, "BYTES_MAX", 3)
    with pytest.raises(HostCallError, match="more than 3 bytes or 1000 files"):
        await Attachments("r").keep(b"four", "image/png", "a.png")
