"""Tries public MCP servers and OpenAPI documents by their real packages, and prints a table of them.

    python -m tests.benchmarks.public_servers install FOLDER    the packages of public_servers.toml, without scripts
    python -m tests.benchmarks.public_servers table FOLDER      a row for each, or of those with --only in their names

Of each server up to five tools are called, those that say that they only read first; of each document every operation,
against a service on this machine that answers `{}`. Arguments are made from schemas. A call counts as answered where
the tool's value came back or its own failure did: most of these servers have no account and no network here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sealab.tools_registry.definitions import tools_of
from sealab.tools_registry.describing.examples import example_arguments
from sealab.tools_registry.errors import Refusal, RegistryError
from sealab.tools_registry.models import Tool
from sealab.tools_registry.upstream.upstreams import Upstreams

from ..node import ENVIRONMENT, NODE, NPM
from ..tools_registry.upstream_servers import configured

LISTED: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
CALLED_MOST = 5


def install(folder: Path) -> None:
    """Install what npm and PyPI have of the list, by its versions."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {(each.get("of", "npm"), f"{each['package']}@{each['version']}") for each in _all() if "version" in each}
    npm = sorted(each for of, each in wanted if of == "npm")
    pypi = sorted(each.replace("@", "==") for of, each in wanted if of == "pypi")
    (folder / "package.json").write_text('{"private": true}')
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([NODE, NPM, "install", *quiet, *npm], cwd=folder, env=ENVIRONMENT, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", folder / "python"]
    subprocess.run([*pip, *pypi], check=True)


def _all() -> list[dict[str, Any]]:
    return [*LISTED["server"], *LISTED["document"]]


def entry_of(each: dict[str, Any], folder: Path, home: Path) -> dict[str, Any]:
    """Return the entry of `mcp.json` that starts a server; it has a home of its own and no account."""
    given = [argument.replace("HOME", str(home)) for argument in each.get("args", [])]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]} | each.get("env", {})
    common = {"env": env, "cwd": str(home), "call_timeout_seconds": 20, "connect_timeout_seconds": 60}
    if "module" in each:
        return {"command": sys.executable, "args": ["-m", each["module"], *given], **common}
    package = folder / "node_modules" / each["package"]
    bins = json.loads((package / "package.json").read_text())["bin"]
    program = bins if isinstance(bins, str) else next(iter(bins.values()))
    return {"command": str(NODE), "args": [str(package / program), *given], **common}


class Service(BaseHTTPRequestHandler):
    """Answers `{}` to every request."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer  # noqa: N815 - as the library names them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


async def tried(name: str, entry: dict[str, Any], most: int | None) -> tuple[list[Tool], int, str, Counter[str]]:
    """Return the tools of a server, how many it leaves out, its version, and what became of calls."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        async with Upstreams(configured(Path(folder), {"it": entry})) as running:
            listed = await running.list_tools("it")
            tools, problems = tools_of(list(listed.tools), "it", listed.version)
            reads = sorted(tools, key=lambda tool: (tool.annotations.get("readOnlyHint") is not True, tool.name))
            for tool in reads[:most]:
                try:
                    await running.call("it", tool.name, example_arguments(tool))
                    outcomes["answered"] += 1
                except Refusal:
                    outcomes["answered"] += 1
                except RegistryError as error:
                    outcomes["failed"] += 1
                    print(f"{name}: {tool.name}: {error}", file=sys.stderr)
            return tools, len(listed.left_out) + len(problems), listed.version, outcomes


async def table(folder: Path, only: str) -> None:
    """Print the rows of what has a text in its name."""
    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{service.server_port}"
    print("| package | version | tools | left out | calls answered |\n| --- | --- | --- | --- | --- |")
    for each in _all():
        name = each["package"] + (f": {each['title']}" if "title" in each else "")
        if only not in name:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            try:
                if "file" in each:
                    root = folder / ("python" if each.get("of") == "pypi" else f"node_modules/{each['package']}")
                    tools = await tried(name, {"openapi": str((root / each["file"]).resolve()), "url": url}, None)
                else:
                    tools = await tried(name, entry_of(each, folder, Path(home)), CALLED_MOST)
            except (RegistryError, OSError) as error:
                told = getattr(error, "for_operator", "") or error
                print(f"| {name} | {each.get('version', '')} | does not start here | | |", flush=True)
                print(f"{name}: {told}", file=sys.stderr)
                continue
        found, left_out, version, outcomes = tools
        calls = f"{outcomes['answered']} of {outcomes.total()}"
        print(f"| {name} | {each.get('version', version)} | {len(found)} | {left_out} | {calls} |", flush=True)


def main() -> None:
    """Install or try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("install", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="of the table the rows of what has this text in its name")
    chosen = parser.parse_args()
    if chosen.what == "install":
        install(chosen.folder)
    else:
        asyncio.run(table(chosen.folder.resolve(), chosen.only))


if __name__ == "__main__":
    main()
