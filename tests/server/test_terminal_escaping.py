"""Control characters in what code writes: visible among sealab's own words, exact where they are data."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TextIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.job import Failure
from sealab.server.base.terminal_escaping import VisibleStream, visible

from .command_line import sealab, sealab_process
from .conftest import SEALAB, Caller, environment, in_process_server

HOSTILE = "\x1b[31mred\x1b]8;;https://x.example\x07 \x9b2J \u202egnp.exe \u2066x\u2069 \x00\x7f over\rwritten"
MARKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.text(st.one_of(st.characters(), st.sampled_from("\x1b\r\n\t\\u\x9b\u202e\ud800"))))
def test_nothing_invisible_is_left_and_nothing_else_is_changed(text: str) -> None:
    shown = visible(text)
    assert not MARKS.search(shown.replace("\r\n", "\n"))
    shown.encode()
    assert re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), shown) == re.sub(
        r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text
    )
    if not MARKS.search(text) and not re.search("[\ud800-\udfff]", text):
        assert shown == text


@given(st.recursive(st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)))
def test_json_that_is_made_visible_says_the_same(value: object) -> None:
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def test_no_function_is_called_for_each_control_character() -> None:
    called = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        shown = visible("\x01a\r\n\r" * 10_000)
    finally:
        sys.setprofile(None)
    assert shown == "\\u0001a\r\n\\u000d" * 10_000
    assert called < 20_000 + 100  # one for each line


def test_a_stream_writes_all_its_lines_visibly() -> None:
    below = io.StringIO()
    stream = cast("TextIO", VisibleStream(below))
    assert stream.write("a\x1b") == 2
    stream.writelines(["b\x9b\n", "c\n"])
    print("d\u202e", file=stream, flush=True)
    assert below.getvalue() == "a\\u001bb\\u009b\nc\nd\\u202e\n"
    assert not stream.isatty()


@pytest.mark.parametrize("name", ["\x1b[31mEvil", "![x](https://x.example)", "two words", "", "x" * 500, "a.b", "1st"])
def test_what_is_no_name_of_a_class_is_no_error_type_and_is_not_lost(name: str) -> None:
    failure = Failure(name, "what happened")
    assert failure.type == "Exception"
    assert failure.message == f"{name}: what happened"
    assert Failure("ValueError", "x") == Failure(type="ValueError", message="x")


caller = in_process_server()


async def test_answers_messages_and_refusals_show_control_characters_in_their_text_and_keep_them_in_their_data(
    caller: Caller,
) -> None:
    code = f"print({HOSTILE!r})\nresult = {HOSTILE!r}"
    answer = await caller.call("execute_code", code=code)
    assert answer.structured_content is not None
    assert answer.structured_content["output"] == HOSTILE + "\n"
    assert answer.structured_content["result"] == HOSTILE
    text = "".join(each.text for each in answer.content if each.type == "text")
    assert not MARKS.search(text)
    assert "\\u001b[31mred" in text
    await caller.call("write_workspace_file", filename="hostile.txt", content=HOSTILE)
    read = await caller.call("read_workspace_file", filename="hostile.txt")
    assert read.structured_content is not None
    assert read.structured_content["content"] == HOSTILE
    assert "\\u202egnp.exe" in str(read.content[0])
    code = f"class Bad(ValueError): pass\nraise Bad({HOSTILE!r})"
    answer = await caller.call("execute_code", code=code)
    assert answer.structured_content is not None
    error = answer.structured_content["error"]
    assert (error["type"], error["message"]) == ("Bad", HOSTILE)
    assert not MARKS.search("".join(each.text for each in answer.content if each.type == "text"))
    for tool, arguments in (
        ("read_workspace_file", {"filename": "\u202etxt.x"}),
        ("execute_code", {"code": "1", "isolation": "\x9b2J\u202e"}),
        ("execute_code", {"code": "1", "\x9b": 1}),
    ):
        answer = await caller.call(tool, **arguments)
        assert answer.is_error
        assert not MARKS.search("".join(each.text for each in answer.content if each.type == "text")), answer


def test_a_pipe_gets_the_output_as_it_is_and_messages_are_visible(tmp_path: Path) -> None:
    code = f"print({HOSTILE!r})\nraise ValueError({HOSTILE!r})"
    ended = sealab("run", "-", "--home", str(tmp_path), stdin=code)
    assert ended.output.decode() == HOSTILE + "\n"
    assert not MARKS.search(ended.stderr)
    assert "ValueError: \\u001b[31mred" in ended.stderr
    ended = sealab_process("run", "\x1b[31m\u202e.py", "--home", str(tmp_path))
    assert ended.returncode != 0
    assert "\\u001b[31m\\u202e.py" in ended.stderr


def on_a_terminal(home: Path, *arguments: str, stdin: str = "", stderr: bool = True) -> str:
    """Run a command with its output, and its messages too, on a terminal; return what the terminal was sent."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SEALAB, *arguments, "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs if stderr else subprocess.DEVNULL,
        env=environment(),
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        sent = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the last one who had it open has closed it
                break
            if not piece:
                break
            sent += piece
        process.wait(20)
    os.close(ours)
    return sent.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_a_terminal_is_never_sent_what_would_command_it(tmp_path: Path, more: tuple[str, ...]) -> None:
    code = f"print({HOSTILE!r})\nresult = {HOSTILE!r}"
    sent = on_a_terminal(tmp_path, "run", "-", *more, stdin=code)
    assert not MARKS.search(sent), sent
    assert "\\u001b[31mred" in sent
    if more:
        assert json.loads(sent)["output"] == HOSTILE + "\n"


def test_personal_data_restored_to_a_terminal_is_visible_and_to_a_pipe_exact(tmp_path: Path) -> None:
    restoring = ("pii", "restore", "--encoding", "utf-8")  # which it would not take for text, for its NUL
    shown = on_a_terminal(tmp_path, *restoring, stdin=HOSTILE, stderr=False)
    assert "\\u001b[31mred" in shown
    assert not MARKS.search(shown)
    ended = sealab(*restoring, "--home", str(tmp_path), stdin=HOSTILE)
    assert ended.output == HOSTILE.encode()
