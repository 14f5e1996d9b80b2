"""Every code block of the README and the documents runs, top to bottom, as pasted.

Python blocks run in one session a page, in the real engine. Console blocks run in a shell with a home of its own, where
`uvx` runs what the tests have installed, since nothing is fetched here; the current folder is shown as /home/me. A
block titled `result`, `output` or `error` shows what became of the Python block before it, and is compared. So is what
a console block shows below a command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from sealab.server.base.settings import read_settings
from sealab.server.privacy.detection.added import read_recognizers
from sealab.tools_registry.configuration import read as read_servers

from ..sandbox.science import science_python
from ..server.conftest import Caller, in_this_process
from . import data_pictures
from .blocks import KINDS, PAGES, Block, agree, agree_json, blocks_of, commands_of

pytestmark = pytest.mark.timeout(1200)  # one page installs 850 MB of packages

BIN = Path(sys.executable).parent
KEY = "a passphrase for these tests alone"


@dataclass(frozen=True)
class Given:
    """What a page takes for granted: settings, and files in the current folder.

    One with `full_python` runs in an interpreter with numpy, pandas and matplotlib, where there is one.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    full_python: bool = False


AUTO = {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"}
POLICY = [block for block in blocks_of("docs/policy.md") if block.kind == "text"]
GIVEN: Mapping[str, Given] = {
    "docs/policy.md": Given(files={"team.cedar": POLICY[1].text, "expected.yaml": POLICY[2].text}),
    "README.md": Given(env=AUTO),
    "docs/data.md": Given(full_python=True),
    "docs/privacy.md": Given(env=AUTO),
}
NOT_RUN: Mapping[tuple[str, str], str] = {
    ("docs/install.md", "$ uv tool install ."): "fetches what sealab needs",
    ("docs/packages.md", "$ /path/of/sealab/python -m pip install more-itertools humanize"): "fetches packages",
    (
        "docs/releasing.md",
        "$ debootstrap --variant=minbase --include=python3,python3-venv,python3-pip bookworm base",
    ): "fetches the packages of a base image",
    (
        "docs/tools.md",
        'found = await tools.orders.listOrders(status="open", limit=20)',
    ): "calls a service that the page invents",
    ("docs/tools.md", "from stubs.time import get_current_time"): "a program beside generated stubs, outside of sealab",
}
"""Blocks that cannot run here, by page and first line, and why."""
NOT_RUN_PAGES: Mapping[str, str] = {
    "docs/clients.md": "programs of clients, each of which has packages of its own: `make clients` runs them"
}
ENDS: Mapping[str, tuple[int, str]] = {
    "sealab servers test                                   # connect to all, and show what they say": (
        1,
        "the servers that the page invents are not there",
    ),
}
"""Commands that do not end with 0 here, what they end with, and why."""


def test_every_block_says_what_it_is() -> None:
    strange = [
        str(block)
        for page in PAGES
        for block in blocks_of(page)
        if block.kind not in KINDS and page not in NOT_RUN_PAGES
    ]
    assert strange == []


def test_what_is_not_run_is_there_and_the_pages_that_are_given_something_too() -> None:
    there = {(page, block.first_line) for page in PAGES for block in blocks_of(page)}
    assert NOT_RUN.keys() <= there
    assert GIVEN.keys() | NOT_RUN_PAGES.keys() <= set(PAGES)
    assert ENDS.keys() <= {
        command.text
        for page in PAGES
        for block in blocks_of(page)
        if block.kind == "console"
        for command in commands_of(block)
    }


RUNNABLE = {
    page: [block for block in blocks_of(page) if (page, block.first_line) not in NOT_RUN]
    for page in PAGES
    if page not in NOT_RUN_PAGES
    and any(block.kind in {"python", "console", "json", "toml"} for block in blocks_of(page))
}


@pytest.mark.parametrize("page", RUNNABLE)
async def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = GIVEN.get(page, Given())
    folder = _folder(tmp_path, given)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    env = {"SEALAB_VAULT_KEY": KEY, **given.env}
    if given.full_python:
        env |= data_pictures.environment(science_python())
    blocks = RUNNABLE[page]
    if not any(block.kind == "python" for block in blocks):
        await _Run(tmp_path, env, None).all(blocks)
        return
    home = tmp_path / "user" / ".local" / "share" / "sealab"
    home.mkdir(parents=True, exist_ok=True)
    for name in given.files:
        (home / "workspace").mkdir(exist_ok=True)
        (home / "workspace" / name).write_text(given.files[name])
    async with in_this_process(home, env, elicitation_callback=_yes) as caller:
        await _Run(tmp_path, env, caller, "process" if given.full_python else "auto").all(blocks)


async def _yes(*_asked: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": True})


@dataclass
class _Run:
    """The blocks of one page, run one after another; `report` is that of the Python block before."""

    folder: Path
    env: Mapping[str, str]
    caller: Caller | None
    isolation: str = "auto"
    report: dict[str, Any] | None = None

    async def all(self, blocks: list[Block]) -> None:
        for block, after in pairwise([*blocks, None]):
            assert block is not None
            if block.shows:
                self._shown(block)
            elif block.kind == "python":
                assert self.caller is not None
                self.report = await self.caller.run(block.text, session="page", isolation=self.isolation)
                fails = after is not None and after.shows == "error"
                assert self.report["success"] is not fails, f"{block}\n{self.report}"
            elif block.kind == "console":
                self._console(block)
            elif block.kind == "json":
                self._json(block)
            elif block.kind == "toml":
                settings = self.folder / "sealab.toml"
                settings.write_text(block.text)
                read_settings(file=settings, file_required=True, environment={}, command_line={})
                tomllib.loads(block.text)
            elif block.kind == "yaml":
                registry = self.folder / "recognizers.yaml"
                registry.write_text(block.text)
                assert read_recognizers(registry)

    def _shown(self, block: Block) -> None:
        assert self.report is not None, f"{block}: shows what became of a Python block before it"
        if block.shows == "result":
            assert agree_json(block.text, self.report["result"]), f"{block}\n{json.dumps(self.report['result'])}"
            return
        error = self.report["error"] or {}
        said = f"{error.get('type')}: {error.get('message')}\nhint: {error.get('hint')}\n"
        happened = self.report["output"] if block.shows == "output" else said
        assert agree(block.text, happened), f"{block}\n{happened}"

    def _console(self, block: Block) -> None:
        for command in commands_of(block):
            ended = _in_shell(command.text, self.folder, self.env)
            said = ended.stdout.replace(str(self.folder / "here"), "/home/me")
            assert ended.returncode == ENDS.get(command.text, (0, ""))[0], f"{block}\n{command.text}\n{ended.stdout}"
            if command.shown:
                assert agree(command.shown, said), f"{block}\n{command.text}\n{said}"

    def _json(self, block: Block) -> None:
        read = json.loads(block.text)
        if "mcpServers" in read:
            file = self.folder / "mcp.json"
            file.write_text(block.text)
            environment = {"CRM_TOKEN": "x", "CRM_EXCHANGE_SECRET": "x", "HOME": "/home/me"}
            assert read_servers(file, environment).problems == {}, str(block)


def _folder(tmp_path: Path, given: Given) -> Path:
    """Make the current folder of a page, a git repository with one commit, and the programs that it can call."""
    folder, programs = tmp_path / "here", tmp_path / "bin"
    for each in (folder, programs, tmp_path / "user"):
        each.mkdir()
    for name, content in given.files.items():
        (folder / name).write_text(content)
    played = f'#!/bin/sh\n[ "$1" = --from ] && shift 2\nprogram=$1\nshift\nexec "{BIN}/$program" "$@"\n'
    (programs / "uvx").write_text(played)
    (programs / "sealab").write_text(f'#!/bin/sh\nexec "{BIN}/sealab" "$@"\n')
    for each in programs.iterdir():
        each.chmod(0o755)
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for arguments in (("init", "-q", "-b", "main"), (*identity, "commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def _in_shell(command: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader would paste it: in bash, with what it says on both streams."""
    plain = {"HOME": str(folder / "user"), "LANG": "C.UTF-8", "COLUMNS": "120", "SEALAB_REQUIRED_LEVEL": "limits"}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder / "here",
        env={"PATH": os.environ["PATH"], **plain, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
