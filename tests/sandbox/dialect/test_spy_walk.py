"""Nothing that guest code calls hands it, or tells one of its objects, what leads out; and nothing changes the host.

The walk calls with harmless arguments and with spies, in processes of its own, each sealed as a worker is. What leaks differs between versions of Python, so it runs on each.

Guest modules need no walk of their own: their code is compiled as a program's is, and what they import of the host a
program can import too. So the walk takes what they are given, which are facades like any other.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sealab.sandbox.dialect import facades, guest_modules

from ..facades_walk import HELPERS
from . import planted_leaks
from .walks import SECONDS_MAX, walked

_GUEST_MODULES = Path(__file__).parents[3] / "sandbox" / "guest_modules"
_GROUPS = 16
pytestmark = pytest.mark.timeout(SECONDS_MAX + 20)


def groups() -> list[list[str]]:
    modules = sorted(facades.exports())
    return [["the builtins"], [HELPERS], *(modules[number::_GROUPS] for number in range(_GROUPS))]


@pytest.mark.parametrize("modules", groups(), ids=lambda modules: f"{modules[0]}…")
def test_no_spy_is_handed_anything_opaque(modules: list[str]) -> None:
    found = walked("spying", *modules)

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

    found = walked("spying", "--plant", leak)["found"]

    assert [each for each in found if planted.found in each] != []
