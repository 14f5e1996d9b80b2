"""Resources and prompts of upstream servers, as code reaches them, over both eras of the protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ..command_line import sealab
from ..conftest import Caller, in_process_server, in_this_process
from .test_approvals import NO, User, asking, yes
from .test_registry import ONE_SPARE, configure, error, result, upstream

LIBRARY = """
import sys
from mcp.server import MCPServer
from mcp.types import CallToolResult, ResourceLink, ToolAnnotations

server = MCPServer('library', log_level='ERROR')

@server.resource('book://first', name='first', mime_type='text/plain', description='The first book.')
def first() -> str:
    return '[1, 2]'

@server.resource('book://table', name='table', mime_type='application/json')
def table() -> str:
    return '{"rows": [1, 2]}'

@server.resource('book://cover', name='cover', mime_type='image/png')
def cover() -> bytes:
    return bytes(40)

@server.resource('book://by/{author}', name='by')
def by(author: str) -> str:
    return 'written by ' + author

@server.prompt(description='Ask about a book.')
def ask(title: str, tone: str = 'kind') -> str:
    return title + tone

@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def find() -> CallToolResult:
    'Find a book.'
    return CallToolResult(content=[ResourceLink(type='resource_link', uri='book://first', name='first')])

@server.tool(structured_output=False)
def read_resource(server: str = '', uri: str = '') -> str:
    'No resource is read by this.'
    return 'the tool was called'

server.run()
"""


def configured(home: Path) -> Path:
    (home / "library.py").write_text(LIBRARY)
    library = {"command": sys.executable, "args": [str(home / "library.py")]}
    return configure(
        home,
        **{
            "my-library": library,
            "up": upstream(),
            "shut": {**library, "allow": ["find"]},
            "asked": {**library, "approve": "always"},
        },
    )


caller = in_process_server(ONE_SPARE | {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}, configured)


@pytest.mark.parametrize(("mode", "isolation"), [("auto", "restricted"), ("legacy", "process")])
async def test_code_follows_a_link_that_a_tool_gave(caller: Caller, mode: str, isolation: str) -> None:
    async with asking(caller, User([NO]), mode=mode) as client:
        code = "link = await tools.my_library.find()\nread_resource('my_library', link['uri'])"
        assert await result(client, code, isolation=isolation) == "[1, 2]"


async def test_text_is_text_json_is_parsed_and_bytes_are_a_handle(caller) -> None:
    code = """
cover = read_resource("my-library", "book://cover")
[read_resource("my-library", "book://table"), await read_resource("my-library", "book://by/ada"),
 cover["mime_type"], cover["size"], len(read_file(cover["handle"], encoding=None))]
"""
    report = await caller.run(code)
    assert report["result"] == [{"rows": [1, 2]}, "written by ada", "image/png", 40, 40]
    assert [(each["tool"], each["ok"]) for each in report["tool_calls"]] == [("my-library.read_resource", True)] * 3


async def test_resources_and_prompts_are_listed(caller) -> None:
    resources, prompts, none = await result(
        caller, "[list_resources('my-library'), list_prompts('my_library'), list_prompts('up')]"
    )
    assert {
        "uri": "book://first",
        "name": "first",
        "description": "The first book.",
        "mime_type": "text/plain",
    } in resources
    assert "book://by/{author}" in {each.get("uri_template") for each in resources}
    [prompt] = prompts
    assert (prompt["name"], prompt["description"]) == ("ask", "Ask about a book.")
    assert [(each["name"], each["required"]) for each in prompt["arguments"]] == [("title", True), ("tone", False)]
    assert none == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("read_resource('my-library', 'book://none')", "refused the resource 'book://none'"),
        ("read_resource('my-libary', 'book://first')", "Did you mean my-library?"),
        ("read_resource('shut', 'book://first')", "does not allow shut.read_resource"),
        ("read_resource('asked', 'book://first')", "so a user has to approve"),
        ("list_prompts('nowhere')", "There is no server 'nowhere'"),
    ],
)
async def test_what_cannot_be_read_says_why(caller, call: str, said: str) -> None:
    failed = await error(caller, call)
    assert failed["type"] == "ToolError"
    assert said in failed["message"]


async def test_what_a_resource_holds_is_hidden_like_what_a_tool_answers(tmp_path: Path) -> None:
    configured(tmp_path)
    async with in_this_process(tmp_path, ONE_SPARE | {"SEALAB_PRIVACY": "auto"}) as caller:
        shown = await result(caller, "read_resource('my-library', 'book://by/ada.lovelace@example.com')")
    assert shown.startswith("written by [EMAIL")


@pytest.mark.parametrize("covers", ["such calls in this run", "such calls always"])
async def test_a_yes_to_reading_resources_is_none_to_a_tool_of_that_name(tmp_path: Path, covers: str) -> None:
    read = "read_resource('asked', 'book://first')"
    call = "name = 'read_resource'\nawait call_tool('asked.' + name, {})"
    for first, second in ((read, call), (call, read)):
        configured(tmp_path)
        user = User([yes(covers), NO])
        async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
            failed = await error(caller, f"{first}\n{first}\n{second}")
            assert "did not approve the call of asked.read_resource" in failed["message"]
            assert len(user.asked) == 2
            await asyncio.to_thread(sealab, "servers", "test", "asked", "--home", str(tmp_path), "--ask-again")
