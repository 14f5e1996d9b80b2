"""The zygote's heap in huge pages, where the kernel merges them."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

LAID_OUT = """
import re
from sealab.sandbox.worker import huge_pages

def kilobytes(what):
    with open("/proc/self/smaps") as smaps:
        return sum(map(int, re.findall(rf"^{what}:\\s+(\\d+) kB", smaps.read(), re.MULTILINE)))

before = kilobytes("AnonHugePages")
huge_pages.reserve()
held = [[number] for number in range(100_000)]
heap = huge_pages.HeapMap()
heap.collapse()
assert held == [[number] for number in range(100_000)]
print(before, kilobytes("AnonHugePages"), kilobytes("Anonymous"))
"""

FILLED = """
from sealab.sandbox.worker import huge_pages

def pages():
    return len({id(block) >> 12 for block in [bytes(size) for size in range(1, 400, 16) for _ in range(3)]})

held = [bytes(size) for size in range(1, 400, 16) for _ in range(2000)]
del held[::40]
before = pages()
huge_pages.fill_pools()
print(before, pages())
"""


def test_what_a_filled_heap_allocates_next_lies_in_one_page_for_each_size():
    told = subprocess.run([sys.executable, "-c", FILLED], capture_output=True, text=True, check=True).stdout
    before, after = map(int, told.split())
    assert after <= 30 < before  # of 25 sizes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has madvise(2) with MADV_COLLAPSE")
def test_most_of_the_heap_comes_to_lie_in_huge_pages_and_holds_what_it_held():
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 1):
        pytest.skip("MADV_COLLAPSE came with Linux 6.1; on an older kernel forks take a little longer")
    told = subprocess.run([sys.executable, "-c", LAID_OUT], capture_output=True, text=True, check=True).stdout
    before, after, all_of_it = map(int, told.split())
    assert after - before > all_of_it / 3
