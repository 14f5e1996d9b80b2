"""A real sealab for the clients: started by themselves over stdio, and served over HTTP.

`SEALAB` names its command. The user's folder is one of the tests' own, so that every client finds the same home: an
upstream server whose tool `uninstall_package` asks the user, a bank with a bill, and one that is not there.
"""

from __future__ import annotations

import base64
import json
import os
import re
import runpy
import select
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BANK = Path(__file__).parents[1] / "data" / "upstreams" / "bank.py"
COMMAND = Path(os.environ["SEALAB"]).absolute()
SHOWN_URL = "http://127.0.0.1:8000/mcp"
"""The address that the page has; the server of the tests has another port."""


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


_RED_DOT = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")),
        _chunk(b"IEND", b""),
    )
)
IMAGE = f"import base64\nbase64.b64decode({base64.b64encode(_RED_DOT).decode()!r})"
FAILS = "print('before')\n1 / 0"
ASKS = "await tools.packages.uninstall_package(name='pip')"
FRIEND, PAYEE = "GB29NWBK60161331926819", "US133000000121212121212"
PAYS = f"""# Pay a friend, and what the bill says
bill = await tools.bank.read_file(path='bill.txt')
await tools.bank.send_money(recipient={FRIEND!r}, amount=5)
try:
    await tools.bank.send_money(recipient=bill.split()[-1], amount=7)
except ToolError as error:
    print(error)
"""
"""Its user says yes to the first payment alone: that must not cover the second, whose payee stands only in a text."""
IN_TEXT = f'recipient "{PAYEE}" stands only in the text of bank.read_file("bill.txt"), line 1'


def check_questions(asked: list[str], paid: Path, output: str) -> None:
    """Check what the user of `PAYS` was asked, who said no to what stands in a text, and who was paid."""
    shown, in_text = asked
    assert 'in "Pay a friend, and what the bill says"?' in shown
    assert f'1. bank.send_money(recipient="{FRIEND}", amount=5)' in shown
    assert f'1. bank.send_money(recipient="{PAYEE}", amount=7)\n   {IN_TEXT}\n' in in_text
    assert "A yes covers this call and no other." in in_text
    assert "The user did not approve the call of bank.send_money." in output
    assert [json.loads(line)["recipient"] for line in paid.read_text().splitlines()] == [FRIEND]
    paid.unlink()


@pytest.fixture(scope="session", autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the user's folder, in which the home of sealab is; programs of sealab's environment are found by name."""
    folder = tmp_path_factory.mktemp("user")
    home = folder / ".local" / "share" / "sealab"
    home.mkdir(parents=True)
    arguments = ["-m", "sealab.server.interfaces.commands.demo_upstream", "packages"]
    upstream = {"command": str(COMMAND.with_name("python")), "args": arguments}
    bank = folder / "bank.json"
    bank.write_text(json.dumps({"files": {"bill.txt": f"Please pay to {PAYEE}"}, "contacts": []}))
    banks = {"command": str(COMMAND.with_name("python")), "args": [str(BANK), str(bank)]}
    servers = {"packages": upstream, "bank": banks, "gone": {"command": "/no/such/command"}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / "sealab.toml").write_text('REQUIRED_LEVEL = "limits"\n')
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SEALAB_", "XDG_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setenv("PATH", f"{_programs(folder)}:{os.environ['PATH']}")
        yield folder


@pytest.fixture
def paid(user: Path) -> Path:
    """The file that has a line for each payment of the bank."""
    return user / "bank.json.paid"


def _programs(folder: Path) -> Path:
    """Make a folder that has `sealab` alone: the `python` beside it is not that of the client."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "sealab").symlink_to(COMMAND)
    return programs


@pytest.fixture(scope="session")
def url(user: Path) -> Iterator[str]:
    """Serve over HTTP on a free port as long as the tests of one client last; give the address."""
    served = ["sealab", "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(served, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield _address_said_by(server)
        finally:
            server.terminate()


def _address_said_by(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    said = ""
    while select.select([server.stderr], [], [], 60)[0]:
        line = server.stderr.readline()
        said += line
        if "http://" in line:
            return line.split()[-1]
        if not line:
            break
    raise AssertionError(f"the server did not say where it listens, but: {said}")


def _program_below(heading: str) -> str:
    section = re.split(rf"^#+ {re.escape(heading)}\n", PAGE.read_text(), flags=re.MULTILINE)[1]
    return re.split(r"^```python\n", section, flags=re.MULTILINE)[1].partition("\n```\n")[0]


@pytest.fixture
def of_the_page(url: str, tmp_path: Path) -> Callable[[str], str]:
    """Give what runs the program that stands on the page below a heading, as pasted, and returns what it prints."""

    def run(heading: str) -> str:
        file = tmp_path / "program.py"
        file.write_text(_program_below(heading).replace(SHOWN_URL, url))
        ended = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert ended.returncode == 0, ended.stderr[-4000:]
        return ended.stdout

    return run


@pytest.fixture
def names_of_the_page(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Give what runs the code that stands on the page below a heading, and returns what it defines."""

    def run(heading: str) -> dict[str, Any]:
        file = tmp_path / "adapter.py"
        file.write_text(_program_below(heading))
        return runpy.run_path(str(file))

    return run
