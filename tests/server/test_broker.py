"""Host calls from hostile code: names, arguments and budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.server.broker import HANDLERS, Calls
from sealab.workspace.store import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace", quota_bytes=1000) as workspace:
        yield workspace


async def test_the_four_file_calls_answer_with_the_shapes_of_the_tools(workspace: Workspace) -> None:
    calls = Calls(workspace, budget=10)
    assert await calls.answer("write_file", {"filename": "a", "content": "text"}) == {"filename": "a", "size": 4}
    read = await calls.answer("read_file", {"filename": "a", "offset": 1, "limit": None, "encoding": "utf-8"})
    assert read == {"filename": "a", "content": "ext", "size": 4, "truncated": False}
    listed: Any = await calls.answer("list_files", {})
    assert [file["name"] for file in listed["files"]] == ["a"]
    assert calls.written == {"a": 4}
    assert await calls.answer("delete_file", {"filename": "a"}) == {"filename": "a", "deleted": True}
    assert calls.written == {}


@pytest.mark.parametrize("name", ["", "call_tool", "__class__", "answer", "read_file ", "READ_FILE", "write"])
async def test_a_name_that_is_no_host_function_is_an_error_that_lists_them(workspace: Workspace, name: str) -> None:
    with pytest.raises(HostCallError, match=r"There is no host function .* Use delete_file, list_files, read_file"):
        await Calls(workspace, budget=10).answer(name, {})


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_file", {}, "needs filename"),
        ("write_file", {"filename": "a"}, "needs content"),
        ("read_file", {"filename": "a", "self": 1}, "takes no 'self'"),
        ("write_file", {"filename": "a", "content": "x", "append": True}, "takes no 'append'"),
        ("read_file", {"filename": 1}, "got int for filename. Give a str"),
        ("read_file", {"filename": None}, "got NoneType for filename"),
        ("read_file", {"filename": ["a"]}, "got list for filename"),
        ("read_file", {"filename": "a", "offset": "0"}, "got str for offset. Give an int"),
        ("read_file", {"filename": "a", "offset": True}, "got bool for offset"),
        ("read_file", {"filename": "a", "limit": 1.5}, "got float for limit. Give an int or None"),
        ("list_files", {"subpath": {}}, "got dict for subpath"),
    ],
)
async def test_arguments_that_the_function_does_not_take_are_refused_before_anything_is_done(
    workspace: Workspace, name: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(HostCallError, match=said.replace(".", r"\.")) as caught:
        await Calls(workspace, budget=10).answer(name, arguments)
    assert caught.value.type == "TypeError"
    assert workspace.list().count == 0


async def test_a_run_that_used_up_its_calls_gets_no_more(workspace: Workspace) -> None:
    calls = Calls(workspace, budget=2)
    await calls.answer("list_files", {})
    await calls.answer("list_files", {})
    with pytest.raises(HostCallError, match="more than 2 calls to the host"):
        await calls.answer("write_file", {"filename": "late", "content": "x"})
    assert workspace.list().count == 0
    assert await Calls(workspace, budget=2).answer("list_files", {})


@pytest.mark.parametrize(
    ("name", "arguments", "exception"),
    [
        ("read_file", {"filename": "missing"}, "FileNotFoundError"),
        ("read_file", {"filename": "../outside"}, "ValueError"),
        ("write_file", {"filename": ".runs/x", "content": ""}, "PermissionError"),
        ("write_file", {"filename": "big", "content": "x" * 1001}, "OSError"),
        ("write_file", {"filename": "a", "content": "!", "encoding": "base64"}, "ValueError"),
        ("write_file", {"filename": "a", "content": "x", "encoding": "no-such"}, "ValueError"),
    ],
)
async def test_the_workspaces_refusals_have_the_class_that_python_code_expects(
    workspace: Workspace, name: str, arguments: dict[str, Any], exception: str
) -> None:
    with pytest.raises(HostCallError) as caught:
        await Calls(workspace, budget=10).answer(name, arguments)
    assert caught.value.type == exception
    assert str(workspace.root) not in caught.value.message


def test_every_function_says_what_it_takes() -> None:
    for name, handler in HANDLERS.items():
        assert handler.required <= handler.takes.keys(), name
