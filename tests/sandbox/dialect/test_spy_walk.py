"""Nothing that guest code calls hands it, or tells one of its objects, what leads out; and nothing changes the host.

The walk calls with harmless arguments and with spies, in processes of its own, each sealed as a worker is. What leaks differs between versions of Python, so it runs on each.

Guest modules need no walk of their own: their code is compiled as a program's is, and what they import of the host a
program can import too. So the walk takes what they are given, which are facades like any other.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.dialect import facades, guest_modules

from . import planted_leaks

_ROOT = Path(__file__).parents[3]
_GUEST_MODULES = _ROOT / "sandbox" / "guest_modules"
_GROUPS = 16
_SECONDS_MAX = 600
"""Where something hangs without using the processor; the walk itself bounds what it uses."""
BUILTINS, HELPERS = "the builtins", "the helpers"
pytestmark = pytest.mark.timeout(_SECONDS_MAX + 20)


def walked(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", f"{__package__}.spy_walk", *arguments],
        cwd=_ROOT, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def groups() -> list[list[str]]:
    modules = sorted(facades.exports())
    return [[BUILTINS], [HELPERS], *(modules[number::_GROUPS] for number in range(_GROUPS))]


@pytest.mark.parametrize("modules", groups(), ids=lambda modules: f"{modules[0]}…")
def test_no_spy_is_handed_anything_opaque(modules: list[str]) -> None:
    found = walked(*modules)

    assert found["calls"] > 100 * len(modules)
    assert found["found"] == []
    assert found["slow"] == []


def test_what_guest_modules_import_is_walked_or_guest_code_itself() -> None:
    walked_modules = {name for group in groups() for name in group}
    of_the_host = set()
    for file in _GUEST_MODULES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                of_the_host |= {alias.name for alias in node.names if not guest_modules.exists(alias.name)}
            elif isinstance(node, ast.ImportFrom) and not node.level and not guest_modules.exists(node.module or ""):
                of_the_host.add(node.module or "")
    assert "_sealab_os" in of_the_host
    assert of_the_host - walked_modules == set()


@pytest.mark.parametrize("leak", planted_leaks.PLANTED)
def test_the_walk_finds_a_leak_that_is_put_back(leak: str) -> None:
    planted = planted_leaks.PLANTED[leak]

    found = walked("--plant", leak, planted.walked)["found"]

    assert [each for each in found if planted.found in each] != []
