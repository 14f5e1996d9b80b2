"""Of the entries of a bounded dictionary those go that were set or used the longest ago."""

from __future__ import annotations

from sealab.server.base.lru import Lru


def test_the_entry_that_was_set_or_used_the_longest_ago_goes() -> None:
    kept: Lru[str, int] = Lru(3)
    kept |= {"a": 1, "b": 2, "c": 3}
    kept["a"] = 4
    assert kept.used("b") == 2
    assert kept.used("x") is None
    kept.setdefault("d", 5)
    assert list(kept.items()) == [("a", 4), ("b", 2), ("d", 5)]
