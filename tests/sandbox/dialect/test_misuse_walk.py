"""Nothing that guest code can reach tells it what only the host has, however code uses it; and nothing changes the host.

The walk of `spying` calls what it reaches with hostile arguments. This one uses it in places and ways that nobody
meant; see `misuse` for the rules. Each hostile step runs in a fork that can do no harm; see `forks`.
"""

from __future__ import annotations

import sys

import pytest

from . import planted_leaks
from .walks import SECONDS_MAX, walked

RULES = ("operators", "stores", "descriptors", "bases", "makers", "variables", "hooks")
pytestmark = [
    pytest.mark.timeout(SECONDS_MAX + 20),
    pytest.mark.skipif(sys.platform == "emscripten", reason="WebAssembly has no processes to fork"),
]


def test_no_use_of_what_code_reaches_tells_or_changes_what_only_the_host_has() -> None:
    report = walked("misuse", *RULES)

    assert report["reached"] > 5000
    assert report["slow"] == []
    assert {rule: steps for rule, steps in report["steps"].items() if not steps} == {}
    assert {rule: found for rule, found in report["found"].items() if found} == {}


@pytest.mark.parametrize("leak", planted_leaks.MISUSED)
def test_the_rule_finds_a_leak_that_is_put_back(leak: str) -> None:
    rule = leak.partition(":")[0]

    found = walked("misuse", "--plant", leak)["found"][rule]

    assert [each for each in found if planted_leaks.MISUSED[leak].found in each] != []
