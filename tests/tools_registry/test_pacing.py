"""However many lines a server sends in its event streams, others have the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealab.tools_registry.upstream import reading, sse_transport
from sealab.tools_registry.upstream.reading import Pace
from sealab.tools_registry.upstream.sse_transport import EndpointMissing


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(st.lists(st.binary(max_size=2_000) | st.sampled_from([b"\n" * 3_000, b"\r\n" * 700, b":x\n" * 999]), max_size=6))
@settings(max_examples=25)
async def test_nothing_is_lost_or_added(chunks: list[bytes]) -> None:
    assert b"".join([piece async for piece in Pace().of(stream(*chunks))]) == b"".join(chunks)


@pytest.mark.parametrize("line", [b"\n", b": comment\n", b"data\n", b"id: 7\r", b"data:\n\n"])
async def test_few_lines_are_given_on_in_one_step_of_the_loop(line: bytes) -> None:
    pieces = [piece async for piece in Pace().of(stream(line * 10_000))]
    assert max(piece.count(b"\n") + piece.count(b"\r") for piece in pieces) <= 250


async def test_beyond_a_burst_all_streams_of_a_server_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = 0.0
    now = 100.0

    async def sleep(seconds: float) -> None:
        nonlocal slept, now
        slept += seconds
        now += seconds

    monkeypatch.setattr(reading, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now))
    pace = Pace()
    for _ in range(4):
        async for _piece in pace.of(stream(b"\n" * 50_000)):
            pass
    assert slept == pytest.approx((200_000 - reading.LINES_AT_ONCE) / reading.LINES_PER_SECOND, rel=0.05)
    now += 3600
    slept = 0.0
    async for _piece in pace.of(stream(b"\n" * reading.LINES_AT_ONCE)):
        pass
    assert slept == 0


@pytest.mark.parametrize("named", ["//a" + "\u0301\u0316" * 9, "/m?" + "x" * 3_000, "http://other/m", "//other/m"])
def test_an_address_for_messages_that_is_long_or_elsewhere_is_refused_before_it_is_taken_apart(named: str) -> None:
    with pytest.raises(EndpointMissing):
        sse_transport._same_origin("http://here:1/sse", named)
    for own in ("/m?id=7", "https://here/m?id=7"):
        assert sse_transport._same_origin("http://here:1/sse", own) == "http://here:1/m?id=7"
