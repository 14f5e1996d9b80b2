"""What the page for operators says of the unit, of backups and of clients is done as it stands there."""

from __future__ import annotations

import configparser
import getpass
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sealab.server.base.settings import Settings

from ..server.command_line import sealab
from ..server.conftest import environment
from ..server.protocol.web.raw import HEADERS, MODERN, call
from ..server.protocol.web.test_behind_proxies import free_port
from ..server.protocol.web.tokens import made
from ..waiting import wait_until
from .blocks import ROOT, blocks_of

PAGE = "docs/team.md"
URL = "https://sealab.example/mcp"
HOME = "/var/lib/sealab"
SEALAB = Path(sys.executable).with_name("sealab")


def block(first_line: str) -> str:
    (found,) = [each.text for each in blocks_of(PAGE) if each.first_line == first_line]
    return found


def unit_at(home: Path, port: int) -> str:
    """Return the unit of the page for a home, a port and the program of this test."""
    text = block("[Unit]")
    for before, after in (
        ("/opt/sealab/bin/sealab", str(SEALAB)),
        (HOME, str(home)),
        ("User=sealab", f"User={getpass.getuser()}"),
        ("127.0.0.1:8000", f"127.0.0.1:{port}"),
    ):
        assert before in text
        text = text.replace(before, after)
    return text


@contextmanager
def started(unit: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run what `ExecStart` of a unit says, with its environment; at the end it is stopped as the unit says."""
    service = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    service.optionxform = str  # type: ignore[assignment,method-assign]  # as the module has it changed
    service.read_string(unit)
    said = service["Service"]
    assert said["KillMode"] == "mixed"
    assert int(said["TimeoutStopSec"]) > Settings().drain_seconds
    variables = dict(each.split("=", 1) for each in shlex.split(said["Environment"]))
    with subprocess.Popen(shlex.split(said["ExecStart"]), env={**environment(), **variables}) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(int(said["TimeoutStopSec"])) == 0
        finally:
            process.kill()


def status_of(port: int, path: str, body: bytes | None = None, **headers: str) -> int:
    headers = {**HEADERS, "Host": "sealab.example", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=50) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def run_code(port: int, token: Any, code: str) -> int:
    named = {key.replace("_", "-"): value for key, value in MODERN.items()}
    return status_of(port, "/mcp", json.dumps(call(code)).encode(), **token.header, **named)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("There is no systemd-analyze on this machine: `make system` installs it.")
    file = tmp_path / "sealab.service"
    file.write_text(unit_at(tmp_path, 8000))
    judged = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], check=False, capture_output=True, text=True
    )
    assert (judged.returncode, judged.stderr) == (0, "")


def test_a_server_runs_as_its_unit_says_and_is_whole_again_after_backup_and_restore(tmp_path: Path) -> None:
    (before, after), port = (tmp_path / "before" / "sealab", tmp_path / "after" / "sealab"), free_port()
    before.mkdir(parents=True)
    (before / "sealab.toml").write_text(block('AUTH = "tokens"'))
    with started(unit_at(before, port)):
        wait_until(lambda: status_of(port, "/readyz") == 200)
        token = made(before, "ada", "--tenant", "acme", "--scope", "default,approve")
        assert run_code(port, token, "write_file('kept.txt', 'kept')") == 200
        assert status_of(port, "/mcp", b"{}") == 401
    backup = block("systemctl stop sealab")
    stopped, *pack, going_on = backup.splitlines()
    assert (stopped, going_on) == ("systemctl stop sealab", "systemctl start sealab")
    command = shlex.split(" ".join(pack).replace("/var/lib", str(before.parent)))
    subprocess.run(command, cwd=tmp_path, check=True)
    after.parent.mkdir()
    subprocess.run(["tar", "--extract", "--file", str(tmp_path / "sealab-home.tar.gz")], cwd=after.parent, check=True)
    shutil.rmtree(before)
    with started(unit_at(after, port)):
        wait_until(lambda: status_of(port, "/readyz") == 200)
        assert run_code(port, token, "assert read_file('kept.txt') == 'kept'\nwrite_file('read.txt', '')") == 200
    assert (after / "tenants" / "acme" / "workspace" / "read.txt").exists()
    assert (after / "vault.key").stat().st_mode & 0o777 == 0o600
    verified = sealab("audit", "verify", "--home", str(after), "--json")
    assert json.loads(verified.stdout)["ok"], verified.stdout + verified.stderr


def rows() -> dict[str, str]:
    """Return how the page says that each client is told of the server."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    table = text[text.index("## Clients\n") : text.index("With the Python SDK 2:")]
    return dict(re.findall(r"^\| ([^|]+?) \| (.+) \|$", table, re.MULTILINE))


def test_the_lines_for_clients_are_whole_and_lead_to_the_server() -> None:
    found = rows()
    for client, options in (("Claude Code", ["--header"]), ("Codex", ["--url", "--bearer-token-env-var"])):
        (line,) = re.findall(r"`([^`]+)`", found[client])
        words = shlex.split(line)
        assert URL in words
        assert set(options) <= set(words)
        assert words[1:3] == ["mcp", "add"]
    for client, url, variable in (
        ("Cursor", "url", "Bearer ${env:TEAM_TOKEN}"),
        ("Gemini CLI", "httpUrl", "Bearer $TEAM_TOKEN"),
    ):
        entry = json.loads(re.findall(r"`(\{.+?\})`", found[client])[0])["mcpServers"]["sealab"]
        assert entry == {url: URL, "headers": {"Authorization": variable}}
    bridge = json.loads(re.findall(r"`(\{.+?\})`", found["those of standard streams alone"])[0])["mcpServers"]["sealab"]
    assert URL in bridge["args"]
    assert not [each for each in bridge["args"] if " " in each]
    assert f"Authorization:${{{next(iter(bridge['env']))}}}" in bridge["args"]
    (vs_code,) = [json.loads(each.text) for each in blocks_of(PAGE) if '"inputs"' in each.text]
    named = {each["id"] for each in vs_code["inputs"]}
    server = vs_code["servers"]["sealab"]
    assert (server["type"], server["url"]) == ("http", URL)
    assert set(re.findall(r"\$\{input:([\w-]+)\}", server["headers"]["Authorization"])) == named
    assert not [each for each in found.values() if "SEALAB_" in each]
    assert os.linesep not in "".join(found)
