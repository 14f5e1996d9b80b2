"""Calls to real, public MCP servers: two in Python from the development lock, three for Node from `make upstreams`."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from sealab.tools_registry.errors import ToolFailed
from sealab.tools_registry.upstream.upstreams import Upstreams

from ..waiting import wait_until
from .upstream_servers import SERVERS, configured

INSTALLED = Path(__file__).parent.parent.parent / ".upstreams"
PUBLIC = INSTALLED / "node_modules" / "@modelcontextprotocol"

needs_node = pytest.mark.skipif(
    not (INSTALLED / ".installed").exists() and not os.environ.get("TEST_UPSTREAMS_REQUIRED"),
    reason="the public servers for Node are not installed: run `make upstreams`",
)


def node(server: str, *arguments: str, **more: object) -> dict[str, object]:
    return {"command": str(INSTALLED / "node"), "args": [str(PUBLIC / server / "dist/index.js"), *arguments], **more}


@asynccontextmanager
async def upstreams(folder, servers, **options):
    async with Upstreams(configured(folder, servers), **options) as running:
        yield running


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git("add", "a.txt")
    git("commit", "-m", "Begin with one")
    (folder / "a.txt").write_text("two\n")
    return folder


async def test_the_git_server_tells_of_a_repository(tmp_path, repository):
    entry = {"command": sys.executable, "args": ["-m", "mcp_server_git"]}
    async with upstreams(tmp_path, {"git": entry}) as running:
        log, status, diff = await asyncio.gather(
            running.call("git", "git_log", {"repo_path": str(repository), "max_count": 1}),
            running.call("git", "git_status", {"repo_path": str(repository)}),
            running.call("git", "git_diff_unstaged", {"repo_path": str(repository)}),
        )
        with pytest.raises(ToolFailed):
            await running.call("git", "git_log", {"repo_path": str(tmp_path / "nowhere")})
        listed = await running.list_tools("git")
    assert "Begin with one" in str(log.value)
    assert "modified:   a.txt" in str(status.value)
    assert "+two" in str(diff.value)
    assert {"git_log", "git_status", "git_commit"} <= {tool["name"] for tool in listed.tools}
    assert listed.version


async def test_the_time_server_converts_between_zones(tmp_path):
    entry = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"]}
    async with upstreams(tmp_path, {"time": entry}) as running:
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        value = (await running.call("time", "convert_time", asked)).value
    assert value["target"]["timezone"] == "Asia/Tokyo"
    assert "T21:00:00" in value["target"]["datetime"]
    assert value["time_difference"] == "+9.0h"


@needs_node
@pytest.mark.parametrize("kind", ["stdio", "sse", "streamableHttp"])
async def test_the_everything_server_works_over_each_transport(tmp_path, kind):
    with everything(kind) as entry:
        await use_everything(tmp_path, entry)


async def use_everything(tmp_path, entry) -> None:
    async with upstreams(tmp_path, {"all": entry}) as running:
        names = {tool["name"] for tool in (await running.list_tools("all")).tools}
        assert (await running.call("all", "echo", {"message": "hello"})).value == "Echo: hello"
        assert "5" in str((await running.call("all", "get-sum", {"a": 2, "b": 3})).value)
        weather = (await running.call("all", "get-structured-content", {"location": "Chicago"})).value
        assert set(weather) == {"temperature", "conditions", "humidity"}
        kept = {}

        async def keep(content, mime_type, name):
            kept[name] = (mime_type, content)
            return name

        image = (await running.call("all", "get-tiny-image", {}, keep=keep)).value
        handles = [part for part in image if isinstance(part, dict)]
        assert [each["mime_type"] for each in handles] == ["image/png"]
        assert kept[handles[0]["handle"]][1].startswith(b"\x89PNG")
        told = []

        async def on_progress(progress, total, message):
            told.append((progress, total))

        long = {"duration": 0.5, "steps": 5}
        await running.call("all", "trigger-long-running-operation", long, on_progress=on_progress)
        assert (5, 5) in told
        assert "echo" in names


@needs_node
async def test_the_file_server_keeps_to_its_folders(tmp_path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "a.txt").write_text("text in a file")
    (tmp_path / "secret.txt").write_text("secret")
    servers = {"files": node("server-filesystem", str(tmp_path / "allowed"))}
    async with upstreams(tmp_path, servers) as running:
        read = (await running.call("files", "read_text_file", {"path": str(tmp_path / "allowed/a.txt")})).value
        assert "text in a file" in str(read)
        written = {"path": str(tmp_path / "allowed/b.txt"), "content": "new"}
        await running.call("files", "write_file", written)
        assert (tmp_path / "allowed" / "b.txt").read_text() == "new"
        with pytest.raises(ToolFailed, match="denied"):
            await running.call("files", "read_text_file", {"path": str(tmp_path / "secret.txt")})
        annotations = {tool["name"]: tool["annotations"] for tool in (await running.list_tools("files")).tools}
        assert annotations["read_text_file"]["readOnlyHint"] is True
        assert annotations["write_file"]["readOnlyHint"] is False


@needs_node
async def test_the_memory_server_remembers_by_the_environment_it_is_given(tmp_path):
    servers = {"memory": node("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})}
    async with upstreams(tmp_path, servers) as running:
        ada = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        await running.call("memory", "create_entities", {"entities": [ada]})
    assert "wrote programs" in (tmp_path / "memory.jsonl").read_text()
    async with upstreams(tmp_path, servers) as running:
        graph = (await running.call("memory", "read_graph", {})).value
    assert graph["entities"] == [ada]


@contextmanager
def everything(kind: str):
    """Give the entry of the everything server, which over HTTP runs on a free port meanwhile."""
    if kind == "stdio":
        yield node("server-everything", "stdio")
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = node("server-everything", kind)
    server = subprocess.Popen(
        [started["command"], "--require", str(SERVERS / "loopback.cjs"), *started["args"]],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def answered() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(lambda: answered() or server.poll() is not None)
        assert server.poll() is None, "the server ended before it listened"
        yield {"url": f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"}
    finally:
        server.kill()
        server.wait()
