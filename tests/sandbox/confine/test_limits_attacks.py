"""Memory bombs of every grain: run them where they may go wrong (make adversarial WRAPPER=…)."""

from __future__ import annotations

import pytest

from sealab.sandbox.job import Status

from ..conftest import run

pytestmark = pytest.mark.adversarial

BOMBS = {
    "small objects": "keep = {}\nn = 0\nwhile True:\n    keep[n] = (n, str(n), [n])\n    n += 1",
    "one list": "keep = []\nwhile True:\n    keep.append(0)",
    "doubling text": "keep = 'x'\nwhile True:\n    keep += keep",
    "big blocks": "keep = []\nwhile True:\n    keep.append(bytearray(1 << 20))",
    "nested tuples": "keep = ()\nwhile True:\n    keep = (keep, keep, {})",
    "objects": "class A: pass\nkeep = []\nwhile True:\n    a = A()\n    a.b = keep\n    keep.append(a)",
    "caught": "keep = []\ntry:\n    while True:\n        keep.append([0])\nexcept ValueError:\n    pass",
    "caught and gone on": "keep = []\nwhile True:\n    try:\n        keep.append([0])\n    except MemoryError:\n        raise",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("session", [None, "a"], ids=["fresh", "session"])
async def test_a_memory_bomb_is_reported_as_such_every_time(pool, bomb, session):
    for _ in range(3):
        outcome = await run(pool, bomb, memory_mb=96, session=session)
        assert (outcome.status, outcome.error.type) == (Status.MEMORY, "MemoryError")
        assert "96 MB" in outcome.error.message
