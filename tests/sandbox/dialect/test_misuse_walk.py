"""Nothing that guest code can reach tells it what only the host has, however code uses it; and nothing changes the host.

The walk of `spy_walk` calls what it reaches with hostile arguments. This one uses it in places and ways that nobody
meant; see `misuse` for the rules. Each hostile step runs in a fork that can do no harm; see `forks`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import planted_leaks

_ROOT = Path(__file__).parents[3]
_SECONDS_MAX = 600
RULES = ("operators", "stores", "descriptors", "bases", "makers", "variables", "hooks")
pytestmark = [
    pytest.mark.timeout(_SECONDS_MAX + 20),
    pytest.mark.skipif(sys.platform == "emscripten", reason="WebAssembly has no processes to fork"),
]


def walked(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", f"{__package__}.misuse_walk", *arguments],
        cwd=_ROOT, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_no_use_of_what_code_reaches_tells_or_changes_what_only_the_host_has() -> None:
    report = walked(*RULES)

    assert report["reached"] > 5000
    assert report["slow"] == []
    assert {rule: steps for rule, steps in report["steps"].items() if not steps} == {}
    assert {rule: found for rule, found in report["found"].items() if found} == {}


@pytest.mark.parametrize("leak", planted_leaks.MISUSED)
def test_the_rule_finds_a_leak_that_is_put_back(leak: str) -> None:
    rule = leak.partition(":")[0]

    found = walked("--plant", leak)["found"][rule]

    assert [each for each in found if planted_leaks.MISUSED[leak].found in each] != []
