"""Objects that no reference count is written to any more, tried in a process that may keep them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from sealab.sandbox.worker.immortal import immortalize
class Thing:
    def __init__(self, *parts): self.parts = parts
kept = [Thing("a" * 40, 1.5, {"b": [1, 2]}) for _ in range(10)]
count = immortalize()
before = sys.getrefcount(kept[0]), sys.getrefcount(kept[0].parts[0])
held = [kept[0], kept[0].parts[0]] * 100
after = sys.getrefcount(kept[0]), sys.getrefcount(kept[0].parts[0])
del held
later = Thing()
assert sys.getrefcount(later) == 2
kept.clear()
kept.extend(Thing(n) for n in range(1000))
print(count > 1000, before == after, [thing.parts[0] for thing in kept] == list(range(1000)))
"""


def told() -> list[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 no object is immortal")
def test_what_exists_is_never_written_to_by_counting_and_what_comes_later_is():
    assert told() == ["True", "True", "True"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on there are immortal objects")
def test_an_older_interpreter_is_left_alone():
    assert told() == ["False", "False", "True"]
