"""Dry runs as a user meets them: reads are real, writes are noted down, and nothing is changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..conftest import in_process_server, in_this_process
from .test_approvals import NO, User, yes
from .test_registry import ONE_SPARE, configure, result, upstream

SILENT = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel
from typing import Any
server = MCPServer('silent', log_level='ERROR')

class Made(BaseModel):
    id: str
    at: str
    tags: list[str]
    more: dict[str, int] = {}

@server.tool()
def get_note() -> str:
    'Get a note.'
    return 'a real note'

@server.tool()
def delete_note(name: str) -> Made:
    'Delete a note.'
    raise RuntimeError('it was really called')

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def get_and_mark() -> str:
    'Get it.'
    raise RuntimeError('it was really called')

@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=False))
def make(real: bool = False) -> str:
    'Make one.'
    return '{"number": 7, "names": ["a"]}'

server.run()
"""


def configured(home: Path) -> None:
    """Configure servers whose operator approves everything, one of which says little of its tools."""
    (home / "silent.py").write_text(SILENT)
    silent = {"command": sys.executable, "args": [str(home / "silent.py")]}
    free, named = {**silent, "approve": "never"}, {**silent, "reads": ["make"]}
    configure(home, up=upstream(), silent=free, asked=silent, named=named)


caller = in_process_server(ONE_SPARE, configured)


async def test_what_reads_is_called_and_what_writes_is_noted_down_with_an_answer_of_its_shape(
    caller, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    code = f"[await tools.up.append(path={str(file)!r}, line='x') + 1, await tools.up.add(left=1)]"
    answer = await caller.call("execute_code", code=code, dry_run=True)
    report = answer.structured_content
    assert report["dry_run"] == [{"tool": "up.append", "arguments": {"path": str(file), "line": "x"}}]
    assert report["result"] == [2, 2]
    assert report["made_up"] == {"up.append": "says that it may destroy something"}
    assert "This was a dry run" in answer.content[0].text
    assert "made-up answers of these tools" in answer.content[0].text
    assert "up.append (says that it may destroy something)" in answer.content[0].text
    assert not file.exists()


async def test_a_dry_run_says_that_it_is_one_even_where_nothing_was_left_out(caller) -> None:
    answer = await caller.call("execute_code", code="await tools.up.add(left=1)", dry_run=True)
    assert answer.structured_content["dry_run"] == []
    assert "This was a dry run: nothing had to be left out." in answer.content[0].text
    assert "made-up" not in answer.content[0].text
    assert "made_up" not in answer.structured_content
    assert "dry_run" not in await caller.run("1")


async def test_a_dry_run_of_one_call_tells_the_shape_of_the_answer_and_none_of_its_values(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        found = await caller.call("search_tools", query="people", limit=1, detail_level="signature")
        assert "`r = await tools.…(…)` with dry_run=true tells the shape" in found.content[0].text
        looked = await caller.call("execute_code", code="r = await tools.up.people()", dry_run=True)
        value = await caller.run("await tools.up.people()")
        known = await caller.call("search_tools", query="people", limit=1, detail_level="signature")
    shape = looked.structured_content["returns"]["up.people"]
    assert f"up.people returns {shape}" in looked.content[0].text
    assert shape.removesuffix(" (seen once)") in known.content[0].text
    assert looked.structured_content["result"] is None
    names = [each["firstName"] for each in value["result"]["people"]]
    assert names
    assert not [name for name in names if name in str(looked)]


async def test_of_tools_that_say_nothing_those_run_that_are_approved_and_seem_to_read(caller) -> None:
    code = """
note = await tools.silent.get_note()
gone = await tools.silent.delete_note(name="x")
marked = await tools.silent.get_and_mark()
asked = await tools.asked.get_note()
[note, gone["id"], gone["tags"], gone["more"], gone["dry_run"], marked, asked]
"""
    report = await caller.run(code, dry_run=True)
    assert report["result"] == ["a real note", "dry run", ["dry run"], {}, True, "dry run", "dry run"]
    noted = [each["tool"] for each in report["dry_run"]]
    assert noted == ["silent.delete_note", "silent.get_and_mark", "asked.get_note"]
    assert report["made_up"]["asked.get_note"] == "does not say that it only reads"


async def test_what_its_user_approved_for_always_and_seems_to_read_a_dry_run_calls(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(SILENT)
    configure(tmp_path, asked={"command": sys.executable, "args": [str(tmp_path / "silent.py")]})
    code = "note = await tools.asked.get_note()\ngone = await tools.asked.get_and_mark()\n[note, gone]"
    user = User([NO, yes("such calls always")])
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        assert (await caller.run(code, dry_run=True))["result"] == ["dry run", "dry run"]
        await result(caller, "await tools.asked.get_note()")
        await caller.run("await tools.asked.get_and_mark()")
        report = await caller.run(code, dry_run=True)
    assert report["result"] == ["a real note", "dry run"]
    assert list(report["made_up"]) == ["asked.get_and_mark"]
    assert len(user.asked) == 3, "the last dry run asks nothing"


async def test_a_dry_run_asks_whether_to_call_what_seems_to_read_and_never_about_what_writes(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(SILENT)
    configure(tmp_path, asked={"command": sys.executable, "args": [str(tmp_path / "silent.py")]})
    code = """
from skills import note
marked, gone = await tools.asked.get_and_mark(), await tools.asked.delete_note(name="x")
[await note(), marked, gone["id"]]
"""
    user = User([yes(), NO])
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        await caller.call("save_skill", name="note", code="async def note():\n    return await tools.asked.get_note()")
        report = await caller.run(code, dry_run=True)
        assert report["result"] == ["a real note", "dry run", "dry run"]
        assert sorted(report["made_up"]) == ["asked.delete_note", "asked.get_and_mark"]
        assert (await caller.run(code, dry_run=True))["result"] == ["dry run", "dry run", "dry run"]
    first, _ = user.asked
    assert "1. asked.get_note() [line 2 of the skill note]\nasked.get_note does not say that it only reads." in first
    assert "This is a dry run: other calls that may write are not made." in first
    assert "delete_note" not in first.partition("\n")[2]
    assert "get_and_mark" not in first.partition("\n")[2]
    assert user.choices[0] == ["the calls shown", "such calls always"]


async def test_a_placeholder_has_the_shape_that_was_learned_where_no_schema_says_it(caller) -> None:
    code = "made = await tools.silent.make()\n[made.get('number'), made.get('names'), made['dry_run']]"
    assert (await caller.run(code, dry_run=True))["result"] == [None, None, True]
    await result(caller, "await tools.silent.make()")
    assert (await caller.run(code, dry_run=True))["result"] == [1, ["dry run"], True]
    assert (await caller.run("(await tools.named.make())['number']", dry_run=True))["result"] == 7


async def test_what_a_dry_run_writes_it_finds_again_and_the_workspace_is_as_it_was(caller) -> None:
    await result(caller, "write_file('kept.txt', 'old'); write_file('below/more.txt', 'm')")
    code = """
write_file("new/a.txt", "text")
write_file("kept.txt", "changed")
first = [read_file("new/a.txt"), read_file("./kept.txt", 1, 3), [each["name"] for each in list_files()]]
delete_file("new/a.txt")
delete_file("below/more.txt")
gone = []
for name in ("new/a.txt", "below/more.txt"):
    try:
        read_file(name)
    except FileNotFoundError:
        gone.append(name)
try:
    delete_file("never.txt")
except FileNotFoundError as error:
    gone.append("never.txt")
write_file("large.bin", bytes(3_000_000) * 2)
[first, gone, [each["name"] for each in list_files()], len(read_file("large.bin", encoding=None))]
"""
    report = await caller.run(code, dry_run=True)
    assert report["error"] is None, report["error"]
    first, gone, left, size = report["result"]
    assert first == ["text", "han", ["below/more.txt", "kept.txt", "new/a.txt"]]
    assert gone == ["new/a.txt", "below/more.txt", "never.txt"]
    assert (left, size) == (["kept.txt", "large.bin"], 6_000_000)
    assert report["dry_run"] == [
        {"tool": "write_file", "arguments": {"filename": "new/a.txt", "size": 4}},
        {"tool": "write_file", "arguments": {"filename": "kept.txt", "size": 7}},
        {"tool": "delete_file", "arguments": {"filename": "new/a.txt"}},
        {"tool": "delete_file", "arguments": {"filename": "below/more.txt"}},
        {"tool": "write_file", "arguments": {"filename": "large.bin", "size": 6_000_000}},
    ]
    assert "files" not in report
    assert await result(caller, "[read_file('kept.txt'), [each['name'] for each in list_files()]]") == [
        "old",
        ["below/more.txt", "kept.txt"],
    ]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("write_file('../x', 'y')", "ValueError"),
        ("write_file('.runs/x', 'y')", "PermissionError"),
        ("write_file('x', 'y', encoding='base64')", "ValueError"),
    ],
)
async def test_a_dry_run_fails_where_the_run_would(caller, call, kind) -> None:
    assert (await caller.run(call, dry_run=True))["error"]["type"] == kind


async def test_what_open_and_os_change_in_a_dry_run_it_finds_changed_and_the_workspace_is_as_it_was(caller) -> None:
    await result(caller, "write_file('there.txt', 'old'); write_file('folder/in.txt', 'x')")
    code = """
import os, pathlib, shutil, tempfile
with open("there.txt", "a") as file:
    file.write(" and new")
os.rename("there.txt", "moved.txt")
os.mkdir("made")
shutil.copy("moved.txt", "made/copy.txt")
shutil.rmtree("folder")
os.utime("moved.txt", (1, 1))
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("temporary")
write_file("made/third.txt", "third")
pathlib.Path("made/third.txt").write_text("3")
found = sorted(str(path) for path in pathlib.Path(".").rglob("*") if path.is_file())
"""
    before = await result(caller, "sorted(each['name'] for each in list_files())")
    tail = "[found, read_file('made/copy.txt'), os.path.exists('folder'), os.path.getmtime('moved.txt')]"
    report = await caller.run(code + tail, dry_run=True)
    assert report["error"] is None, report
    found, copied, has_folder, modified = report["result"]
    own = {"moved.txt", "made/copy.txt", "made/third.txt"}
    assert own <= set(found)
    assert not {"there.txt", "folder/in.txt"} & set(found)
    assert (copied, has_folder, modified) == ("old and new", False, 1)
    noted = [(each["tool"], each["arguments"]) for each in report["dry_run"]]
    assert noted[:3] == [
        ("open", {"filename": "there.txt", "mode": "a"}),
        ("os.rename", {"filename": "there.txt", "target": "moved.txt"}),
        ("os.mkdir", {"filename": "made"}),
    ]
    assert ("os.remove", {"filename": "folder/in.txt"}) in noted
    assert ("write_file", {"filename": "made/third.txt", "size": 5}) in noted
    assert "files" not in report
    assert await result(caller, "sorted(each['name'] for each in list_files())") == before
    assert await result(caller, "read_file('there.txt')") == "old"


async def test_a_dry_run_knows_that_the_workspace_is_full(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE | {"SEALAB_WORKSPACE_QUOTA_MB": "1"}) as caller:
        report = await caller.run("write_file('x', 'y' * 2_000_000)", dry_run=True)
    assert "The workspace is full" in report["error"]["message"]


async def test_a_skill_that_a_dry_run_saves_is_judged_tested_and_not_stored(caller) -> None:
    save = "save_skill('double', 'def double(x):\\n    return 2 * x', tests='assert double(2) == {}')"
    report = await caller.run(save.format(4), dry_run=True)
    assert (report["result"]["name"], report["result"]["version"]) == ("double", 1)
    assert report["dry_run"] == [{"tool": "save_skill", "arguments": {"name": "double"}}]
    assert (await caller.run(save.format(5), dry_run=True))["error"] is not None
    assert await result(caller, "list_skills()['count']") == 0


async def test_a_failed_dry_run_counts_no_call_that_was_not_made(caller) -> None:
    code = "await tools.up.append(path='/nowhere/x', line='y')\nawait tools.up.add(left=1)\n1 / 0"
    report = await caller.run(code, dry_run=True)
    assert report["error"]["calls"] == {"up.add": {"done": 1, "failed": 0}}
    assert [each["tool"] for each in report["dry_run"]] == ["up.append"]
