"""Host calls from hostile code: names, arguments and budget, and what a worker says of the calls in its program."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Json
from sealab.server.base.host_call import for_worker
from sealab.server.use_cases.host_functions import broker
from sealab.server.use_cases.host_functions.broker import TEXT_CHARS_MAX, Calls, Handler, handlers_of
from sealab.server.use_cases.host_functions.workspace_calls import KEPT_BYTES_MAX, UNFINISHED_FILES_MAX, WorkspaceCalls
from sealab.server.use_cases.host_functions.written_calls import ARGUMENTS_JUDGED_MAX, read_places
from sealab.workspace.store import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace", quota_bytes=1000) as workspace:
        yield workspace


def handlers(workspace: Workspace) -> dict[str, Handler]:
    return handlers_of(WorkspaceCalls(workspace))


async def asked(calls: Calls, name: str, arguments: dict[str, Any]) -> Json:
    return await for_worker(calls.answer)(name, arguments)


async def test_the_four_file_calls_answer_with_the_shapes_of_the_tools(workspace: Workspace) -> None:
    calls = Calls(handlers(workspace), budget=10)
    assert await asked(calls, "write_file", {"filename": "a", "content": "text"}) == {"filename": "a", "size": 4}
    read = await asked(calls, "read_file", {"filename": "a", "offset": 1, "limit": None, "encoding": "utf-8"})
    assert read == {"filename": "a", "content": "ext", "size": 4, "truncated": False}
    listed: Any = await asked(calls, "list_files", {})
    assert [file["name"] for file in listed["files"]] == ["a"]
    assert calls.written == {"a": 4}
    assert await asked(calls, "delete_file", {"filename": "a"}) == {"filename": "a", "deleted": True}
    assert calls.written == {}


@pytest.mark.parametrize("name", ["", "call_tool", "__class__", "answer", "read_file ", "READ_FILE", "write"])
async def test_a_name_that_is_no_host_function_is_an_error_that_lists_them(workspace: Workspace, name: str) -> None:
    with pytest.raises(
        HostCallError, match=r"There is no host function .* Use delete_file, keep, list_files, read_file"
    ):
        await asked(Calls(handlers(workspace), budget=10), name, {})


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
        ("list_files", {"x" * 5_000_000: 1}, f"takes no '{'x' * 80}'"),
    ],
)
async def test_arguments_that_the_function_does_not_take_are_refused_before_anything_is_done(
    workspace: Workspace, name: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(HostCallError, match=said.replace(".", r"\.")) as caught:
        await asked(Calls(handlers(workspace), budget=10), name, arguments)
    assert caught.value.type == "TypeError"
    assert workspace.list().count == 0


@pytest.mark.parametrize("name", ["read_file", "write_file", "delete_file"])
async def test_a_name_that_is_longer_than_any_is_refused_before_it_is_read(workspace: Workspace, name: str) -> None:
    content = {"content": "x"} if name == "write_file" else {}
    with pytest.raises(HostCallError, match=rf"got {TEXT_CHARS_MAX + 1} characters for filename\. Give") as caught:
        await asked(Calls(handlers(workspace), budget=10), name, {"filename": "x" * (TEXT_CHARS_MAX + 1), **content})
    assert caught.value.type == "ValueError"


async def test_a_run_that_used_up_its_calls_gets_no_more(workspace: Workspace) -> None:
    async def answer(_calls: Calls) -> Json:
        return 1

    plain = {"tool": Handler.of(answer), **handlers(workspace)}
    calls = Calls(plain, budget=2)
    await asked(calls, "tool", {})
    await asked(calls, "tool", {})
    with pytest.raises(HostCallError, match="more than 2 calls to the host"):
        await asked(calls, "tool", {})
    await asked(calls, "write_file", {"filename": "files have a budget of their own", "content": "x"})
    assert await asked(Calls(plain, budget=2), "tool", {})


async def test_calls_for_files_have_a_bound_too(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "FILE_CALLS_MAX", 2)
    within = Calls(handlers(workspace), budget=10)
    calls = Calls(handlers(workspace), budget=10, within=within)
    await asked(calls, "list_files", {})
    await asked(calls, "list_files", {})
    with pytest.raises(HostCallError, match="more than 2 calls for files"):
        await asked(calls, "write_file", {"filename": "late", "content": "x"})
    with pytest.raises(HostCallError, match="more than 2 calls for files"):
        await asked(within, "write_file", {"filename": "late", "content": "x"})
    assert workspace.list().count == 0


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
        await asked(Calls(handlers(workspace), budget=10), name, arguments)
    assert caught.value.type == exception
    assert str(workspace.root) not in caught.value.message


async def test_a_file_kept_in_parts_is_written_whole_with_the_last(workspace: Workspace) -> None:
    calls = Calls(handlers(workspace), budget=10)
    part = {"filename": "sub/data", "content": base64.b64encode(b"ab\0").decode()}
    assert await asked(calls, "keep", {**part, "last": 0}) is None
    assert workspace.list().count == 0
    assert await asked(calls, "keep", {**part, "last": 1}) == {"filename": "sub/data", "size": 6}
    assert workspace.read("sub/data", encoding="base64").content == base64.b64encode(b"ab\0ab\0").decode()
    assert calls.written == {"sub/data": 6}


async def test_a_long_text_is_written_in_parts_as_it_is_in_one(workspace: Workspace) -> None:
    calls = Calls(handlers(workspace), budget=10)
    assert await asked(calls, "write_file", {"filename": "a", "content": "é\n", "last": 0}) is None
    assert await asked(calls, "write_file", {"filename": "a", "content": "x", "last": 1}) == {
        "filename": "a",
        "size": 4,
    }
    assert workspace.read("a").content == "é\nx"
    encoding = {"filename": "a", "encoding": "base64"}
    assert await asked(calls, "write_file", {**encoding, "content": "AAEC", "last": 0}) is None
    assert await asked(calls, "write_file", {**encoding, "content": "Aw==", "last": 1}) == {"filename": "a", "size": 4}
    with pytest.raises(HostCallError, match="lone surrogate"):
        await asked(calls, "write_file", {"filename": "a", "content": "\ud800", "last": 0})
    assert workspace.read("a", encoding="base64").content == "AAECAw=="


async def test_few_files_are_unfinished_at_a_time(workspace: Workspace) -> None:
    calls = Calls(handlers(workspace), budget=100)
    for number in range(UNFINISHED_FILES_MAX):
        await asked(calls, "write_file", {"filename": f"a{number}", "content": "x", "last": 0})
    for name in ("keep", "write_file"):
        with pytest.raises(HostCallError, match="has begun 16 files") as caught:
            await asked(calls, name, {"filename": "more", "content": "", "last": 0})
        assert caught.value.type == "OSError"
    assert (len(calls.parts), calls.parts_bytes) == (UNFINISHED_FILES_MAX, UNFINISHED_FILES_MAX)
    await asked(calls, "write_file", {"filename": "./a0", "content": "y", "last": 1})
    assert workspace.read("a0").content == "xy"
    await asked(calls, "write_file", {"filename": "more", "content": "", "last": 0})
    assert (len(calls.parts), calls.parts_bytes) == (UNFINISHED_FILES_MAX, UNFINISHED_FILES_MAX - 1)


@pytest.mark.parametrize("filename", ["a" * 2_000, "../a", "", "\0"])
async def test_the_name_of_a_file_is_judged_with_its_first_part(workspace: Workspace, filename: str) -> None:
    calls = Calls(handlers(workspace), budget=100)
    for name in ("keep", "write_file"):
        with pytest.raises(HostCallError):
            await asked(calls, name, {"filename": filename, "content": "", "last": 0})
    assert calls.parts == {}


async def test_parts_that_grow_too_large_are_refused_and_forgotten(workspace: Workspace) -> None:
    calls = Calls(handlers(workspace), budget=100)
    part = {"filename": "large", "content": base64.b64encode(bytes(KEPT_BYTES_MAX // 4)).decode(), "last": 0}
    for _ in range(4):
        await asked(calls, "keep", part)
    with pytest.raises(HostCallError, match="larger than"):
        await asked(calls, "keep", {**part, "filename": "another"})
    assert (calls.parts, calls.parts_bytes) == ({}, 0)
    with pytest.raises(HostCallError, match="not base64"):
        await asked(calls, "keep", {"filename": "a", "content": "?", "last": 1})


def sent(given: int, others: int) -> dict[str, Any]:
    return {
        "given": {f"a{at}": 1 for at in range(given)},
        "others": [f"b{at}" for at in range(others)],
        "more": False,
        "positional": 0,
        "unawaited": False,
        "certain": True,
        "plain_function": "",
    }


@pytest.mark.parametrize(
    ("given", "others"), [(ARGUMENTS_JUDGED_MAX + 1, 0), (0, ARGUMENTS_JUDGED_MAX + 1), (ARGUMENTS_JUDGED_MAX, 1)]
)
def test_a_call_with_more_arguments_than_are_judged_is_left_to_the_call(given: int, others: int) -> None:
    [place] = read_places([["up.run", 1, False, [sent(given, others), sent(ARGUMENTS_JUDGED_MAX, 0)], 1, []]])["up.run"]
    assert [len(call.given) for call in place.calls] == [ARGUMENTS_JUDGED_MAX]
