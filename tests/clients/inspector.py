"""The inspector's command line, in both eras. `MODULES` is the folder that npm installed it in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import FAILS, IMAGE

INSPECTOR = Path(os.environ["MODULES"], "@modelcontextprotocol/inspector/clients/launcher/build/index.js").absolute()


def inspected(target: str, era: str, *arguments: str) -> tuple[int, dict]:
    """Run one method of the inspector's; return how it ended and what it printed."""
    options = ["--cli", "--protocol-era", era, "--format", "json", "-q", *arguments, "--", target]
    ended = subprocess.run(["node", INSPECTOR, *options], capture_output=True, text=True, check=False)
    assert ended.stdout, ended.stderr[-4000:]
    printed = json.loads(ended.stdout)
    return ended.returncode, printed.get("result", printed)


@pytest.mark.parametrize("way", ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"])
def test_tools_pass_its_strict_check_and_code_runs(way: str, url: str) -> None:
    transport, _, era = way.partition("-")
    target = "sealab" if transport == "stdio" else url
    status, listed = inspected(target, era, "--method", "tools/list", "--strict")
    assert (status, len(listed["tools"])) == (0, 21)
    call = ("--method", "tools/call", "--tool-name", "execute_code", "--tool-arg")
    status, answer = inspected(target, era, *call, "code=6 * 7")
    assert (status, answer["structuredContent"]["result"]) == (0, 42)


def test_images_and_failures_are_told(url: str) -> None:
    call = ("--method", "tools/call", "--tool-name", "execute_code", "--tool-arg")
    _, shown = inspected(url, "modern", *call, f"code={IMAGE}")
    assert [each["mimeType"] for each in shown["content"] if each["type"] == "image"] == ["image/png"]
    status, failed = inspected(url, "modern", *call, f"code={FAILS}")
    assert status != 0
    assert failed["isError"]
