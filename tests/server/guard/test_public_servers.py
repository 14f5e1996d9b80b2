"""The guard before real servers, with a real client, in both protocol eras."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from ...tools_registry.test_public_upstreams import INSTALLED, PUBLIC, needs_node
from ...tools_registry.upstream_servers import SERVERS, listening
from .guarded import GUARD, ROOT, environment

MAIL, OTHER = "jane.doe@corp.example", "john@roe.example"
ERAS = ["legacy", "auto"]
FULL = [sys.executable, str(SERVERS / "full.py")]
REFERENCE = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "conformance" / "reference_server.py")]


def guard_of(home: Path, *words: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=GUARD[0], args=[*GUARD[1:], "--home", str(home), "--mode", "fast", *words], env=environment()
    )


def node(server: str, *arguments: str) -> list[str]:
    return [str(INSTALLED / "node"), str(PUBLIC / server / "dist/index.js"), *arguments]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    (made / "customers.csv").write_text(f"name,email\nJane Doe,{MAIL}\nJohn Roe,{OTHER}\n")
    return made


@needs_node
@pytest.mark.parametrize("era", ERAS)
async def test_files_are_read_with_tokens_and_written_with_values(tmp_path: Path, folder: Path, era: str) -> None:
    async with Client(guard_of(tmp_path / "home", "--", *node("server-filesystem", str(folder))), mode=era) as client:
        read = await client.call_tool("read_text_file", {"path": str(folder / "customers.csv")})
        text = read.content[0].text
        assert read.structured_content == {"content": text}
        name, mail = text.splitlines()[1].split(",")
        assert name.startswith("[PERSON_")
        assert mail.startswith("[EMAIL_")
        assert OTHER not in text
        letter = f"Dear {name}, is {mail} right?"
        await client.call_tool("write_file", {"path": str(folder / "letter.txt"), "content": letter})
        assert (folder / "letter.txt").read_text() == f"Dear Jane Doe, is {MAIL} right?"
        failed = await client.call_tool("read_text_file", {"path": f"{folder}/{mail}"})
        assert failed.is_error
        assert MAIL not in failed.content[0].text


@needs_node
@pytest.mark.parametrize("era", ERAS)
async def test_a_memory_keeps_values_and_shows_tokens(tmp_path: Path, era: str) -> None:
    kept = tmp_path / "memory.json"
    options = ("--env", f"MEMORY_FILE_PATH={kept}", "--", *node("server-memory"))
    async with Client(guard_of(tmp_path / "home", *options), mode=era) as client:
        person = {"name": "Wilhelmine Osterkamp", "entityType": "customer", "observations": [f"writes from {MAIL}"]}
        made = await client.call_tool("create_entities", {"entities": [person]})
        (shown,) = made.structured_content["entities"]
        mail = shown["observations"][0].rpartition(" ")[2]
        assert mail.startswith("[EMAIL_")
        found = await client.call_tool("search_nodes", {"query": mail})
        assert MAIL not in str(found)
        assert len(found.structured_content["entities"]) == 1
    assert MAIL in kept.read_text()


@pytest.mark.parametrize("era", ERAS)
async def test_a_repository_shows_no_author(tmp_path: Path, era: str) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Jane Doe", "-c", f"user.email={MAIL}")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n")
    git("add", "a.txt")
    git("commit", "-m", f"Begin, as {OTHER} asked")
    command = ("--", sys.executable, "-m", "mcp_server_git")
    async with Client(guard_of(tmp_path / "home", *command), mode=era) as client:
        log = str((await client.call_tool("git_log", {"repo_path": str(tmp_path)})).content)
    assert "Begin, as [EMAIL_" in log
    assert MAIL not in log
    assert OTHER not in log


@pytest.mark.parametrize("era", ERAS)
async def test_progress_pages_errors_and_cancellation_pass(tmp_path: Path, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with Client(guard_of(tmp_path, "--", *FULL), mode=era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].annotations.read_only_hint
        counted = await client.call_tool("count", {"to": 3, "seconds": 0.1}, progress_callback=progress)
        assert counted.structured_content == {"result": 3}
        assert told == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
        person = await client.call_tool("person", {"name": MAIL})
        assert person.structured_content["age"] == 41
        assert person.structured_content["name"].startswith("[EMAIL_")
        failed = await client.call_tool("fail", {"message": f"{MAIL} is unknown"})
        assert failed.is_error
        assert failed.content[0].text.endswith(f"{person.structured_content['name']} is unknown")
        with pytest.raises(MCPError):
            await client.call_tool("count", {"to": 3, "seconds": 60}, read_timeout_seconds=1)
        assert (await client.call_tool("cancellations", {})).structured_content == {"result": ["count to 3"]}


@pytest.mark.parametrize(
    ("era", "tool"), [("legacy", "test_elicitation"), ("auto", "test_input_required_result_elicitation")]
)
async def test_the_user_is_asked_in_either_era_and_the_answer_reaches_the_server(
    tmp_path: Path, era: str, tool: str
) -> None:
    asked: list[str] = []

    async def elicit(_context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        given = {"legacy": {"username": "me", "email": token}, "auto": {"name": token}}[era]
        return ElicitResult(action="accept", content=given)

    async with Client(guard_of(tmp_path, "--", *REFERENCE), mode=era, elicitation_callback=elicit) as client:
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": MAIL, "arg2": "b"})
        token = prompt.messages[0].content.text.split("'")[1]
        assert token.startswith("[EMAIL_")
        answer = await client.call_tool(tool, {"message": f"Is {token} right?"} if era == "legacy" else {})
    assert asked == ([f"Is {token} right?"] if era == "legacy" else ["What is your name?"])
    assert token in answer.content[0].text


@contextmanager
def over_http(folder: Path) -> Iterator[str]:
    with listening("http", folder) as (url, _process):
        yield url


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_at_an_address_is_guarded_too(tmp_path: Path, era: str) -> None:
    told: list[str | None] = []

    async def progress(_done: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    with over_http(tmp_path) as url:
        async with Client(guard_of(tmp_path / "home", "--url", url), mode=era) as client:
            assert client.server_info.name == "full"
            await client.call_tool("count", {"to": 2, "seconds": 0.1}, progress_callback=progress)
            assert told == ["at 1", "at 2"]
            person = (await client.call_tool("person", {"name": MAIL})).structured_content
            assert person["name"].startswith("[EMAIL_")
            length = await client.call_tool("long_argument", {"text": person["name"]})
            assert length.structured_content == {"result": len(MAIL)}
            big = await client.call_tool("big", {"megabytes": 1})
            assert len(big.content[0].text) == 500_000


async def test_a_server_that_is_not_there_is_an_error_for_each_request(tmp_path: Path) -> None:
    with pytest.raises((MCPError, ExceptionGroup)):
        async with Client(guard_of(tmp_path, "--url", "http://127.0.0.1:9/mcp"), mode="legacy"):
            pass
