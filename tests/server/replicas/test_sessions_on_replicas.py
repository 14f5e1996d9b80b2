"""A session of code is one session, whichever server gets its calls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from ..protocol.web.raw import MODERN, Answer, begun, call, opened, post, read
from .conftest import Sealab


def report(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer
    return dict(answer.message["result"]["structuredContent"])


def run(url: str, code: str, session: str = "s", **more: Any) -> dict[str, Any]:
    return report(post(url, call(code, session=session, **more), **MODERN))


@pytest.mark.timeout(240)
def test_a_session_is_used_in_turns_through_all_servers(sealab: Callable[..., Sealab]) -> None:
    running = sealab(3)
    assert run(running.urls[0], "n = 0")["success"]
    for expected, url in zip(range(1, 100), cycle(running.urls), strict=False):
        assert run(url, "n += 1\nn")["result"] == expected
    assert [len(running.execute("SELECT * FROM sealab_session_lease"))] == [1]
    listed = run(running.urls[1], "list_sessions()")["result"]
    assert [each["name"] for each in listed] == ["s"]
